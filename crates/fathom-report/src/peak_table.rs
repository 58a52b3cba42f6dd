//! Results of `fathom peak` as tables of at most 80 columns: by depth and batch, and beside another
//! result.

use std::fmt::Write as _;

use fathom_record::{PeakPoint, PeakPointComparison, PeakRatio, PeakRecord, PeakRepeatLatency};

use crate::peak::{aligned, short};

/// Formats a row per point, or three beside another result: this one's, the other's, the change.
#[must_use]
pub fn peak_table(record: &PeakRecord) -> String {
    let mut text = aligned(&point_rows(record));
    text.push_str(&comparison_notes(record));
    text
}

/// Formats the points as tables of depths (rows) and batches (columns): IOPS, and latencies if
/// recorded. `None` if each depth has one batch, if the batches are too many for the width, or
/// beside another result: [`peak_table`] is the form for these.
#[must_use]
pub fn peak_matrix(record: &PeakRecord) -> Option<String> {
    let depths = sorted(record.points.iter().map(|point| point.depth));
    let batches = sorted(record.points.iter().map(|point| point.submit));
    let grid = depths.len() > 1 && record.points.len() > depths.len();
    let fits = grid && batches.len() <= MATRIX_BATCHES_MAX;
    if !fits || record.comparison.is_some() {
        return None;
    }
    let mut text = String::new();
    let mut add = |title: &str, cell: &dyn Fn(&PeakPoint) -> Option<String>| {
        let mut head = vec!["depth".to_owned()];
        head.extend(batches.iter().map(|batch| format!("batch {batch}")));
        let mut rows = vec![head];
        for &depth in &depths {
            let mut row = vec![depth.to_string()];
            let points = batches.iter().map(|&batch| record.point(depth, batch));
            row.extend(points.map(|point| point.and_then(cell).unwrap_or_else(none)));
            rows.push(row);
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        let _infallible = write!(text, "{gap}{title}\n{}", aligned(&rows));
    };
    add("IOPS, median of the repeats", &|point| {
        Some(short(point.iops_median()))
    });
    if record
        .points
        .iter()
        .any(|point| point.lat_medians().is_some())
    {
        add("p50, µs", &|point| {
            point.lat_medians().map(|lat| us(lat.p50_ns))
        });
        add("p99, µs", &|point| {
            point.lat_medians().map(|lat| us(lat.p99_ns))
        });
    }
    Some(text)
}

fn sorted(numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Returns the head and the rows of the points, with those of the other side if there is one.
pub(crate) fn point_rows(record: &PeakRecord) -> Vec<Vec<String>> {
    let columns = Columns::of(record);
    let mut rows = vec![columns.head()];
    for (index, point) in record.points.iter().enumerate() {
        let batch = [point.depth.to_string(), point.submit.to_string()];
        let rates = point.iops_of_repeats();
        rows.push(columns.row(&batch, "now", &rates, point.lat_medians()));
        let Some(comparison) = &record.comparison else {
            continue;
        };
        let side = if comparison.alternating {
            "other"
        } else {
            "saved"
        };
        let Some(other) = comparison.points.get(index).filter(|other| other.depth > 0) else {
            rows.push(columns.row(&[String::new(), String::new()], side, &[], None));
            continue;
        };
        // The same batch is not repeated.
        let other_batch = [other.depth.to_string(), other.submit.to_string()];
        let shown = if other_batch == batch {
            [String::new(), String::new()]
        } else {
            other_batch
        };
        rows.push(columns.row(&shown, side, &other.against_iops, other.against_lat));
        rows.push(columns.change(other));
    }
    rows
}

/// Columns that a result needs.
#[derive(Clone, Copy, Debug)]
struct Columns {
    /// Bytes per op; no bandwidth without.
    block_bytes: u32,
    repeats: bool,
    lat: bool,
    compared: bool,
}

impl Columns {
    fn of(record: &PeakRecord) -> Self {
        let mut points = record.points.iter();
        Self {
            block_bytes: record.block_bytes,
            repeats: points.clone().any(|point| point.repeats.len() > 1)
                || record.comparison.is_some(),
            lat: points.any(|point| point.lat_medians().is_some()),
            compared: record.comparison.is_some(),
        }
    }

    fn head(self) -> Vec<String> {
        let mut head = vec!["depth", "batch"];
        head.extend(self.compared.then_some(""));
        head.push("IOPS");
        head.extend(self.repeats.then_some("lowest–highest"));
        head.extend((self.block_bytes > 0).then_some("MiB/s"));
        if self.lat {
            head.extend(["p50 µs", "p99 µs", "p99.9 µs"]);
        }
        head.into_iter().map(str::to_owned).collect()
    }

    /// Returns a row of one side; no rates where it measured nothing.
    fn row(
        self,
        batch: &[String; 2],
        side: &str,
        rates: &[f64],
        lat: Option<PeakRepeatLatency>,
    ) -> Vec<String> {
        let mut sorted = rates.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = (!sorted.is_empty()).then(|| fathom_stats::median(&sorted));
        let mut row = batch.to_vec();
        row.extend(self.compared.then(|| side.to_owned()));
        row.push(middle.map_or_else(none, short));
        if self.repeats {
            let range = match &sorted[..] {
                [low, .., high] => format!("{}–{}", short(*low), short(*high)),
                _ => none(),
            };
            row.push(range);
        }
        if self.block_bytes > 0 {
            let bytes = f64::from(self.block_bytes);
            row.push(middle.map_or_else(none, |iops| format!("{:.0}", iops * bytes / MIB)));
        }
        if self.lat {
            let all = lat.map(|lat| [lat.p50_ns, lat.p99_ns, lat.p99_9_ns].map(us));
            row.extend(all.unwrap_or_else(|| [none(), none(), none()]));
        }
        row
    }

    /// Returns the row of the changes: below IOPS and latencies the change, below the range the
    /// interval of the ratio.
    fn change(self, other: &PeakPointComparison) -> Vec<String> {
        let mut row = [String::new(), String::new(), "change".into()].to_vec();
        row.push(change(other.iops));
        let interval = |ratio: PeakRatio| format!("{:.2}–{:.2} ×", ratio.low, ratio.high);
        row.push(other.iops.map_or_else(String::new, interval));
        row.extend((self.block_bytes > 0).then(String::new));
        if self.lat {
            row.extend([change(other.p50), change(other.p99)]);
        }
        row
    }
}

/// Formats the change in percent, but only one that is shown.
fn change(ratio: Option<PeakRatio>) -> String {
    match ratio {
        None => "unknown".into(),
        Some(ratio) if !ratio.differs => "none".into(),
        Some(ratio) => {
            let percent = (ratio.middle - 1.0) * 100.0;
            let decimals = usize::from(percent.abs() < 10.0);
            format!("{percent:+.decimals$} %")
        }
    }
}

/// Formats the lines below a comparison: how it was measured, what its words mean, and what else
/// changed. Empty without a comparison.
pub(crate) fn comparison_notes(record: &PeakRecord) -> String {
    let Some(comparison) = &record.comparison else {
        return String::new();
    };
    let mut text = String::from("\n");
    let ratios = comparison.points.iter().filter_map(|point| point.iops);
    let coverage = ratios.clone().map(|ratio| ratio.coverage);
    let coverage = coverage.fold(f64::INFINITY, f64::min);
    if coverage.is_finite() {
        let _infallible = writeln!(
            text,
            "change: Hodges–Lehmann ratio, and its {:.0} % interval in place of the range",
            (coverage * 100.0).floor(),
        );
    }
    if ratios.clone().any(|ratio| !ratio.differs) {
        text.push_str("none: no difference shown; the interval includes 1\n");
    }
    let matched = comparison.points.iter().filter(|point| point.depth > 0);
    if matched.clone().count() > ratios.count() {
        text.push_str(
            "unknown: no interval without repeats; measure both sides with --repeats 5\n",
        );
    }
    text.push_str(&origin(record));
    if comparison.changes.is_empty() && !comparison.alternating {
        text.push_str(
            "changed: nothing that is recorded (settings, kernel, governor, scheduler)\n",
        );
    }
    for change in &comparison.changes {
        let _infallible = writeln!(text, "changed: {change}");
    }
    text
}

/// Formats the line that says where the other side is from.
fn origin(record: &PeakRecord) -> String {
    let Some(comparison) = &record.comparison else {
        return String::new();
    };
    if comparison.alternating {
        return format!("other: measured in turn, with `{}`\n", comparison.against);
    }
    let ms = record
        .timestamp_ms
        .saturating_sub(comparison.against_timestamp_ms);
    format!(
        "saved: {}, measured {} earlier and not in turn,\n       so drift of the machine counts as \
         a change\n",
        comparison.against,
        age(ms / 1000),
    )
}

/// Formats a number of seconds by its largest unit.
fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Formats nanoseconds as microseconds, with three digits or more.
pub(crate) fn us(ns: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
    let us = ns as f64 / 1e3;
    match ns {
        0..10_000 => format!("{us:.2}"),
        10_000..100_000 => format!("{us:.1}"),
        _ => format!("{us:.0}"),
    }
}

fn none() -> String {
    "-".into()
}

const MIB: f64 = 1_048_576.0;

/// Columns of "batch 128" that fit 80 characters beside the depth.
const MATRIX_BATCHES_MAX: usize = 6;

#[cfg(test)]
mod tests {
    use fathom_record::{PeakComparison, PeakRepeat};

    use super::*;

    fn point(depth: u32, submit: u32, rates: &[f64]) -> PeakPoint {
        let repeat = |&iops| PeakRepeat {
            iops,
            wall_ns: 1,
            contention: None,
            lat: Some(PeakRepeatLatency {
                p50_ns: 1_234,
                p99_ns: 45_678,
                p99_9_ns: 7_890_123,
            }),
        };
        PeakPoint {
            depth,
            submit,
            iops_mean: rates[0],
            repeats: rates.iter().map(repeat).collect(),
            ..PeakPoint::default()
        }
    }

    fn record(points: Vec<PeakPoint>) -> PeakRecord {
        PeakRecord {
            block_bytes: 4096,
            points,
            ..PeakRecord::default()
        }
    }

    fn ratio(low: f64, high: f64) -> Option<PeakRatio> {
        Some(PeakRatio {
            middle: f64::midpoint(low, high),
            low,
            high,
            coverage: 0.968,
            differs: low > 1.0 || high < 1.0,
        })
    }

    fn compared(iops: Option<PeakRatio>) -> PeakRecord {
        let rates = [1_200_000.0, 1_250_000.0, 1_234_567.0];
        let mut record = record(vec![point(64, 16, &rates), point(128, 16, &rates)]);
        record.timestamp_ms = 600_000;
        let one = PeakPointComparison {
            depth: 64,
            submit: 16,
            against_iops: vec![1e6, 1.1e6],
            against_lat: record.points[0].lat_medians(),
            iops,
            p50: ratio(0.5, 0.6),
            p99: ratio(0.9, 1.1),
        };
        record.comparison = Some(PeakComparison {
            against: "before.json".into(),
            points: vec![one, PeakPointComparison::default()],
            changes: vec!["scheduler of /dev/x: bfq, now none".into()],
            ..PeakComparison::default()
        });
        record
    }

    #[test]
    fn a_comparison_shows_both_sides_and_what_changed() {
        let text = peak_table(&compared(ratio(1.1, 1.3)));
        let want = "\
depth  batch           IOPS  lowest–highest  MiB/s  p50 µs  p99 µs  p99.9 µs
   64     16     now  1.23M     1.20M–1.25M   4823    1.23    45.7      7890
               saved  1.05M     1.00M–1.10M   4102    1.23    45.7      7890
              change  +20 %     1.10–1.30 ×          -45 %    none
  128     16     now  1.23M     1.20M–1.25M   4823    1.23    45.7      7890
               saved      -               -      -       -       -         -

change: Hodges–Lehmann ratio, and its 96 % interval in place of the range
saved: before.json, measured 10 min earlier and not in turn,
       so drift of the machine counts as a change
changed: scheduler of /dev/x: bfq, now none
";
        assert_eq!(text, want);
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn no_percentage_stands_for_noise() {
        let text = peak_table(&compared(ratio(0.9, 1.2)));
        assert!(text.contains("none: no difference shown"), "{text}");
        assert!(!text.contains("+5"), "{text}");
        let unknown = peak_table(&compared(None));
        assert!(
            unknown.contains("unknown: no interval without repeats"),
            "{unknown}"
        );
    }

    #[test]
    fn depths_and_batches_make_a_matrix() {
        let all = [(1, 1), (8, 1), (8, 8)];
        let points = all.map(|(depth, batch)| point(depth, batch, &[f64::from(depth * batch)]));
        let text = peak_matrix(&record(points.to_vec())).unwrap();
        let want = "\
IOPS, median of the repeats
depth  batch 1  batch 8
    1        1        -
    8        8       64

p50, µs
depth  batch 1  batch 8
    1     1.23        -
    8     1.23     1.23

p99, µs
depth  batch 1  batch 8
    1     45.7        -
    8     45.7     45.7
";
        assert_eq!(text, want);
        assert_eq!(peak_matrix(&record(points[..2].to_vec())), None);
    }
}
