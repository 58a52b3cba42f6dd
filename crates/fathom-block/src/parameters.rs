//! Parameters of devices and layers, as a file of machines or of a target gives them.

use std::ops::RangeInclusive;

use fathom_core::Nanos;

use crate::Recorded;

/// Table of parameters in a file.
///
/// Models and layers read their keys through this trait, so that they know neither TOML nor error
/// messages with line and column. A reader never fails at once: it notes what is wrong, returns
/// some value within the bounds, and the file is refused as a whole, with all its problems. A key
/// is known by being asked for; [`finish`](Self::finish) refuses the others.
pub trait Parameters {
    /// Returns a whole number; `default` where the key may be left out.
    fn whole(&self, key: &'static str, bounds: RangeInclusive<u64>, default: Option<u64>) -> u64;

    /// Returns a number with or without a fraction.
    fn number(&self, key: &'static str, bounds: RangeInclusive<f64>, default: Option<f64>) -> f64;

    /// Returns true or false.
    fn flag(&self, key: &'static str, default: bool) -> bool;

    /// Returns a text, which must be there.
    fn text(&self, key: &'static str) -> Option<&str>;

    /// Returns a list of whole numbers, which must be there.
    fn wholes(&self, key: &'static str) -> Option<Vec<u64>>;

    /// Returns a table inside this one.
    fn table(&self, key: &'static str, optional: bool) -> Option<Box<dyn Parameters + '_>>;

    /// Returns a list of tables inside this one, empty where there is none.
    fn tables(&self, key: &'static str) -> Vec<Box<dyn Parameters + '_>>;

    /// Returns true if a key is present, known or not.
    fn has(&self, key: &str) -> bool;

    /// Notes that the value of `key` makes no sense, with the reason and a remedy.
    fn refuse(&self, key: &'static str, why: &str, hint: &str);

    /// Notes the keys that were not asked for.
    fn finish(&self);
}

impl dyn Parameters + '_ {
    /// Returns a whole number of 32 bits.
    pub fn count(
        &self,
        key: &'static str,
        bounds: RangeInclusive<u32>,
        default: Option<u32>,
    ) -> u32 {
        let bounds = u64::from(*bounds.start())..=u64::from(*bounds.end());
        let whole = self.whole(key, bounds, default.map(u64::from));
        u32::try_from(whole).unwrap_or(u32::MAX)
    }

    /// Returns a time that is written in units of `unit`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "bounds are far below 2^53 ns, and not negative"
    )]
    pub fn time(
        &self,
        key: &'static str,
        unit: Nanos,
        bounds: RangeInclusive<f64>,
        default: Option<f64>,
    ) -> Nanos {
        let number = self.number(key, bounds, default);
        Nanos::new((number * unit.get() as f64).round() as u64)
    }

    /// Returns a size that is written in GiB, in bytes: a whole number of 4 KiB.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most a million GiB, which is below 2^53 bytes, and not negative"
    )]
    pub fn gib(&self, key: &'static str, least: f64, default: Option<f64>) -> u64 {
        let gib = self.number(key, least..=1_000_000.0, default);
        (gib * 1024.0 * 1024.0 / 4.0) as u64 * 4096
    }

    /// Returns a rate that is written in MB/s, in bytes per second.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounds are far below 2^53, and not negative"
    )]
    pub fn rate(&self, key: &'static str) -> u64 {
        (self.number(key, 0.001..=1e6, None) * 1e6) as u64
    }

    /// Returns recorded latencies: the lists `latency_ns` and `count` of this table.
    pub fn recorded(&self) -> Option<Recorded> {
        let (latencies, counts) = (self.wholes("latency_ns"), self.wholes("count"));
        let (latencies, counts) = (latencies?, counts?);
        if latencies.len() != counts.len() {
            let (these, those) = (latencies.len(), counts.len());
            let why = format!("{these} latencies and {those} counts: they must be as many");
            self.refuse("count", &why, "give each latency its count");
            return None;
        }
        if latencies.iter().any(|ns| *ns > LATENCY_NS_MAX) {
            let why = format!("a latency is longer than {LATENCY_NS_MAX} ns, which is eleven days");
            self.refuse("latency_ns", &why, "write nanoseconds");
            return None;
        }
        let sum = counts
            .iter()
            .try_fold(0_u64, |sum, count| sum.checked_add(*count));
        if sum.is_none() {
            let why = format!("the counts add up to more than {}", u64::MAX);
            self.refuse("count", &why, "divide all of them by the same number");
            return None;
        }
        let recorded = Recorded::new(latencies.into_iter().zip(counts));
        if recorded.is_none() {
            self.refuse("count", "nothing was counted", "give latencies and counts");
        }
        recorded
    }
}

/// Limit of constant latencies, too.
const LATENCY_NS_MAX: u64 = 1_000_000_000_000_000;
