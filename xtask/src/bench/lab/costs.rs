//! Costs of a lab beside its runs: a window of a timeline, the time between two runs, and what the
//! history adds to a build.
//!
//! All three are measured in real time, so other load on the machine makes them larger, never
//! smaller: of windows and runs the median of several parts counts.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use fathom_stats::{Addition, Histogram, Timeline};

use super::Bench;
use crate::process;

/// A cost and the largest that is allowed.
#[derive(Debug)]
pub(super) struct Cost {
    pub(super) name: &'static str,
    pub(super) value: f64,
    pub(super) unit: &'static str,
    pub(super) most: f64,
}

impl Cost {
    pub(super) fn is_met(&self) -> bool {
        self.value <= self.most
    }
}

impl Bench {
    /// Measures the costs; those of a build take minutes, and are left out unless asked for.
    pub(super) fn costs(&self, has_build: bool) -> Result<Vec<Cost>> {
        let mut costs = vec![
            Cost {
                name: "timeline: a job and window",
                value: window_us(),
                unit: "µs",
                most: 20.0,
            },
            Cost {
                name: "lab: between two runs of a process each",
                value: self.between_runs_ms()?,
                unit: "ms",
                most: 50.0,
            },
        ];
        if has_build {
            costs.extend(history(&self.folder.join("build"))?);
        }
        Ok(costs)
    }

    /// Returns the time of a lab per run that no run measured, with the history as users have it.
    fn between_runs_ms(&self) -> Result<f64> {
        let file = self.folder.join("between.toml");
        fs::write(&file, BETWEEN)?;
        let mut parts = Vec::new();
        for _ in 0..PARTS {
            let mut command = Command::new(&self.programs.fathom);
            command.arg("lab").arg(&file).args(["--fresh", "--json"]);
            command.env("FATHOM_HISTORY", self.folder.join("between.db"));
            let started = process::now();
            let output = command.output()?;
            let took_ms = started.elapsed().as_secs_f64() * 1e3;
            // 1: a verdict says `worse`, which does not matter here.
            if output.status.code().is_none_or(|code| code > 1) {
                bail!("between.toml: {}", String::from_utf8_lossy(&output.stderr));
            }
            parts.push(took_ms / RUNS - RUN_MS);
        }
        Ok(median(parts))
    }
}

/// Returns the time in which a job adds a window of a busy run, µs: ops over four decades of
/// latency, as on a drive that stalls now and then.
fn window_us() -> f64 {
    let mut timeline = Timeline::new(true);
    let (mut now, mut before) = (Histogram::new(), Histogram::new());
    let mut parts = Vec::new();
    let mut at_ns = 0;
    for _ in 0..PARTS {
        let mut taken = 0.0;
        for window in 0..WINDOWS {
            let (mut least, mut most) = (u64::MAX, 0);
            for op in 0..OPS {
                // 10 µs to 100 ms, another sequence in each window.
                let drawn = (op * 7919 + window * 104_729) % 10_000;
                let latency_ns = 10_000 + drawn * drawn;
                now.record(latency_ns);
                (least, most) = (least.min(latency_ns), most.max(latency_ns));
            }
            let started = process::now();
            timeline.add(
                at_ns,
                at_ns,
                Addition {
                    ios: OPS,
                    bytes: OPS * 4096,
                    bounds: Some((least, most)),
                    histograms: Some((&now, &mut before)),
                },
            );
            taken += started.elapsed().as_secs_f64() * 1e6;
            let (_, end_ns) = Timeline::window_at(at_ns);
            at_ns = end_ns;
        }
        parts.push(taken / WINDOWS as f64);
    }
    median(parts)
}

/// Returns what the history adds to a build on one core, and to the program.
fn history(folder: &Path) -> Result<[Cost; 2]> {
    let build = |features: &[&str]| -> Result<(f64, f64)> {
        let mut command = process::cargo();
        command.args(["build", "--release", "--jobs=1", "--package=fathom-cli"]);
        command
            .args(["--bin=fathom", "--no-default-features"])
            .args(features);
        command.arg("--target-dir").arg(folder);
        command.current_dir(process::root()?);
        let started = process::now();
        process::run(&mut command)?;
        let seconds = started.elapsed().as_secs_f64();
        let program = folder.join("release/fathom");
        let bytes = fs::metadata(&program).with_context(|| program.display().to_string())?;
        Ok((seconds, bytes.len() as f64 / 1e6))
    };
    build(&[])?;
    // The crates that depend on the feature are built again with it: that time is not its own.
    let mut clean = process::cargo();
    clean.args([
        "clean",
        "--release",
        "--package=fathom-lab",
        "--package=fathom-cli",
    ]);
    clean.arg("--target-dir").arg(folder);
    process::run(clean.current_dir(process::root()?))?;
    let (again_s, without_mb) = build(&[])?;
    let (with_s, with_mb) = build(&["--features=history"])?;
    Ok([
        Cost {
            name: "feature `history`: building",
            value: with_s - again_s,
            unit: "s",
            most: 60.0,
        },
        Cost {
            name: "feature `history`: size of the program",
            value: with_mb - without_mb,
            unit: "MB",
            most: 2.5,
        },
    ])
}

/// Formats the costs as a table.
pub(super) fn table(costs: &[Cost]) -> String {
    let mut text = String::from("| cost | measured | at most |\n|---|--:|--:|\n");
    for cost in costs {
        let short = if cost.is_met() { "" } else { ": short" };
        text += &format!(
            "| {} | {:.2} {unit} | {} {unit}{short} |\n",
            cost.name,
            cost.value,
            cost.most,
            unit = cost.unit
        );
    }
    text
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    fathom_stats::median(&values)
}

/// Lab of short runs on this machine: no device, so that its time is the lab's own.
const BETWEEN: &str = r#"[lab]
name = "between"
[job]
ioengine = "null"
rw = "randread"
bs = "4k"
size = "1g"
time_based = true
runtime = "100ms"
[variants]
one = {}
other = { iodepth = 2 }
[judge]
baseline = "one"
metrics = { "read.iops" = "5%" }
repeats = { min = 10, max = 10, stop = "never" }
"#;

/// Runs of that lab, and the time that each measures.
const RUNS: f64 = 20.0;
const RUN_MS: f64 = 100.0;

/// Parts of which the median is taken.
const PARTS: u32 = 5;

/// Windows of a part, and ops of a window.
const WINDOWS: u64 = 500;
const OPS: u64 = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_beyond_its_bound_is_short() {
        let cost = |value| Cost {
            name: "a",
            value,
            unit: "µs",
            most: 20.0,
        };
        let text = table(&[cost(20.0), cost(20.1)]);
        assert!(text.contains("| a | 20.00 µs | 20 µs |\n"), "{text}");
        assert!(text.contains("| a | 20.10 µs | 20 µs: short |\n"), "{text}");
    }
}
