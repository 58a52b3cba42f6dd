//! Columns of time that double in width when a log is longer than they are.
//!
//! ```text
//! width 1   │8│9│10│11│        first 8, at most 4 columns
//! time 13   │4 │5 │6 │  width 2, first 4: neighbours have merged, where their places are even
//! ```
//!
//! Columns begin at multiples of their width, so that those of two logs can be laid over each
//! other, and a time before the first one is as good as any other.

/// Content of a column.
pub(super) trait Merge: Default {
    /// Adds the content of another column.
    fn merge(&mut self, other: Self);
}

/// Columns of equal width, which is a power of two of milliseconds.
#[derive(Clone, Debug)]
pub(super) struct TimeColumns<C> {
    /// log₂ of the width, ms.
    level: u32,
    /// Number of the first column: its start over the width.
    first: u64,
    columns: Vec<C>,
    most: usize,
}

impl<C: Merge> TimeColumns<C> {
    /// Creates columns of 1 ms; there will never be more than `most`.
    pub(super) const fn new(most: usize) -> Self {
        Self {
            level: 0,
            first: 0,
            columns: Vec::new(),
            most,
        }
    }

    /// Returns the column of a time.
    #[inline]
    pub(super) fn at(&mut self, time_ms: u64) -> &mut C {
        let mut index = (time_ms >> self.level).wrapping_sub(self.first);
        if index >= self.columns.len() as u64 {
            self.make_room(time_ms);
            index = (time_ms >> self.level) - self.first;
        }
        // Below the length, which `make_room` ensures.
        &mut self.columns[usize::try_from(index).unwrap_or(usize::MAX)]
    }

    /// Adds columns up to that of a time, and widens them until there are few enough.
    #[cold]
    fn make_room(&mut self, time_ms: u64) {
        if self.columns.is_empty() {
            self.first = time_ms >> self.level;
        }
        loop {
            let index = time_ms >> self.level;
            let before = self.first.saturating_sub(index);
            let length = self.columns.len() as u64;
            let after = (index - index.min(self.first))
                .saturating_add(1)
                .saturating_sub(length);
            let all = length.saturating_add(before).saturating_add(after);
            if all <= self.most as u64 {
                let before = usize::try_from(before).unwrap_or(0);
                let all = usize::try_from(all).unwrap_or(0);
                self.columns.splice(0..0, (0..before).map(|_| C::default()));
                self.columns.resize_with(all, C::default);
                self.first = self.first.min(index);
                return;
            }
            self.widen();
        }
    }

    /// Doubles the width.
    fn widen(&mut self) {
        let first = self.first >> 1;
        let mut merged: Vec<C> = Vec::new();
        for (at, column) in (0..).zip(std::mem::take(&mut self.columns)) {
            // Within the length halved, rounded up, plus one.
            let index = usize::try_from(((self.first + at) >> 1) - first).unwrap_or(0);
            if merged.len() <= index {
                merged.resize_with(index + 1, C::default);
            }
            merged[index].merge(column);
        }
        (self.columns, self.first) = (merged, first);
        self.level += 1;
    }

    /// Returns the width of a column, ms.
    pub(super) const fn width_ms(&self) -> u64 {
        1 << self.level
    }

    /// Returns the start of each column, ms, and its content.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &C)> {
        let columns = self.columns.iter().zip(0..);
        columns.map(|(column, at): (_, u64)| ((self.first + at) << self.level, column))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug, Default, PartialEq)]
    struct Count(u64);

    impl Merge for Count {
        fn merge(&mut self, other: Self) {
            self.0 += other.0;
        }
    }

    fn filled(times: &[u64], most: usize) -> TimeColumns<Count> {
        let mut columns: TimeColumns<Count> = TimeColumns::new(most);
        for &time in times {
            columns.at(time).0 += 1;
        }
        columns
    }

    fn times() -> impl Strategy<Value = Vec<u64>> {
        let time = prop_oneof![
            0..2000_u64,
            Just(u64::MAX),
            any::<u64>(),
            1_000_000..1_001_000_u64
        ];
        prop::collection::vec(time, 0..60)
    }

    proptest! {
        #[test]
        fn columns_hold_what_falls_into_them(times in times(), most in 2..40_usize) {
            let columns = filled(&times, most);
            prop_assert!(columns.columns.len() <= most);
            let mut want: BTreeMap<u64, u64> = BTreeMap::new();
            for time in &times {
                *want.entry(time >> columns.level << columns.level).or_default() += 1;
            }
            let found = columns.iter().filter(|(_, count)| count.0 > 0);
            let found: BTreeMap<u64, u64> = found.map(|(start, count)| (start, count.0)).collect();
            prop_assert_eq!(found, want);
        }

        #[test]
        fn columns_are_no_wider_than_they_must(times in times(), most in 2..40_usize) {
            let columns = filled(&times, most);
            if let (Some(least), Some(last)) = (times.iter().min(), times.iter().max())
                && columns.level > 0
            {
                let finer = columns.level - 1;
                prop_assert!((last >> finer) - (least >> finer) >= most as u64);
            }
        }
    }

    proptest! {
        /// Columns of one log, added at their starts to those of another, are as wide as if all
        /// times had been added one by one.
        #[test]
        fn columns_of_two_logs_lie_over_each_other(
            one in times(),
            other in times(),
            half in 1..20_usize,
        ) {
            let most = 2 * half;
            let mut overlay: TimeColumns<Count> = TimeColumns::new(most);
            for times in [&one, &other] {
                for (start, count) in filled(times, most).iter().filter(|(_, count)| count.0 > 0) {
                    overlay.at(start).merge(count.clone());
                }
            }
            let all = filled(&[one, other].concat(), most);
            prop_assert_eq!(overlay.level, all.level);
            let counts = |columns: &TimeColumns<Count>| {
                let with = columns.iter().filter(|(_, count)| count.0 > 0);
                with.map(|(start, count)| (start, count.0)).collect::<Vec<_>>()
            };
            prop_assert_eq!(counts(&overlay), counts(&all));
        }
    }
}
