//! User-space instructions of an op, counted by callgrind.
//!
//! The same job is run at two lengths. What start and end cost is the same in both, so the
//! difference is what the ops between cost; it repeats to a fraction of an instruction.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::process;

/// Instructions per op of a job by fathom.
pub(crate) fn count(valgrind: &Path, fathom: &Path, job: &[&str]) -> Result<f64> {
    let short = whole(valgrind, fathom, job, SHORT_OPS)?;
    let long = whole(valgrind, fathom, job, LONG_OPS)?;
    per_op(short, long).context("the longer run took no more instructions than the shorter one")
}

/// Instructions of a whole process that does so many ops of 4 KiB.
fn whole(valgrind: &Path, fathom: &Path, job: &[&str], ops: u32) -> Result<u64> {
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
    collected(&said).with_context(|| format!("`{line}` told no count:\n{said}"))
}

/// The count in what callgrind says at its end: `==12== Collected : 345`.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("Collected : "))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn per_op(short: u64, long: u64) -> Option<f64> {
    let more = long.checked_sub(short).filter(|&more| more > 0)?;
    #[expect(clippy::cast_precision_loss, reason = "counts here are far below 2⁵²")]
    Some(more as f64 / f64::from(LONG_OPS - SHORT_OPS))
}

/// Enough that every table of the loop is warm.
const SHORT_OPS: u32 = 100_000;
/// Makes the difference between two runs, some 10,000 instructions, 0.05 per op.
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
