//! `--trace`: joins the ops of a run with the kernel's events of their requests.
//!
//! ```text
//! start of the op ──► issue to the device ══► completion ──► (thread woken) ──► job has it
//! └───── before ─────┘└────── device ───────┘└───────── after (wake-up) ────────┘
//! ```
//!
//! The ops come from the logs of the jobs, kept in memory; the events come from a tracing instance
//! of its own, which is removed however the run ends.

mod clock_pair;
mod stages;

use std::path::Path;

use fathom_core::Storage;
use fathom_log::TappedOps;
use fathom_record::{DeviceTraceRecord, Warning};
use fathom_setup::outcome::JobOutcome;
use fathom_setup::translate::JobSetup;
use fathom_setup::{ProblemKind, RunError, RunProblem};
use fathom_sys::clock::Clock;
use fathom_trace::{
    BackgroundTrace, DiskMap, TraceError, TracedSpans, check_permission, trace_spans,
};

use self::clock_pair::ClockPair;
use self::stages::TracedFiles;

/// Trace of a run's requests, while its jobs run.
pub(crate) struct DeviceTrace {
    trace: BackgroundTrace<TracedSpans>,
    /// Files of each setup.
    files: Vec<Vec<DiskMap>>,
    begun: ClockPair,
}

/// Results of a trace, and what to say about them.
#[derive(Debug, Default)]
pub(crate) struct EndedTrace {
    pub(crate) record: Option<DeviceTraceRecord>,
    pub(crate) warnings: Vec<Warning>,
}

impl DeviceTrace {
    /// Returns the reasons why the jobs cannot be traced, before anything is written.
    pub(crate) fn check(setups: &[JobSetup]) -> Vec<RunProblem> {
        if let Err(error) = check_permission() {
            return vec![problem(&error)];
        }
        setups.iter().filter_map(obstacle).collect()
    }

    /// Starts the trace, once the files have their full size.
    pub(crate) fn start(setups: &[JobSetup], clock: &Clock) -> Result<Self, RunError> {
        let files = setups.iter().map(|setup| {
            let maps = setup.files.iter().map(|file| {
                DiskMap::of(Path::new(&file.path))
                    .map_err(|error| problem(&error).at(&setup.job, "filename"))
            });
            maps.collect::<Result<Vec<_>, _>>()
        });
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let threads: Vec<String> = setups.iter().map(|setup| kept_name(&setup.name)).collect();
        let trace = trace_spans(&files.concat(), &threads, 0).map_err(|error| problem(&error))?;
        Ok(Self {
            trace,
            files,
            begun: ClockPair::read(clock),
        })
    }

    /// Ends the trace and joins the ops of each job.
    pub(crate) fn finish(
        self,
        setups: &[JobSetup],
        ops: Option<TappedOps>,
        outcomes: &[Option<JobOutcome>],
        clock: &Clock,
    ) -> EndedTrace {
        let ended = ClockPair::read(clock);
        let spans = match self.trace.finish() {
            Ok(spans) => spans,
            Err(error) => return EndedTrace::failed(&error),
        };
        let ops = ops.unwrap_or_default();
        let thread = |index: usize| {
            let outcome = outcomes.get(index).and_then(Option::as_ref);
            outcome.map_or(0, |outcome| outcome.thread_id)
        };
        let joins = setups.iter().zip(&self.files).enumerate();
        let jobs = joins.map(|(index, (setup, maps))| {
            let files = TracedFiles {
                maps,
                spans: &spans,
                wakings: spans.wakings(thread(index)),
                clocks: [self.begun, ended],
            };
            let ops = ops.by_setup.get(index).map_or(&[][..], Vec::as_slice);
            files.job(&setup.name, setup.place.number, ops)
        });
        let record = DeviceTraceRecord {
            lost_events: spans.lost_events,
            dropped: spans.dropped + ops.dropped,
            jobs: jobs.collect(),
        };
        let warnings = lost(&record).into_iter().collect();
        EndedTrace {
            record: Some(record),
            warnings,
        }
    }
}

impl EndedTrace {
    fn failed(error: &TraceError) -> Self {
        let message = format!("the trace failed: {error}");
        Self {
            record: None,
            warnings: vec![warning(
                message,
                error.hint().as_deref().unwrap_or_default(),
            )],
        }
    }
}

/// Returns the reason why a job's ops cannot be joined with requests, if any.
fn obstacle(setup: &JobSetup) -> Option<RunProblem> {
    let job = &setup.job;
    let options = &job.options;
    let refused = |why: &str, hint: &str, option: &str| {
        let message = format!("--trace cannot follow this job: {why}");
        let problem = RunProblem::new(ProblemKind::NotTraceable, message);
        Some(problem.hint(hint).at(job, option))
    };
    if options.engine.storage != Storage::LocalFiles || !options.moves_data() {
        let why = format!("engine `{}` gives no block device ops", options.engine.name);
        return refused(
            &why,
            "use io_uring, libaio, psync or another engine of files",
            "ioengine",
        );
    }
    if !options.direct {
        let why = "it is buffered, so the kernel reads ahead and writes later, on its own";
        return refused(why, "add `direct=1`", "direct");
    }
    if options.offload {
        let why = "its workers submit, not its thread";
        return refused(why, "remove `io_submit_mode`", "io_submit_mode");
    }
    if options.logs.average_ms > 0 || options.logs.histogram_ms > 0 {
        let why = "it averages its log, and the trace needs single ops";
        return refused(
            why,
            "remove `log_avg_msec` and `log_hist_msec`",
            "log_avg_msec",
        );
    }
    if setup.files.len() > FILES_MAX {
        let why = format!("it has more than {FILES_MAX} files, and ops are found by offset");
        return refused(&why, "trace fewer files", "nrfiles");
    }
    let place = setup
        .files
        .iter()
        .map(|file| DiskMap::check_place(Path::new(&file.path)));
    let error = place.filter_map(Result::err).next()?;
    Some(problem(&error).at(job, "filename"))
}

fn problem(error: &TraceError) -> RunProblem {
    let problem = RunProblem::new(ProblemKind::NotTraceable, format!("--trace: {error}"));
    match error.hint() {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}

/// Returns a warning about events or ops that are missing, if there are any.
fn lost(record: &DeviceTraceRecord) -> Option<Warning> {
    let missing = record.lost_events + record.dropped;
    (missing > 0).then(|| {
        let message = format!(
            "--trace: {} events were lost and {} were too many to keep; their ops are not joined",
            record.lost_events, record.dropped
        );
        warning(message, "trace a shorter run, or one with fewer IOPS")
    })
}

fn warning(message: String, hint: &str) -> Warning {
    Warning {
        code: "trace_incomplete".into(),
        job: String::new(),
        message,
        hint: hint.into(),
    }
}

/// Returns the name of a job's thread as the kernel keeps it: 15 bytes.
fn kept_name(name: &str) -> String {
    let kept: String = name.chars().filter(|&c| c != '\0').take(15).collect();
    let mut end = kept.len().min(15);
    while !kept.is_char_boundary(end) {
        end -= 1;
    }
    kept[..end].to_owned()
}

/// Files of a job among which an op is looked up by its offset.
const FILES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_names_are_cut_as_the_kernel_cuts_them() {
        assert_eq!(kept_name("job"), "job");
        assert_eq!(kept_name("a-name-of-20-letters"), "a-name-of-20-le");
        assert_eq!(kept_name("ääääääääääää"), "äääääää");
    }

    #[test]
    fn what_is_missing_is_said() {
        let record = |lost_events, dropped| DeviceTraceRecord {
            lost_events,
            dropped,
            jobs: Vec::new(),
        };
        assert!(lost(&record(0, 0)).is_none());
        assert!(lost(&record(3, 0)).unwrap().message.contains("3 events"));
        assert!(lost(&record(0, 1)).is_some());
    }
}
