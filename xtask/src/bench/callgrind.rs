//! User-space instructions per op, counted by callgrind.
//!
//! The same job runs at two lengths. Start and end cost the same in both, so the difference is the
//! cost of the additional ops. It repeats to a fraction of an instruction.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::process;

/// Counts Fathom's instructions per op of a job.
pub(crate) fn count(valgrind: &Path, fathom: &Path, job: &[&str]) -> Result<f64> {
    let short = process_instructions(valgrind, fathom, job, SHORT_OPS)?;
    let long = process_instructions(valgrind, fathom, job, LONG_OPS)?;
    per_op(short, long).context("the longer run took no more instructions than the shorter one")
}

/// Counts the instructions of a whole process that executes `ops` ops of 4 KiB.
fn process_instructions(valgrind: &Path, fathom: &Path, job: &[&str], ops: u32) -> Result<u64> {
    let mut command = Command::new(valgrind);
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(fathom)
        .args(["run", "--name=bench", "--thread", "--output-format=json"])
        .args(job)
        .arg(format!("--io_size={}k", ops * 4));
    let line = process::shown(&command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{line}`"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("`{line}` failed: {}\n{said}", output.status);
    }
    collected(&said).with_context(|| format!("`{line}` printed no count:\n{said}"))
}

/// Parses the count from callgrind's last lines: `==12== Collected : 345`.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("Collected : "))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn per_op(short: u64, long: u64) -> Option<f64> {
    let more = long.checked_sub(short).filter(|&more| more > 0)?;
    #[expect(clippy::cast_precision_loss, reason = "counts here are far below 2⁵²")]
    Some(more as f64 / f64::from(LONG_OPS - SHORT_OPS))
}

/// Ops of the shorter run, enough to warm up every table of the loop.
const SHORT_OPS: u32 = 100_000;
/// Ops of the longer run: the variation between runs, some 10,000 instructions, is then 0.05 per
/// op.
const LONG_OPS: u32 = 300_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_stands_at_the_end_of_its_line() {
        let said = "==7== Events    : Ir\n==7== Collected : 59644827\n==7== \n";
        assert_eq!(collected(said), Some(59_644_827));
        assert_eq!(collected("==7== Collected : many"), None);
        assert_eq!(collected(""), None);
    }

    #[test]
    fn what_both_lengths_cost_does_not_count() {
        let start = 12_345_678;
        let short = start + 150 * u64::from(SHORT_OPS);
        let long = start + 150 * u64::from(LONG_OPS);
        assert_eq!(per_op(short, long), Some(150.0));
        assert_eq!(per_op(long, short), None);
    }
}
