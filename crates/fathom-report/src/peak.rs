//! Results of `fathom peak` as text.

use std::fmt::Write as _;

use fathom_record::{PeakLatency, PeakPoint, PeakRecord};

/// Formats the result of one second on one line; ops without bytes have no bandwidth.
#[must_use]
pub fn peak_line(label: &str, iops: f64, block_bytes: u32, ops_per_call: f64) -> String {
    let bandwidth = match block_bytes {
        0 => String::new(),
        bytes => format!("{}, ", bandwidth(iops * f64::from(bytes))),
    };
    format!(
        "{label:>9}: {:>8} IOPS, {bandwidth}{ops_per_call:.1} ops per call\n",
        short(iops),
    )
}

/// Formats mean, best second, and latencies if they were recorded.
#[must_use]
pub fn peak_summary(record: &PeakRecord, against: Option<&PeakRecord>) -> String {
    let mut text = String::new();
    for point in &record.points {
        let bytes = record.block_bytes;
        let per_call = point.ops_per_call();
        text.push_str(&peak_line("mean", point.iops_mean, bytes, per_call));
        text.push_str(&peak_line("maximum", point.iops_max, bytes, per_call));
        let other = against.and_then(|other| other.point(point.depth, point.submit));
        if let Some(other) = other {
            let _infallible = writeln!(
                text,
                "{:>9}: {:>8} IOPS maximum, now {}",
                "saved",
                short(other.iops_max),
                change(other.iops_max, point.iops_max),
            );
        }
        if let Some(lat) = &point.lat {
            latency(&mut text, lat, other.and_then(|other| other.lat.as_ref()));
        }
    }
    text
}

/// Formats a sweep as a table, each row beside that of an earlier sweep.
#[must_use]
pub fn peak_sweep(record: &PeakRecord, against: Option<&PeakRecord>) -> String {
    let mut heads = vec!["depth", "batch", "IOPS", "p50 ns", "p99 ns", "p99.9 ns"];
    if against.is_some() {
        heads.extend(["saved IOPS", "p50 ns", "p99 ns", "p99.9 ns", "IOPS"]);
    }
    let mut rows = vec![heads.iter().map(ToString::to_string).collect()];
    for point in &record.points {
        let mut row = vec![point.depth.to_string(), point.submit.to_string()];
        figures(&mut row, Some(point));
        if let Some(against) = against {
            let other = against.point(point.depth, point.submit);
            figures(&mut row, other);
            row.push(other.map_or_else(none, |other| change(other.iops_mean, point.iops_mean)));
        }
        rows.push(row);
    }
    aligned(&rows)
}

/// Formats rows as right-aligned columns, two spaces apart.
#[must_use]
pub fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, &width)| format!("{cell:>width$}"))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn figures(row: &mut Vec<String>, point: Option<&PeakPoint>) {
    row.push(point.map_or_else(none, |point| format!("{:.0}", point.iops_mean)));
    let lat = point.and_then(|point| point.lat.as_ref());
    for percent in [50.0, 99.0, 99.9] {
        let at = lat.and_then(|lat| lat.at(percent));
        row.push(at.map_or_else(none, |ns| ns.to_string()));
    }
}

fn none() -> String {
    "-".into()
}

fn latency(text: &mut String, lat: &PeakLatency, other: Option<&PeakLatency>) {
    let all = &lat.all.summary;
    let _infallible = writeln!(
        text,
        "lat (ns): min={}, max={}, mean={:.1}, stdev={:.1}",
        all.min(),
        all.max(),
        all.mean(),
        all.stddev(),
    );
    let mut rows = Vec::new();
    for one in &lat.percentiles {
        let mut row = vec![format!("p{}", one.percent), one.lat_ns.to_string()];
        if let Some(other) = other {
            row.push(other.at(one.percent).map_or_else(none, |ns| ns.to_string()));
        }
        rows.push(row);
    }
    text.push_str(&aligned(&rows));
}

/// Returns the signed change in percent.
fn change(before: f64, now: f64) -> String {
    if before > 0.0 {
        format!("{:+.1}%", (now / before - 1.0) * 100.0)
    } else {
        none()
    }
}

/// Formats three or four digits and a decimal prefix.
pub(crate) fn short(number: f64) -> String {
    match number {
        number if number >= 99_950_000.0 => format!("{:.1}M", number / 1e6),
        number if number >= 999_500.0 => format!("{:.2}M", number / 1e6),
        number if number >= 9_995.0 => format!("{:.1}k", number / 1e3),
        number => format!("{number:.0}"),
    }
}

/// Formats MiB and MB per second.
fn bandwidth(bytes_per_s: f64) -> String {
    let (mib, mb) = (bytes_per_s / 1_048_576.0, bytes_per_s / 1e6);
    format!("{mib:.0} MiB/s ({mb:.0} MB/s)")
}

#[cfg(test)]
mod tests {
    use fathom_record::{PEAK_VERSION, PeakRecord};
    use fathom_stats::Latency;

    use super::*;

    fn record(iops: f64, ns: u64) -> PeakRecord {
        let mut all = Latency::new(true);
        all.record_n(ns, 10);
        PeakRecord {
            version: PEAK_VERSION,
            block_bytes: 4096,
            points: vec![PeakPoint {
                depth: 8,
                submit: 2,
                ops: 64,
                calls: 32,
                iops_mean: iops,
                iops_max: iops * 2.0,
                lat: Some(PeakLatency::new(all)),
                ..PeakPoint::default()
            }],
            ..PeakRecord::default()
        }
    }

    #[test]
    fn a_line_has_both_units() {
        let line = peak_line("1 s", 1_234_567.0, 4096, 31.96);
        let want = "      1 s:    1.23M IOPS, 4823 MiB/s (5057 MB/s), 32.0 ops per call\n";
        assert_eq!(line, want);
        assert!(peak_line("1 s", 12_345.0, 512, 1.0).contains("12.3k IOPS, 6 MiB/s (6 MB/s)"));
    }

    #[test]
    fn a_sweep_is_compared_with_the_saved_one() {
        let (now, before) = (record(1000.0, 100), record(800.0, 120));
        let want = "\
depth  batch  IOPS  p50 ns  p99 ns  p99.9 ns
    8      2  1000     100     100       100
";
        assert_eq!(peak_sweep(&now, None), want);
        let both = peak_sweep(&now, Some(&before));
        let row = both.lines().nth(1).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        let want = [
            "8", "2", "1000", "100", "100", "100", "800", "120", "120", "120", "+25.0%",
        ];
        assert_eq!(cells, want);
    }

    #[test]
    fn a_saved_sweep_of_other_depths_leaves_gaps() {
        let mut before = record(800.0, 120);
        before.points[0].depth = 4;
        let both = peak_sweep(&record(1000.0, 100), Some(&before));
        assert!(
            both.lines().nth(1).unwrap().trim_end().ends_with('-'),
            "{both}"
        );
    }

    #[test]
    fn a_summary_has_every_percentile() {
        let text = peak_summary(&record(1000.0, 100), Some(&record(800.0, 120)));
        assert!(text.contains("maximum:     2000 IOPS"), "{text}");
        assert!(text.contains("now +25.0%"), "{text}");
        let rows = text
            .lines()
            .filter(|line| line.trim_start().starts_with('p'));
        assert_eq!(rows.count(), 17);
        assert!(text.contains("p99.99  100  120"), "{text}");
    }
}
