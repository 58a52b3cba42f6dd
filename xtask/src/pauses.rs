//! `cargo xtask pauses`: the tasks that preempt a job with I/O logs, and for how long.
//!
//! A job with a rate reads a file in memory, alternately without logs and with every op logged,
//! while scheduler switches are traced (`perf record`, as root). Tasks that run instead of the job
//! for more than 100 µs are listed by name. Pauses caused by logging would appear under `log
//! writer`, or as waits of the job itself, of which there are none without a log.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::bench::LogFolder;
use crate::process;

/// Runs `cargo xtask pauses [--runs N] [--fathom FILE]`.
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
    let mut series = [RunSeries::default(), RunSeries::default()];
    for number in 0..runs {
        for (runs_of_kind, logged) in series.iter_mut().zip([false, true]) {
            let Some(trace_run) = trace_run(&fathom, folder.path(), logged)? else {
                println!("skipped: tracing the scheduler needs root");
                return Ok(());
            };
            // The first run lays out the file.
            if number > 0 || runs == 1 {
                runs_of_kind.add(trace_run);
            }
        }
    }
    for (runs_of_kind, name) in series
        .iter()
        .zip(["without a log", "every op in three logs"])
    {
        runs_of_kind.print(name);
    }
    Ok(())
}

/// Measurements of all runs with, or without, a log.
#[derive(Debug, Default)]
struct RunSeries {
    /// p99.9 of clat, ns.
    clat: Vec<u64>,
    /// By the task that ran instead: number of pauses over the limit, and the longest pause, ns.
    pauses: BTreeMap<String, (u64, u64)>,
}

impl RunSeries {
    fn add(&mut self, trace_run: TracedRun) {
        self.clat.push(trace_run.clat_ns);
        for (who, length) in trace_run.pauses {
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
struct TracedRun {
    clat_ns: u64,
    /// Each task that ran instead of the job, and for how long, ns.
    pauses: Vec<(String, u64)>,
}

/// Runs the job once while tracing the scheduler; `None` if tracing is not permitted.
fn trace_run(fathom: &Path, folder: &Path, logged: bool) -> Result<Option<TracedRun>> {
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
    // A large buffer, so that no event is lost.
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
        let stderr = String::from_utf8_lossy(&output.stderr);
        if stderr.contains("ermission") || stderr.contains("paranoid") {
            return Ok(None);
        }
        bail!("`{}` failed: {stderr}", process::shown(&command));
    }
    let mut script = Command::new("perf");
    script.args(["script", "--input"]).arg(&trace);
    let script = process::capture(script.args(["--fields", "time,event,trace,sym,ip"]))?;
    let report: Value = serde_json::from_slice(&std::fs::read(&report)?)?;
    let clat = &report["jobs"][0]["read"]["clat_ns"]["percentile"]["99.900000"];
    Ok(Some(TracedRun {
        clat_ns: clat.as_u64().context("the report has no p99.9 of clat")?,
        pauses: pauses(&script),
    }))
}

/// Returns the spans in which the job did not run, after its start, each with the task that ran
/// instead or the reason why the job waited.
fn pauses(script: &str) -> Vec<(String, u64)> {
    let mut spans = Vec::new();
    let mut away: Option<(u64, String)> = None;
    let mut began = None;
    for line in script.lines() {
        let Some(switch) = Switch::of(line) else {
            // A line of the stack of the thread that was switched out.
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
                // The job may have been runnable long before the writer yielded.
                let who = match who.as_str() {
                    _ if switch.from == WRITER => WRITER.to_owned(),
                    UNKNOWN => OTHER_WAIT.to_owned(),
                    _ => who,
                };
                spans.push((since, who, switch.at.saturating_sub(since)));
            }
            began.get_or_insert(switch.at);
        } else if switch.from == NAME {
            // Not runnable: the job waits for something itself.
            let was_stopped = switch.state.starts_with('R');
            let who = if was_stopped { switch.to } else { UNKNOWN };
            away = Some((switch.at, who.to_owned()));
        } else if let Some((_, who)) = &mut away
            && who == UNKNOWN
        {
            // The stack had no known function.
            OTHER_WAIT.clone_into(who);
        }
    }
    let from = began.unwrap_or(0) + START_NS;
    let spans = spans.into_iter().filter(|span| span.0 >= from);
    spans.map(|(_, who, length)| (who, length)).collect()
}

/// One line of the trace.
#[derive(Debug, PartialEq, Eq)]
struct Switch<'a> {
    /// Time, ns.
    at: u64,
    from: &'a str,
    /// State of the thread that is switched out.
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

/// Name of the job, and of its thread.
const NAME: &str = "paced";

/// Name of the thread that writes the logs.
const WRITER: &str = "log writer";

/// Arguments of the job. It runs for 0.9 s, because the kernel throttles real-time tasks after 0.95
/// s of each second.
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

/// Kernel functions in which a thread waits, with the reason.
const WAITS: [(&str, &str); 4] = [
    ("nanosleep", "it sleeps until an op is due"),
    ("futex", "it waits for a lock"),
    ("fault", "it waits for memory"),
    ("write", "it waits for a file"),
];

/// Placeholder until the reason of a wait is found.
const UNKNOWN: &str = "";

const OTHER_WAIT: &str = "nobody: it waits for something else";

/// Longest pause that a log may add.
const LIMIT_NS: u64 = 100_000;

/// Start of the job, which is not measured: it waits for the start barrier and opens its file.
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
