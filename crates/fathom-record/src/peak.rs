//! Result of `fathom peak`.

use fathom_stats::Latency;
use serde::{Deserialize, Serialize};

use crate::stored::{RecordError, read_versioned};
use crate::{Machine, Warning};

/// Result of `fathom peak`: one point, or one per depth of a sweep.
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
    /// Warnings to the user.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

/// Current version of the layout of [`PeakRecord`].
pub const PEAK_VERSION: u32 = 1;

/// Measurement at one depth.
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
    /// Ops per second in the best second.
    pub iops_max: f64,
    /// Bytes per second over the whole duration.
    pub bw_bytes_per_s: f64,
    /// Time from just before an op is prepared until it is reaped, if requested.
    pub lat: Option<PeakLatency>,
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
}

impl PeakPoint {
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
    fn later_versions_and_other_files_are_refused() {
        let later = PeakRecord::from_json("{\"version\": 2}").unwrap_err();
        assert!(later.to_string().contains("version 2"), "{later}");
        let other = PeakRecord::from_json("{}").unwrap_err();
        assert!(other.to_string().contains("fathom peak --json"), "{other}");
    }
}
