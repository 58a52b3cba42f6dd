//! Latencies by I/O priority.

use fathom_stats::Latency;

use super::figures::{curves, points_of};
use super::tables::{LATENCIES, Reported, bounded, directions, latency_cells};
use crate::group::ReportedJob;
use crate::page::Page;
use crate::priorities::{sampled, spelled, timed};

/// Writes the latencies of each priority, if ops of a direction had several.
pub(super) fn priorities(page: &mut Page, jobs: &[ReportedJob<'_>]) {
    let entries: Vec<(String, &Latency)> = jobs
        .iter()
        .flat_map(|job| {
            let (kind, _) = timed(&job.job.display);
            let own = directions(std::slice::from_ref(job));
            own.flat_map(move |one| entries(&one, kind))
                .collect::<Vec<_>>()
        })
        .collect();
    if entries.is_empty() {
        return;
    }
    page.heading(2, "Priorities");
    let rows = entries.iter().map(|(name, latency)| {
        let mut row = vec![name.clone(), latency.summary.count().to_string()];
        row.extend(latency_cells(latency));
        row
    });
    let rows = rows.collect();
    let mut heads = vec!["job, direction, priority and interval", "ops"];
    heads.extend(LATENCIES);
    bounded(page, "Latency by priority", &heads, rows);
    page.paragraph(PRIORITIES);
    let drawn = entries
        .iter()
        .filter_map(|(name, latency)| Some((name.clone(), points_of(latency)?)));
    curves(page, "Latency by percentile and priority", drawn.collect());
}

fn entries<'a>(one: &Reported<'a>, kind: &str) -> Vec<(String, &'a Latency)> {
    let all = sampled(one.results).into_iter().flatten();
    let name = |priority| format!("{}, {} ({kind})", one.name, spelled(priority));
    all.map(|entry| (name(entry.priority), &entry.latency))
        .collect()
}

const PRIORITIES: &str = "A priority is class/level/hint as the kernel has it: class 1 real time, \
                          2 best effort, 3 idle, 0 none. A schedule that ignores priorities shows \
                          no difference; a difference of one run may be its course.";
