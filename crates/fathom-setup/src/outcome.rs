//! Result of one job, as a driver hands it over to be collected into the record.

use fathom_core::{Capabilities, EngineError, Errno, PerDirection, Tick};
use fathom_record::{CpuRecord, ProcessorsRecord, SchedulingRecord, Warning};
use fathom_stats::Latency;
use fathom_workload::Results;

/// Result of one job.
///
/// A driver fills it in when the job ends, or from a copy of the job's counters for an interim
/// report, and [`collect`](crate::collect) turns it into a `JobRecord`. It is a plain value without
/// a reference to the engine or thread, so it outlives both. Copying it copies the histograms.
#[derive(Clone, Debug, Default)]
pub struct JobOutcome {
    /// Measurements of the worker; `None` if it never ran.
    pub results: Option<Results>,
    /// Moment at which its thread passed the start barrier; `None` if it ended before.
    pub begun: Option<Tick>,
    /// The failure that ended the job, unless an op's own error did.
    pub failure: Option<JobFailure>,
    /// CPU time of the job's thread, its offload workers and the kernel's helper threads.
    pub cpu: CpuRecord,
    /// Scheduling of the job's own thread, if the kernel counts it.
    pub scheduling: Option<SchedulingRecord>,
    /// Use of its processors while it ran, if observed.
    pub processors: Option<ProcessorsRecord>,
    /// Kernel thread ID; 0 in virtual time.
    pub thread_id: u32,
    /// Capabilities of the engine that was started.
    pub engine: Option<Capabilities>,
    /// Kernel features that the engine uses.
    pub features: Vec<String>,
    /// Time that ops waited for an offload worker, if the job has any.
    pub queued: Option<PerDirection<Latency>>,
    /// Requests that the engine has sent again by itself.
    pub repeated_requests: u64,
    /// Number of the job's own commands (`exec_prerun`, `exec_postrun`) that failed.
    pub failed_commands: u32,
    /// Warnings about the job's own commands and its offload workers.
    pub warnings: Vec<Warning>,
}

impl JobOutcome {
    /// Returns true if the job ended with an error.
    pub fn has_failed(&self) -> bool {
        let results = self.results.as_ref();
        self.failure.is_some() || results.is_some_and(|results| results.error.is_some())
    }
}

/// Failure of a job outside its ops: its engine, its thread's settings, its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFailure {
    /// Errno of the failed system call, or the one that describes the failure best.
    pub errno: Errno,
    /// Message: what failed, where, why.
    pub text: String,
    /// Remedy; empty if none is known.
    pub hint: String,
}

impl JobFailure {
    /// Creates a failure without a hint.
    #[must_use]
    pub fn new(errno: Errno, text: impl Into<String>) -> Self {
        Self {
            errno,
            text: text.into(),
            hint: String::new(),
        }
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

impl From<EngineError> for JobFailure {
    fn from(error: EngineError) -> Self {
        Self {
            errno: error.errno.unwrap_or(Errno::EINVAL),
            text: error.to_string(),
            hint: error.hint,
        }
    }
}
