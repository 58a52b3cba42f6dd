//! Deviation from the schedule of a rate, from the times at which ops reach the kernel.

use anyhow::{Context, Result, bail};
use fathom_trace::trace_submissions;

use super::super::pairs::Bench;
use super::super::programs::Program;
use super::super::row::Row;
use super::clat::traced;
use super::{per_mille, percentile};
use crate::process;

/// Runs the job once at this rate, traced, and returns a value in ns per check.
pub(crate) fn values(bench: &Bench, row: &Row, program: Program, rate: u32) -> Result<Vec<f64>> {
    bench.warm(row)?;
    let mut command = bench.job(program, row, bench.one_core(), bench.seconds)?;
    command.arg(format!("--rate_iops={rate}"));
    // This thread starts the program.
    let trace =
        trace_submissions(std::process::id(), BLOCK_BYTES).map_err(|error| traced(&error))?;
    process::capture(&mut command)?;
    let submissions = trace.finish().map_err(|error| traced(&error))?;
    if submissions.lost_events > 0 {
        bail!("{} events were lost", submissions.lost_events);
    }
    let deviations = deviations(&submissions.at_ns, rate).context("no op was submitted")?;
    let value = |per_mille| {
        #[expect(
            clippy::cast_precision_loss,
            reason = "times of a run are below 2⁵² ns"
        )]
        percentile(&deviations, per_mille).map(|ns| ns as f64)
    };
    let checks = row.checks.iter();
    checks
        .map(|check| value(per_mille(check.measure)))
        .collect()
}

/// Returns how much later than the schedule each op was submitted, sorted; `None` of no ops.
///
/// The schedule has op k at k ÷ rate after its start, which is not known: it is the latest that
/// leaves no op early.
fn deviations(at_ns: &[u64], rate: u32) -> Option<Vec<u64>> {
    let lead = |(index, &at_ns): (usize, &u64)| {
        let due = index as u128 * 1_000_000_000 / u128::from(rate);
        i128::from(at_ns) - due.cast_signed()
    };
    let leads: Vec<i128> = at_ns.iter().enumerate().map(lead).collect();
    let start = *leads.iter().min()?;
    let late = leads.iter().map(|lead| u64::try_from(lead - start));
    let mut late: Vec<u64> = late.collect::<Result<_, _>>().ok()?;
    late.sort_unstable();
    Some(late)
}

/// `bs` of the job.
const BLOCK_BYTES: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_fitted_so_that_no_op_is_early() {
        let exact: Vec<u64> = (0..5).map(|index| 77 + index * 1000).collect();
        assert_eq!(deviations(&exact, 1_000_000), Some(vec![0; 5]));
        // The first op is late, and one other.
        let late = [90, 1077, 2077, 3177, 4077];
        assert_eq!(deviations(&late, 1_000_000), Some(vec![0, 0, 0, 13, 100]));
        // A rate that is too low by 1 % falls behind, op by op.
        let slow = [0, 1010, 2020];
        assert_eq!(deviations(&slow, 1_000_000), Some(vec![0, 10, 20]));
        assert_eq!(deviations(&[], 1000), None);
    }
}
