//! Contents of columns of time: smallest and largest values, and distributions.

use fathom_stats::{Histogram, Window, Windows};

use super::columns::{Merge, TimeColumns};

/// Smallest and largest value of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Envelope {
    pub(super) count: u64,
    pub(super) least: u64,
    pub(super) most: u64,
    sum: u128,
}

impl Envelope {
    /// Adds a value `times` times; `most` is the largest of its window.
    #[inline]
    pub(super) fn add(&mut self, value: u64, most: u64, times: u64) {
        self.least = if self.count == 0 {
            value
        } else {
            self.least.min(value)
        };
        self.most = self.most.max(most);
        self.count += times;
        self.sum += u128::from(value) * u128::from(times);
    }

    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

impl Merge for Envelope {
    fn merge(&mut self, other: Self) {
        if other.count == 0 {
            return;
        }
        self.least = if self.count == 0 {
            other.least
        } else {
            self.least.min(other.least)
        };
        self.most = self.most.max(other.most);
        self.count += other.count;
        self.sum += other.sum;
    }
}

/// Distribution of a column's values; takes memory by groups of buckets.
#[derive(Clone, Debug, Default)]
pub(super) struct Distribution {
    bytes: u64,
    envelope: Envelope,
    /// Counts of each group of buckets, from the first that has any.
    groups: Vec<Option<Box<[u64; GROUP]>>>,
}

impl Distribution {
    /// Adds a value of `times` ops of `bytes` bytes.
    #[inline]
    pub(super) fn add(&mut self, value: u64, most: u64, bytes: u64, times: u64) {
        self.bytes = self.bytes.saturating_add(bytes.saturating_mul(times));
        self.envelope.add(value, most, times);
        let index = Histogram::index_of(value);
        match self.groups.get_mut(index / GROUP) {
            Some(Some(counts)) => counts[index % GROUP] += times,
            _ => self.take_group(index / GROUP)[index % GROUP] += times,
        }
    }

    #[cold]
    fn take_group(&mut self, group: usize) -> &mut [u64; GROUP] {
        if self.groups.len() <= group {
            self.groups.resize_with(group + 1, || None);
        }
        self.groups[group].get_or_insert_with(|| Box::new([0; GROUP]))
    }

    fn window(&self) -> Window {
        let groups = self.groups.iter().enumerate();
        let groups = groups.filter_map(|(group, counts)| Some((group, counts.as_ref()?)));
        let bins = groups.flat_map(|(group, counts)| {
            let indices = group * GROUP..;
            indices.zip(counts.iter().copied())
        });
        Window {
            ios: self.envelope.count,
            bytes: self.bytes,
            min_ns: self.envelope.least,
            max_ns: self.envelope.most,
            bins: bins.filter(|(_, count)| *count > 0).collect(),
        }
    }
}

impl Merge for Distribution {
    fn merge(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.envelope.merge(other.envelope);
        for (group, counts) in other.groups.into_iter().enumerate() {
            let Some(counts) = counts else { continue };
            for (own, add) in self.take_group(group).iter_mut().zip(counts.iter()) {
                *own += add;
            }
        }
    }
}

/// Returns the columns as windows of a timeline, and the start of the first, ms. `end_ms` is the
/// last time of a line.
pub(super) fn windows(columns: &TimeColumns<Distribution>, end_ms: u64) -> (Windows, u64) {
    let start_ms = columns.iter().next().map_or(0, |(start, _)| start);
    let windows = columns.iter().map(|(_, column)| column.window()).collect();
    let nanos = |ms: u64| ms.saturating_mul(1_000_000);
    let windows = Windows {
        width_ns: nanos(columns.width_ms()),
        // A line's time is rounded down.
        end_ns: nanos((end_ms - start_ms).saturating_add(1)),
        windows,
    };
    (windows, start_ms)
}

/// Buckets of a histogram whose counts are allocated at once.
const GROUP: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_columns_have_all_values() {
        let mut columns: TimeColumns<Distribution> = TimeColumns::new(4);
        let mut all = Histogram::new();
        for time in 0..100_u64 {
            let value = 1 << (time % 64);
            columns.at(time).add(value, value, 4096, 1);
            all.record(value);
        }
        let (windows, start) = windows(&columns, 99);
        assert_eq!((start, windows.windows.len()), (0, 4));
        assert_eq!(windows.histogram(), all);
        let ops: u64 = windows.windows.iter().map(|window| window.ios).sum();
        let bytes: u64 = windows.windows.iter().map(|window| window.bytes).sum();
        assert_eq!((ops, bytes), (100, 409_600));
        assert_eq!(
            (windows.width_ns, windows.end_ns),
            (32_000_000, 100_000_000)
        );
        assert_eq!(windows.windows[0].min_ns, 1);
        assert_eq!(windows.windows[1].max_ns, 1 << 63);
    }

    #[test]
    fn an_empty_column_has_no_smallest_value() {
        let mut one = Envelope::default();
        one.merge(Envelope::default());
        assert_eq!(one.mean(), None);
        one.add(7, 9, 1);
        one.merge(Envelope::default());
        let mut other = Envelope::default();
        other.merge(one);
        assert_eq!((other.least, other.most, other.mean()), (7, 9, Some(7.0)));
    }
}
