//! The figures as metrics of the names that the record's have (`--metrics-file`).

use std::borrow::Cow;

use fathom_core::Direction;
use fathom_report::{DirectionMetrics, RunMetrics, openmetrics};
use fathom_setup::{Snapshot, all_latencies};
use fathom_stats::{Histogram, Latency};

use crate::live::{AlikeJobs, Figures, RunPhase, within};

/// Media type of [`metrics`].
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns the figures as OpenMetrics. Counters only grow: they have the ops of the ramp time, too,
/// which the record leaves out.
pub(super) fn metrics(figures: &Figures) -> String {
    let snapshot = &*figures.snapshot;
    let disks = figures.disks.iter();
    let mut metrics = RunMetrics::default();
    metrics.is_running = figures.running > 0 && figures.phase != RunPhase::Ended;
    metrics.warnings =
        figures.warnings.len() + usize::try_from(figures.more_warnings).unwrap_or(usize::MAX);
    metrics.disks = disks
        .map(|disk| (disk.name.as_str().into(), disk.util_percent / 100.0))
        .collect();
    for jobs in figures.alike.iter() {
        let members = snapshot.jobs.get(jobs.jobs.clone()).unwrap_or_default();
        let in_flight = members.iter().map(|job| u64::from(job.in_flight)).sum();
        let name = Cow::from(jobs.name.as_str());
        metrics.in_flight.push((name, jobs.group, in_flight));
        for direction in Direction::ALL {
            if let Some(direction) = of_direction(jobs, direction, snapshot) {
                metrics.add(direction);
            }
        }
    }
    openmetrics(&metrics)
}

/// Returns the figures of a direction of these jobs; `None` if they have no such op.
fn of_direction<'a>(
    jobs: &'a AlikeJobs,
    direction: Direction,
    snapshot: &Snapshot,
) -> Option<DirectionMetrics<'a>> {
    let members = snapshot.jobs.get(jobs.jobs.clone())?;
    let ops: u64 = members.iter().map(|job| job.ios[direction]).sum();
    let elapsed = members.iter().map(|job| job.elapsed.as_millis()).max();
    (ops > 0).then(|| DirectionMetrics {
        job: jobs.name.as_str().into(),
        group: jobs.group,
        direction: direction.name(),
        ops,
        bytes: members.iter().map(|job| job.bytes[direction]).sum(),
        runtime_ms: elapsed.unwrap_or_default(),
        latencies: latencies(jobs, direction, snapshot).into_iter().collect(),
    })
}

/// Returns kind and distribution of the latencies; `None` if they are of several kinds, or counted
/// with those of other jobs.
fn latencies<'a>(
    jobs: &AlikeJobs,
    direction: Direction,
    snapshot: &Snapshot,
) -> Option<(&'static str, Cow<'a, Latency>)> {
    let counts = || within(&snapshot.latencies, &jobs.jobs);
    let mut kinds = counts().map(|one| one.kinds[direction]);
    let first = kinds.next()??;
    if kinds.any(|kind| kind != Some(first)) {
        return None;
    }
    let mut latency = Latency::new(true);
    let histogram: Histogram = all_latencies(counts(), direction);
    for (ns, count) in histogram.bins() {
        latency.record_n(ns, count);
    }
    Some((first.name(), Cow::Owned(latency)))
}
