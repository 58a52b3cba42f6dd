//! Records of probes, reduced to what decides.
//!
//! The history keeps few buckets of a record's windows: it merges windows until they are few, and
//! an interval takes thirty. A search that goes on after an interruption has to decide as one that
//! was not interrupted, so every probe is judged by the reduced record, as it is kept.

use fathom_record::Record;
use fathom_stats::{Histogram, Window};

use crate::finished::kept;
use crate::lab::RunDone;
use crate::lab_plan::{Limit, SearchCondition};

/// Reduces the record of a probe's run: in each window, the buckets that lie on one side of all
/// limits become one. Shares below a limit stay as they are, and means within a bucket's width.
/// Totals and the histograms of the jobs are untouched.
pub(super) fn condense(done: &mut RunDone, conditions: &[SearchCondition]) {
    let Some(record) = &mut done.record else {
        return;
    };
    let cuts = cuts(conditions);
    let timelines = record.timelines.iter_mut();
    for window in timelines.flat_map(|timeline| &mut timeline.windows.windows) {
        join(window, &cuts);
    }
    let reduced: Record = kept(record).into_owned();
    *record = reduced;
}

/// Returns the buckets in which the limits of latencies lie.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates; a limit is not negative"
)]
fn cuts(conditions: &[SearchCondition]) -> Vec<usize> {
    let of = |condition: &SearchCondition| match condition.limit {
        Limit::Value(ns) if condition.metric.contains("_p") => Some(Histogram::index_of(ns as u64)),
        _ => None,
    };
    conditions.iter().filter_map(of).collect()
}

fn join(window: &mut Window, cuts: &[usize]) {
    // Even between two cuts, odd at one.
    let group = |index: usize| {
        let below = cuts.iter().filter(|cut| **cut < index).count();
        2 * below + usize::from(cuts.contains(&index))
    };
    let mut joined: Vec<(usize, u128, u64)> = Vec::new();
    for &(index, count) in &window.bins {
        // A record may claim any index.
        let midpoint = Histogram::midpoint(index.min(Histogram::BUCKETS - 1));
        let sum = u128::from(midpoint) * u128::from(count);
        match joined.last_mut() {
            Some((of, all, total)) if *of == group(index) => {
                *all = all.saturating_add(sum);
                *total = total.saturating_add(count);
            }
            _ => joined.push((group(index), sum, count)),
        }
    }
    let bins = joined.into_iter().filter(|(_, _, count)| *count > 0);
    let mean = |sum: u128, count: u64| u64::try_from(sum / u128::from(count)).unwrap_or(u64::MAX);
    window.bins = bins
        .map(|(_, sum, count)| (Histogram::index_of(mean(sum, count)), count))
        .collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_below_the_limits_stay_as_they_are() {
        let values = [10, 90, 300, 2_000, 2_010, 5_000, 70_000, 90_000_u64];
        let mut histogram = Histogram::new();
        values.iter().for_each(|ns| histogram.record(*ns));
        let mut window = Window {
            ios: 8,
            bins: histogram.buckets().collect(),
            ..Window::default()
        };
        let limits = [2_005.0, 60_000.0];
        let below = |window: &Window| limits.map(|limit| window.latencies_below(limit));
        let before = below(&window);
        let cuts = [2_005, 60_000].map(Histogram::index_of);
        join(&mut window, &cuts);
        assert_eq!(below(&window), before);
        assert_eq!(window.bins.len(), 4, "{:?}", window.bins);
        assert_eq!(window.latencies(), 8);
        let again = window.clone();
        join(&mut window, &cuts);
        assert_eq!(window, again);
    }
}
