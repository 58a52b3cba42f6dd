//! Numbers of a run as tables.

use fathom_record::{DirectionRecord, JobRecord, Record};
use fathom_stats::Latency;

use crate::group::ReportedJob;
use crate::page::Page;
use crate::percentile_curve::has_enough_beyond;
use crate::plot::text;
use crate::rate::{bytes_per_s, ops_per_s};
use crate::unified;

/// Writes rates and latencies of each job or group.
pub(super) fn results(page: &mut Page, jobs: &[ReportedJob<'_>]) {
    page.heading(2, "Results");
    let rows: Vec<Vec<String>> = directions(jobs).map(|one| rate_row(&one)).collect();
    let heads = ["job and direction", "ops", "IOPS", "MiB/s", "runtime, s"];
    bounded(page, "Throughput", &heads, rows);
    let rows: Vec<Vec<String>> = directions(jobs)
        .flat_map(|one| latency_rows(&one))
        .collect();
    let mut heads = vec!["job, direction and interval"];
    heads.extend(LATENCIES);
    bounded(page, "Latency", &heads, rows);
}

/// Adds a table with its first rows, and states how many are left out.
pub(super) fn bounded(page: &mut Page, caption: &str, heads: &[&str], mut rows: Vec<Vec<String>>) {
    let left = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    page.table(caption, heads, &rows);
    if left > 0 {
        page.paragraph(&format!(
            "{left} more rows are left out of this table; their numbers are in the JSON below."
        ));
    }
}

/// Direction of a reported job with ops.
pub(super) struct Reported<'a> {
    /// Name of the job and of the direction.
    pub(super) name: String,
    pub(super) results: &'a DirectionRecord,
}

/// Returns the directions with ops, in the order of the report.
pub(super) fn directions<'a>(jobs: &'a [ReportedJob<'a>]) -> impl Iterator<Item = Reported<'a>> {
    jobs.iter().flat_map(|entry| {
        let job: &JobRecord = &entry.job;
        let shown = unified::shown(job);
        let each = shown.map(|(direction, name)| (name, crate::rate::of_direction(job, direction)));
        let mixed = entry.mixed.iter().map(|all| (unified::MIXED, &**all));
        let all: Vec<_> = each
            .chain(mixed)
            .filter(|(_, results)| results.ios > 0)
            .collect();
        all.into_iter().map(|(name, results)| Reported {
            name: format!("{}, {}", named(&job.name), name.trim()),
            results,
        })
    })
}

fn rate_row(one: &Reported<'_>) -> Vec<String> {
    let results = one.results;
    vec![
        one.name.clone(),
        results.ios.to_string(),
        ops_per_s(results).to_string(),
        format!("{:.1}", bytes_per_s(results) as f64 / f64::from(1 << 20)),
        format!("{:.3}", results.runtime_ms as f64 / 1e3),
    ]
}

fn latency_rows(one: &Reported<'_>) -> Vec<Vec<String>> {
    let kinds = kinds(one.results);
    let present = kinds
        .into_iter()
        .filter_map(|(kind, latency)| Some((kind, latency?)));
    present
        .map(|(kind, latency)| {
            let mut row = vec![format!("{}, {kind}", one.name)];
            row.extend(latency_cells(latency));
            row
        })
        .collect()
}

/// Returns the cells below [`LATENCIES`].
pub(super) fn latency_cells(latency: &Latency) -> Vec<String> {
    let mut cells = vec![format!("{:.2}", latency.summary.mean() / 1e3)];
    cells.extend(SHOWN.map(|percent| percentile(latency, percent)));
    cells.push(micros(latency.summary.max()));
    cells
}

/// Returns a name that a row has room for.
pub(super) fn named(name: &str) -> String {
    text::shortened(name, NAME_MAX)
}

/// Returns the latencies of a direction by their names.
pub(super) const fn kinds(results: &DirectionRecord) -> [(&'static str, Option<&Latency>); 5] {
    [
        ("resp", results.resp.as_ref()),
        ("lag", results.lag.as_ref()),
        ("lat", results.lat.as_ref()),
        ("slat", results.slat.as_ref()),
        ("clat", results.clat.as_ref()),
    ]
}

/// Returns a percentile, if ten ops lie beyond it.
fn percentile(latency: &Latency, percent: f64) -> String {
    match &latency.histogram {
        Some(histogram) if has_enough_beyond(percent, latency.summary.count()) => {
            micros(histogram.percentile(percent))
        }
        _ => MISSING.into(),
    }
}

fn micros(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e3)
}

/// Writes the worst stalls of each job.
pub(super) fn stalls(page: &mut Page, jobs: &[ReportedJob<'_>]) {
    let all = jobs.iter().flat_map(|entry| {
        let of_job = entry.job.stalls.iter();
        of_job.map(|stall| (named(&entry.job.name), stall))
    });
    let rows: Vec<Vec<String>> = all
        .map(|(name, stall)| {
            let ms = |ns: u64| format!("{:.1}", ns as f64 / 1e6);
            vec![
                format!("{name}, {}", stall.direction),
                format!("{:.3}", stall.at_ns as f64 / 1e9),
                ms(stall.duration_ns),
                stall.ops.to_string(),
                ms(stall.waited_ns),
                ms(stall.stopped_ns),
            ]
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    page.heading(2, "Stalls");
    let heads = [
        "job and direction",
        "at, s",
        "length, ms",
        "late ops",
        "job waited for a processor, ms",
        "process stopped, ms",
    ];
    bounded(page, "Worst stalls, in order of time", &heads, rows);
    page.paragraph(STALLS);
}

/// Writes what the run was measured on.
pub(super) fn machine(page: &mut Page, record: &Record) {
    page.heading(2, "How this was measured");
    let Some(machine) = &record.machine else {
        return;
    };
    let mut rows = vec![
        ("kernel", machine.kernel.clone()),
        ("processor", machine.cpu.clone()),
        ("CPUs online", machine.cpus_online.to_string()),
        ("memory, MiB", (machine.memory_bytes >> 20).to_string()),
        ("clock", machine.clock_source.clone()),
        ("clock read, ns", format!("{:.1}", machine.clock_read_ns)),
    ];
    if !machine.governor.is_empty() {
        rows.push(("frequency governor", machine.governor.clone()));
    }
    let features = machine.engine_features.iter();
    rows.extend(features.map(|text| ("engine features", text.clone())));
    let facts: Vec<String> = rows
        .into_iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    page.list("facts", &facts);
}

/// Writes the options of the jobs as a job file.
pub(super) fn jobs(page: &mut Page, record: &Record) {
    let mut text = String::new();
    let mut section = |name: &str, options: &[(String, String)]| {
        text += &format!("[{name}]\n");
        for (option, value) in options {
            text += &match value.as_str() {
                "" => format!("{option}\n"),
                value => format!("{option}={value}\n"),
            };
        }
    };
    if !record.global_options.is_empty() {
        section("global", &record.global_options);
    }
    let mut last = None;
    for job in &record.jobs {
        // Clones follow their section.
        if last != Some((&job.name, &job.options)) {
            section(&job.name, &job.options);
        }
        last = Some((&job.name, &job.options));
    }
    page.details("Job file", &text);
}

/// Percentiles of the table.
const SHOWN: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
pub(super) const MISSING: &str = "–";
/// Heads of the columns of a latency.
pub(super) const LATENCIES: [&str; 6] = [
    "mean, µs",
    "p50, µs",
    "p90, µs",
    "p99, µs",
    "p99.9, µs",
    "largest, µs",
];
const STALLS: &str = "Times count from the start of the job's measurement. The device did not \
                      cause the time for which a job waited for a processor, or for which its \
                      process was stopped.";
/// Most rows of a table: what a browser lays out at once, and a reader looks through.
const ROWS_MAX: usize = 200;
/// Longest name in a table, in characters.
const NAME_MAX: usize = 80;
