//! I/O logs of a run: one thread writes what all jobs hand over.
//!
//! ```text
//! open (before anything is laid out) → a JobLog for each job → … jobs run … → finish → warnings
//! ```
//!
//! # What this costs
//! 64 MiB where single ops are logged, and the writer's share of one processor: see `format.rs`.

mod format;
mod lines;
mod plan;
mod writer;

use std::fs::{self, OpenOptions};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use fathom_job::Plan;
use fathom_record::Warning;
use fathom_sys::clock::Clock;
use fathom_workload::{Entry, JobLog, LogChannel, WhenFull};

use self::plan::{JobLogs, LogFile, LogPlan};
use self::writer::{Sink, Writer, Written};
use crate::error::Problem;
use crate::translate::JobSetup;

/// The logs of a run that is under way.
pub(crate) struct Logs {
    channel: Arc<LogChannel>,
    configs: Vec<Option<fathom_workload::LogConfig>>,
    under_way: UnderWay,
    writer: JoinHandle<Written>,
    warnings: Vec<Warning>,
}

impl Logs {
    /// Opens every file and starts the writer; `None` if nothing is logged.
    ///
    /// # Errors
    /// Every file that cannot be written; none was made then.
    pub(crate) fn open(
        plan: &Plan,
        setups: &[JobSetup],
        clock: Clock,
    ) -> Result<Option<Self>, Vec<Problem>> {
        let no_such_clock = clocks(plan);
        if !no_such_clock.is_empty() {
            return Err(no_such_clock);
        }
        // One look at each clock for all jobs: their times can be compared.
        let epoch = |id| {
            let shown = fathom_sys::clock::read(id).unwrap_or(0);
            shown.saturating_sub(clock.now().get())
        };
        let logs = LogPlan::new(plan, setups, &epoch);
        if logs.is_empty() {
            return Ok(None);
        }
        let sinks = open_all(plan, &logs.files)?;
        forget_earlier(&logs);
        let sizing = Sizing::new(&logs);
        let configs: Vec<_> = logs
            .jobs
            .iter()
            .map(|job| job.as_ref().map(|job| job.config.clone()))
            .collect();
        let channel = Arc::new(LogChannel::new(sizing.chunks, sizing.entries, setups.len()));
        let is_over = Arc::new(AtomicBool::new(false));
        let warnings = sizing.warning().into_iter().collect();
        let cpus = plan
            .jobs
            .iter()
            .find_map(|job| job.options.logs.cpus.clone());
        let writer = start(
            Writer::new(logs, sinks),
            Arc::clone(&channel),
            Arc::clone(&is_over),
            cpus,
        );
        let writer = writer.map_err(|error| {
            let message = format!("cannot start the log's writer: {error}");
            vec![Problem::new("log_writer", message)]
        })?;
        Ok(Some(Self {
            channel,
            configs,
            under_way: UnderWay(is_over),
            writer,
            warnings,
        }))
    }

    /// The log of the job of this setup.
    pub(crate) fn job(&self, setup: usize) -> Option<JobLog> {
        let config = self.configs[setup].clone()?;
        Some(JobLog::new(config, Arc::clone(&self.channel)))
    }

    /// The jobs have ended: waits for the rest to be written; says what is to be said.
    pub(crate) fn finish(self) -> Vec<Warning> {
        drop(self.under_way);
        self.writer.thread().unpark();
        let mut warnings = self.warnings;
        match self.writer.join() {
            Ok(written) => warnings.extend(said(&written)),
            Err(_panic) => warnings.push(Warning {
                code: "log_lost".into(),
                job: String::new(),
                message: "the log's writer broke off: internal error; logs are incomplete".into(),
                hint: "this is a bug in fathom; please report it".into(),
            }),
        }
        warnings
    }
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
pub(crate) struct MemoryLogs {
    channel: Arc<LogChannel>,
    plan: LogPlan,
}

impl MemoryLogs {
    pub(crate) fn new(plan: &Plan, setups: &[JobSetup]) -> Self {
        Self {
            channel: Arc::new(LogChannel::new(0, 0, setups.len())),
            plan: LogPlan::new(plan, setups, &|_| 0),
        }
    }

    /// The log of the job of this setup.
    pub(crate) fn job(&self, setup: usize) -> Option<JobLog> {
        let mut config = self.plan.jobs[setup].as_ref()?.config.clone();
        config.when_full = WhenFull::Grow;
        Some(JobLog::new(config, Arc::clone(&self.channel)))
    }

    /// Each file's name and what stands in it.
    pub(crate) fn finish(self) -> Vec<(String, Vec<u8>)> {
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
                Sink::Memory(bytes) => (file.path, bytes),
                Sink::File(_) => (file.path, Vec::new()),
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
                channel.give_back(batch.entries);
            }
            if last_look {
                return writer.finish();
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
    })
}

/// Clocks of `log_alternate_epoch_clock_id` that there are not.
fn clocks(plan: &Plan) -> Vec<Problem> {
    let jobs = plan.jobs.iter();
    let jobs = jobs.filter(|job| job.options.logs.any() && job.options.logs.epoch);
    jobs.filter_map(|job| {
        let id = job.options.logs.epoch_clock;
        let error = fathom_sys::clock::read(id).err()?;
        let problem = Problem::new("no_such_clock", format!("there is no clock {id}: {error}"));
        let problem = problem.hint("0 is the time of day, 1 counts from boot");
        Some(problem.at(job, "log_alternate_epoch_clock_id"))
    })
    .collect()
}

/// Opens every file, or, if one cannot be, unmakes those that were not there before.
fn open_all(plan: &Plan, files: &[LogFile]) -> Result<Vec<Sink>, Vec<Problem>> {
    let (mut opened, mut made, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for file in files {
        let was_there = fs::symlink_metadata(&file.path).is_ok();
        let how = OpenOptions::new()
            .create(true)
            .append(file.append)
            .write(true)
            .truncate(false)
            .open(&file.path);
        match how {
            Ok(handle) => {
                if !was_there {
                    made.push(&file.path);
                }
                opened.push(handle);
            }
            Err(error) => {
                let message = format!("cannot write the log {}: {error}", file.path);
                let problem = Problem::new("log_not_writable", message);
                let problem = problem.hint("name a directory that is there and may be written");
                problems.push(problem.at(&plan.jobs[file.section], file.option));
            }
        }
    }
    let emptied = || -> io::Result<()> {
        let anew = opened.iter().zip(files).filter(|(_, file)| !file.append);
        // Devices and pipes have no length.
        let anew = anew.filter(|(handle, _)| handle.metadata().is_ok_and(|found| found.is_file()));
        anew.map(|(handle, _)| handle)
            .try_for_each(|handle| handle.set_len(0))
    };
    if problems.is_empty()
        && let Err(error) = emptied()
    {
        let message = format!("cannot empty an earlier log: {error}");
        problems.push(Problem::new("log_not_writable", message));
    }
    if problems.is_empty() {
        return Ok(opened.into_iter().map(Sink::File).collect());
    }
    for path in made {
        // It is empty; if it cannot be removed, no harm is done.
        let _left = fs::remove_file(path);
    }
    Err(problems)
}

/// Notes of an earlier run on what it had dropped would now be wrong.
fn forget_earlier(logs: &LogPlan) {
    for prefix in logs.jobs.iter().flatten().flat_map(|job| &job.prefixes) {
        let _was_none = fs::remove_file(note_path(prefix));
    }
}

fn note_path(prefix: &str) -> String {
    format!("{prefix}.dropped.json")
}

/// What there is to say about finished logs; notes on what was dropped are written.
fn said(written: &Written) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    for (job, kept, dropped) in written.jobs().filter(|(_, _, dropped)| *dropped > 0) {
        warnings.push(Warning {
            code: "log_dropped".into(),
            job: job.name.clone(),
            message: format!(
                "{dropped} of {} log entries were dropped: they came faster than they could be \
                 written",
                kept + dropped
            ),
            hint: "log averages (`log_avg_msec=100`), or let the job wait (`log_full=wait`)".into(),
        });
        for prefix in &job.prefixes {
            let note = note(job, kept, dropped);
            match notes.iter_mut().find(|(known, _)| known == prefix) {
                Some((_, list)) => list.push(note),
                None => notes.push((prefix, vec![note])),
            }
        }
    }
    for (prefix, list) in notes {
        let path = note_path(prefix);
        let text = format!("{{\"dropped\": [\n  {}\n]}}\n", list.join(",\n  "));
        if let Err(error) = fs::write(&path, text) {
            warnings.push(broken(&path, &error));
        }
    }
    let failed = written.plan.files.iter().zip(&written.failed);
    let failed = failed.filter_map(|(file, error)| Some((file, error.as_ref()?)));
    warnings.extend(failed.map(|(file, error)| broken(&file.path, error)));
    warnings
}

fn broken(path: &str, error: &io::Error) -> Warning {
    Warning {
        code: "log_broken".into(),
        job: String::new(),
        message: format!("the log {path} breaks off: {error}"),
        hint: "make room, or log averages (`log_avg_msec=100`)".into(),
    }
}

/// `{"job": "name", "number": 1, "kept": 2, "dropped": 3}`.
fn note(job: &JobLogs, kept: u64, dropped: u64) -> String {
    let name: String = job.name.chars().flat_map(escaped).collect();
    format!(
        "{{\"job\": \"{name}\", \"number\": {}, \"kept\": {kept}, \"dropped\": {dropped}}}",
        job.number
    )
}

fn escaped(c: char) -> Vec<char> {
    match c {
        '"' | '\\' => vec!['\\', c],
        c if c < ' ' => format!("\\u{:04x}", u32::from(c)).chars().collect(),
        c => vec![c],
    }
}

/// How much memory the logs of a run get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizing {
    chunks: usize,
    entries: usize,
    /// What was asked for, where the bound won.
    asked: Option<usize>,
}

impl Sizing {
    fn new(logs: &LogPlan) -> Self {
        let jobs: Vec<&JobLogs> = logs.jobs.iter().flatten().collect();
        let asked = jobs.iter().map(|job| job.entries as usize).max();
        let single_ops = jobs.iter().any(|job| job.config.ops);
        Self::of(jobs.len(), asked.unwrap_or(1), single_ops)
    }

    fn of(jobs: usize, asked: usize, single_ops: bool) -> Self {
        let all = MEMORY / size_of::<Entry>();
        // A job that fills one chunk needs another to go on; a few more are with the writer.
        let least = 2 * jobs.max(1) + 2;
        let entries = asked.min(all / least).max(1);
        let most = all / entries;
        let chunks = if single_ops {
            most
        } else {
            (4 * jobs.max(1) + 4).min(most)
        };
        Self {
            chunks,
            entries,
            asked: (entries < asked).then_some(asked),
        }
    }

    fn warning(&self) -> Option<Warning> {
        let asked = self.asked?;
        Some(Warning {
            code: "log_entries_bounded".into(),
            job: String::new(),
            message: format!(
                "`log_entries={asked}` became {}: the logs of all jobs together have {} MiB",
                self.entries,
                MEMORY >> 20
            ),
            hint: "leave `log_entries` out".into(),
        })
    }
}

/// What all logs of a run may keep in memory, bytes: two thirds of a second at 3 million ops a
/// second, and little beside what the page cache holds of the files.
const MEMORY: usize = 64 << 20;

/// How often the writer looks for batches when there were none: 64 MiB take no less than 60 ms to
/// fill at 30 million ops a second.
const LOOK_EVERY: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_holds_whatever_is_asked() {
        for (jobs, asked, bounded) in [
            (1, 1024, false),
            (1, 1_048_576, true),
            (512, 1024, false),
            (512, 65_536, true),
            (4096, 1024, true),
        ] {
            let sizing = Sizing::of(jobs, asked, true);
            assert!(sizing.chunks * sizing.entries * size_of::<Entry>() <= MEMORY);
            assert!(sizing.chunks >= 2 * jobs + 2, "{jobs} jobs: {sizing:?}");
            assert_eq!(sizing.asked.is_some(), bounded, "{jobs} jobs, {asked}");
        }
    }

    #[test]
    fn names_are_escaped() {
        let text: String = "a\"b\\c\n".chars().flat_map(escaped).collect();
        assert_eq!(text, "a\\\"b\\\\c\\u000a");
    }
}
