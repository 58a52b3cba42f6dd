//! I/O logs of a run: one thread writes what all jobs hand over.
//!
//! ```text
//! open (before anything is laid out) → begin → a JobLog for each job → … jobs run … → finish
//!  └─ earlier logs are whole until here ──┘                                  → warnings
//! ```
//!
//! # What this costs
//! 64 MiB where single ops are logged, and the writer's share of one processor: see `format.rs`.
#![forbid(unsafe_code)]

mod compressed;
mod convert;
mod format;
mod histograms;
mod lines;
mod notes;
pub mod open;
mod output;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "parquet_disabled.rs"]
mod parquet;
mod parse;
mod plan;
mod row;
mod sizing;
mod writer;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use fathom_core::Nanos;
use fathom_host::output_file::Stop;
use fathom_job::{Job, LogFileFormat, Plan};
use fathom_record::Warning;
use fathom_setup::translate::JobSetup;
use fathom_setup::{ProblemKind, RunProblem};
use fathom_sys::clock::{Clock, sleep_until};
use fathom_workload::{JobLog, LogChannel, WhenFull};

pub use self::compressed::inflate_log;
pub use self::convert::convert_log;
use self::notes::{forget_earlier, said};
use self::open::{LogTo, OpenLog, open_all};
use self::output::Sink;
use self::plan::LogPlan;
use self::sizing::Sizing;
pub use self::writer::Lines;
use self::writer::{Writer, Written};

/// The logs of a run whose jobs have not begun: earlier logs still hold what they held.
pub struct OpenLogs {
    plan: LogPlan,
    files: Vec<OpenLog>,
    /// Of the writer's thread, where a job asks for it.
    cpus: Option<Vec<u32>>,
}

impl OpenLogs {
    /// Opens every file; `None` if nothing is logged. Waits for the readers of pipes, unless
    /// `stop` says to give up.
    ///
    /// # Errors
    /// Every file that cannot be written; none was made then.
    pub fn open(
        plan: &Plan,
        setups: &[JobSetup],
        clock: Clock,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, Vec<RunProblem>> {
        let refused = [clocks(plan), tables(plan)].concat();
        if !refused.is_empty() {
            return Err(refused);
        }
        // One look at each clock for all jobs: their times can be compared.
        let epoch = |id| {
            let shown = fathom_sys::clock::read(id).unwrap_or(0);
            shown.saturating_sub(clock.now().get())
        };
        let logs = LogPlan::new(setups, &epoch);
        if logs.is_empty() {
            return Ok(None);
        }
        let mut asked = plan.jobs.iter();
        Ok(Some(Self {
            files: open_all(&logs.files, stop)?,
            plan: logs,
            cpus: asked.find_map(|job| job.options.logs.cpus.clone()),
        }))
    }

    /// The jobs are about to begin: empties earlier logs and starts the writer, which gives up a
    /// pipe that nobody reads when `stop` says so.
    ///
    /// # Errors
    /// An earlier log that cannot be emptied, or a writer that cannot be started.
    pub fn begin(self, stop: Stop) -> Result<Logs, RunProblem> {
        let sink = |opened: OpenLog| {
            opened.begin().map(|to| match to {
                LogTo::File(file) => Sink::File(file),
                LogTo::Stream(stream) => Sink::Stream(stream, stop.clone()),
            })
        };
        let sinks: io::Result<Vec<Sink>> = self.files.into_iter().map(sink).collect();
        let sinks = sinks.map_err(|error| {
            let message = format!("cannot empty an earlier log: {error}");
            RunProblem::new(ProblemKind::LogNotWritable, message)
        })?;
        forget_earlier(&self.plan);
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
            under_way: UnderWay(is_over),
            writer,
            warnings,
            stop,
        })
    }
}

/// The logs of a run that is under way.
pub struct Logs {
    channel: Arc<LogChannel>,
    configs: Vec<Option<fathom_workload::LogConfig>>,
    under_way: UnderWay,
    writer: JoinHandle<Written>,
    warnings: Vec<Warning>,
    stop: Stop,
}

impl Logs {
    /// The log of the job of this setup.
    pub fn job(&self, setup: usize) -> Option<JobLog> {
        let config = self.configs[setup].clone()?;
        Some(JobLog::new(config, Arc::clone(&self.channel)))
    }

    /// The jobs have ended: waits for the rest to be written; says what is to be said. `look` is
    /// called meanwhile, so that a request to stop is seen.
    pub fn finish(self, look: &dyn Fn(), clock: &Clock) -> Finished {
        drop(self.under_way);
        self.writer.thread().unpark();
        let mut pause = Nanos::from_micros(50);
        while !self.writer.is_finished() {
            look();
            sleep_until(clock, clock.now() + pause);
            pause = Nanos::new(pause.get() * 2).min(LOOK_AROUND);
        }
        let mut finished = Finished {
            lines: Vec::new(),
            warnings: self.warnings,
            failed: false,
        };
        match self.writer.join() {
            Ok(written) => {
                let warnings;
                (warnings, finished.failed) = said(&written, &self.stop);
                finished.warnings.extend(warnings);
                finished.lines = written.by_setup();
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
pub struct Finished {
    /// By setup; `None` for jobs without a log.
    pub lines: Vec<Option<Lines>>,
    /// Logs, or parts of them, that were lost.
    pub warnings: Vec<Warning>,
    /// Writing a log failed.
    pub failed: bool,
}

/// The writer goes on as long as this lives; so it ends too where a run breaks off.
struct UnderWay(Arc<AtomicBool>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        // Release: whoever sees it sees every batch that was handed over before.
        self.0.store(true, Ordering::Release);
    }
}

/// The logs of a run in virtual time, kept in memory.
pub struct MemoryLogs {
    channel: Arc<LogChannel>,
    plan: LogPlan,
}

impl MemoryLogs {
    /// Creates the logs that a plan asks for.
    pub fn new(setups: &[JobSetup]) -> Self {
        Self {
            channel: Arc::new(LogChannel::new(0, 0, setups.len())),
            plan: LogPlan::new(setups, &|_| 0),
        }
    }

    /// The log of the job of this setup.
    pub fn job(&self, setup: usize) -> Option<JobLog> {
        let mut config = self.plan.jobs[setup].as_ref()?.config.clone();
        config.when_full = WhenFull::Grow;
        Some(JobLog::new(config, Arc::clone(&self.channel)))
    }

    /// Each file's name and what stands in it.
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
        // Signals are the watcher's. That and the processors are best effort: the log is written
        // all the same.
        let _ignored = fathom_sys::signals::block_in_this_thread();
        if let Some(cpus) = cpus {
            let _ignored = fathom_sys::thread::set_allowed_cpus(&cpus);
        }
        loop {
            // Acquire, and before the queue is looked at: what came before the end is still found.
            let last_look = is_over.load(Ordering::Acquire);
            while let Some(batch) = channel.take() {
                writer.batch(&batch);
                channel.give_back(batch);
            }
            if last_look {
                return writer.finish();
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
    })
}

/// Clocks of `log_alternate_epoch_clock_id` that there are not.
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

/// Logs that are to be tables, in a program without them.
fn tables(plan: &Plan) -> Vec<RunProblem> {
    let is_table = |job: &&Job| job.options.logs.format == LogFileFormat::Parquet;
    let jobs = plan.jobs.iter().filter(is_table);
    let jobs = jobs.filter(|_| cfg!(not(feature = "parquet")));
    jobs.map(|job| RunProblem::new(ProblemKind::NotBuiltIn, NO_PARQUET).at(job, "log_format"))
        .collect()
}

/// Why there are no tables where the program was built without them.
const NO_PARQUET: &str = "this program was built without Parquet tables (`cargo build --release \
                          --package fathom-cli --features parquet` has them)";

/// Interval at which an idle writer checks for batches: 48 MiB take no less than 60 ms to fill at
/// 50 million ops a second.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Interval between checks for a request to stop while the rest is written.
const LOOK_AROUND: Nanos = Nanos::from_millis(20);
