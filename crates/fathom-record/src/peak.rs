//! Result of `fathom peak`.

use fathom_stats::{Latency, RatioInterval, median};
use serde::{Deserialize, Serialize};

use crate::stored::{RecordError, read_versioned};
use crate::{Machine, Warning};

/// Result of `fathom peak`: one point per depth and batch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PeakRecord {
    /// Version of the layout; see [`PEAK_VERSION`].
    pub version: u32,
    /// End of the measurement: milliseconds since 1970-01-01 UTC.
    pub timestamp_ms: u64,
    /// Files and devices; empty for no-ops.
    pub targets: Vec<String>,
    /// Name of the engine in job files.
    pub engine: String,
    /// Size of an op; 0 for no-ops.
    pub block_bytes: u32,
    /// Number of threads, each with its own engine.
    pub threads: u32,
    /// Settings other than the defaults, as on the command line.
    pub settings: Vec<String>,
    /// Machine that was measured.
    pub machine: Option<Machine>,
    /// Measured points.
    pub points: Vec<PeakPoint>,
    /// Comparison with another result, if one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<PeakComparison>,
    /// Warnings to the user.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

/// Current version of the layout of [`PeakRecord`].
pub const PEAK_VERSION: u32 = 1;

/// Measurement at one depth and batch: the sum of its repeats.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PeakPoint {
    /// Queue depth of each thread.
    pub depth: u32,
    /// Largest number of ops submitted by one system call.
    pub submit: u32,
    /// Completions to wait for when the queue is full.
    pub complete: u32,
    /// Completed ops.
    pub ops: u64,
    /// Bytes moved by them.
    pub moved_bytes: u64,
    /// System calls made for them.
    pub calls: u64,
    /// Duration.
    pub wall_ns: u64,
    /// Ops per second over the whole duration.
    pub iops_mean: f64,
    /// Ops per second in the best second, or in the best repeat if those are shorter.
    pub iops_max: f64,
    /// Bytes per second over the whole duration.
    pub bw_bytes_per_s: f64,
    /// Time from just before an op is prepared until it is reaped, if requested.
    pub lat: Option<PeakLatency>,
    /// Repeats in the order of measurement; empty in results of earlier programs.
    #[serde(default)]
    pub repeats: Vec<PeakRepeat>,
}

/// One repeat of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeakRepeat {
    /// Duration.
    pub wall_ns: u64,
    /// Ops per second.
    pub iops: f64,
    /// Latencies, if recorded.
    pub lat: Option<PeakRepeatLatency>,
    /// Waits for processors; `None` in results of earlier programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contention: Option<PeakContention>,
}

/// Waits of the threads of a repeat for a processor, and the use of the processors on which they
/// may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeakContention {
    /// Share of the time for which the thread that waited longest did so.
    pub waited_percent: f64,
    /// Mean length of its waits.
    pub wait_mean_us: f64,
    /// Number of processors.
    pub cpus: u64,
    /// Busy share of them, percent 0–100.
    pub busy_percent: f64,
    /// CPU time of other programs and interrupts, as a number of processors.
    pub others_cpus: f64,
}

impl PeakContention {
    /// Returns true if the waits changed the result: 3 % of the time or more, at least 10 µs at a
    /// time, with at least half the processors busy.
    ///
    /// A thread that wakes on an idle processor waits for less than 10 µs, or for the end of a
    /// sleep state of the processor.
    #[must_use]
    pub const fn matters(&self) -> bool {
        self.waited_percent >= 3.0 && self.wait_mean_us >= 10.0 && self.busy_percent >= 50.0
    }
}

/// Latencies of one repeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeakRepeatLatency {
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p99_9_ns: u64,
}

/// Comparison of a result with another one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeakComparison {
    /// Other side: the name of its file, or the options that were measured in turn.
    pub against: String,
    /// The repeats of both sides alternated.
    pub alternating: bool,
    /// End of the other measurement: milliseconds since 1970-01-01 UTC.
    pub against_timestamp_ms: u64,
    /// Differences between the two machines and settings, a sentence each.
    pub changes: Vec<String>,
    /// One per measured point.
    pub points: Vec<PeakPointComparison>,
}

/// Comparison of one point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeakPointComparison {
    /// Queue depth of the other side.
    pub depth: u32,
    /// Batch of the other side.
    pub submit: u32,
    /// Ops per second in the other side's repeats; the mean alone if it has none.
    pub against_iops: Vec<f64>,
    /// IOPS ÷ the other side's.
    pub iops: Option<PeakRatio>,
    /// Median latency ÷ the other side's.
    pub p50: Option<PeakRatio>,
    /// 99th percentile ÷ the other side's.
    pub p99: Option<PeakRatio>,
    /// Other side's latencies, each the median over its repeats.
    pub against_lat: Option<PeakRepeatLatency>,
}

/// Ratio of one figure to the other side's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeakRatio {
    /// Estimate.
    pub middle: f64,
    /// Lower end of the confidence interval.
    pub low: f64,
    /// Upper end of the confidence interval.
    pub high: f64,
    /// Coverage of the interval, 0 to 1.
    pub coverage: f64,
    /// The interval excludes 1.
    pub differs: bool,
}

/// Distribution of latencies.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PeakLatency {
    /// Latencies at [`PeakLatency::PERCENTS`].
    pub percentiles: Vec<PeakPercentile>,
    /// Count, bounds, mean and histogram, ns.
    pub all: Latency,
}

/// Latency at one percentile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeakPercentile {
    /// Percentage of ops that took at most `lat_ns`.
    pub percent: f64,
    /// Latency: the midpoint of its histogram bucket.
    pub lat_ns: u64,
}

impl PeakLatency {
    /// Percentiles that are kept, ascending.
    pub const PERCENTS: [f64; 17] = [
        1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9,
        99.95, 99.99,
    ];

    /// Computes the percentiles of recorded latencies.
    #[must_use]
    pub fn new(all: Latency) -> Self {
        let histogram = all.histogram.as_ref();
        let percentiles = Self::PERCENTS.iter().map(|&percent| PeakPercentile {
            percent,
            lat_ns: histogram.map_or(0, |histogram| histogram.percentile(percent)),
        });
        Self {
            percentiles: percentiles.collect(),
            all,
        }
    }

    /// Returns the latency at one of [`Self::PERCENTS`].
    #[must_use]
    pub fn at(&self, percent: f64) -> Option<u64> {
        let mut kept = self.percentiles.iter();
        let found = kept.find(|kept| (kept.percent - percent).abs() < 1e-9);
        found.map(|found| found.lat_ns)
    }

    /// Returns the three percentiles that are kept for each repeat.
    #[must_use]
    pub fn short(&self) -> PeakRepeatLatency {
        let at = |percent| self.at(percent).unwrap_or(0);
        PeakRepeatLatency {
            p50_ns: at(50.0),
            p99_ns: at(99.0),
            p99_9_ns: at(99.9),
        }
    }
}

impl From<RatioInterval> for PeakRatio {
    fn from(ratio: RatioInterval) -> Self {
        Self {
            middle: ratio.middle,
            low: ratio.low,
            high: ratio.high,
            coverage: ratio.coverage,
            differs: ratio.shows_difference(),
        }
    }
}

impl PeakPoint {
    /// Returns the ops per second of each repeat; of the whole measurement if there are none.
    #[must_use]
    pub fn iops_of_repeats(&self) -> Vec<f64> {
        if self.repeats.is_empty() {
            return vec![self.iops_mean];
        }
        self.repeats.iter().map(|repeat| repeat.iops).collect()
    }

    /// Returns the median over the repeats.
    #[must_use]
    pub fn iops_median(&self) -> f64 {
        let mut rates = self.iops_of_repeats();
        rates.sort_by(f64::total_cmp);
        median(&rates)
    }

    /// Returns the medians over the repeats of each latency; the merged ones without repeats.
    #[must_use]
    pub fn lat_medians(&self) -> Option<PeakRepeatLatency> {
        let kept: Vec<PeakRepeatLatency> = self
            .repeats
            .iter()
            .filter_map(|repeat| repeat.lat)
            .collect();
        if kept.is_empty() {
            return self.lat.as_ref().map(PeakLatency::short);
        }
        let middle = |of: fn(&PeakRepeatLatency) -> u64| {
            let mut sorted: Vec<u64> = kept.iter().map(of).collect();
            sorted.sort_unstable();
            sorted[sorted.len() / 2]
        };
        Some(PeakRepeatLatency {
            p50_ns: middle(|lat| lat.p50_ns),
            p99_ns: middle(|lat| lat.p99_ns),
            p99_9_ns: middle(|lat| lat.p99_9_ns),
        })
    }

    /// Returns the mean number of ops per system call; 0 without calls.
    #[must_use]
    pub fn ops_per_call(&self) -> f64 {
        match self.calls {
            0 => 0.0,
            calls => float(self.ops) / float(calls),
        }
    }
}

impl PeakRecord {
    /// Serialises the result as indented JSON.
    ///
    /// # Errors
    /// None for a result made by this program.
    pub fn to_json(&self) -> Result<String, RecordError> {
        serde_json::to_string_pretty(self).map_err(|error| RecordError::json(DOCUMENT, error))
    }

    /// Reads a result of this version of the layout or an earlier one.
    ///
    /// # Errors
    /// The text is not such a result, or its version is later.
    pub fn from_json(text: &str) -> Result<Self, RecordError> {
        read_versioned(text, DOCUMENT, PEAK_VERSION)
    }

    /// Returns the point measured at this depth and batch.
    #[must_use]
    pub fn point(&self, depth: u32, submit: u32) -> Option<&PeakPoint> {
        let mut points = self.points.iter();
        points.find(|point| (point.depth, point.submit) == (depth, submit))
    }
}

/// Name of the document in error messages.
const DOCUMENT: &str = "a result of `fathom peak --json`";

#[expect(clippy::cast_precision_loss, reason = "a mean is not exact to 2⁻⁵³")]
const fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_round_trip_keeps_a_result() {
        let mut all = Latency::new(true);
        all.record_n(1_000, 99);
        all.record(50_000);
        let point = PeakPoint {
            depth: 8,
            submit: 2,
            ops: 100,
            calls: 40,
            lat: Some(PeakLatency::new(all)),
            ..PeakPoint::default()
        };
        let record = PeakRecord {
            version: PEAK_VERSION,
            points: vec![point],
            ..PeakRecord::default()
        };
        let back = PeakRecord::from_json(&record.to_json().unwrap()).unwrap();
        let point = back.point(8, 2).unwrap();
        assert!((point.ops_per_call() - 2.5).abs() < 1e-9);
        let lat = point.lat.as_ref().unwrap();
        assert_eq!(lat.percentiles.len(), 17);
        assert_eq!(lat.at(99.0), Some(1_004));
        assert!(lat.at(99.99).unwrap() > 49_000);
        assert_eq!(lat.all.summary.count(), 100);
        assert!(back.point(8, 1).is_none());
    }

    #[test]
    fn a_result_without_repeats_is_read_and_is_one_value() {
        let point = PeakPoint {
            iops_mean: 7.0,
            ..PeakPoint::default()
        };
        let record = PeakRecord {
            version: PEAK_VERSION,
            points: vec![point],
            ..PeakRecord::default()
        };
        let mut json: serde_json::Value = serde_json::from_str(&record.to_json().unwrap()).unwrap();
        let point = json["points"][0].as_object_mut().unwrap();
        assert!(point.remove("repeats").is_some());
        let back = PeakRecord::from_json(&json.to_string()).unwrap();
        assert_eq!(back.points[0].iops_of_repeats(), [7.0]);
        assert_eq!(back.comparison, None);
    }

    #[test]
    fn later_versions_and_other_files_are_refused() {
        let later = PeakRecord::from_json("{\"version\": 2}").unwrap_err();
        assert!(later.to_string().contains("version 2"), "{later}");
        let other = PeakRecord::from_json("{}").unwrap_err();
        assert!(other.to_string().contains("fathom peak --json"), "{other}");
    }
}
