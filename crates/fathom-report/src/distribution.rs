//! Shares of ops by completion latency and by queue depth.

use fathom_record::JobRecord;
use fathom_stats::Latency;

use crate::number::percent;
use crate::rate::{sum, total_ios};

/// Names of the buckets of `latency_ns` and `latency_us`: their upper ends, exclusive.
pub(crate) const SHORT: [&str; 10] = [
    "2", "4", "10", "20", "50", "100", "250", "500", "750", "1000",
];

/// Names of the buckets of `latency_ms`.
pub(crate) const LONG: [&str; 12] = [
    "2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000",
];

/// Names of the buckets of queue depths.
pub(crate) const LEVELS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];

/// Names of the buckets of ops per submission or reap.
pub(crate) const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

/// Share of ops in each range of completion latency, percent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LatencyShares {
    /// Below 1000 ns.
    pub(crate) ns: [f64; 10],
    /// Below 1000 µs.
    pub(crate) us: [f64; 10],
    /// The rest.
    pub(crate) ms: [f64; 12],
}

impl LatencyShares {
    /// Computes the shares from the clat histograms of all directions; zero without histograms.
    pub(crate) fn of(job: &JobRecord) -> Self {
        let total = total_ios(job);
        let clats: Vec<&Latency> = job
            .directions
            .each()
            .into_iter()
            .filter_map(|direction| direction.clat.as_ref())
            .collect();
        let mut before = 0;
        let mut share_below = |bound_ns: u64| {
            let below = sum(clats.iter().map(|clat| count_below(clat, bound_ns)));
            let share = share(below.saturating_sub(before), total, LATENCY_FLOOR);
            before = before.max(below);
            share
        };
        let mut shares = Self::default();
        for (share, bound) in shares.ns.iter_mut().zip(BOUNDS) {
            *share = share_below(bound);
        }
        for (share, bound) in shares.us.iter_mut().zip(BOUNDS) {
            *share = share_below(bound * 1_000);
        }
        for (share, bound) in shares.ms.iter_mut().zip(BOUNDS) {
            *share = share_below(bound * 1_000_000);
        }
        shares.ms[10] = share_below(2_000_000_000);
        shares.ms[11] = share_below(u64::MAX);
        shares
    }
}

/// Returns the number of ops below `bound_ns`; all of them for `u64::MAX`. A histogram bucket that
/// the bound cuts is split, unless minimum or maximum give the exact answer.
fn count_below(clat: &Latency, bound_ns: u64) -> u64 {
    let Some(histogram) = &clat.histogram else {
        return 0;
    };
    if clat.summary.max() < bound_ns || bound_ns == u64::MAX {
        return histogram.count();
    }
    if clat.summary.min() >= bound_ns {
        return 0;
    }
    histogram.count_below(bound_ns)
}

/// Returns the shares of the depths at which a job issued its ops, percent. As in fio, failed ops
/// are among them and among the whole; syncs are among them alone, so that the sum may exceed 100.
pub(crate) fn level_shares(job: &JobRecord) -> [f64; 7] {
    let issued = sum(job.depth_level.into_iter()).saturating_sub(job.sync.ios);
    depth_shares(&job.depth_level, issued.max(total_ios(job)))
}

/// Returns the share of each depth bucket in `total`, percent.
pub(crate) fn depth_shares(counts: &[u64; 7], total: u64) -> [f64; 7] {
    counts.map(|count| share(count, total, DEPTH_FLOOR))
}

/// Returns `count` in percent of `total`; at least `floor` if `count` is not 0.
fn share(count: u64, total: u64, floor: f64) -> f64 {
    if count == 0 || total == 0 {
        return 0.0;
    }
    percent(count as f64, total as f64).max(floor)
}

/// Upper ends of the buckets in each of the three units.
const BOUNDS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// Smallest shares shown, as in fio: what two decimals can show, and what one can.
const LATENCY_FLOOR: f64 = 0.01;
const DEPTH_FLOOR: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    fn job(values: &[u64]) -> JobRecord {
        let mut job = JobRecord::default();
        let mut clat = Latency::new(true);
        clat.record_all(values);
        job.directions.write.ios = values.len() as u64;
        job.directions.write.clat = Some(clat);
        job
    }

    #[test]
    fn failed_ops_are_part_of_the_whole_and_syncs_are_not() {
        // Six of ten ops completed; two syncs were issued between them.
        let mut job = job(&[1; 6]);
        job.depth_level = [3, 2, 7, 0, 0, 0, 0];
        job.sync.ios = 2;
        assert_eq!(level_shares(&job)[..3], [30.0, 20.0, 70.0]);
    }

    #[test]
    fn each_value_is_in_its_bucket() {
        let shares = LatencyShares::of(&job(&[
            1,
            3,
            999,
            1000,
            1999,
            2_000_000_000,
            5_000_000_000,
            7,
        ]));
        assert_eq!(
            shares.ns,
            [12.5, 12.5, 12.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 12.5]
        );
        assert_eq!(shares.us[0], 25.0);
        assert_eq!(shares.ms[11], 25.0);
        let sum: f64 = [&shares.ns[..], &shares.us, &shares.ms]
            .concat()
            .iter()
            .sum();
        assert_eq!(sum, 100.0);
    }

    #[test]
    fn exact_bounds_beat_a_cut_bucket() {
        // 13,370 ns lies in a bucket that ends above it; 749 in one that 750 cuts.
        assert_eq!(LatencyShares::of(&job(&[749; 100])).ns[8], 100.0);
        assert_eq!(LatencyShares::of(&job(&[750; 100])).ns[9], 100.0);
        assert_eq!(LatencyShares::of(&job(&[13_370])).us[3], 100.0);
    }

    #[test]
    fn shares_without_data_are_zero() {
        assert_eq!(
            LatencyShares::of(&JobRecord::default()),
            LatencyShares::default()
        );
        let mut without = job(&[5]);
        without.directions.write.clat = Some(Latency::new(false));
        assert_eq!(LatencyShares::of(&without), LatencyShares::default());
        assert_eq!(depth_shares(&[5; 7], 0), [0.0; 7]);
    }

    #[test]
    fn small_shares_are_not_rounded_to_zero() {
        let counts = [1, 0, 0, 0, 0, 0, 999_999];
        let shares = depth_shares(&counts, 1_000_000);
        assert_eq!((shares[0], shares[1]), (0.1, 0.0));
        let mut values = vec![5; 99_999];
        values.push(1);
        assert_eq!(LatencyShares::of(&job(&values)).ns[0], 0.01);
    }
}
