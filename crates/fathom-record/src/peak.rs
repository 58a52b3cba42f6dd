//! What a measurement of the raw maximum leaves behind.

use std::fmt;

use fathom_stats::Latency;
use serde::{Deserialize, Serialize};

use crate::{Machine, Warning};

/// A measurement of the raw maximum: one point, or one for each depth of a sweep.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PeakRecord {
    /// The layout's version; see `PEAK_VERSION`.
    pub version: u32,
    /// When it ended: milliseconds since 1970-01-01 UTC.
    pub timestamp_ms: u64,
    /// Files and devices; empty for no-ops.
    pub targets: Vec<String>,
    /// The engine's name in job files.
    pub engine: String,
    /// Bytes of an op.
    pub block_bytes: u32,
    /// Threads, each with an engine of its own.
    pub threads: u32,
    /// The settings that were not left at their defaults, as on the command line.
    pub settings: Vec<String>,
    /// Where it ran.
    pub machine: Option<Machine>,
    /// What was measured.
    pub points: Vec<PeakPoint>,
    /// What the user should know.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

/// The version of the layout of `PeakRecord`.
pub const PEAK_VERSION: u32 = 1;

/// One depth.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PeakPoint {
    /// Ops in flight at most, for each thread.
    pub depth: u32,
    /// Ops handed over in one system call at most.
    pub submit: u32,
    /// Completions waited for.
    pub complete: u32,
    /// Ops that completed.
    pub ops: u64,
    /// Bytes they moved.
    pub moved_bytes: u64,
    /// System calls made for them.
    pub calls: u64,
    /// How long it took.
    pub wall_ns: u64,
    /// Ops per second over all of it.
    pub iops_mean: f64,
    /// Ops per second in the best second.
    pub iops_max: f64,
    /// Bytes per second over all of it.
    pub bw_bytes_per_s: f64,
    /// From the moment before an op was laid down to the moment it was found complete, where that
    /// was asked for.
    pub lat: Option<PeakLatency>,
}

/// A distribution of latencies.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PeakLatency {
    /// At the usual percentiles, ascending.
    pub percentiles: Vec<PeakPercentile>,
    /// Count, bounds, mean and the whole histogram, ns.
    pub all: Latency,
}

/// A latency at a percentile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeakPercentile {
    /// So many per cent of the ops were not slower.
    pub percent: f64,
    /// The latency.
    pub lat_ns: u64,
}

impl PeakLatency {
    /// The percentiles that are published, in this order.
    pub const PERCENTS: [f64; 17] = [
        1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9,
        99.95, 99.99,
    ];

    /// What was recorded, with its percentiles.
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

    /// The latency at one of the percentiles that are kept.
    #[must_use]
    pub fn at(&self, percent: f64) -> Option<u64> {
        let mut kept = self.percentiles.iter();
        let found = kept.find(|kept| (kept.percent - percent).abs() < 1e-9);
        found.map(|found| found.lat_ns)
    }
}

impl PeakPoint {
    /// Ops that a system call carried on the average; 0 where there was none.
    #[must_use]
    pub fn ops_per_call(&self) -> f64 {
        match self.calls {
            0 => 0.0,
            calls => float(self.ops) / float(calls),
        }
    }
}

impl PeakRecord {
    /// The measurement as JSON.
    ///
    /// # Errors
    /// None that a record made by this program can cause.
    pub fn to_json(&self) -> Result<String, PeakRecordError> {
        serde_json::to_string_pretty(self).map_err(PeakRecordError::Json)
    }

    /// Reads a measurement of this version of the layout or an earlier one.
    ///
    /// # Errors
    /// The text is none, or one of a later version.
    pub fn from_json(text: &str) -> Result<Self, PeakRecordError> {
        // The version first: a later layout may differ in anything else.
        let Versioned { version } = serde_json::from_str(text).map_err(PeakRecordError::Json)?;
        if version == 0 || version > PEAK_VERSION {
            return Err(PeakRecordError::Version { found: version });
        }
        serde_json::from_str(text).map_err(PeakRecordError::Json)
    }

    /// The point of this depth and batch.
    #[must_use]
    pub fn point(&self, depth: u32, submit: u32) -> Option<&PeakPoint> {
        let mut points = self.points.iter();
        points.find(|point| (point.depth, point.submit) == (depth, submit))
    }
}

/// Why a measurement cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum PeakRecordError {
    /// Not JSON, or not a measurement.
    Json(serde_json::Error),
    /// A layout that this program does not know.
    Version {
        /// The measurement's version.
        found: u32,
    },
}

impl fmt::Display for PeakRecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(f, "not what `fathom peak --json` prints: {error}"),
            Self::Version { found } => write!(
                f,
                "a measurement of version {found}: this program reads versions 1 to {PEAK_VERSION}"
            ),
        }
    }
}

impl std::error::Error for PeakRecordError {}

/// The part of a measurement that every version has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

#[expect(clippy::cast_precision_loss, reason = "a mean is not exact to 2⁻⁵³")]
const fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_comes_back_as_it_was_written() {
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
    fn a_later_layout_and_other_files_are_refused() {
        let later = PeakRecord::from_json("{\"version\": 2}").unwrap_err();
        assert!(later.to_string().contains("version 2"), "{later}");
        let other = PeakRecord::from_json("{}").unwrap_err();
        assert!(other.to_string().contains("fathom peak --json"), "{other}");
    }
}
