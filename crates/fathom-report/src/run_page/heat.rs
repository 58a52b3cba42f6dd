//! Latencies of a run over time, as a heat map.

use fathom_record::TimelineRecord;
use fathom_stats::{Histogram, Windows};

use crate::plot::{HeatAxis, HeatMap, Scale};

/// Returns the map of a timeline; `None` without the distributions of at least two windows.
pub(super) fn map(timeline: &TimelineRecord, name: &str) -> Option<HeatMap> {
    let kind = timeline.latency.as_deref()?;
    let windows = &narrowed(&timeline.windows);
    let bins = || windows.windows.iter().flat_map(|window| &window.bins);
    let values = bins().filter(|(index, count)| *index < Histogram::BUCKETS && *count > 0);
    let values = values.map(|(index, _)| micros(*index));
    let (least, most) = values.fold((f64::MAX, 0.0_f64), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    if least > most || windows.windows.len() < 2 {
        return None;
    }
    let rows = Rows::over(least, most);
    let columns = windows.windows.iter().map(|window| {
        let mut cells = vec![None; rows.count];
        let bins = window.bins.iter();
        for (index, count) in bins.filter(|(index, _)| *index < Histogram::BUCKETS) {
            let cell: &mut Option<f64> = &mut cells[rows.row(micros(*index))];
            *cell = Some(cell.unwrap_or(0.0) + *count as f64).filter(|count| *count > 0.0);
        }
        cells
    });
    let starts = 0..=windows.windows.len() as u64;
    let start_s = |number: u64| {
        let after_ns = number.saturating_mul(windows.width_ns);
        timeline.start_ns.saturating_add(after_ns) as f64 / 1e9
    };
    Some(HeatMap {
        title: format!("{name}: {kind} of all ops"),
        across: HeatAxis::ranges(
            super::figures::TIME,
            starts.map(start_s).collect(),
            Scale::Linear,
        ),
        up: HeatAxis::ranges(format!("{kind}, µs"), rows.ends(), Scale::Logarithmic),
        cells: columns.collect(),
        quantity: "ops in a cell".into(),
        colours: Scale::Logarithmic,
    })
}

/// Returns windows of which there are no more than pixels: neighbours are merged, which keeps sums.
fn narrowed(windows: &Windows) -> Windows {
    let mut narrowed = windows.clone();
    while narrowed.windows.len() > COLUMNS_MAX {
        narrowed.widen();
    }
    narrowed
}

/// Rows of equal ratio, with ends at the powers of two of µs or at equal parts of an octave.
struct Rows {
    /// Rows in an octave; below one, octaves in a row are its inverse.
    per_octave: f64,
    /// Number of the lowest row.
    first: f64,
    count: usize,
}

impl Rows {
    /// Chooses the finest rows of which there are not too many.
    fn over(least: f64, most: f64) -> Self {
        let sizes = [16.0, 8.0, 4.0, 2.0, 1.0, 0.5];
        let rows = sizes.map(|per_octave| {
            let row = |value: f64| (value.log2() * per_octave).floor();
            let first = row(least);
            Self {
                per_octave,
                first,
                count: index(row(most) - first) + 1,
            }
        });
        let [.., coarsest] = &rows;
        let count = coarsest.count;
        let coarsest = Self { count, ..*coarsest };
        let fitting = rows.into_iter().find(|rows| rows.count <= ROWS_MAX);
        fitting.unwrap_or(coarsest)
    }

    fn row(&self, value: f64) -> usize {
        let row = (value.log2() * self.per_octave).floor() - self.first;
        index(row).min(self.count - 1)
    }

    fn ends(&self) -> Vec<f64> {
        let numbers = (0..=self.count).map(|at| self.first + at as f64);
        numbers
            .map(|number| (number / self.per_octave).exp2())
            .collect()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts saturate"
)]
const fn index(number: f64) -> usize {
    number as usize
}

/// Returns the middle of a bucket, µs; an op that took no time is among the fastest.
fn micros(index: usize) -> f64 {
    Histogram::midpoint(index).max(1) as f64 / 1e3
}

/// Most columns: twice as many as a timeline has windows; merged ones have more.
const COLUMNS_MAX: usize = 480;
/// Most rows: two pixels each.
const ROWS_MAX: usize = 110;

#[cfg(test)]
mod tests {
    use fathom_stats::Window;

    use super::*;

    fn bucket(ns: u64) -> usize {
        let mut histogram = Histogram::new();
        histogram.record(ns);
        histogram.buckets().next().map_or(0, |(index, _)| index)
    }

    fn timeline(windows: &[&[(u64, u64)]]) -> TimelineRecord {
        let window = |values: &&[(u64, u64)]| Window {
            ios: values.iter().map(|(_, count)| count).sum(),
            bins: (values.iter())
                .map(|(ns, count)| (bucket(*ns), *count))
                .collect(),
            ..Window::default()
        };
        TimelineRecord {
            direction: "read".into(),
            latency: Some("clat".into()),
            start_ns: 500_000_000,
            windows: Windows {
                width_ns: 100_000_000,
                end_ns: 200_000_000,
                windows: windows.iter().map(window).collect(),
            },
            ..TimelineRecord::default()
        }
    }

    #[test]
    fn each_op_is_in_the_cell_of_its_time_and_latency() {
        let map = map(&timeline(&[&[(1_500, 7), (60_000, 1)], &[(1_510, 2)]]), "n").unwrap();
        let cells: Vec<_> = map.values().collect();
        let total: f64 = cells.iter().map(|(.., count)| count).sum();
        assert!((total - 10.0).abs() < 1e-9, "{cells:?}");
        let (columns, rows): (Vec<f64>, Vec<f64>) = match (&map.across.cells, &map.up.cells) {
            (crate::plot::HeatCells::Ranges(across, _), crate::plot::HeatCells::Ranges(up, _)) => {
                (across.clone(), up.clone())
            }
            _ => panic!("ranges"),
        };
        assert_eq!(columns, [0.5, 0.6, 0.7]);
        for (column, row, count) in cells {
            let is_in = |us: f64| (rows[row]..rows[row + 1]).contains(&us);
            match (column, count > 1.5) {
                (0, false) => assert!(is_in(60.0)),
                _ => assert!(is_in(1.505)),
            }
        }
    }

    #[test]
    fn rows_are_bounded_for_any_range() {
        for (least, most) in [(1e-3, 1e16), (1.0, 1.0), (5.0, 6.0)] {
            let rows = Rows::over(least, most);
            let ends = rows.ends();
            assert!(rows.count <= ROWS_MAX && ends[0] <= least, "{least} {most}");
            assert!(ends[rows.count] >= most, "{ends:?}");
        }
    }

    #[test]
    fn windows_without_distributions_have_no_map() {
        assert_eq!(map(&timeline(&[]), ""), None);
        assert_eq!(map(&timeline(&[&[(1, 1)]]), ""), None);
        assert_eq!(map(&timeline(&[&[], &[]]), ""), None);
        let broken = Window {
            bins: vec![(usize::MAX, 1)],
            ..Window::default()
        };
        let mut timeline = timeline(&[&[(1, 1)]]);
        timeline.windows.windows.push(broken);
        assert!(map(&timeline, "").is_some());
    }
}
