//! Outcome of the search for a queue depth that meets a latency target.

use fathom_core::Nanos;
use fathom_record::Validity;

use super::{JobMeasured, figure, ops, validity};

/// Checks that a depth met `latency_target`, and that it was the depth at the end.
#[must_use]
pub fn latency_target(seen: &JobMeasured<'_>) -> Option<Validity> {
    let target = seen.record.latency_target?;
    if ops(seen.record) == 0 {
        return None;
    }
    let (depth, share) = (target.depth, target.share_percent);
    let wanted = Nanos::new(target.target_ns).to_string();
    let sentence = match target.depth_met {
        None => format!(
            "the job ended before a queue depth had met latency_target: {depth} was being tried"
        ),
        Some(0) if depth == 1 => format!(
            "latency_target was missed: not even at queue depth 1 did {share} % of ops complete \
             within {wanted}"
        ),
        Some(0) => format!(
            "latency_target was missed: no queue depth is known at which {share} % of ops complete \
             within {wanted}; the last one tried was {depth}"
        ),
        Some(met) if met == depth => format!(
            "latency_target was met: at queue depth {met}, {share} % of ops completed within \
             {wanted}"
        ),
        Some(met) => format!(
            "the job ended before the search for latency_target: queue depth {met} met it, and \
             {depth} was being tried"
        ),
    };
    let ok = target.depth_met == Some(depth);
    let figures = vec![
        figure("depth", f64::from(depth)),
        figure("depth_met", f64::from(target.depth_met.unwrap_or(0))),
    ];
    Some(validity("latency_target", ok, sentence, figures))
}
