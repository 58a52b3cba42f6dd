//! Result of one job, as a driver hands it over to be collected into the record.

use fathom_core::{Capabilities, EngineError, PerDirection};
use fathom_record::{CpuRecord, Warning};
use fathom_stats::Latency;
use fathom_workload::Results;

/// Result of one job.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What the worker measured; `None` if it never ran.
    pub results: Option<Results>,
    /// The failure that ended the job, unless an op's own error did.
    pub fault: Option<Fault>,
    /// Processor time of the job's thread, its offload workers and the kernel's helpers.
    pub cpu: CpuRecord,
    /// The kernel's number of the thread; 0 in virtual time.
    pub thread_id: u32,
    /// Capabilities of the engine that was started.
    pub engine: Option<Capabilities>,
    /// Kernel features that the engine uses.
    pub features: Vec<String>,
    /// Time that ops waited for an offload worker, if the job has any.
    pub queued: Option<PerDirection<Latency>>,
    /// Warnings about the job's own commands and its offload workers.
    pub said: Vec<Warning>,
}

impl Outcome {
    /// Returns whether the job ended with an error.
    pub fn has_failed(&self) -> bool {
        let results = self.results.as_ref();
        self.fault.is_some() || results.is_some_and(|results| results.error.is_some())
    }
}

/// Failure of a job outside its ops: its engine, its thread's settings, its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Error number of the failed system call.
    pub errno: u32,
    /// What failed: where: why.
    pub text: String,
    /// Remedy; empty if none is known.
    pub hint: String,
}

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Self {
        Self {
            errno: match error.errno {
                0 => EINVAL,
                errno => errno.unsigned_abs(),
            },
            text: error.to_string(),
            hint: error.hint,
        }
    }
}

const EINVAL: u32 = 22;
