//! Metrics of a run: totals and latency histograms of each job, group and direction.

use std::borrow::Cow;

use fathom_record::{DirectionRecord, JobRecord, Record};
use fathom_stats::Latency;

use crate::exposition::{MetricsFormat, MetricsKind, MetricsPage, MetricsSamples};

/// Figures of a run for a page of metrics: of a run that ended, or of one that goes on.
///
/// Clones of a job share its name and group, and so their labels: [`add`](Self::add) adds them up.
#[derive(Clone, Debug, Default)]
pub struct RunMetrics<'a> {
    /// Start of the first job: milliseconds since 1970-01-01 UTC.
    pub begun_ms: Option<u64>,
    /// Time of these figures, in the same way.
    pub now_ms: Option<u64>,
    /// The jobs still run.
    pub is_running: bool,
    /// Number of jobs that an error ended.
    pub failed_jobs: usize,
    /// Number of warnings.
    pub warnings: usize,
    /// Ops in flight of each job and group, if known.
    pub in_flight: Vec<(Cow<'a, str>, u32, u64)>,
    /// Name and utilisation of each disk, 0 to 1.
    pub disks: Vec<(Cow<'a, str>, f64)>,
    directions: Vec<DirectionMetrics<'a>>,
}

/// Figures of one direction of a job.
#[derive(Clone, Debug, Default)]
pub struct DirectionMetrics<'a> {
    /// Name of the job, which its clones share.
    pub job: Cow<'a, str>,
    /// Its reporting group, from 0.
    pub group: u32,
    /// `read`, `write`, `trim` or `sync`.
    pub direction: &'static str,
    /// Ops completed.
    pub ops: u64,
    /// Bytes moved; syncs move none.
    pub bytes: u64,
    /// Time that the job was measured, ms.
    pub runtime_ms: u64,
    /// Kind (`clat`) and values of each latency; those without a distribution are not shown.
    pub latencies: Vec<(&'static str, Cow<'a, Latency>)>,
}

impl<'a> RunMetrics<'a> {
    /// Collects the figures of a record; jobs that reports leave out (`stats=0`) are left out.
    #[must_use]
    pub fn of_record(record: &'a Record) -> Self {
        let starts = record.jobs.iter().map(|job| job.start_ms);
        let disks = record.disks.iter();
        let mut metrics = Self {
            begun_ms: starts.filter(|&start| start > 0).min(),
            now_ms: Some(record.timestamp_ms).filter(|&now| now > 0),
            failed_jobs: record.jobs.iter().filter(|job| job.error != 0).count(),
            warnings: record.warnings.len(),
            disks: disks
                .map(|disk| (disk.name.as_str().into(), disk.util_percent / 100.0))
                .collect(),
            ..Self::default()
        };
        for job in record.jobs.iter().filter(|job| !job.display.hidden) {
            of_job(job).for_each(|direction| metrics.add(direction));
        }
        metrics
    }

    /// Adds the figures of a direction to those of the same job, group and direction.
    pub fn add(&mut self, more: DirectionMetrics<'a>) {
        let is_same = |own: &&mut DirectionMetrics<'_>| {
            (own.group, own.direction) == (more.group, more.direction) && own.job == more.job
        };
        let Some(own) = self.directions.iter_mut().find(is_same) else {
            self.directions.push(more);
            return;
        };
        own.ops = own.ops.saturating_add(more.ops);
        own.bytes = own.bytes.saturating_add(more.bytes);
        own.runtime_ms = own.runtime_ms.max(more.runtime_ms);
        own.latencies.retain_mut(|(kind, own)| {
            let added = more.latencies.iter().find(|(added, _)| added == kind);
            // A distribution of only some of the ops would be taken for that of all.
            let whole =
                added.filter(|(_, added)| own.histogram.is_some() && added.histogram.is_some());
            if let Some((_, added)) = whole {
                own.to_mut().merge(added);
            }
            whole.is_some()
        });
    }

    /// Returns the figures of each job, group and direction.
    #[must_use]
    pub fn directions(&self) -> &[DirectionMetrics<'a>] {
        &self.directions
    }

    /// Formats the figures.
    #[must_use]
    pub fn page(&self, format: MetricsFormat) -> String {
        let mut page = MetricsPage::new("fathom_", format);
        self.of_run(&mut page);
        self.of_directions(&mut page);
        for (kind, name, help) in LATENCIES {
            page.family(name, help, MetricsKind::Histogram, |samples| {
                self.each(samples, |samples, labels, one| {
                    let found = one.latencies.iter().find(|(own, _)| own == kind);
                    if let Some((_, latency)) = found {
                        samples.add_latency(labels, latency);
                    }
                });
            });
        }
        page.finish()
    }

    fn of_run(&self, page: &mut MetricsPage) {
        page.family("build_info", "Program", MetricsKind::Info, |samples| {
            samples.add(&[("version", env!("CARGO_PKG_VERSION"))], 1);
        });
        let times = [
            (
                "start_time_seconds",
                "Time when the first job began",
                self.begun_ms,
            ),
            ("report_time_seconds", "Time of these figures", self.now_ms),
        ];
        for (name, help, ms) in times {
            page.family(name, help, GAUGE, |samples| {
                if let Some(ms) = ms {
                    samples.add(&[], format!("{}.{:03}", ms / 1000, ms % 1000));
                }
            });
        }
        let numbers = [
            (
                "running",
                "1 while the jobs run",
                usize::from(self.is_running),
            ),
            ("failed_jobs", "Jobs that an error ended", self.failed_jobs),
            ("warnings", "Warnings about the run", self.warnings),
        ];
        for (name, help, number) in numbers {
            page.family(name, help, GAUGE, |samples| samples.add(&[], number));
        }
        page.family("in_flight", "Ops in flight", GAUGE, |samples| {
            for (job, group, count) in &self.in_flight {
                samples.add(&[("job", job), ("group", &group.to_string())], count);
            }
        });
        let help = "Share of the run in which the disk was busy";
        page.family("disk_utilisation_ratio", help, GAUGE, |samples| {
            for (disk, share) in &self.disks {
                samples.add(&[("disk", disk)], share);
            }
        });
    }

    fn of_directions(&self, page: &mut MetricsPage) {
        page.family(
            "ops_total",
            "Ops completed",
            MetricsKind::Counter,
            |samples| {
                self.each(samples, |samples, labels, one| samples.add(labels, one.ops));
            },
        );
        page.family(
            "io_bytes_total",
            "Bytes moved",
            MetricsKind::Counter,
            |samples| {
                self.each(samples, |samples, labels, one| {
                    if one.direction != SYNC {
                        samples.add(labels, one.bytes);
                    }
                });
            },
        );
        let help = "Time over which ops were measured";
        page.family("runtime_seconds", help, GAUGE, |samples| {
            self.each(samples, |samples, labels, one| {
                let ms = one.runtime_ms;
                samples.add(labels, format!("{}.{:03}", ms / 1000, ms % 1000));
            });
        });
    }

    /// Calls `add` with the labels and figures of each direction.
    fn each(
        &self,
        samples: &mut MetricsSamples,
        add: impl Fn(&mut MetricsSamples, &[(&str, &str)], &DirectionMetrics<'_>),
    ) {
        for one in &self.directions {
            let group = one.group.to_string();
            let labels = [
                ("job", one.job.as_ref()),
                ("group", group.as_str()),
                ("direction", one.direction),
            ];
            add(samples, &labels, one);
        }
    }
}

/// Formats the figures of a run as OpenMetrics 1.0.
#[must_use]
pub fn openmetrics(metrics: &RunMetrics<'_>) -> String {
    metrics.page(MetricsFormat::OpenMetrics)
}

/// Returns the directions in which a job completed ops.
fn of_job(job: &JobRecord) -> impl Iterator<Item = DirectionMetrics<'_>> {
    let all = &job.directions;
    let moved = [
        ("read", &all.read),
        ("write", &all.write),
        ("trim", &all.trim),
    ];
    let moved = moved.into_iter().map(|(direction, done)| DirectionMetrics {
        job: job.name.as_str().into(),
        group: job.group_id,
        direction,
        ops: done.ios,
        bytes: done.bytes,
        runtime_ms: done.runtime_ms,
        latencies: latencies(done),
    });
    let synced = DirectionMetrics {
        job: job.name.as_str().into(),
        group: job.group_id,
        direction: SYNC,
        ops: job.sync.ios,
        bytes: 0,
        runtime_ms: job.runtime_ms,
        latencies: vec![("lat", Cow::Borrowed(&job.sync.lat))],
    };
    moved.chain([synced]).filter(|one| one.ops > 0)
}

fn latencies(done: &DirectionRecord) -> Vec<(&'static str, Cow<'_, Latency>)> {
    let kinds = [
        ("slat", &done.slat),
        ("clat", &done.clat),
        ("lat", &done.lat),
        ("lag", &done.lag),
        ("resp", &done.resp),
    ];
    let kept = kinds
        .into_iter()
        .filter_map(|(kind, one)| Some((kind, Cow::Borrowed(one.as_ref()?))));
    kept.collect()
}

const GAUGE: MetricsKind = MetricsKind::Gauge;

const SYNC: &str = "sync";

/// Kind, name and description of each latency.
const LATENCIES: &[(&str, &str, &str)] = &[
    (
        "slat",
        "slat_seconds",
        "Time of an op from its start to its issue",
    ),
    (
        "clat",
        "clat_seconds",
        "Time of an op from its issue to its completion",
    ),
    (
        "lat",
        "lat_seconds",
        "Time of an op from its start to its completion",
    ),
    (
        "lag",
        "lag_seconds",
        "Time by which an op started after it was due",
    ),
    (
        "resp",
        "resp_seconds",
        "Time of an op from when it was due to its completion",
    ),
];

#[cfg(test)]
mod tests;
