//! Heat map of values over time.

use fathom_stats::{Histogram, Windows};

/// Counts of values by window and range of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ValueMap {
    /// Ends of the ranges, ascending, one more than there are.
    pub(super) ends: Vec<u64>,
    /// Counts of each window, from the lowest range on; `None` where there are none.
    pub(super) cells: Vec<Vec<Option<f64>>>,
}

/// Returns the counts in ranges of some buckets of the histogram each, as narrow as few enough of
/// them hold all values.
pub(super) fn value_map(windows: &Windows) -> ValueMap {
    let all = windows.windows.iter().flat_map(|window| &window.bins);
    let indices = || all.clone().map(|&(index, _)| index);
    let (Some(least), Some(most)) = (indices().min(), indices().max()) else {
        return ValueMap::default();
    };
    let wide = (0..=6).find(|shift| (most >> shift) - (least >> shift) < ROWS_MAX);
    let shift = wide.unwrap_or(6);
    let first = least >> shift;
    let rows = (most >> shift) - first + 1;
    let cells = windows.windows.iter().map(|window| {
        let mut counts = vec![None; rows];
        for &(index, count) in &window.bins {
            *counts[(index >> shift) - first].get_or_insert(0.0) += count as f64;
        }
        counts
    });
    ValueMap {
        cells: cells.collect(),
        ends: (0..=rows)
            .map(|row| start((first + row) << shift))
            .collect(),
    }
}

/// Returns the smallest value of a bucket; past the last one, the largest value there is.
fn start(index: usize) -> u64 {
    if index >= Histogram::BUCKETS {
        return u64::MAX;
    }
    Histogram::lower_bound(index)
}

/// Most ranges: more would be less than two pixels high.
const ROWS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use fathom_stats::Window;

    use super::*;

    fn windows(values: &[&[u64]]) -> Windows {
        let windows = values.iter().map(|values| {
            let mut histogram = Histogram::new();
            histogram.record_all(values);
            Window {
                bins: histogram.buckets().collect(),
                ..Window::default()
            }
        });
        Windows {
            width_ns: 1,
            end_ns: values.len() as u64,
            windows: windows.collect(),
        }
    }

    #[test]
    fn every_value_is_in_its_range() {
        for values in [
            &[0, 1, 127, 128, 1000, 5_000_000][..],
            &[u64::MAX, 0],
            &[99, 99],
        ] {
            let map = value_map(&windows(&[values, &[]]));
            assert!(map.ends.len() <= ROWS_MAX + 1, "{}", map.ends.len());
            assert!(map.ends.is_sorted());
            assert_eq!(map.cells[1], vec![None; map.ends.len() - 1]);
            let mut want = vec![0.0; map.ends.len() - 1];
            for value in values {
                let range = map.ends.partition_point(|end| end <= value);
                let last = want.len();
                want[range.min(last) - 1] += 1.0;
            }
            let found: Vec<f64> = map.cells[0]
                .iter()
                .map(|cell| cell.unwrap_or(0.0))
                .collect();
            assert_eq!(found, want, "{values:?}");
        }
        assert_eq!(value_map(&windows(&[&[]])), ValueMap::default());
    }
}
