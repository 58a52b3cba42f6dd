//! Rows of the heat map: two for each power of two.

use fathom_stats::Histogram;
use serde::Serialize;

/// Row of a heat map: latencies from 2ⁿ to 1.5 · 2ⁿ ns, or from there to 2ⁿ⁺¹.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub(crate) struct HeatRow(u8);

impl HeatRow {
    /// Returns the row of a latency.
    #[expect(clippy::cast_possible_truncation, reason = "at most 127")]
    pub(crate) const fn of(ns: u64) -> Self {
        let ns = if ns < 2 { 2 } else { ns };
        let power = ns.ilog2();
        Self((2 * power + (ns >> (power - 1) & 1) as u32) as u8)
    }

    /// Returns the smallest latency of the row.
    #[cfg(any(test, feature = "live"))]
    pub(crate) const fn lower_ns(self) -> u64 {
        let power = (self.0 / 2) as u32;
        let half = (self.0 % 2) as u64;
        (1 << power) + (half << power >> 1)
    }

    /// Returns the number of the row; neighbours differ by one.
    #[cfg(any(test, feature = "live"))]
    pub(crate) const fn number(self) -> usize {
        self.0 as usize
    }

    /// Returns the row of a number.
    #[cfg(any(test, feature = "live"))]
    #[expect(clippy::cast_possible_truncation, reason = "clamped")]
    pub(crate) const fn from_number(number: usize) -> Self {
        Self(if number > 127 { 127 } else { number as u8 })
    }
}

/// Ops of each row in which there are any, ascending.
pub(crate) type HeatCounts = Vec<(HeatRow, u64)>;

/// Adds latencies to the rows of a column.
pub(crate) fn add(column: &mut HeatCounts, latencies: &Histogram) {
    for (ns, count) in latencies.bins() {
        let row = HeatRow::of(ns);
        match column.binary_search_by_key(&row, |(row, _)| *row) {
            Ok(place) => column[place].1 += count,
            Err(place) => column.insert(place, (row, count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_begin_where_they_say() {
        for ns in [
            2,
            3,
            4,
            5,
            6,
            7,
            8,
            1000,
            1024,
            1535,
            1536,
            2047,
            1 << 40,
            u64::MAX,
        ] {
            let row = HeatRow::of(ns);
            let next = HeatRow::from_number(row.number() + 1);
            assert!(row.lower_ns() <= ns, "{ns}");
            assert!(next == row || ns < next.lower_ns(), "{ns}");
            assert_eq!(HeatRow::of(row.lower_ns()), row);
        }
        assert_eq!(HeatRow::of(0), HeatRow::of(2));
    }

    #[test]
    fn counts_of_a_row_add_up() {
        let mut latencies = Histogram::new();
        latencies.record_all(&[1024, 1100, 1600, 100_000]);
        let mut column = HeatCounts::new();
        add(&mut column, &latencies);
        add(&mut column, &latencies);
        let counts: Vec<u64> = column.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [4, 2, 2]);
        assert!(column.is_sorted());
    }
}
