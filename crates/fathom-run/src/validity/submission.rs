//! Ops that had completed when the call that submitted them returned.

use fathom_record::{DirectionRecord, Validity};
use fathom_stats::Histogram;

use super::{JobEvidence, figure, percent, to_float, validity};

/// Checks that clat contains the time of most ops: it begins when the submitting call has returned,
/// so an op that completed by then has no clat to speak of, and all of its time is in slat.
pub(super) fn judge(seen: &JobEvidence<'_>) -> Option<Validity> {
    if !seen.record.asynchronous || !seen.job.options.moves_data() {
        return None;
    }
    let shares = seen.record.directions.each().into_iter();
    let share = shares.filter_map(inline_percent).reduce(f64::max)?;
    let ok = share < INLINE_PERCENT;
    let sentence = if ok {
        format!("{share:.0} % of ops had completed when the call that submitted them returned")
    } else {
        format!(
            "{share:.0} % of ops had completed when the call that submitted them returned: all of \
             their time is in slat, and clat, with its percentiles, is too low \
             (lat_percentiles=1 shows those of lat)"
        )
    };
    let figures = vec![figure("completed_in_submission_percent", share)];
    Some(validity("submission", ok, sentence, figures))
}

/// Returns whether the median op had completed by the end of its submission.
pub(super) fn has_inline_median(direction: &DirectionRecord) -> bool {
    inline_percent(direction).is_some_and(|percent| percent >= 50.0)
}

/// Returns the share of ops that completed in their submission, if that took time.
fn inline_percent(direction: &DirectionRecord) -> Option<f64> {
    let submission = direction.slat.as_ref()?;
    let clat: &Histogram = direction.clat.as_ref()?.histogram.as_ref()?;
    if submission.summary.mean() < to_float(INLINE_NS) {
        return None;
    }
    percent(clat.count_below(INLINE_NS), clat.count())
}

/// Clat below which an op had completed before its submission ended: it is that of a clock read,
/// some 10 to 100 ns, and storage that is waited for takes longer. A guess.
const INLINE_NS: u64 = 512;
/// Share of such ops from which percentiles of clat mislead. A guess.
const INLINE_PERCENT: f64 = 5.0;
