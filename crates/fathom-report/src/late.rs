//! Ops that started late.

use fathom_stats::Latency;

/// Returns the number of ops that started 1 ms or more after they were due; `None` without a
/// distribution of their lag.
pub(crate) fn late_ops(lag: &Latency) -> Option<u64> {
    let histogram = lag.histogram.as_ref()?;
    let in_time = histogram.count_below(LATE_NS);
    Some(histogram.count().saturating_sub(in_time))
}

/// 1.05 ms: the edge of a histogram's bucket, so that the count is exact.
const LATE_NS: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_are_late_from_a_millisecond_on() {
        let mut lag = Latency::new(true);
        for (ns, times) in [(0, 7), (1_000_000, 2), (LATE_NS - 1, 1), (LATE_NS, 3)] {
            lag.record_n(ns, times);
        }
        lag.record(u64::MAX);
        assert_eq!(late_ops(&lag), Some(4));
        assert_eq!(late_ops(&Latency::new(true)), Some(0));
        assert_eq!(late_ops(&Latency::new(false)), None);
    }
}
