//! Connection between a run and its caller. There is no global state, so several runs can execute
//! at once.

use fathom_core::{Nanos, PerDirection};
use fathom_record::{DiskRecord, JobRecord, Record, Warning};
use fathom_workload::Phase;

use crate::LatenciesSoFar;

/// Connection between a run and its caller: events out, requests in.
///
/// The caller builds one per run and lends it to the driver. The driver polls the counters `stops`
/// and `reports_asked`, at least every 50 ms while jobs run, and calls `tell` on the thread that
/// called it, so the closures need neither locks nor `Send`. Requests are counters instead of
/// flags, so that a second request is distinguishable from the first. A slow `tell` delays the
/// watcher, not the jobs.
pub struct Session<'a> {
    /// Receives events, in order, on the thread that called the driver.
    pub tell: &'a mut dyn FnMut(RunEvent<'_>),
    /// Number of stop requests so far; from 1 on, the run issues no more ops and reports.
    pub stops: &'a dyn Fn() -> u32,
    /// Interval between progress events; `None` for none.
    pub progress: Option<Nanos>,
    /// Interval between interim reports; `None` for none.
    pub report_every: Option<Nanos>,
    /// Number of interim reports requested so far; an increment triggers one.
    pub reports_asked: &'a dyn Fn() -> u32,
    /// Let a job fail by itself, as in fio, if it has no size, or if its file is missing and
    /// `allow_file_create=0`. Otherwise the whole plan is rejected.
    pub jobs_fail_alone: bool,
}

/// Event of a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunEvent<'a> {
    /// The plan was translated: every clone, by thread number, without results.
    Planned(&'a [JobRecord]),
    /// Warning that precedes the results.
    Warning(&'a Warning),
    /// The run waits for its agreed start, so long.
    AwaitingStart(Nanos),
    /// The plan passed the checks; this many jobs will run.
    Starting(usize),
    /// Files of a job are about to be laid out.
    LayingOut {
        /// Name of the job.
        job: &'a str,
        /// Number of files.
        files: usize,
        /// Total length of the files.
        bytes: u64,
    },
    /// Progress of the layout of that job's files, about ten times a second.
    LayoutProgress(LayoutProgress<'a>),
    /// The layout of the job's files has ended, successfully or not.
    LaidOut,
    /// Output of `--debug`.
    Debug(&'a str),
    /// Progress of the jobs.
    Progress(&'a Snapshot),
    /// Results so far, to show.
    Interim(&'a Record),
    /// Results so far, to keep ([`Settings::keep_every`](fathom_job::Settings::keep_every)).
    SoFar(&'a Record),
    /// Failure outside the jobs, such as of a log; the jobs continued.
    Lost(&'a Warning),
    /// The run is stopping and waits for ops in flight.
    Stopping,
    /// These jobs have not ended some time after [`Stopping`](Self::Stopping).
    StillStopping(&'a [&'a str]),
    /// These jobs have not opened their files some time after [`Stopping`](Self::Stopping).
    StillOpening(&'a [&'a str]),
}

/// Progress of the layout of a job's files.
#[derive(Clone, Copy, Debug)]
pub struct LayoutProgress<'a> {
    /// Job whose files are being laid out.
    pub job: &'a str,
    /// Bytes written for this job.
    pub done_bytes: u64,
    /// Bytes to write for this job.
    pub total_bytes: u64,
    /// Time since the job's layout started.
    pub elapsed: Nanos,
}

/// Progress of the jobs.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Time since the first job started.
    pub elapsed: Nanos,
    /// Progress of each job, by thread number.
    pub jobs: Vec<JobSnapshot>,
    /// Latencies of all jobs, if requested: by job, or of many jobs by group.
    pub latencies: Vec<LatenciesSoFar>,
    /// Activity of the disks since the previous progress event, if requested.
    pub disks: Vec<DiskRecord>,
}

/// Progress of one job.
#[derive(Clone, Copy, Debug, Default)]
pub struct JobSnapshot {
    /// State of its thread.
    pub state: JobState,
    /// Ops completed, ramp time included.
    pub ios: PerDirection<u64>,
    /// Bytes moved, ramp time included.
    pub bytes: PerDirection<u64>,
    /// Ops in flight when it last published its progress; 0 between the ops of a synchronous
    /// engine.
    pub in_flight: u32,
    /// Time since it started; zero before.
    pub elapsed: Nanos,
}

/// State of a job's thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobState {
    /// The thread has not been started.
    #[default]
    NotStarted,
    /// It starts its engine and opens its files, or waits at the start barrier.
    SettingUp,
    /// It runs the workload, in this phase.
    Working(Phase),
    /// The thread has ended.
    Ended,
    /// The thread has ended with an error.
    Failed,
}

/// Minimum interval between reports: the resolution of the watcher.
pub const REPORT_EVERY_MIN: Nanos = Nanos::from_millis(10);
