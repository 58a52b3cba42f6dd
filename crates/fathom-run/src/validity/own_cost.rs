//! Share of the tool's own work in the latencies of a job.

use fathom_record::{DirectionRecord, Validity};

use super::submission::has_inline_median;
use super::{JobEvidence, figure, to_float, validity};

/// Checks that the tool's own work is a small part of the median clat.
pub(super) fn judge(seen: &JobEvidence<'_>) -> Option<Validity> {
    let cost = seen.record.own_cost?;
    // Without data, all of a latency is the tool's; `cpu_bound` says so.
    if !seen.job.options.moves_data() {
        return None;
    }
    let own_ns = cost.loop_ns_per_op?;
    let directions = seen.record.directions.each();
    // A clat that consists of a clock read is not a latency: `submission` says so.
    let waited = directions
        .into_iter()
        .filter(|direction| !has_inline_median(direction));
    let medians = waited.filter_map(clat_median);
    let median = to_float(medians.min()?).max(1.0);
    let share = own_ns * 100.0 / median;
    let ok = share <= OWN_PERCENT;
    let sentence = if ok {
        format!("fathom's own work took {own_ns:.0} ns per op, {share:.1} % of the median clat")
    } else {
        format!(
            "fathom's own work took {own_ns:.0} ns per op, {share:.0} % of the median clat of \
             {median:.0} ns: up to that share of the latencies is not the storage's"
        )
    };
    let figures = vec![
        figure("loop_ns_per_op", own_ns),
        figure("clock_read_ns", to_float(cost.clock_read_ns)),
        figure("percent_of_median_clat", share),
    ];
    Some(validity("own_cost", ok, sentence, figures))
}

/// Returns the median clat of a direction.
fn clat_median(direction: &DirectionRecord) -> Option<u64> {
    let histogram = direction.clat.as_ref()?.histogram.as_ref()?;
    (histogram.count() > 0).then(|| histogram.percentile(50.0))
}

/// Share of the median clat above which the tool's own work is said.
const OWN_PERCENT: f64 = 5.0;
