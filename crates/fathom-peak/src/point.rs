//! Rates of a measurement, and the depths of a sweep.

use fathom_record::{PeakLatency, PeakPoint, PeakRepeat};
use fathom_stats::Latency;

use crate::{Interval, PeakConfig, PeakOutcome};

/// Queue depths of a sweep.
pub const SWEEP_DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

impl PeakConfig {
    /// Returns this configuration as one step of a sweep: with latency, and from depth 8 with
    /// batches of a quarter of the depth, else of one.
    #[must_use]
    pub fn at_depth(self, depth: u32) -> Self {
        let batch = if depth < 8 { 1 } else { depth / 4 };
        Self {
            depth,
            submit: batch,
            complete: batch,
            latency: true,
            ..self
        }
    }
}

impl Interval {
    /// Returns the ops per second.
    #[must_use]
    pub fn iops(&self) -> f64 {
        float(self.ops) * 1e9 / float(self.span.get().max(1))
    }
}

impl PeakOutcome {
    /// Converts the result of a single repeat for the record.
    #[must_use]
    pub fn into_point(self, config: &PeakConfig) -> PeakPoint {
        let mut repeats = Repeats::default();
        repeats.add(self);
        repeats.into_point(config)
    }
}

/// Repeats of one measurement, which may be far apart in time.
#[derive(Clone, Debug, Default)]
pub struct Repeats {
    total: Interval,
    /// Rate of the best second so far, or of the best repeat if it was shorter.
    best_iops: f64,
    lat: Option<Latency>,
    repeats: Vec<PeakRepeat>,
}

impl Repeats {
    /// Adds the result of one more repeat.
    pub fn add(&mut self, outcome: PeakOutcome) {
        let (total, iops) = (outcome.total, outcome.total.iops());
        // The last interval may be too short to be the best one.
        let whole = |interval: &&Interval| interval.span.get() >= SECOND_NS_MIN;
        let best = outcome.intervals.iter().filter(whole).map(Interval::iops);
        self.best_iops = best.fold(self.best_iops.max(iops), f64::max);
        self.total = Interval {
            ops: self.total.ops + total.ops,
            calls: self.total.calls + total.calls,
            span: self.total.span + total.span,
        };
        self.repeats.push(PeakRepeat {
            wall_ns: total.span.get(),
            iops,
            contention: outcome.contention,
            lat: outcome
                .latency
                .clone()
                .map(|lat| PeakLatency::new(lat).short()),
        });
        match (&mut self.lat, outcome.latency) {
            (Some(sum), Some(lat)) => sum.merge(&lat),
            (sum, lat) => *sum = lat,
        }
    }

    /// Returns whether nothing was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.repeats.is_empty()
    }

    /// Converts the sum of the repeats for the record.
    #[must_use]
    pub fn into_point(self, config: &PeakConfig) -> PeakPoint {
        let (total, mean) = (self.total, self.total.iops());
        let block = if config.nops { 0 } else { config.block_bytes };
        PeakPoint {
            depth: config.depth,
            submit: config.submit,
            complete: config.complete,
            ops: total.ops,
            moved_bytes: total.ops * u64::from(block),
            calls: total.calls,
            wall_ns: total.span.get(),
            iops_mean: mean,
            iops_max: self.best_iops,
            bw_bytes_per_s: mean * f64::from(block),
            lat: self.lat.map(PeakLatency::new),
            repeats: self.repeats,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate is not exact to 2⁻⁵³")]
const fn float(number: u64) -> f64 {
    number as f64
}

/// Shortest interval that counts for the maximum: half a second.
const SECOND_NS_MIN: u64 = 500_000_000;

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use fathom_core::Nanos;

    use super::*;
    use crate::PeakEngine;

    fn config() -> PeakConfig {
        PeakConfig {
            targets: vec![PathBuf::from("x")],
            engine: PeakEngine::Uring,
            depth: 128,
            submit: 32,
            complete: 32,
            block_bytes: 512,
            threads: 1,
            polled: false,
            sequential: false,
            buffered: false,
            fixed_buffers: true,
            fixed_files: true,
            register_ring: true,
            nops: false,
            write: false,
            cpu: None,
            latency: false,
            duration: Nanos::from_secs(1),
        }
    }

    #[test]
    fn the_steps_of_a_sweep_are_the_published_ones() {
        let batches = SWEEP_DEPTHS.map(|depth| config().at_depth(depth).submit);
        assert_eq!(batches, [1, 1, 1, 2, 4, 8, 16]);
        assert!(config().at_depth(8).latency);
    }

    #[test]
    fn the_best_second_is_a_whole_one() {
        let interval = |ops, ms| Interval {
            ops,
            calls: 1,
            span: Nanos::from_millis(ms),
        };
        let outcome = PeakOutcome {
            intervals: vec![interval(100, 1000), interval(300, 1000), interval(50, 1)],
            total: interval(450, 2001),
            ..PeakOutcome::default()
        };
        let point = outcome.into_point(&config());
        assert!((point.iops_max - 300.0).abs() < 1e-9);
        assert!((point.iops_mean - 224.9).abs() < 0.1);
        assert_eq!(point.moved_bytes, 450 * 512);
    }

    #[test]
    fn repeats_are_kept_and_summed() {
        let mut repeats = Repeats::default();
        assert!(repeats.is_empty());
        for (ops, ns) in [(100, 1_000), (300, 2_000), (200, 9_000)] {
            let mut lat = Latency::new(true);
            lat.record_n(ns, ops);
            let total = Interval {
                ops,
                calls: ops,
                span: Nanos::from_millis(100),
            };
            repeats.add(PeakOutcome {
                intervals: vec![total],
                total,
                latency: Some(lat),
                ..PeakOutcome::default()
            });
        }
        let point = repeats.into_point(&config());
        assert_eq!((point.ops, point.wall_ns), (600, 300_000_000));
        assert!((point.iops_mean - 2000.0).abs() < 1e-9);
        assert!((point.iops_median() - 2000.0).abs() < 1e-9);
        assert!((point.iops_max - 3000.0).abs() < 1e-9);
        assert_eq!(point.iops_of_repeats().len(), 3);
        // Merged, the middle op is one of the 300; of the medians, it is the middle repeat's.
        assert_eq!(point.lat_medians().map(|lat| lat.p50_ns / 100), Some(20));
        assert_eq!(
            point.lat.as_ref().map(|lat| lat.all.summary.count()),
            Some(600)
        );
    }
}
