//! Figures of one condition, gathered from all runs of a probe.
//!
//! Runs of a probe are pooled: their windows follow each other as if the job had gone on, and the
//! dependence of windows is fitted as within one run. The alternative, a t interval over the values
//! of the runs, takes many runs, and each begins with an empty queue: near saturation, where a
//! queue takes long to fill, the runs would agree on a value that is too good. Of metrics that the
//! windows do not have, it is all there is.

use fathom_record::MetricName;
use fathom_stats::{Interval, Latency, Windows, WithinRun, t_quantile};

use crate::lab::RunDone;
use crate::lab_plan::{Limit, SearchCondition};

/// Estimate of a condition's metric, with its interval if the runs are enough for one. In the unit
/// in which the metric is stored; of a share of the load as a share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Estimate of all runs together.
    pub value: f64,
    /// Interval that holds the true value in about 95 % of probes.
    pub interval: Option<Interval>,
}

/// Runs of a probe, as one condition sees them.
#[derive(Clone, Debug)]
pub(crate) struct Gathered {
    name: MetricName,
    limit: Limit,
    at_most: bool,
    /// Rate that is asked of the condition's direction, per second.
    asked: f64,
    /// Windows of all runs; `None` if a run has none of this latency.
    windows: Option<Windows>,
    is_first: bool,
    latency: Option<Latency>,
    /// Value and measured time of each run.
    values: Vec<(f64, f64)>,
    /// Amount completed and, at the end of each run, due, in the unit of the load, ops or bytes:
    /// the smallest and the largest number.
    completed: f64,
    backlog: [f64; 2],
}

impl Gathered {
    /// Prepares a condition; `asked` is the rate of its direction. `None` if the metric has no such
    /// name.
    pub(crate) fn new(condition: &SearchCondition, asked: f64) -> Option<Self> {
        Some(Self {
            name: MetricName::parse(&condition.metric).ok()?,
            limit: condition.limit,
            at_most: condition.at_most,
            asked,
            windows: None,
            is_first: true,
            latency: None,
            values: Vec::new(),
            completed: 0.0,
            backlog: [0.0; 2],
        })
    }

    /// Adds a run.
    pub(crate) fn add(&mut self, run: &RunDone) {
        // Windows know nothing of a service.
        let record = run.record.as_ref().filter(|_| !self.name.is_of_service());
        let of_run = record.and_then(|record| {
            let (windows, latency) = record.windows(&self.name.group, self.name.direction)?;
            let is_needed = matches!(self.limit, Limit::OfAsked(_));
            let needed = match self.name.metric.split_once('_') {
                Some((kind, _)) => Some(kind),
                None => is_needed.then_some("resp"),
            };
            (needed.is_none() || needed == latency).then_some(windows)
        });
        if let Some(windows) = &of_run {
            self.count_backlog(windows);
        }
        let is_first = std::mem::take(&mut self.is_first);
        self.windows = match (self.windows.take(), of_run) {
            (Some(mut all), Some(windows)) => {
                all.append(&windows);
                Some(all)
            }
            (None, Some(windows)) if is_first => {
                let mut all = Windows {
                    width_ns: windows.width_ns,
                    ..Windows::default()
                };
                all.append(&windows);
                Some(all)
            }
            _ => None,
        };
        if let Some(value) = run.value(&self.name) {
            let seconds = run.record.as_ref().map_or(1.0, |record| {
                let longest = record.jobs.iter().map(|job| job.runtime_ms).max();
                longest.unwrap_or_default() as f64 / 1e3
            });
            self.values.push((value, seconds));
        }
        let latency = run.record.as_ref().and_then(|one| self.name.latency(one));
        if let Some(latency) = latency.filter(|_| self.name.percent.is_some() || self.is_mean()) {
            match &mut self.latency {
                Some(all) => all.merge(&latency),
                None => self.latency = Some(latency),
            }
        }
    }

    /// Counts what was due when a run ended: the load of the time for which the last ops had
    /// waited.
    fn count_backlog(&mut self, windows: &Windows) {
        let total = windows.total();
        // A share is one of the metric that is asked for: a load in bytes is kept in bytes.
        self.completed += match self.name.metric.as_str() {
            "bw" => total.bytes as f64,
            _ => total.ios as f64,
        };
        let Some(last) = windows.windows.iter().rposition(|window| window.ios > 0) else {
            // Nothing completed: all of it.
            let due = self.asked * windows.end_ns as f64 / 1e9;
            self.backlog = self.backlog.map(|backlog| backlog + due);
            return;
        };
        let ended_ns = (last as u64 + 1).saturating_mul(windows.width_ns);
        let silent_ns = windows.end_ns.saturating_sub(ended_ns) as f64;
        let window = &windows.windows[last];
        for (backlog, ns) in self.backlog.iter_mut().zip([window.min_ns, window.max_ns]) {
            *backlog += self.asked * (ns as f64 + silent_ns) / 1e9;
        }
    }

    /// Returns the estimate of all runs so far; `None` if the metric was not measured.
    pub(crate) fn estimate(&self) -> Option<Estimate> {
        if let Limit::OfAsked(_) = self.limit {
            return self.share_of_asked();
        }
        let limit = self.limit_value();
        let run = self.windows.as_ref().map(WithinRun::new);
        let latency = self.latency.as_ref();
        if let (Some(percent), Some(latency)) = (self.name.percent, latency) {
            let value = latency.interpolated(percent)?;
            let half = run.and_then(|run| run.share_half_width(limit).ok());
            let least = independent_half_width(latency, percent);
            let interval = half.and_then(|half| turned(latency, percent, 100.0 * half.max(least)));
            return Some(self.or_between_runs(value, interval));
        }
        if let (true, Some(latency)) = (self.is_mean(), latency) {
            let half = run.and_then(|run| run.mean_half_width().ok());
            let value = latency.summary.mean();
            return Some(self.or_between_runs(value, half.map(|half| around(value, half))));
        }
        let value = self.mean_value()?;
        let half = match self.name.metric.as_str() {
            "iops" => run.and_then(|run| run.rate_half_width(|window| window.ios).ok()),
            "bw" => run.and_then(|run| run.rate_half_width(|window| window.bytes).ok()),
            _ => None,
        };
        Some(self.or_between_runs(value, half.map(|half| around(value, half))))
    }

    /// Returns the decision of an estimate: the condition is kept, or not; `None` if its interval
    /// holds the limit, or there is none.
    pub(crate) fn is_kept(&self, estimate: &Estimate) -> Option<bool> {
        let limit = self.limit_value();
        let Interval { low, high } = estimate.interval?;
        match self.at_most {
            true if high <= limit => Some(true),
            true if low > limit => Some(false),
            false if low >= limit => Some(true),
            false if high < limit => Some(false),
            _ => None,
        }
    }

    /// Returns whether an estimate keeps the condition, whatever its interval.
    pub(crate) fn is_kept_by(&self, estimate: &Estimate) -> bool {
        let limit = self.limit_value();
        match self.at_most {
            true => estimate.value <= limit,
            false => estimate.value >= limit,
        }
    }

    /// Returns the share of the load that was completed: of the ops that were due, and not of the
    /// asked rate times the time, since the number of random arrivals varies by itself.
    fn share_of_asked(&self) -> Option<Estimate> {
        if self.windows.is_none() || self.completed <= 0.0 {
            let value = self.mean_value()? / self.asked;
            return Some(self.or_between_runs(value, None));
        }
        let [least, most] = self
            .backlog
            .map(|due| self.completed / (self.completed + due));
        Some(Estimate {
            value: f64::midpoint(least, most),
            interval: Some(Interval {
                low: most,
                high: least,
            }),
        })
    }

    /// Returns an estimate with this interval, or without one with that over the runs.
    fn or_between_runs(&self, value: f64, interval: Option<Interval>) -> Estimate {
        let without_windows = self.windows.is_none();
        let interval = interval.or_else(|| self.between_runs().filter(|_| without_windows));
        Estimate { value, interval }
    }

    /// Returns the t interval over the runs' values.
    fn between_runs(&self) -> Option<Interval> {
        let count = self.values.len();
        if count < RUNS_MIN {
            return None;
        }
        let scale = match self.limit {
            Limit::OfAsked(_) => self.asked,
            Limit::Value(_) => 1.0,
        };
        let values: Vec<f64> = self.values.iter().map(|(value, _)| value / scale).collect();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let freedom = count as f64 - 1.0;
        let error = (squares / freedom / count as f64).sqrt();
        Some(around(mean, t_quantile(0.975, freedom) * error))
    }

    /// Returns the mean of the runs' values, by their time.
    fn mean_value(&self) -> Option<f64> {
        let time: f64 = self.values.iter().map(|(_, seconds)| seconds).sum();
        let sum: f64 = self.values.iter().map(|(value, time)| value * time).sum();
        (time > 0.0).then(|| sum / time)
    }

    fn is_mean(&self) -> bool {
        self.name.metric.ends_with("_mean")
    }

    const fn limit_value(&self) -> f64 {
        match self.limit {
            Limit::Value(value) | Limit::OfAsked(value) => value,
        }
    }
}

/// Returns the latencies at the ends of an interval of the share of ops below, `half` percent to
/// each side.
fn turned(latency: &Latency, percent: f64, half: f64) -> Option<Interval> {
    let histogram = latency.histogram.as_ref()?;
    let (least, most) = (latency.summary.min() as f64, latency.summary.max() as f64);
    let at = |percent: f64| {
        let value = histogram.interpolated(percent).unwrap_or_default();
        match percent {
            percent if percent <= 0.0 => least,
            percent if percent >= 100.0 => most,
            _ => value.max(least).min(most),
        }
    };
    Some(Interval {
        low: at(percent - half),
        high: at(percent + half),
    })
}

/// Returns half the width of the interval of a share of independent ops. Ops that depend on each
/// other say less, never more; windows far from the limit show no scatter at all.
fn independent_half_width(latency: &Latency, percent: f64) -> f64 {
    let share = percent / 100.0;
    let ops = latency.summary.count().max(1) as f64;
    t_quantile(0.975, ops) * (share * (1.0 - share) / ops).sqrt()
}

fn around(value: f64, half: f64) -> Interval {
    Interval {
        low: value - half,
        high: value + half,
    }
}

/// Fewest runs of which a t interval is taken.
const RUNS_MIN: usize = 4;
