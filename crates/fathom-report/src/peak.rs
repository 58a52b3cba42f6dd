//! Results of `fathom peak` as text: one measurement.

use std::fmt::Write as _;

use fathom_record::{PeakLatency, PeakPoint, PeakRecord};

use crate::pad;
use crate::peak_table::{comparison_notes, point_rows};

/// Formats the rate of an interval or a repeat on one line; ops without bytes have no bandwidth.
#[must_use]
pub fn peak_line(label: &str, iops: f64, block_bytes: u32, ops_per_call: f64) -> String {
    let bandwidth = match block_bytes {
        0 => String::new(),
        bytes => format!("{}, ", bandwidth(iops * f64::from(bytes))),
    };
    format!(
        "{label:>9}: {:>7} IOPS, {bandwidth}{ops_per_call:.1} ops per call\n",
        spaced(iops),
    )
}

/// Formats median, spread, best second, the comparison, and latencies if they were recorded, beside
/// those of `against`.
#[must_use]
pub fn peak_summary(record: &PeakRecord, against: Option<&PeakRecord>) -> String {
    let mut text = String::new();
    for (index, point) in record.points.iter().enumerate() {
        let bytes = record.block_bytes;
        let per_call = point.ops_per_call();
        let rates = point.iops_of_repeats();
        if rates.len() > 1 {
            let label = "median";
            text.push_str(&peak_line(label, point.iops_median(), bytes, per_call));
            spread(&mut text, &rates);
        } else {
            text.push_str(&peak_line("mean", point.iops_mean, bytes, per_call));
        }
        text.push_str(&peak_line("maximum", point.iops_max, bytes, per_call));
        let other = against.and_then(|other| beside(record, other, index, point));
        if let Some(lat) = &point.lat {
            latency(&mut text, lat, other.and_then(|other| other.lat.as_ref()));
        }
    }
    if record.comparison.is_some() {
        text.push('\n');
        text.push_str(&aligned(&point_rows(record)));
        text.push_str(&comparison_notes(record));
    }
    text
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
            .map(|(cell, &width)| pad::right(cell, width))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Returns the other side's point that is compared with `point`.
fn beside<'a>(
    record: &PeakRecord,
    other: &'a PeakRecord,
    index: usize,
    point: &PeakPoint,
) -> Option<&'a PeakPoint> {
    match &record.comparison {
        Some(comparison) if comparison.alternating => other.points.get(index),
        _ => other.point(point.depth, point.submit),
    }
}

fn spread(text: &mut String, rates: &[f64]) {
    let lowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = rates.iter().copied().fold(0.0, f64::max);
    let _infallible = writeln!(
        text,
        "{:>9}: {:>7} to {} IOPS in {} repeats",
        "range",
        spaced(lowest),
        spaced(highest),
        rates.len(),
    );
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
    if other.is_some() {
        rows.push(["", "now", "other"].map(str::to_owned).to_vec());
    }
    for one in &lat.percentiles {
        let mut row = vec![format!("p{}", one.percent), one.lat_ns.to_string()];
        if let Some(other) = other {
            let at = other.at(one.percent);
            row.push(at.map_or_else(|| "-".to_owned(), |ns| ns.to_string()));
        }
        rows.push(row);
    }
    text.push_str(&aligned(&rows));
}

/// Formats three or four digits and a decimal prefix.
pub(crate) fn short(number: f64) -> String {
    let (digits, prefix) = digits(number);
    format!("{digits}{prefix}")
}

/// Formats three or four digits, a space, and a decimal prefix; the unit follows.
pub(crate) fn spaced(number: f64) -> String {
    match digits(number) {
        (digits, "") => digits,
        (digits, prefix) => format!("{digits} {prefix}"),
    }
}

/// Returns three or four digits, and the decimal prefix that scales them.
fn digits(number: f64) -> (String, &'static str) {
    match number {
        number if number >= 99_950_000.0 => (format!("{:.1}", number / 1e6), "M"),
        number if number >= 999_500.0 => (format!("{:.2}", number / 1e6), "M"),
        number if number >= 9_995.0 => (format!("{:.1}", number / 1e3), "k"),
        number => (format!("{number:.0}"), ""),
    }
}

/// Formats MiB and MB per second.
fn bandwidth(bytes_per_s: f64) -> String {
    let (mib, mb) = (bytes_per_s / 1_048_576.0, bytes_per_s / 1e6);
    format!("{mib:.0} MiB/s ({mb:.0} MB/s)")
}

#[cfg(test)]
mod tests {
    use fathom_record::{PEAK_VERSION, PeakRepeat};
    use fathom_stats::Latency;

    use super::*;

    fn record(rates: &[f64], ns: u64) -> PeakRecord {
        let mut all = Latency::new(true);
        all.record_n(ns, 10);
        let repeat = |&iops| PeakRepeat {
            iops,
            ..PeakRepeat::default()
        };
        PeakRecord {
            version: PEAK_VERSION,
            block_bytes: 4096,
            points: vec![PeakPoint {
                depth: 8,
                submit: 2,
                ops: 64,
                calls: 32,
                iops_mean: rates[0],
                iops_max: 2000.0,
                lat: Some(PeakLatency::new(all)),
                repeats: rates.iter().map(repeat).collect(),
                ..PeakPoint::default()
            }],
            ..PeakRecord::default()
        }
    }

    #[test]
    fn a_line_has_both_units() {
        let line = peak_line("1 s", 1_234_567.0, 4096, 31.96);
        let want = "      1 s:  1.23 M IOPS, 4823 MiB/s (5057 MB/s), 32.0 ops per call\n";
        assert_eq!(line, want);
        let line = peak_line("1 s", 12_345.0, 512, 1.0);
        assert!(line.contains("12.3 k IOPS, 6 MiB/s (6 MB/s)"), "{line}");
        assert!(peak_line("1 s", 800.0, 0, 1.0).contains("    800 IOPS, 1.0 ops"));
    }

    #[test]
    fn a_summary_has_the_spread_and_every_percentile() {
        let now = record(&[1000.0, 1200.0, 900.0], 100);
        let text = peak_summary(&now, Some(&record(&[800.0], 120)));
        assert!(text.contains("median:    1000 IOPS"), "{text}");
        assert!(
            text.contains("range:     900 to 1200 IOPS in 3 repeats"),
            "{text}"
        );
        assert!(text.contains("maximum:    2000 IOPS"), "{text}");
        let rows = text
            .lines()
            .filter(|line| line.trim_start().starts_with('p'));
        assert_eq!(rows.count(), 17);
        assert!(text.contains("p99.99  100    120"), "{text}");
        assert!(peak_summary(&record(&[1000.0], 100), None).starts_with("     mean:    1000 IOPS"));
    }
}
