//! Validity of the whole run: CPU time lost to the hypervisor, and limits of control groups.

use fathom_record::Validity;

use super::contention::overheated;
use super::{RunEvidence, figure, percent, validity};

/// Judges the whole run by every check that applies.
pub(crate) fn judge_run(run: &RunEvidence) -> Vec<Validity> {
    let judgements = [
        stolen_time(run),
        throttled(run),
        overheated(run),
        limited_io(run),
    ];
    judgements.into_iter().flatten().collect()
}

/// Judges CPU time stolen by the hypervisor.
fn stolen_time(run: &RunEvidence) -> Option<Validity> {
    let (before, after) = run.cpu?;
    let total = after.total_us.saturating_sub(before.total_us);
    let stolen = after.stolen_us.saturating_sub(before.stolen_us);
    let percent = percent(stolen, total)?;
    let ok = percent < STOLEN_PERCENT;
    let sentence = if ok {
        format!("the hypervisor took {percent:.1} % of the CPU time")
    } else {
        format!(
            "the hypervisor took {percent:.1} % of the CPU time: latencies include waits that the \
             storage does not cause"
        )
    };
    let figures = vec![figure("stolen_percent", percent)];
    Some(validity("stolen_time", ok, sentence, figures))
}

/// Checks that no cgroup limit throttled the CPUs.
fn throttled(run: &RunEvidence) -> Option<Validity> {
    let (before, after, wall_ns) = run.processor?;
    let held_us = after.throttled_us.saturating_sub(before.throttled_us);
    let percent = percent(held_us, wall_ns / 1_000)?;
    let ok = percent < STOLEN_PERCENT;
    let cpus = after.cpus;
    let sentence = if ok {
        format!("the cgroup limit of {cpus:.1} CPUs did not throttle the run")
    } else {
        format!(
            "the cgroup limit of {cpus:.1} CPUs throttled the run for {percent:.0} % of its time: \
             latencies include waits that the storage does not cause"
        )
    };
    let figures = vec![
        figure("throttled_percent", percent),
        figure("cpu_limit", cpus),
    ];
    Some(validity("cpu_limit", ok, sentence, figures))
}

/// Checks that no cgroup limits I/O to the measured devices.
fn limited_io(run: &RunEvidence) -> Option<Validity> {
    let limits = Some(run.io_limits.join(", ")).filter(|limits| !limits.is_empty())?;
    let sentence = format!(
        "a cgroup limits I/O to the run's devices ({limits}): the limit, not the device, may be \
         the bottleneck"
    );
    Some(validity("io_limit", false, sentence, Vec::new()))
}

/// One percent is enough to move a p99.
const STOLEN_PERCENT: f64 = 1.0;
