//! How a run talks to whoever started it; there is no global state, so several can go on at once.

use fathom_core::{Nanos, PerDirection};
use fathom_record::{JobRecord, Record, Warning};
use fathom_workload::Phase;

/// The run's connection to the outside.
pub struct Session<'a> {
    /// Hears what happens, in order, on the thread that called the driver.
    pub tell: &'a mut dyn FnMut(Event<'_>),
    /// How often somebody asked to stop; from 1 on, the run issues nothing more and reports.
    pub stops: &'a dyn Fn() -> u32,
    /// How often progress is told; `None` for never.
    pub progress: Option<Nanos>,
    /// How often a report of what was measured so far is told; `None` for never.
    pub report_every: Option<Nanos>,
    /// How often somebody asked for such a report; whenever that grows, one is told.
    pub reports_asked: &'a dyn Fn() -> u32,
    /// Show a bar on the terminal while files are laid out.
    pub layout_bar: bool,
    /// A job whose file is missing, and must not be made (`allow_file_create=0`), fails by itself,
    /// as in fio; without this the plan is refused.
    pub jobs_fail_alone: bool,
}

/// What happens in a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The plan was understood: each clone as far as it is known, in the order of thread numbers.
    Planned(&'a [JobRecord]),
    /// Something that the user should know before the numbers are in.
    Warning(&'a Warning),
    /// The plan was checked; so many jobs will run.
    Starting(usize),
    /// Files of a job are about to be laid out.
    LayingOut {
        /// The job.
        job: &'a str,
        /// How many files.
        files: usize,
        /// Bytes of all of them.
        bytes: u64,
    },
    /// Lines that `--debug` asked for.
    Debug(&'a str),
    /// How far the jobs have come.
    Progress(&'a Snapshot),
    /// What the jobs have measured so far.
    Interim(&'a Record),
    /// Something went wrong beside the jobs, which went on.
    Lost(&'a Warning),
    /// A request to stop was seen; what is in flight is still waited for.
    Stopping,
    /// A while after that these jobs have not ended.
    StillStopping(&'a [&'a str]),
}

/// How far the jobs have come.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Since the first job was started.
    pub elapsed: Nanos,
    /// Each job, in the order of thread numbers.
    pub jobs: Vec<JobSnapshot>,
}

/// How far one job has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct JobSnapshot {
    /// What its thread is doing.
    pub state: JobState,
    /// Ops completed, ramp time included.
    pub ios: PerDirection<u64>,
    /// Bytes moved, ramp time included.
    pub bytes: PerDirection<u64>,
    /// Since it was started; zero before.
    pub elapsed: Nanos,
}

/// What the job's thread is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobState {
    /// Its thread has not been started.
    #[default]
    NotStarted,
    /// It sets up its engine and opens its files, or waits for the others to do so.
    SettingUp,
    /// It runs; see the phase.
    Working(Phase),
    /// Its thread has ended.
    Ended,
    /// Its thread has ended with an error.
    Failed,
}

/// The shortest interval between reports: the grain of the thread that watches the jobs.
pub const REPORT_EVERY_MIN: Nanos = Nanos::from_millis(10);
