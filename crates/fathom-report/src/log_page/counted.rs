//! Lines of histogram logs, each of which counts ops.

use fathom_stats::Histogram;

use super::reduction::LogSample;

/// Line of a histogram log.
#[derive(Clone, Copy, Debug)]
pub struct LogHistogram<'a> {
    /// Time since the start of the job, or since the epoch.
    pub time_ms: u64,
    /// fio's number of the direction.
    pub direction: u32,
    /// Length of the ops, as far as the line gives it.
    pub bytes: u64,
    /// Ops of each bucket, from the shortest latencies on.
    pub counts: &'a [u64],
    /// Number of times that neighbouring buckets were merged in pairs.
    pub coarseness: u8,
}

impl LogHistogram<'_> {
    /// Returns the largest distance of an op's latency from the value that it counts as, as a share
    /// of the latency: half a bucket.
    #[must_use]
    pub fn error(coarseness: u8) -> f64 {
        // A bucket is as wide as 1/64 of its lower bound, or narrower.
        f64::from(1_u32 << coarseness.min(6)) / 128.0
    }

    /// Returns the middle of each bucket that has ops, and their number.
    pub(super) fn samples(&self) -> impl Iterator<Item = (LogSample, u64)> {
        let counts = self.counts.iter().copied().enumerate();
        let counts = counts.filter(|(_, count)| *count > 0);
        counts.map(|(bucket, count)| {
            let bound = |bucket: usize| {
                let index = bucket << self.coarseness.min(6);
                Histogram::lower_bound(index.min(Histogram::BUCKETS - 1))
            };
            let (from, to) = (bound(bucket), bound(bucket + 1));
            let value = from + (to - from) / 2;
            let sample = LogSample {
                time_ms: self.time_ms,
                value,
                max: value,
                direction: self.direction,
                bytes: self.bytes,
                ..LogSample::default()
            };
            (sample, count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_page::{LogKind, LogReduction, log_page, reduction::tests::description};

    /// Returns the reduction of a histogram log: each second 1000 ops of 100 µs, and in one of them
    /// 20 of 10 ms, with buckets merged `coarseness` times.
    fn reduction(coarseness: u8) -> LogReduction {
        let mut reduction = LogReduction::new();
        reduction.begin(description("a_clat_hist.1.log", LogKind::Clat));
        for second in 0..60 {
            let mut counts = vec![0; Histogram::FIO_BUCKETS >> coarseness];
            counts[Histogram::index_of(100_000) >> coarseness] = 1000;
            if second == 33 {
                counts[Histogram::index_of(10_000_000) >> coarseness] = 20;
            }
            reduction.add_histogram(&LogHistogram {
                time_ms: second * 1000,
                direction: 0,
                bytes: 4096,
                counts: &counts,
                coarseness,
            });
        }
        reduction
    }

    #[test]
    fn values_are_those_that_were_counted_within_half_a_bucket() {
        for coarseness in 0..=6 {
            let reduction = reduction(coarseness);
            assert_eq!(reduction.lines(), 60_020);
            let (_, read) = reduction.logs[0].directions().next().unwrap();
            assert_eq!((read.rows, read.ops), (60, 60_020));
            let error = LogHistogram::error(coarseness) + 0.008;
            for (percent, truth) in [(50.0, 1e5), (99.98, 1e7)] {
                let value = read.histogram.percentile(percent) as f64;
                assert!(
                    (value / truth - 1.0).abs() <= error,
                    "{coarseness}: {value}"
                );
            }
        }
    }

    #[test]
    fn a_page_has_percentiles_over_time_and_a_heat_map() {
        let reduction = reduction(0);
        let log = &reduction.logs[0];
        // Lines, not ops, tell which pause is long.
        assert!(log.order.gaps(log.rows(), log.span_length_ms()).is_empty());
        let page = log_page(&reduction, "histograms");
        let names: Vec<_> = page.drawings().into_iter().map(|one| one.name).collect();
        for want in ["clat-by-percentile", "clat-over-time", "clat-heat-map-read"] {
            assert!(
                names.iter().any(|name| name.contains(want)),
                "{want}: {names:?}"
            );
        }
        let html = page.html();
        assert!(html.contains("60020 lines"), "{html}");
        assert!(!html.contains("averages over windows"), "{html}");
    }

    #[test]
    fn the_largest_bucket_has_a_value() {
        let counts = vec![1; Histogram::FIO_BUCKETS];
        let line = LogHistogram {
            time_ms: 0,
            direction: 9,
            bytes: 0,
            counts: &counts,
            coarseness: 0,
        };
        let values: Vec<u64> = line.samples().map(|(sample, _)| sample.value).collect();
        assert_eq!(values.len(), Histogram::FIO_BUCKETS);
        assert!(values.is_sorted() && values[0] == 0);
        let indices = values.iter().map(|value| Histogram::index_of(*value));
        assert!(indices.eq(0..Histogram::FIO_BUCKETS));
    }
}
