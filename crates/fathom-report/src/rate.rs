//! Bandwidth and IOPS of one direction, and of a reporting group.

use std::collections::BTreeMap;

use fathom_core::{Direction, PerDirection};
use fathom_record::{DirectionRecord, Display, JobRecord};

use crate::group::ReportedJob;
use crate::number::{Prefix, compact, percent};

/// Returns bytes per second; 0 if nothing was moved.
pub(crate) fn bytes_per_s(direction: &DirectionRecord) -> u64 {
    per_second(direction.bytes, direction.runtime_ms)
}

/// Returns ops per second, rounded down.
pub(crate) fn ops_per_s(direction: &DirectionRecord) -> u64 {
    per_second(direction.ios, direction.runtime_ms)
}

/// Returns exact ops per second; 0 for an unused direction.
pub(crate) fn exact_ops_per_s(direction: &DirectionRecord) -> f64 {
    if direction.bytes == 0 && direction.runtime_ms == 0 {
        return 0.0;
    }
    1000.0 * direction.ios as f64 / direction.runtime_ms.max(1) as f64
}

/// Returns `amount` per second. A runtime below one millisecond counts as one.
fn per_second(amount: u64, runtime_ms: u64) -> u64 {
    let scaled = u128::from(amount) * 1000 / u128::from(runtime_ms.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Units of a job's rates and sizes.
#[derive(Clone, Copy)]
pub(crate) struct Units {
    prefix: Prefix,
    bits: bool,
    digits: u32,
}

impl Units {
    pub(crate) const fn new(kb_base: u64, unit_base: u64, digits: u32) -> Self {
        Self {
            prefix: Prefix::of_base(kb_base),
            bits: unit_base == 1,
            digits,
        }
    }

    pub(crate) fn of(display: &Display) -> Self {
        Self::new(
            display.kb_base,
            display.unit_base,
            display.significant_figures,
        )
    }

    /// Formats `12.1MiB/s` and `12.7MB/s`: the bandwidth in both systems of prefixes.
    pub(crate) fn bandwidth(self, bytes_per_s: u64) -> (String, String) {
        let (value, unit) = if self.bits {
            (bytes_per_s.saturating_mul(8), "bit/s")
        } else {
            (bytes_per_s, "B/s")
        };
        self.both(value, unit)
    }

    /// Formats `131MiB` and `137MB`: the size in both systems of prefixes.
    pub(crate) fn size(self, bytes: u64) -> (String, String) {
        self.both(bytes, "B")
    }

    /// Formats ops per second, with decimal prefixes whatever the base.
    pub(crate) fn iops(self, ops_per_s: u64) -> String {
        compact(ops_per_s, self.digits, Prefix::Decimal)
    }

    fn both(self, value: u64, unit: &str) -> (String, String) {
        let text = |prefix| compact(value, self.digits, prefix) + unit;
        (text(self.prefix), text(self.prefix.other()))
    }
}

/// Rates of one direction of a reporting group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupRate {
    pub(crate) bytes: u64,
    pub(crate) slowest_bytes_per_s: u64,
    pub(crate) fastest_bytes_per_s: u64,
    pub(crate) shortest_ms: u64,
    pub(crate) longest_ms: u64,
}

/// Rates of a reporting group.
pub(crate) struct GroupRates<'a> {
    /// First job of the group.
    pub(crate) first: &'a ReportedJob<'a>,
    pub(crate) each: PerDirection<GroupRate>,
    /// All directions merged.
    pub(crate) mixed: GroupRate,
}

impl<'a> GroupRates<'a> {
    /// Computes the rates of every group in one pass over the jobs.
    pub(crate) fn of_groups(entries: &'a [ReportedJob<'a>]) -> BTreeMap<u32, Self> {
        let mut groups = BTreeMap::new();
        for entry in entries {
            let rates = groups.entry(entry.job.group_id).or_insert_with(|| Self {
                first: entry,
                each: PerDirection::default(),
                mixed: GroupRate::default(),
            });
            for direction in Direction::ALL {
                let record = of_direction(&entry.job, direction);
                rates.each[direction].add(record);
                rates.mixed.add(record);
            }
        }
        groups
    }
}

impl GroupRate {
    /// Returns the group's bytes per second: all bytes over the longest runtime.
    pub(crate) fn bytes_per_s(&self) -> u64 {
        per_second(self.bytes, self.longest_ms)
    }

    /// Returns the share of `mean_kib_per_s` in the group's bandwidth, percent, at most 100.
    pub(crate) fn share(&self, mean_kib_per_s: f64) -> f64 {
        let whole = (self.bytes_per_s() / 1024) as f64;
        percent(mean_kib_per_s, whole).min(100.0)
    }

    pub(crate) fn add(&mut self, direction: &DirectionRecord) {
        if direction.bytes == 0 {
            return;
        }
        let rate = bytes_per_s(direction);
        let runtime = direction.runtime_ms;
        let first = self.bytes == 0;
        self.bytes = self.bytes.saturating_add(direction.bytes);
        self.slowest_bytes_per_s = if first {
            rate
        } else {
            self.slowest_bytes_per_s.min(rate)
        };
        self.fastest_bytes_per_s = self.fastest_bytes_per_s.max(rate);
        self.shortest_ms = if first {
            runtime
        } else {
            self.shortest_ms.min(runtime)
        };
        self.longest_ms = self.longest_ms.max(runtime);
    }
}

/// Returns one direction of a job.
pub(crate) fn of_direction(job: &JobRecord, direction: Direction) -> &DirectionRecord {
    job.directions.each()[direction.index()]
}

/// Returns the ops of all directions.
pub(crate) fn total_ios(job: &JobRecord) -> u64 {
    sum(job
        .directions
        .each()
        .into_iter()
        .map(|direction| direction.ios))
}

/// Returns the sum, saturated: a damaged record must not overflow it.
pub(crate) fn sum(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_without_time_or_bytes() {
        let mut direction = DirectionRecord::default();
        assert_eq!(
            (bytes_per_s(&direction), exact_ops_per_s(&direction)),
            (0, 0.0)
        );
        direction.bytes = u64::MAX;
        direction.ios = 5;
        assert_eq!(
            (bytes_per_s(&direction), ops_per_s(&direction)),
            (u64::MAX, 5000)
        );
    }

    #[test]
    fn units_follow_both_bases() {
        let of = |kb, unit| Units::new(kb, unit, 4).bandwidth(9_212_000_000);
        assert_eq!(of(1024, 0), ("8785MiB/s".into(), "9212MB/s".into()));
        assert_eq!(of(1000, 8), ("9212MB/s".into(), "8785MiB/s".into()));
        assert_eq!(of(1024, 1), ("68.6Gibit/s".into(), "73.7Gbit/s".into()));
    }
}
