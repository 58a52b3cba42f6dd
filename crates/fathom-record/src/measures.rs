//! Metrics of a record: one number each, for comparisons of repeated runs.

mod asked;
mod intervals;
mod run_time;

use std::borrow::Cow;

use fathom_stats::Latency;

use crate::metric::{DIRECTIONS, MetricName, OF_SERVICE};
use crate::{DirectionRecord, JobRecord, Record};
use asked::is_asked;
use run_time::ran_ms;

/// Value of a metric of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// Name of the jobs, empty for all jobs of the run; or of a service.
    pub group: String,
    /// `read`, `write`, `trim`, `sync` or `all`; or [`OF_SERVICE`].
    pub direction: &'static str,
    /// Name of the metric.
    pub metric: String,
    /// Value, in the unit of the metric's row.
    pub value: f64,
    /// Lower end of its interval within the run.
    pub low: Option<f64>,
    /// Upper end of that interval.
    pub high: Option<f64>,
}

impl Measure {
    /// Returns the name of the metric, as [`MetricName`] reads it: `reader/read.iops`.
    #[must_use]
    pub fn name(&self) -> String {
        let Self {
            group,
            direction,
            metric,
            ..
        } = self;
        match group.as_str() {
            "" => format!("{direction}.{metric}"),
            service if *direction == OF_SERVICE => format!("{OF_SERVICE}.{service}.{metric}"),
            group => format!("{group}/{direction}.{metric}"),
        }
    }
}

/// Returns the metrics of a run that are kept: rates, means, bounds and the usual percentiles, of
/// all jobs together, and of each name if there are several, up to [`GROUPS_MAX`].
#[must_use]
pub fn measures(record: &Record) -> Vec<Measure> {
    let of_group = |group: &str| {
        let directions = DIRECTIONS.into_iter();
        let measured = directions.filter_map(|direction| Measured::of(record, group, direction));
        let measures = measured.flat_map(|measured| {
            let mut kept = measured.kept(group);
            intervals::add(record, group, measured.direction, &mut kept);
            kept
        });
        measures.collect::<Vec<_>>()
    };
    groups(record).into_iter().flat_map(of_group).collect()
}

/// Returns the names of jobs whose metrics are kept; the empty one stands for all jobs.
fn groups(record: &Record) -> Vec<&str> {
    let mut groups = vec![""];
    let mut names: Vec<&str> = record.jobs.iter().map(|job| job.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    if (2..=GROUPS_MAX).contains(&names.len()) {
        groups.extend(names);
    }
    groups
}

impl MetricName {
    /// Returns the metric's value of a run, in the unit of its row; `None` if nothing was done in
    /// this direction, if the latency or its distribution was not kept, or if fewer than ten ops
    /// are beyond a percentile. A job that was to do ops of this direction and completed none has
    /// rates of 0.
    #[must_use]
    pub fn value(&self, record: &Record) -> Option<f64> {
        Measured::of(record, &self.group, self.direction)?.value(&self.metric, self.percent)
    }

    /// Finds the metric's value among those kept of a run.
    #[must_use]
    pub fn find<'a>(&self, measures: &'a [Measure]) -> Option<&'a Measure> {
        let in_direction = |direction: &str| {
            measures.iter().find(|measure| {
                measure.metric == self.metric
                    && measure.direction == direction
                    && measure.group == self.group
            })
        };
        let of_all = || {
            let mut each = ["read", "write", "trim"]
                .into_iter()
                .filter_map(in_direction);
            let only = each.next().filter(|_| self.direction == "all");
            only.filter(|_| each.next().is_none())
        };
        in_direction(self.direction).or_else(of_all)
    }

    /// Returns the merged distribution of the latency that the metric is about, if it was kept.
    #[must_use]
    pub fn latency(&self, record: &Record) -> Option<Latency> {
        let measured = Measured::of(record, &self.group, self.direction)?;
        let (kind, _) = self.metric.rsplit_once('_')?;
        measured.latency(kind).map(Cow::into_owned)
    }
}

/// Ops of one direction of some jobs.
struct Measured<'a> {
    record: &'a Record,
    jobs: Vec<&'a JobRecord>,
    direction: &'static str,
    /// Reads, writes and trims that are part of it.
    parts: Vec<&'a DirectionRecord>,
    ops: u64,
    runtime_ms: u64,
}

impl<'a> Measured<'a> {
    /// Adds up the jobs of a name, or all of them; `None` if they completed no op and were to do
    /// none. Rates are over the time in which they ran: [`ran_ms`].
    fn of(record: &'a Record, group: &str, direction: &'static str) -> Option<Self> {
        let in_group = |job: &&JobRecord| group.is_empty() || job.name == group;
        let jobs: Vec<&JobRecord> = record.jobs.iter().filter(in_group).collect();
        let parts: Vec<&DirectionRecord> = jobs
            .iter()
            .flat_map(|job| parts(job, direction))
            .filter(|part| part.ios > 0)
            .collect();
        let ops = match direction {
            "sync" => jobs
                .iter()
                .map(|job| job.sync.ios)
                .fold(0, u64::saturating_add),
            _ => parts
                .iter()
                .map(|part| part.ios)
                .fold(0, u64::saturating_add),
        };
        let runtime_of =
            |job: &JobRecord| in_group(&job).then(|| runtime_ms(record, job, direction));
        let runtime_ms = ran_ms(record, &runtime_of);
        let is_asked = || jobs.iter().any(|job| is_asked(record, job, direction));
        (ops > 0 || is_asked()).then_some(Self {
            record,
            jobs,
            direction,
            parts,
            ops,
            runtime_ms,
        })
    }

    /// Lists the metrics that are kept. Of a single direction, `all` has only the processor time:
    /// [`MetricName::find`] takes the rest from that direction.
    fn kept(&self, group: &str) -> Vec<Measure> {
        let mut wanted: Vec<(String, Option<f64>)> = vec![("cpu_per_op".into(), None)];
        if self.direction != "all" || self.moves_several_ways() {
            wanted.extend(["bw", "iops"].map(|metric| (metric.into(), None)));
            for kind in KINDS.into_iter().chain(CLASSES.map(|(kind, _)| kind)) {
                wanted.extend(MOMENTS.map(|moment| (format!("{kind}_{moment}"), None)));
                let of = |percent: f64| (format!("{kind}_p{percent}"), Some(percent));
                wanted.extend(PERCENTILES_KEPT.map(of));
            }
        }
        let measure = |(metric, percent): (String, Option<f64>)| {
            Some(Measure {
                group: group.into(),
                direction: self.direction,
                value: self.value(&metric, percent)?,
                metric,
                low: None,
                high: None,
            })
        };
        wanted.into_iter().filter_map(measure).collect()
    }

    fn moves_several_ways(&self) -> bool {
        let ways = ["read", "write", "trim"].into_iter().filter(|way| {
            let mut jobs = self.jobs.iter();
            jobs.any(|job| {
                let is_done = parts(job, way).iter().any(|part| part.ios > 0);
                is_done || is_asked(self.record, job, way)
            })
        });
        ways.count() > 1
    }

    fn value(&self, metric: &str, percent: Option<f64>) -> Option<f64> {
        match metric {
            "bw" if self.direction == "sync" => None,
            "bw" => {
                let bytes = self.parts.iter().map(|part| part.bytes);
                Some(self.per_second(bytes.fold(0, u64::saturating_add)))
            }
            "iops" => Some(self.per_second(self.ops)),
            "cpu_per_op" => self.cpu_ns_per_op(),
            _ => self.latency_value(metric, percent),
        }
    }

    fn latency_value(&self, metric: &str, percent: Option<f64>) -> Option<f64> {
        let (kind, figure) = metric.rsplit_once('_')?;
        let latency = self.latency(kind)?;
        if let Some(percent) = percent {
            return latency.interpolated(percent);
        }
        let summary = &latency.summary;
        match figure {
            "mean" => Some(summary.mean()),
            "stddev" => Some(summary.stddev()),
            "min" => Some(float(summary.min())),
            "max" => Some(float(summary.max())),
            _ => None,
        }
    }

    /// Returns a latency of all ops together: of a single job its own, else merged.
    fn latency(&self, kind: &str) -> Option<Cow<'a, Latency>> {
        let of_class = CLASSES.into_iter().find(|(known, _)| *known == kind);
        let mut all = match (self.direction, of_class) {
            (_, Some((_, classes))) => self.of_classes(classes),
            ("sync", _) if kind == "lat" => self.jobs.iter().map(|job| &job.sync.lat).collect(),
            _ => self
                .parts
                .iter()
                .filter_map(|part| of_kind(part, kind))
                .collect::<Vec<&Latency>>(),
        };
        all.retain(|latency| latency.summary.count() > 0);
        let (first, rest) = all.split_first()?;
        if rest.is_empty() {
            return Some(Cow::Borrowed(*first));
        }
        // Distributions of only some of the ops would give percentiles of those.
        let has_all = all.iter().all(|latency| latency.histogram.is_some());
        let mut merged = Latency::new(has_all);
        for latency in &all {
            merged.summary.merge(&latency.summary);
            if let (Some(own), Some(add)) = (&mut merged.histogram, &latency.histogram) {
                own.merge(add);
            }
        }
        Some(Cow::Owned(merged))
    }

    /// Returns the clat of ops of these classes of I/O priorities; nothing if lat was kept instead.
    fn of_classes(&self, classes: &[u16]) -> Vec<&'a Latency> {
        if self.jobs.iter().any(|job| job.display.lat_percentiles) {
            return Vec::new();
        }
        let all = self.parts.iter().flat_map(|part| &part.priorities);
        let of_classes = all.filter(|one| classes.contains(&(one.priority >> CLASS_SHIFT)));
        of_classes.map(|one| &one.latency).collect()
    }

    fn per_second(&self, amount: u64) -> f64 {
        float(amount) * 1000.0 / float(self.runtime_ms.max(1))
    }

    /// Returns the jobs' processor time per op, which only all directions together have.
    fn cpu_ns_per_op(&self) -> Option<f64> {
        let used_us = self.jobs.iter().map(|job| cpu_us(job));
        let used_us = used_us.fold(0, u64::saturating_add);
        let has_cpu = self.direction == "all" && used_us > 0 && self.ops > 0;
        has_cpu.then(|| float(used_us) * 1000.0 / float(self.ops))
    }
}

/// Returns the directions of a job that are part of a metric's direction.
fn parts<'a>(job: &'a JobRecord, direction: &str) -> Vec<&'a DirectionRecord> {
    let all = &job.directions;
    match direction {
        "read" => vec![&all.read],
        "write" => vec![&all.write],
        "trim" => vec![&all.trim],
        "all" => all.each().to_vec(),
        _ => Vec::new(),
    }
}

const fn of_kind<'a>(part: &'a DirectionRecord, kind: &str) -> Option<&'a Latency> {
    match kind.as_bytes() {
        b"slat" => part.slat.as_ref(),
        b"clat" => part.clat.as_ref(),
        b"lat" => part.lat.as_ref(),
        b"resp" => part.resp.as_ref(),
        b"lag" => part.lag.as_ref(),
        _ => None,
    }
}

/// Returns the time in which a job did ops of a direction, or was to do some.
fn runtime_ms(record: &Record, job: &JobRecord, direction: &'static str) -> u64 {
    let done = parts(job, direction)
        .into_iter()
        .filter(|part| part.ios > 0);
    match done.map(|part| part.runtime_ms).max() {
        Some(longest) => longest,
        None if direction == "sync" || is_asked(record, job, direction) => job.runtime_ms,
        None => 0,
    }
}

const fn cpu_us(job: &JobRecord) -> u64 {
    job.cpu.user_us.saturating_add(job.cpu.system_us)
}

#[expect(clippy::cast_precision_loss, reason = "rounded once, to the nearest")]
const fn float(value: u64) -> f64 {
    value as f64
}

/// Latencies.
const KINDS: [&str; 5] = ["slat", "clat", "lat", "resp", "lag"];

/// Kinds of clat by the class of I/O priorities, with the classes as the kernel numbers them. Ops
/// without a priority have class 0, and the kernel treats them as best effort.
const CLASSES: [(&str, &[u16]); 3] = [("clat_rt", &[1]), ("clat_be", &[0, 2]), ("clat_idle", &[3])];

/// Bits of a priority below its class.
const CLASS_SHIFT: u16 = 13;

const MOMENTS: [&str; 3] = ["mean", "stddev", "max"];

/// Percentiles that are kept; others need the record.
const PERCENTILES_KEPT: [f64; 6] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99];

/// Most names of jobs whose metrics are kept apart.
pub const GROUPS_MAX: usize = 16;

#[cfg(test)]
mod tests;
