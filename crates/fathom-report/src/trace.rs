//! Results of `fathom trace` as text.

use std::fmt::Write as _;

use fathom_record::{PeakLatency, TraceRecord, TracedDirection, UringTraceRecord, UringWork};

use crate::peak::aligned;
use crate::seeks::{Bar, bars, seeks};

/// Formats a device's requests, their latencies and the distances between them.
#[must_use]
pub fn trace(record: &TraceRecord) -> String {
    let mut text = format!("{}: {}\n", record.device, traced(record.wall_ns));
    if record.directions.is_empty() {
        text.push_str("no requests\n");
        return text;
    }
    text.push_str(&counts(&record.directions));
    text.push('\n');
    text.push_str(&times(&record.directions));
    text.push('\n');
    text.push_str(&seeks(&record.seeks));
    text
}

/// Formats the runs of io_uring task work and their batch sizes.
#[must_use]
pub fn uring_trace(record: &UringTraceRecord) -> String {
    let whose = match record.pid {
        Some(pid) => format!("process {pid}"),
        None => "all processes".to_owned(),
    };
    let mut text = format!("io_uring, {whose}: {}\n", traced(record.wall_ns));
    for work in &record.work {
        text.push('\n');
        uring_work(&mut text, work, record.wall_ns);
    }
    text
}

fn uring_work(text: &mut String, work: &UringWork, wall_ns: u64) {
    let UringWork { event, runs, .. } = work;
    // Writing to a string cannot fail.
    let _written = match (work.offered, runs) {
        (false, _) => writeln!(text, "{event}: not available in this kernel"),
        (true, 0) => writeln!(text, "{event}: no runs"),
        (true, &runs) => writeln!(
            text,
            "{event}: {runs} runs ({:.0}/s), {} items, {:.1} items per run",
            runs as f64 * 1e9 / wall_ns.max(1) as f64,
            work.items,
            work.items as f64 / runs as f64,
        ),
    };
    if work.runs > 0 {
        let batches = &work.batches;
        let ends = batches.from.iter().zip(&batches.to);
        let rows = ends.zip(&batches.count).map(|((from, to), &count)| Bar {
            from: from.to_string(),
            to: to.to_string(),
            count,
        });
        let rows: Vec<Bar> = rows.collect();
        text.push_str(&bars(["from", "to items", "runs"], &rows));
    }
}

fn traced(wall_ns: u64) -> String {
    format!("{:.1} s traced", wall_ns as f64 / 1e9)
}

fn counts(directions: &[TracedDirection]) -> String {
    let heads = ["", "requests", "MiB", "merged", "requeued", "failed"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for one in directions {
        rows.push(vec![
            format!("{:>5}", one.direction),
            one.requests.to_string(),
            format!("{:.1}", one.moved_bytes as f64 / f64::from(1 << 20)),
            one.merged.to_string(),
            one.requeued.to_string(),
            one.failed.to_string(),
        ]);
    }
    aligned(&rows)
}

fn times(directions: &[TracedDirection]) -> String {
    let mut heads = vec!["µs".to_owned(), String::new(), "count".to_owned()];
    heads.push("mean".to_owned());
    heads.extend(PERCENTS.map(|percent| format!("p{percent}")));
    heads.push("max".to_owned());
    let mut rows = vec![heads];
    for one in directions {
        let stages = [
            ("queued", &one.queued),
            ("device", &one.device_time),
            ("total", &one.total),
        ];
        for (stage, times) in stages {
            // The direction is named once.
            let name = if stage == "queued" {
                &one.direction
            } else {
                ""
            };
            let mut row = vec![name.to_owned(), stage.to_owned()];
            row.extend(figures(times));
            rows.push(row);
        }
    }
    aligned(&rows)
}

fn figures(times: &PeakLatency) -> Vec<String> {
    let all = &times.all.summary;
    let mut row = vec![all.count().to_string()];
    if all.count() == 0 {
        row.extend(std::iter::repeat_n("-".to_owned(), PERCENTS.len() + 2));
        return row;
    }
    row.push(format!("{:.1}", all.mean() / 1e3));
    let at = |percent| times.at(percent).unwrap_or(0);
    row.extend(PERCENTS.map(|percent| micros(at(percent))));
    row.push(micros(all.max()));
    row
}

fn micros(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}

/// Percentiles that fit into a line; JSON has all of them.
const PERCENTS: [f64; 5] = [1.0, 50.0, 90.0, 99.0, 99.9];

#[cfg(test)]
mod tests {
    use fathom_record::{SeekRecord, UringBatches};
    use fathom_stats::Latency;

    use super::*;

    fn latency(ns: &[u64]) -> PeakLatency {
        let mut all = Latency::new(true);
        all.record_all(ns);
        PeakLatency::new(all)
    }

    #[test]
    fn a_device_has_counts_times_and_seeks() {
        let record = TraceRecord {
            device: "vda".into(),
            wall_ns: 2_000_000_000,
            seeks: SeekRecord {
                dispatched: 2,
                ..SeekRecord::default()
            },
            directions: vec![TracedDirection {
                direction: "read".into(),
                requests: 2,
                moved_bytes: 8192,
                requeued: 1,
                queued: latency(&[]),
                device_time: latency(&[100_000, 100_000]),
                total: latency(&[100_000, 100_000]),
                ..TracedDirection::default()
            }],
            ..TraceRecord::default()
        };
        let text = trace(&record);
        let want = [
            "vda: 2.0 s traced",
            "       requests  MiB  merged  requeued  failed",
            " read         2  0.0       0         1       0",
            "",
            "  µs          count   mean    p1   p50   p90   p99  p99.9    max",
            "read  queued      0      -     -     -     -     -      -      -",
            "      device      2  100.0  99.8  99.8  99.8  99.8   99.8  100.0",
            "       total      2  100.0  99.8  99.8  99.8  99.8   99.8  100.0",
            "",
            "seeks: 2 dispatched, 0 merged",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), want, "{text}");
    }

    #[test]
    fn an_idle_device_has_no_tables() {
        let record = TraceRecord {
            device: "vda".into(),
            ..TraceRecord::default()
        };
        assert_eq!(trace(&record), "vda: 0.0 s traced\nno requests\n");
    }

    #[test]
    fn missing_kernel_events_are_named() {
        let work = |event: &str, offered, runs| UringWork {
            event: event.into(),
            offered,
            runs,
            items: 3 * runs,
            batches: UringBatches {
                from: vec![0, 1, 2, 3],
                to: vec![0, 1, 2, 4],
                count: vec![0, 0, 0, runs],
            },
        };
        let record = UringTraceRecord {
            wall_ns: 1_000_000_000,
            work: vec![work("a", true, 40), work("b", true, 0), work("c", false, 0)],
            ..UringTraceRecord::default()
        };
        let want = [
            "io_uring, all processes: 1.0 s traced",
            "",
            "a: 40 runs (40/s), 120 items, 3.0 items per run",
            "from  to items  runs",
            "   0         0     0    0.0%",
            "   1         1     0    0.0%",
            "   2         2     0    0.0%",
            "   3         4    40  100.0%  ########################################",
            "",
            "b: no runs",
            "",
            "c: not available in this kernel",
        ];
        let text = uring_trace(&record);
        assert_eq!(text.lines().collect::<Vec<_>>(), want, "{text}");
    }
}
