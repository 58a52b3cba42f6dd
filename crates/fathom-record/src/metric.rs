//! Table of the metrics of a run: name, unit, and the direction in which each improves.
//!
//! ```text
//! write.bw              bytes per second written by all jobs of the run
//! reader/read.lat_p99   99th percentile of the reads' lat, of the jobs named `reader`
//! all.clat_p99.9_us     of all directions together, in µs
//! service.target.sent   number that the service `target` beside the run reports
//! ```

use std::fmt;

use fathom_stats::Improves;

/// Metric of a run, or a family of them: all percentiles of a latency are one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Name, without its unit's suffix; a percentile's ends in `_p`, and its percent follows.
    pub name: &'static str,
    /// Unit of a name without suffix, in which values are stored.
    pub unit: &'static str,
    /// Direction in which it improves.
    pub improves: Improves,
    /// Its name is followed by a percent.
    pub is_percentile: bool,
    /// Complete name: that of a percentile with a percent.
    pub example: &'static str,
    /// Suffixes for other units.
    units: &'static [Unit],
}

/// Unit that a name may end in.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Unit {
    suffix: &'static str,
    symbol: &'static str,
    /// Stored units in one of these.
    size: f64,
}

/// Metric of a direction of a run or of a group of its jobs, `[GROUP/]DIRECTION.METRIC`, or number
/// of a service beside it, `service.NAME.KEY`.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricName {
    /// Name of jobs, empty for all jobs of the run; or of a service.
    pub group: String,
    /// `read`, `write`, `trim`, `sync`, or `all`: reads, writes and trims together; or
    /// [`OF_SERVICE`].
    pub direction: &'static str,
    /// Name of the metric, without its unit's suffix: `clat_p99`; or a service's key.
    pub metric: String,
    /// Row of the table.
    pub row: Metric,
    /// Percent of a percentile.
    pub percent: Option<f64>,
    unit: Option<Unit>,
}

/// Refusal of a metric's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricNameError {
    /// The problem.
    pub message: String,
    /// Names that were possible there.
    pub candidates: Vec<&'static str>,
}

impl MetricName {
    /// Parses a name.
    ///
    /// # Errors
    /// No such direction or metric, or a percentile outside 0–100.
    pub fn parse(text: &str) -> Result<Self, MetricNameError> {
        Self::of_jobs(text).or_else(|error| Self::of_service(text).ok_or(error))
    }

    /// Parses `service.NAME.KEY`.
    fn of_service(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(OF_SERVICE)?.strip_prefix('.')?;
        let (service, key) = rest.split_once('.')?;
        (!service.is_empty() && !key.is_empty()).then(|| Self {
            group: service.into(),
            direction: OF_SERVICE,
            metric: key.into(),
            row: SERVICE_NUMBER,
            percent: None,
            unit: None,
        })
    }

    fn of_jobs(text: &str) -> Result<Self, MetricNameError> {
        // A job's name may have slashes and full stops: the last slash ends it.
        let (group, rest) = text.rsplit_once('/').unwrap_or(("", text));
        let Some((direction, metric)) = rest.split_once('.') else {
            return Err(refused(
                format!("`{text}`: no direction before the metric"),
                DIRECTIONS.to_vec(),
            ));
        };
        let Some(direction) = DIRECTIONS.into_iter().find(|known| *known == direction) else {
            return Err(refused(
                format!("`{text}`: no direction `{direction}`"),
                DIRECTIONS.to_vec(),
            ));
        };
        let Some((row, percent, unit)) = find(metric) else {
            return Err(refused(
                format!("`{text}`: no metric `{metric}`"),
                METRICS.iter().map(|metric| metric.example).collect(),
            ));
        };
        if percent.is_some_and(|percent| percent <= 0.0 || percent >= 100.0) {
            let message = format!("`{text}`: a percentile is above 0 and below 100");
            return Err(refused(message, Vec::new()));
        }
        // One name for one value: `p99.0` and `p099` are `p99`.
        let percent_text = percent.map_or(String::new(), |percent| percent.to_string());
        Ok(Self {
            group: group.into(),
            direction,
            metric: row.name.to_owned() + &percent_text,
            row,
            percent,
            unit,
        })
    }

    /// Returns the name with the unit in which people read it, unless it has one: bandwidths in
    /// MiB/s, times in µs.
    #[must_use]
    pub fn in_usual_unit(mut self) -> Self {
        self.unit = self.unit.or_else(|| {
            let mut units = self.row.units.iter().copied();
            units.find(|unit| USUAL.contains(&unit.suffix))
        });
        self
    }

    /// Returns the name with the unit of another name of the same value.
    #[must_use]
    pub const fn in_unit_of(mut self, other: &Self) -> Self {
        self.unit = other.unit;
        self
    }

    /// Returns the name without the suffix of a unit, as stored.
    #[must_use]
    pub fn stored_name(&self) -> String {
        let name = Self {
            unit: None,
            ..self.clone()
        };
        name.to_string()
    }

    /// Returns whether two names stand for the same stored value.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.metric == other.metric
            && self.direction == other.direction
            && self.group == other.group
    }

    /// Returns whether it is a number that a service reports of itself: its unit, and the direction
    /// in which it improves, are not known.
    #[must_use]
    pub fn is_of_service(&self) -> bool {
        self.direction == OF_SERVICE
    }

    /// Returns whether it is a rate of ops or bytes.
    #[must_use]
    pub fn is_rate(&self) -> bool {
        !self.is_of_service() && matches!(self.metric.as_str(), "iops" | "bw")
    }

    /// Returns the symbol of the unit, `MiB/s`; empty for a number of a service.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        self.unit.map_or(self.row.unit, |unit| unit.symbol)
    }

    /// Converts a stored value into the unit of the name.
    #[must_use]
    pub fn in_unit(&self, stored: f64) -> f64 {
        self.unit.map_or(stored, |unit| stored / unit.size)
    }

    /// Converts a value in the unit of the name into a stored one.
    #[must_use]
    pub fn stored(&self, value: f64) -> f64 {
        self.unit.map_or(value, |unit| value * unit.size)
    }
}

impl fmt::Display for MetricName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_of_service() {
            return write!(f, "{OF_SERVICE}.{}.{}", self.group, self.metric);
        }
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        let suffix = self.unit.map_or("", |unit| unit.suffix);
        write!(f, "{}.{}{suffix}", self.direction, self.metric)
    }
}

/// Returns row, percent and unit of a metric's name.
fn find(name: &str) -> Option<(Metric, Option<f64>, Option<Unit>)> {
    METRICS.iter().find_map(|metric| {
        let rest = name.strip_prefix(metric.name)?;
        let units = metric.units.iter().copied();
        let unit = units.clone().find(|unit| rest.ends_with(unit.suffix));
        let middle = unit.map_or(rest, |unit| &rest[..rest.len() - unit.suffix.len()]);
        if !metric.is_percentile {
            return middle.is_empty().then_some((*metric, None, unit));
        }
        let is_decimal = |text: &str| {
            text.bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
        };
        let percent = middle.parse().ok().filter(|_| is_decimal(middle))?;
        Some((*metric, Some(percent), unit))
    })
}

const fn refused(message: String, candidates: Vec<&'static str>) -> MetricNameError {
    MetricNameError {
        message,
        candidates,
    }
}

const fn rate(name: &'static str, unit: &'static str, units: &'static [Unit]) -> Metric {
    Metric {
        name,
        unit,
        improves: Improves::Upwards,
        is_percentile: false,
        example: name,
        units,
    }
}

const fn cost(name: &'static str, unit: &'static str, units: &'static [Unit]) -> Metric {
    Metric {
        improves: Improves::Downwards,
        ..rate(name, unit, units)
    }
}

const fn percentile(name: &'static str, example: &'static str) -> Metric {
    Metric {
        is_percentile: true,
        example,
        ..cost(name, "ns", TIMES)
    }
}

const fn unit(suffix: &'static str, symbol: &'static str, size: f64) -> Unit {
    Unit {
        suffix,
        symbol,
        size,
    }
}

const BANDWIDTHS: &[Unit] = &[
    unit("_kib_s", "KiB/s", 1024.0),
    unit("_mib_s", "MiB/s", 1_048_576.0),
    unit("_mb_s", "MB/s", 1e6),
    unit("_gbps", "Gbit/s", 125e6),
];

/// Suffixes of the units that people read.
const USUAL: [&str; 2] = ["_mib_s", "_us"];

const TIMES: &[Unit] = &[unit("_us", "µs", 1e3), unit("_ms", "ms", 1e6)];

/// Metrics of a direction. The latencies are defined in `docs/MEASURING.md`; `clat_rt`, `clat_be`
/// and `clat_idle` are of ops of one class of I/O priorities.
pub const METRICS: [Metric; 40] = [
    rate("bw", "B/s", BANDWIDTHS),
    rate("iops", "IOPS", &[]),
    cost("cpu_per_op", "ns", TIMES),
    cost("slat_mean", "ns", TIMES),
    cost("slat_stddev", "ns", TIMES),
    cost("slat_min", "ns", TIMES),
    cost("slat_max", "ns", TIMES),
    percentile("slat_p", "slat_p99"),
    cost("clat_mean", "ns", TIMES),
    cost("clat_stddev", "ns", TIMES),
    cost("clat_min", "ns", TIMES),
    cost("clat_max", "ns", TIMES),
    percentile("clat_p", "clat_p99"),
    cost("clat_rt_mean", "ns", TIMES),
    cost("clat_rt_stddev", "ns", TIMES),
    cost("clat_rt_max", "ns", TIMES),
    percentile("clat_rt_p", "clat_rt_p99"),
    cost("clat_be_mean", "ns", TIMES),
    cost("clat_be_stddev", "ns", TIMES),
    cost("clat_be_max", "ns", TIMES),
    percentile("clat_be_p", "clat_be_p99"),
    cost("clat_idle_mean", "ns", TIMES),
    cost("clat_idle_stddev", "ns", TIMES),
    cost("clat_idle_max", "ns", TIMES),
    percentile("clat_idle_p", "clat_idle_p99"),
    cost("lat_mean", "ns", TIMES),
    cost("lat_stddev", "ns", TIMES),
    cost("lat_min", "ns", TIMES),
    cost("lat_max", "ns", TIMES),
    percentile("lat_p", "lat_p99"),
    cost("resp_mean", "ns", TIMES),
    cost("resp_stddev", "ns", TIMES),
    cost("resp_min", "ns", TIMES),
    cost("resp_max", "ns", TIMES),
    percentile("resp_p", "resp_p99"),
    cost("lag_mean", "ns", TIMES),
    cost("lag_stddev", "ns", TIMES),
    cost("lag_min", "ns", TIMES),
    cost("lag_max", "ns", TIMES),
    percentile("lag_p", "lag_p99"),
];

/// Directions of a metric's name.
pub const DIRECTIONS: [&str; 5] = ["read", "write", "trim", "sync", "all"];

/// Word in place of a direction: the number is one of a service, whose name is the group.
pub const OF_SERVICE: &str = "service";

/// Returns the word of a stored measure's direction, if it is one.
#[must_use]
pub fn known_direction(word: &str) -> Option<&'static str> {
    let mut known = DIRECTIONS.into_iter().chain([OF_SERVICE]);
    known.find(|known| *known == word)
}

/// Row of all numbers of services.
const SERVICE_NUMBER: Metric = rate("", "", &[]);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, metric: &str, percent: Option<f64>, unit: &str) {
        let name = MetricName::parse(text).unwrap();
        assert_eq!(name.to_string(), text);
        assert_eq!((name.metric.as_str(), name.percent), (metric, percent));
        assert_eq!(name.unit(), unit);
    }

    #[test]
    fn names_have_direction_metric_and_unit() {
        check("write.bw", "bw", None, "B/s");
        check("write.bw_mib_s", "bw", None, "MiB/s");
        check("all.iops", "iops", None, "IOPS");
        check("read.clat_p99", "clat_p99", Some(99.0), "ns");
        check("a/b.c/read.lat_p99.9_us", "lat_p99.9", Some(99.9), "µs");
        check("sync.lat_max", "lat_max", None, "ns");
        check("read.clat_rt_p99_us", "clat_rt_p99", Some(99.0), "µs");
        check("service.target.threads.0.sent", "threads.0.sent", None, "");
        check("service.a/read.iops", "iops", None, "IOPS");
        let same = |text: &str| MetricName::parse(text).unwrap().to_string();
        assert_eq!(same("read.clat_p99.0"), "read.clat_p99");
        assert_eq!(same("read.clat_p099.90_us"), "read.clat_p99.9_us");
        let name = MetricName::parse("write.bw_mib_s").unwrap();
        assert_eq!(name.in_unit(3_145_728.0), 3.0);
        assert_eq!(name.stored(3.0), 3_145_728.0);
        let usual = |text: &str| MetricName::parse(text).unwrap().in_usual_unit().to_string();
        assert_eq!(usual("write.bw"), "write.bw_mib_s");
        assert_eq!(usual("write.bw_gbps"), "write.bw_gbps");
        assert_eq!(usual("read.clat_p99"), "read.clat_p99_us");
        assert_eq!(usual("read.iops"), "read.iops");
    }

    #[track_caller]
    fn refuse(text: &str, want: &str) {
        let error = MetricName::parse(text).unwrap_err();
        assert!(error.message.contains(want), "{}", error.message);
    }

    #[test]
    fn other_names_are_refused() {
        refuse("bw", "no direction before");
        refuse("reads.bw", "no direction `reads`");
        refuse("read.bandwidth", "no metric `bandwidth`");
        refuse("read.clat_p", "no metric `clat_p`");
        for known in METRICS {
            let name = MetricName::parse(&format!("read.{}", known.example));
            assert_eq!(name.map(|name| name.row), Ok(known));
        }
        refuse("read.clat_p1e1", "no metric");
        refuse("read.clat_p100", "below 100");
        refuse("read.iops_us", "no metric");
        refuse("service.target", "no direction `service`");
        refuse("service.target.", "no direction `service`");
    }
}
