//! I/O logs of a run: one thread writes the entries of all jobs.
//!
//! ```text
//! open (before the layout) → begin → one JobLog per job → … jobs run … → finish
//!  └ earlier logs are kept until here ┘                             → warnings
//! ```
//!
//! Jobs never write, format or wait: they fill chunks of a fixed pool and pass them on. A file per
//! job, written by the job itself, was rejected, because a `write` that blocks would show up in the
//! latencies that it logs.
//!
//! # What this costs
//! 64 MiB of buffers if single ops are logged, and a part of one CPU for the writer.
#![forbid(unsafe_code)]

mod compressed;
mod convert;
mod convert_error;
mod format;
mod histogram_source;
mod histograms;
mod lines;
mod notes;
mod numbers;
pub mod open;
mod output;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "parquet_disabled.rs"]
mod parquet;
mod parse;
mod plan;
mod priority;
mod record_format;
mod row;
mod sizing;
mod source;
mod table;
mod tap;
mod text;
mod writer;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use fathom_core::Nanos;
use fathom_host::output_file::Stop;
use fathom_job::Plan;
use fathom_record::Warning;
use fathom_setup::check::TakenFiles;
use fathom_setup::translate::JobSetup;
use fathom_setup::{ProblemKind, RunProblem};
use fathom_sys::clock::{Clock, sleep_until};
use fathom_workload::{JobLog, LogChannel, WhenFull};

pub use self::compressed::inflate_log;
pub use self::convert::{Converted, convert_log};
pub use self::convert_error::ConvertError;
pub use self::histogram_source::{HistogramRow, HistogramSource};
use self::notes::{finish_notes, note_paths, remove_stale_notes};
use self::open::{LogDestination, OpenLog, open_all};
use self::output::Sink;
use self::plan::LogPlan;
use self::priority::WriterPriority;
use self::record_format::RecordFormat;
pub use self::row::{LogRow, Shape as LogShape};
use self::sizing::Sizing;
pub use self::source::{LogEnd, LogLineError, LogSource};
pub use self::table::{TableColumn, TableFile, TableKind};
pub use self::tap::{TappedOp, TappedOps};
pub use self::writer::LineCounts;
use self::writer::{Writer, Written};

/// Open log files of a run whose jobs have not begun: earlier logs are still intact.
pub struct OpenLogs {
    plan: LogPlan,
    files: Vec<OpenLog>,
    /// CPUs of the writer thread (`log_compression_cpus`), if a job sets them.
    cpus: Option<Vec<u32>>,
}

impl OpenLogs {
    /// Opens every file; `None` if nothing is logged. Waits for readers of pipes until `stop`
    /// returns true. With `tap`, the ops of all jobs are kept in memory, too.
    ///
    /// # Errors
    /// Every file that cannot be written, or is `taken`; no file was created then.
    pub fn open(
        plan: &Plan,
        setups: &[JobSetup],
        taken: &TakenFiles,
        clock: Clock,
        stop: &dyn Fn() -> bool,
        tap: bool,
    ) -> Result<Option<Self>, Vec<RunProblem>> {
        let refused = [clocks(plan), unavailable_formats(plan)].concat();
        if !refused.is_empty() {
            return Err(refused);
        }
        // Each clock is read once for all jobs, so that their times are comparable.
        let epoch = |id| {
            let shown = fathom_sys::clock::read(id).unwrap_or(0);
            shown.saturating_sub(clock.now().get())
        };
        let logs = LogPlan::new(setups, plan.place.log_suffix(), &epoch, tap);
        if logs.is_empty() {
            return Ok(None);
        }
        let refused = logs_in_place(&logs, taken);
        if !refused.is_empty() {
            return Err(refused);
        }
        let mut requested = plan.jobs.iter();
        Ok(Some(Self {
            files: open_all(&logs.files, stop)?,
            plan: logs,
            cpus: requested.find_map(|job| job.options.logs.cpus.clone()),
        }))
    }

    /// Returns the paths of all files, in the order of the jobs, and of the notes on dropped lines,
    /// which are there only if lines were dropped.
    pub fn paths(&self) -> Vec<String> {
        let files = self.plan.files.iter().map(|file| file.path.clone());
        files.chain(note_paths(&self.plan)).collect()
    }

    /// Truncates earlier logs and starts the writer; call it just before the jobs begin. On a stop
    /// request the writer abandons pipes without a reader.
    ///
    /// # Errors
    /// An earlier log that cannot be truncated, or a writer thread that cannot be started.
    pub fn begin(self, stop: Stop) -> Result<Logs, RunProblem> {
        let sink = |opened: OpenLog| {
            opened.begin().map(|to| match to {
                LogDestination::File(file) => Sink::File(file),
                LogDestination::Stream(stream) => Sink::Stream(stream, stop.clone()),
            })
        };
        let sinks: io::Result<Vec<Sink>> = self.files.into_iter().map(sink).collect();
        let sinks = sinks.map_err(|error| {
            let message = format!("cannot empty an earlier log: {error}");
            RunProblem::new(ProblemKind::LogNotWritable, message)
        })?;
        remove_stale_notes(&self.plan);
        let sizing = Sizing::new(&self.plan);
        let jobs = self.plan.jobs.iter();
        let configs: Vec<_> = jobs
            .map(|job| job.as_ref().map(|job| job.config.clone()))
            .collect();
        let channel = Arc::new(LogChannel::new(
            sizing.chunks,
            sizing.entries,
            configs.len(),
        ));
        let is_over = Arc::new(AtomicBool::new(false));
        let warnings = sizing.warning().into_iter().collect();
        let writer = start(
            Writer::new(self.plan, sinks),
            Arc::clone(&channel),
            Arc::clone(&is_over),
            self.cpus,
        );
        let writer = writer.map_err(|error| {
            let message = format!("cannot start the log's writer: {error}");
            RunProblem::new(ProblemKind::LogWriter, message)
        })?;
        Ok(Logs {
            channel,
            configs,
            writer_guard: WriterGuard(is_over),
            writer,
            warnings,
            stop,
        })
    }
}

/// Logs of a running run: hands a [`JobLog`] to each job and owns the writer thread.
///
/// Call [`finish`](Self::finish) when the jobs have ended. Dropping it instead makes the writer
/// write what it has received and end.
pub struct Logs {
    channel: Arc<LogChannel>,
    configs: Vec<Option<fathom_workload::LogConfig>>,
    writer_guard: WriterGuard,
    writer: JoinHandle<Written>,
    warnings: Vec<Warning>,
    stop: Stop,
}

impl Logs {
    /// Creates the log of a job, by the index of its setup; `None` if it logs nothing.
    pub fn job(&self, setup: usize) -> Option<JobLog> {
        let config = self.configs[setup].clone()?;
        Some(JobLog::new(config, Arc::clone(&self.channel)))
    }

    /// Waits until all entries of the ended jobs are written, and returns line counts and warnings.
    /// Calls `look` meanwhile, so that the caller notices a stop request.
    pub fn finish(self, look: &dyn Fn(), clock: &Clock) -> LogSummary {
        drop(self.writer_guard);
        self.writer.thread().unpark();
        let mut pause = Nanos::from_micros(50);
        while !self.writer.is_finished() {
            look();
            sleep_until(clock, clock.now() + pause);
            pause = Nanos::new(pause.get() * 2).min(STOP_CHECK_MAX);
        }
        let mut finished = LogSummary {
            lines: Vec::new(),
            warnings: self.warnings,
            failed: false,
            ops: None,
        };
        match self.writer.join() {
            Ok(written) => {
                let warnings;
                (warnings, finished.failed) = finish_notes(&written, &self.stop);
                finished.warnings.extend(warnings);
                finished.lines = written.by_setup();
                finished.ops = written.ops;
            }
            Err(_panic) => {
                finished.failed = true;
                finished.warnings.push(Warning {
                    code: "log_lost".into(),
                    job: String::new(),
                    message: "internal error: the log writer failed; logs are incomplete".into(),
                    hint: "this is a bug in fathom; please report it".into(),
                });
            }
        }
        finished
    }
}

/// Summary of the logs written.
#[derive(Debug, Default)]
pub struct LogSummary {
    /// Line counts by setup; `None` for jobs without a log.
    pub lines: Vec<Option<LineCounts>>,
    /// Warnings about lost logs or lines.
    pub warnings: Vec<Warning>,
    /// Writing a log failed.
    pub failed: bool,
    /// Ops, if they were tapped.
    pub ops: Option<TappedOps>,
}

/// Guard that ends the writer when dropped, so that it also ends when a run fails.
struct WriterGuard(Arc<AtomicBool>);

impl Drop for WriterGuard {
    fn drop(&mut self) {
        // Release: pairs with Acquire in `start`; the writer then sees all batches sent before.
        self.0.store(true, Ordering::Release);
    }
}

/// Logs of a run in virtual time, kept in memory. No thread writes them, so the same run always
/// gives the same bytes.
pub struct MemoryLogs {
    channel: Arc<LogChannel>,
    plan: LogPlan,
}

impl MemoryLogs {
    /// Creates the logs that a plan requests; their names end with `suffix`.
    pub fn new(setups: &[JobSetup], suffix: String) -> Self {
        Self {
            channel: Arc::new(LogChannel::new(0, 0, setups.len())),
            plan: LogPlan::new(setups, suffix, &|_| 0, false),
        }
    }

    /// Returns a problem for each log in the place of a file that is `taken`.
    pub fn conflicts(&self, taken: &TakenFiles) -> Vec<RunProblem> {
        logs_in_place(&self.plan, taken)
    }

    /// Creates the log of a job, by the index of its setup; `None` if it logs nothing.
    pub fn job(&self, setup: usize) -> Option<JobLog> {
        let mut config = self.plan.jobs[setup].as_ref()?.config.clone();
        config.when_full = WhenFull::Grow;
        Some(JobLog::new(config, Arc::clone(&self.channel)))
    }

    /// Returns each file's name and content.
    pub fn finish(self) -> Vec<(String, Vec<u8>)> {
        let sinks = self.plan.files.iter().map(|_| Sink::Memory(Vec::new()));
        let sinks = sinks.collect();
        let mut writer = Writer::new(self.plan, sinks);
        while let Some(batch) = self.channel.take() {
            writer.batch(&batch);
        }
        let written = writer.finish();
        let named = written.plan.files.into_iter().zip(written.sinks);
        named
            .map(|(file, sink)| match sink {
                Some(Sink::Memory(bytes)) => (file.path, bytes),
                Some(_) | None => (file.path, Vec::new()),
            })
            .collect()
    }
}

fn start(
    mut writer: Writer,
    channel: Arc<LogChannel>,
    is_over: Arc<AtomicBool>,
    cpus: Option<Vec<u32>>,
) -> io::Result<JoinHandle<Written>> {
    Builder::new().name("log writer".into()).spawn(move || {
        // The watcher thread handles signals. Best effort, like the affinity: the log is written
        // without them too.
        let _ignored = fathom_sys::signals::block_in_this_thread();
        if let Some(cpus) = cpus {
            let _ignored = fathom_sys::thread::set_allowed_cpus(&cpus);
        }
        let mut priority = WriterPriority::lowered();
        loop {
            // Acquire, and before the queue is read: batches sent before the end are still found.
            let is_last_pass = is_over.load(Ordering::Acquire);
            if is_last_pass {
                // No job is left to be delayed.
                priority.restore();
            }
            while let Some(batch) = channel.take() {
                priority.adapt(channel.waiting(), channel.chunks());
                writer.batch(&batch);
                channel.give_back(batch);
            }
            if is_last_pass {
                return writer.finish();
            }
            std::thread::park_timeout(POLL_INTERVAL);
        }
    })
}

/// Returns the problems of `log_alternate_epoch_clock_id` values that are not clocks.
fn clocks(plan: &Plan) -> Vec<RunProblem> {
    let jobs = plan.jobs.iter();
    let jobs = jobs.filter(|job| job.options.logs.any() && job.options.logs.epoch);
    jobs.filter_map(|job| {
        let id = job.options.logs.epoch_clock;
        let error = fathom_sys::clock::read(id).err()?;
        let problem = RunProblem::new(
            ProblemKind::NoSuchClock,
            format!("there is no clock {id}: {error}"),
        );
        let problem = problem.hint("0 is the time of day, 1 counts from boot");
        Some(problem.at(job, "log_alternate_epoch_clock_id"))
    })
    .collect()
}

/// Returns the problems of logs in a format that this program cannot write.
fn unavailable_formats(plan: &Plan) -> Vec<RunProblem> {
    let problems = plan.jobs.iter().filter_map(|job| {
        let why = RecordFormat::find(job.options.logs.format)?.unavailable?;
        Some(RunProblem::new(ProblemKind::NotBuiltIn, why).at(job, "log_format"))
    });
    problems.collect()
}

/// Returns a problem for each log in the place of another file of the run.
fn logs_in_place(logs: &LogPlan, taken: &TakenFiles) -> Vec<RunProblem> {
    let problems = logs.files.iter().filter_map(|log| {
        let message = taken.conflict(&log.path)?;
        let problem = RunProblem::new(ProblemKind::Contradiction, message);
        Some(problem.hint("name another file").at(&log.job, log.option))
    });
    problems.collect()
}

/// Interval at which an idle writer checks for batches: even at 50 million ops per second, the 48
/// MiB of buffers last 60 ms.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Longest interval between checks for a stop request while the rest is written.
const STOP_CHECK_MAX: Nanos = Nanos::from_millis(20);
