//! `cargo xtask pauses`: who takes the processor from a job with I/O logs, and for how long.
//!
//! A paced job reads a file in memory, in turn without a log and with one for every op, while the
//! kernel's scheduler is traced (`perf record`, as root). Whatever runs in the job's place for
//! more than 100 µs is told by its name: the log's own pauses would stand under `log writer`, or
//! under the job's own waits, of which there are none without a log.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::bench::LogFolder;
use crate::process;

/// `cargo xtask pauses [--runs N] [--fathom FILE]`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let (mut runs, mut fathom) = (10, process::root()?.join("target/release/fathom"));
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let mut value = || {
            words
                .next()
                .with_context(|| format!("{word} needs a value"))
        };
        match word.as_str() {
            "--runs" => runs = value()?.parse().context("--runs")?,
            "--fathom" => fathom = PathBuf::from(value()?),
            other => bail!("pauses has no option `{other}`: only --runs and --fathom"),
        }
    }
    for program in ["perf", "chrt"] {
        if process::find(program).is_none() {
            println!("skipped: no {program}");
            return Ok(());
        }
    }
    if !fathom.exists() {
        bail!("{}: not there: `cargo build --release`", fathom.display());
    }
    let folder = LogFolder::new()?;
    let mut kinds = [Kind::default(), Kind::default()];
    for number in 0..runs {
        for (kind, logged) in kinds.iter_mut().zip([false, true]) {
            let Some(traced) = traced(&fathom, folder.path(), logged)? else {
                println!("skipped: the scheduler cannot be traced; it takes root");
                return Ok(());
            };
            // The first one lays out the file.
            if number > 0 || runs == 1 {
                kind.add(traced);
            }
        }
    }
    for (kind, name) in kinds
        .iter()
        .zip(["without a log", "every op in three logs"])
    {
        kind.print(name);
    }
    Ok(())
}

/// Measurements of all runs with, or without, a log.
#[derive(Debug, Default)]
struct Kind {
    /// p99.9 of clat, ns.
    clat: Vec<u64>,
    /// By who ran instead: pauses longer than the limit, and the longest of all, ns.
    pauses: BTreeMap<String, (u64, u64)>,
}

impl Kind {
    fn add(&mut self, traced: Traced) {
        self.clat.push(traced.clat_ns);
        for (who, length) in traced.pauses {
            let seen = self.pauses.entry(who).or_default();
            seen.0 += u64::from(length > LIMIT_NS);
            seen.1 = seen.1.max(length);
        }
    }

    fn print(&self, name: &str) {
        let (min, max) = (self.clat.iter().min(), self.clat.iter().max());
        println!(
            "{name}: {} runs, p99.9 of clat {} to {} ns",
            self.clat.len(),
            min.unwrap_or(&0),
            max.unwrap_or(&0)
        );
        println!("  {:>9}  {:>9}  instead of the job", "> 100 µs", "longest");
        for (who, (count, longest)) in &self.pauses {
            println!("  {count:>9}  {:>6} µs  {who}", longest / 1000);
        }
    }
}

/// Measurement of one traced run.
struct Traced {
    clat_ns: u64,
    /// Each task that ran instead of the job, and its time, ns.
    pauses: Vec<(String, u64)>,
}

/// Runs the job once under the scheduler's trace; `None` where that is not allowed.
fn traced(fathom: &Path, folder: &Path, logged: bool) -> Result<Option<Traced>> {
    let trace = folder.join("trace");
    let report = folder.join("report.json");
    let mut command = Command::new("perf");
    command.args([
        "record",
        "--quiet",
        "--all-cpus",
        "-g",
        "--event",
        "sched:sched_switch",
    ]);
    // The clock that the kernel stamps events with; a large buffer, so that none is lost.
    command
        .args(["--mmap-pages", "4096", "--output"])
        .arg(&trace);
    command.args(["--", "chrt", "--fifo", "1"]).arg(fathom);
    command
        .args(JOB)
        .arg(format!("--output={}", report.display()));
    command.arg(format!("--filename={}", folder.join("data").display()));
    if logged {
        command.arg(format!("--write_lat_log={}", folder.join("log").display()));
    }
    let output = command.output().context("perf record")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("ermission") || said.contains("paranoid") {
            return Ok(None);
        }
        bail!("`{}` failed: {said}", process::shown(&command));
    }
    let mut script = Command::new("perf");
    script.args(["script", "--input"]).arg(&trace);
    let script = process::capture(script.args(["--fields", "time,event,trace,sym,ip"]))?;
    let report: Value = serde_json::from_slice(&std::fs::read(&report)?)?;
    let clat = &report["jobs"][0]["read"]["clat_ns"]["percentile"]["99.900000"];
    Ok(Some(Traced {
        clat_ns: clat.as_u64().context("the report has no p99.9 of clat")?,
        pauses: pauses(&script),
    }))
}

/// The spans for which the job did not run, after its start; who ran instead, or what it waited
/// for.
fn pauses(script: &str) -> Vec<(String, u64)> {
    let mut spans = Vec::new();
    let mut away: Option<(u64, String)> = None;
    let mut began = None;
    for line in script.lines() {
        let Some(switch) = Switch::of(line) else {
            // A function that the thread is in which was switched away from.
            let known = WAITS.iter().find(|(name, _)| line.contains(name));
            if let (Some((_, why)), Some((_, who))) = (known, &mut away)
                && who == UNKNOWN
            {
                *who = format!("nobody: {why}");
            }
            continue;
        };
        if switch.to == NAME {
            if let Some((since, who)) = away.take() {
                // It may have been due long before the writer let it in.
                let who = match who.as_str() {
                    _ if switch.from == WRITER => WRITER.to_owned(),
                    UNKNOWN => ELSE.to_owned(),
                    _ => who,
                };
                spans.push((since, who, switch.at.saturating_sub(since)));
            }
            began.get_or_insert(switch.at);
        } else if switch.from == NAME {
            // One that was not stopped waits for something of its own.
            let was_stopped = switch.state.starts_with('R');
            let who = if was_stopped { switch.to } else { UNKNOWN };
            away = Some((switch.at, who.to_owned()));
        } else if let Some((_, who)) = &mut away
            && who == UNKNOWN
        {
            // The stack ended with nothing that is known.
            ELSE.clone_into(who);
        }
    }
    let from = began.unwrap_or(0) + START_NS;
    let spans = spans.into_iter().filter(|span| span.0 >= from);
    spans.map(|(_, who, length)| (who, length)).collect()
}

/// One line of the trace.
#[derive(Debug, PartialEq, Eq)]
struct Switch<'a> {
    /// ns.
    at: u64,
    from: &'a str,
    /// Of the thread that goes.
    state: &'a str,
    to: &'a str,
}

impl<'a> Switch<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let (time, rest) = line.split_once(": sched:sched_switch: ")?;
        let (seconds, micros) = time.trim().split_once('.')?;
        let at = seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?;
        let between = |begin: &str, end: &str| {
            let (_, rest) = rest.split_once(begin)?;
            Some(rest.split_once(end)?.0)
        };
        Some(Self {
            at: at * 1000,
            from: between("prev_comm=", " prev_pid=")?,
            state: between("prev_state=", " ==>")?,
            to: between("next_comm=", " next_pid=")?,
        })
    }
}

/// The job's name, and so its thread's.
const NAME: &str = "paced";

/// The name of the thread that writes the logs.
const WRITER: &str = "log writer";

/// 0.9 s: the kernel leaves real-time programs alone for so long in every second.
const JOB: [&str; 11] = [
    "run",
    "--name=paced",
    "--thread",
    "--ioengine=psync",
    "--rw=randread",
    "--bs=4k",
    "--size=64m",
    "--rate_iops=100000",
    "--time_based",
    "--runtime=900ms",
    "--output-format=json",
];

/// Functions of the kernel, and what a thread that waits in them waits for.
const WAITS: [(&str, &str); 4] = [
    ("nanosleep", "it sleeps until an op is due"),
    ("futex", "it waits for a lock"),
    ("fault", "it waits for memory"),
    ("write", "it waits for a file"),
];

/// While nothing is known of what it waits for.
const UNKNOWN: &str = "";

const ELSE: &str = "nobody: it waits for something else";

/// Longest pause that a log may add.
const LIMIT_NS: u64 = 100_000;

/// The job's start, where it waits for the gate and opens its file: not measured.
const START_NS: u64 = 20_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at: &str, from: &str, state: &str, to: &str) -> String {
        format!(
            " 26{at}: sched:sched_switch: prev_comm={from} prev_pid=7 prev_prio=120 \
             prev_state={state} ==> next_comm={to} next_pid=8 next_prio=120\n"
        )
    }

    #[test]
    fn pauses_are_told_by_who_ran_instead() {
        let script = [
            line("1.000000", "swapper/0", "R", "paced"),
            line("1.001000", "paced", "S", "rustc"),
            line("1.009000", "rustc", "R", "paced"),
            line("1.100000", "paced", "R+", "log writer"),
            line("1.100010", "log writer", "S", "kworker/0:1"),
            line("1.100150", "kworker/0:1", "I", "paced"),
            line("1.200000", "a", "S", "b"),
            line("1.300000", "paced", "S", "b"),
            "  ffff __schedule\n  ffff futex_do_wait\n\n".to_owned(),
            line("1.300003", "b", "S", "a"),
            "  ffff clock_nanosleep\n\n".to_owned(),
            line("1.300007", "a", "S", "paced"),
            line("1.400000", "paced", "D", "b"),
            line("1.400009", "b", "S", "paced"),
            line("1.500000", "paced", "S", "log writer"),
            line("1.500011", "log writer", "S", "paced"),
        ];
        let want = [
            ("log writer".to_owned(), 150_000),
            ("nobody: it waits for a lock".to_owned(), 7_000),
            ("nobody: it waits for something else".to_owned(), 9_000),
            ("log writer".to_owned(), 11_000),
        ];
        assert_eq!(pauses(&script.concat()), want);
    }
}
