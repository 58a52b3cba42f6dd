//! The logs that a plan requests: what each job logs, and into which files.

use std::collections::HashMap;
use std::sync::Arc;

use fathom_core::{Direction, IoPriority, Nanos};
use fathom_job::{Job, LogFull, LogValue, Options};
use fathom_setup::translate::JobSetup;
use fathom_setup::translate::content::{bandwidth_window, iops_window};
use fathom_setup::translate::pattern::uses;
use fathom_setup::translate::priority;
use fathom_workload::{LogConfig, Series, WhenFull};

use super::compressed;
use super::lines::{Columns, WindowValues};
use super::output::{FileFormat, LogFormat};
use super::record_format::RecordFormat;

/// All logs of a run.
#[derive(Debug, Default)]
pub(crate) struct LogPlan {
    /// All files, each once.
    pub(crate) files: Vec<LogFile>,
    /// Logs in the order of the setups; `None` for jobs without a log.
    pub(crate) jobs: Vec<Option<JobLogs>>,
    /// The ops of all jobs are kept in memory.
    pub(crate) tap: bool,
    /// End of all file names, by which those of ranks differ; empty in a run alone.
    pub(crate) suffix: String,
}

/// One log file, written by one job or by several.
#[derive(Clone, Debug)]
pub(crate) struct LogFile {
    pub(crate) path: String,
    pub(crate) form: FileFormat,
    /// Append to an existing file instead of truncating it (`per_job_logs=0`).
    pub(crate) append: bool,
    /// First job that writes it, and the option that requests it, for errors.
    pub(crate) job: Arc<Job>,
    pub(crate) option: &'static str,
}

/// The logs of one job.
#[derive(Debug)]
pub(crate) struct JobLogs {
    pub(crate) name: String,
    pub(crate) number: u32,
    pub(crate) config: LogConfig,
    /// The job's options request logs; otherwise it is only tapped.
    pub(crate) is_requested: bool,
    pub(crate) columns: Columns,
    /// Each series with the index of its file.
    pub(crate) series: Vec<(Series, usize)>,
    /// Index of the histogram file.
    pub(crate) histograms: Option<usize>,
    /// Distinct file prefixes; a note on dropped lines is written beside each.
    pub(crate) prefixes: Vec<String>,
    /// Entries per chunk, as requested (`log_entries`).
    pub(crate) entries: u32,
}

impl JobLogs {
    /// Returns true if the job writes the file with this index.
    pub(crate) fn writes(&self, place: usize) -> bool {
        let series = self.series.iter().map(|series| series.1);
        series.chain(self.histograms).any(|own| own == place)
    }
}

impl LogPlan {
    /// Returns the logs that the plan asks for; `epoch` is the epoch clock at time 0 of the run's
    /// clock. With `tap`, each job logs its ops with their offsets.
    pub(crate) fn new(
        setups: &[JobSetup],
        suffix: String,
        epoch: &dyn Fn(u32) -> u64,
        tap: bool,
    ) -> Self {
        let mut all = Self {
            tap,
            suffix,
            ..Self::default()
        };
        let mut places = HashMap::new();
        for (index, setup) in setups.iter().enumerate() {
            let job = &setup.job;
            let logs = (tap || job.options.logs.any()).then(|| {
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                all.job(job, setup, index, epoch, &mut places)
            });
            all.jobs.push(logs);
        }
        all
    }

    /// Returns true if nothing is logged.
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.iter().all(Option::is_none)
    }

    fn job(
        &mut self,
        job: &Job,
        setup: &JobSetup,
        index: u32,
        epoch: &dyn Fn(u32) -> u64,
        places: &mut HashMap<String, usize>,
    ) -> JobLogs {
        let (options, logs) = (&job.options, &job.options.logs);
        let columns = columns(options, epoch);
        let mut prefixes: Vec<String> = Vec::new();
        let mut files = Vec::new();
        for (what, series, kind, prefix, option) in requested(options, setup) {
            let prefix = Some(prefix).filter(|prefix| !prefix.is_empty());
            let prefix = prefix.unwrap_or(&setup.name);
            if !prefixes.contains(prefix) {
                prefixes.push(prefix.clone());
            }
            // Histograms are always text: in fio 3.33 their compressed form holds addresses of its
            // own memory.
            let format = match what {
                LogKind::Series if logs.stored => LogFormat::Records(&compressed::FORMAT),
                LogKind::Series => {
                    RecordFormat::find(logs.format).map_or(LogFormat::Text, LogFormat::Records)
                }
                LogKind::Histogram => LogFormat::Text,
            };
            let end = format.extension();
            let suffix = &self.suffix;
            let path = match logs.per_job {
                true => format!("{prefix}_{kind}.{}.{end}{suffix}", setup.place.number),
                false => format!("{prefix}_{kind}.{end}{suffix}"),
            };
            let place = *places.entry(path.clone()).or_insert_with(|| {
                self.files.push(LogFile {
                    path,
                    form: FileFormat {
                        format,
                        shape: columns.shape(),
                        value: value_of(kind, logs.average_ms > 0).to_owned(),
                    },
                    append: !logs.per_job && format.can_append(),
                    job: Arc::clone(&setup.job),
                    option,
                });
                self.files.len() - 1
            });
            files.push((what, series, place));
        }
        let series = files.iter();
        let series: Vec<_> = series
            .filter_map(|&(_, series, place)| series.map(|series| (series, place)))
            .collect();
        let histograms = files.iter().find(|file| file.0 == LogKind::Histogram);
        let histograms = histograms
            .filter(|_| logs.histogram_ms > 0 && setup.worker.measure.clat)
            .map(|file| file.2);
        let mut config = config(options, index, &series, histograms.is_some());
        config.ops |= self.tap;
        config.offsets |= self.tap;
        JobLogs {
            name: setup.name.clone(),
            number: setup.place.number,
            config,
            is_requested: logs.any(),
            columns,
            series,
            histograms,
            prefixes,
            entries: logs.entries,
        }
    }
}

/// Returns the quantity in a log of this type, with its unit.
pub(super) fn value_of(kind: &str, averaged: bool) -> &'static str {
    match kind {
        "lat" => "lat_ns",
        "clat" => "clat_ns",
        "slat" => "slat_ns",
        "resp" => "resp_ns",
        "bw" if averaged => "bw_kib_s",
        "bw" => "bw_kb_s",
        "iops" => "iops",
        _ => NAMELESS,
    }
}

/// Value column of a log whose name does not give its quantity.
pub(super) const NAMELESS: &str = "value";

#[derive(Clone, Copy, PartialEq, Eq)]
enum LogKind {
    Series,
    Histogram,
}

/// Returns the files that a job's options request: series, type in the name, prefix, option. A file
/// whose series is not measured is created empty, as in fio.
fn requested<'a>(
    options: &'a Options,
    setup: &JobSetup,
) -> Vec<(
    LogKind,
    Option<Series>,
    &'static str,
    &'a String,
    &'static str,
)> {
    let (logs, measure) = (&options.logs, setup.worker.measure);
    let lat = logs.latency.as_ref();
    let is_async = !options.is_synchronous(setup.worker.depth);
    // Averages come from samples, which are taken even if bandwidth or IOPS are disabled.
    let averaged = logs.average_ms > 0;
    let bandwidth = averaged || !(options.disable_bw || options.gtod_reduce);
    let iops = averaged || !options.gtod_reduce;
    let rows = [
        (
            logs.bandwidth.as_ref(),
            bandwidth.then_some(Series::Bandwidth),
            "bw",
            "write_bw_log",
        ),
        (
            logs.iops.as_ref(),
            iops.then_some(Series::Iops),
            "iops",
            "write_iops_log",
        ),
        (
            lat.filter(|_| measure.slat),
            is_async.then_some(Series::Slat),
            "slat",
            "write_lat_log",
        ),
        (
            lat.filter(|_| measure.clat),
            Some(Series::Clat),
            "clat",
            "write_lat_log",
        ),
        (
            lat.filter(|_| measure.lat),
            Some(Series::Lat),
            "lat",
            "write_lat_log",
        ),
        (
            logs.response.as_ref(),
            Some(Series::Resp),
            "resp",
            "write_resp_log",
        ),
    ];
    let rows = rows
        .into_iter()
        .filter_map(|(prefix, series, kind, option)| {
            prefix.map(|prefix| (LogKind::Series, series, kind, prefix, option))
        });
    let histogram = logs.histogram.as_ref();
    let histogram = histogram.map(|prefix| {
        (
            LogKind::Histogram,
            None,
            "clat_hist",
            prefix,
            "write_hist_log",
        )
    });
    rows.chain(histogram).collect()
}

fn config(options: &Options, job: u32, series: &[(Series, usize)], histograms: bool) -> LogConfig {
    let logs = &options.logs;
    let millis = |ms: u32| Nanos::from_millis(u64::from(ms));
    let every = |series: Series| match series {
        Series::Bandwidth => bandwidth_window(logs),
        Series::Iops => iops_window(logs),
        Series::Lat | Series::Clat | Series::Slat | Series::Resp => millis(logs.average_ms),
    };
    let averaged = logs.average_ms > 0;
    let windows = series.iter().filter(|_| averaged);
    LogConfig {
        job,
        used: fathom_core::PerDirection::from_fn(|direction: Direction| uses(options, direction)),
        ops: !averaged && !series.is_empty(),
        lines: series.len() as u64,
        offsets: logs.offset,
        lags: logs.response.is_some(),
        windows: windows
            .map(|&(series, _)| (series, every(series)))
            .collect(),
        histograms: histograms.then(|| millis(logs.histogram_ms)),
        when_full: match logs.when_full {
            Some(LogFull::Wait) => WhenFull::Wait(std::thread::yield_now),
            Some(LogFull::Drop) | None => WhenFull::Drop,
        },
    }
}

fn columns(options: &Options, epoch: &dyn Fn(u32) -> u64) -> Columns {
    let logs = &options.logs;
    Columns {
        value: match logs.value {
            LogValue::Average => WindowValues::Mean,
            LogValue::Max => WindowValues::Max,
            LogValue::Both => WindowValues::Both,
        },
        offset: logs.offset,
        priority: logs.priority,
        job_priority: priority::of_thread(options).map_or(0, IoPriority::to_raw),
        issue_time: logs.issue_time,
        epoch_ns: logs.epoch.then(|| epoch(logs.epoch_clock)),
        coarseness: logs.coarseness,
    }
}
