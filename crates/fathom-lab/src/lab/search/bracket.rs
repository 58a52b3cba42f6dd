//! Loads of a search: doubling or halving until one passes and one fails, then between them.
//!
//! ```text
//! start 10,000 ✗ · 5,000 ✓ · 7,071 ✓ · 8,408 ✗ · 7,709 ✓ · …    until both are within `precision`
//! ```

use crate::lab_plan::OpenLoop;

/// Highest load that passed and lowest that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bracket {
    pub(crate) passed: Option<u64>,
    pub(crate) failed: Option<u64>,
}

impl Bracket {
    /// Adds the outcome of a probe.
    pub(crate) fn add(&mut self, load: u64, passed: bool) {
        if passed {
            self.passed = Some(self.passed.map_or(load, |known| known.max(load)));
        } else {
            self.failed = Some(self.failed.map_or(load, |known| known.min(load)));
        }
    }

    /// Returns the load to probe next; `None` once both ends are within `precision`, or there is
    /// no load left. The first is `start`.
    pub(crate) fn next(&self, start: u64, precision: f64, jobs: &OpenLoop) -> Option<u64> {
        match (self.passed, self.failed) {
            (None, None) => Some(start),
            (None, Some(failed)) => {
                let half = jobs.nearest(failed as f64 / 2.0);
                (half < failed).then_some(half)
            }
            (Some(passed), None) => {
                let double = jobs.nearest(passed as f64 * 2.0);
                let is_in_reach = double / DOUBLED_MAX <= start && double > passed;
                is_in_reach.then_some(double)
            }
            (Some(passed), Some(failed)) => {
                let (low, high) = (passed as f64, failed as f64);
                // The geometric middle: loads are compared by their ratio.
                let middle = jobs.nearest((low * high).sqrt());
                let is_open = high > low * (1.0 + precision);
                (is_open && middle > passed && middle < failed).then_some(middle)
            }
        }
    }
}

/// Numbers of probes that a search takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProbeCount {
    /// Least: all loads that are tried fail, or the smallest two are neighbours.
    pub(crate) least: u64,
    /// Number if the limit lies within twice or half the closed-loop maximum, and the loads between
    /// are many.
    pub(crate) usual: u64,
    /// Largest: the maximum is the largest load there is, and the limit is near the smallest.
    pub(crate) most: u64,
}

impl ProbeCount {
    /// Returns the numbers for a precision, and for loads of one job of so many bits: the most
    /// times that one can be halved.
    pub(crate) fn of(precision: f64, load_bits: u64) -> Self {
        // Each halving of the distance takes the square root of the ratio, which begins with 2.
        let (mut ratio, mut halvings) = (2.0_f64, 0);
        while ratio > 1.0 + precision && halvings < load_bits {
            ratio = ratio.sqrt();
            halvings += 1;
        }
        Self {
            least: 1,
            usual: 2 + halvings,
            most: 1 + load_bits + halvings,
        }
    }
}

/// Most times the closed-loop maximum that is tried: where nothing fails, the condition asks
/// nothing of the load.
const DOUBLED_MAX: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the loads that are probed if those up to `most` pass.
    fn probed(start: u64, most: u64, jobs: u64) -> (Vec<u64>, Bracket) {
        let jobs = OpenLoop::of_jobs(jobs);
        let (mut bracket, mut loads) = (Bracket::default(), Vec::new());
        while let Some(load) = bracket.next(start, 0.01, &jobs) {
            loads.push(load);
            bracket.add(load, load <= most);
        }
        (loads, bracket)
    }

    #[test]
    fn both_ends_come_within_the_precision() {
        for most in [40, 700, 7_700, 9_999, 10_000, 55_000, 300_000] {
            let (loads, bracket) = probed(10_000, most, 1);
            let (passed, failed) = (bracket.passed.unwrap(), bracket.failed.unwrap());
            assert!(passed <= most && most < failed, "{most}: {bracket:?}");
            assert!(
                failed as f64 <= passed as f64 * 1.01 || failed - passed == 1,
                "{most}: {bracket:?}"
            );
            assert!(loads.len() <= 16, "{most}: {loads:?}");
        }
    }

    #[test]
    fn a_search_ends_where_no_load_passes_or_none_fails() {
        let (loads, bracket) = probed(10_000, 0, 4);
        assert_eq!((bracket.passed, loads.last()), (None, Some(&4)));
        let (_, bracket) = probed(10_000, u64::MAX, 1);
        assert_eq!((bracket.passed, bracket.failed), (Some(640_000), None));
    }

    #[test]
    fn the_number_of_probes_is_within_its_bounds() {
        let count = ProbeCount::of(0.01, 32);
        assert_eq!((count.usual, ProbeCount::of(1.0, 32).usual), (9, 2));
        for (start, most) in [(10_000, 7_700), (10_000, 15_000), (40_000_000, 30_000_000)] {
            let probes = probed(start, most, 1).0.len() as u64;
            assert!(
                probes.abs_diff(count.usual) <= 1,
                "{start} {most}: {probes}"
            );
        }
        for (start, most) in [(1, 0), (u64::from(u32::MAX), 0), (u64::from(u32::MAX), 100)] {
            let probes = probed(start, most, 1).0.len() as u64;
            let bounds = count.least..=count.most;
            assert!(bounds.contains(&probes), "{start} {most}: {probes}");
        }
        assert_eq!(probed(1, 0, 1).0.len(), 1);
    }

    #[test]
    fn loads_of_several_jobs_are_multiples() {
        let (loads, bracket) = probed(64, 31, 8);
        assert!(loads.iter().all(|load| load % 8 == 0), "{loads:?}");
        assert_eq!((bracket.passed, bracket.failed), (Some(24), Some(32)));
    }
}
