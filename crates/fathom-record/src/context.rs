//! Where a run took place, and what its numbers are worth.

use serde::{Deserialize, Serialize};

/// The machine a run took place on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Kernel release and version.
    pub kernel: String,
    /// Processor model.
    pub cpu: String,
    /// Processors online.
    pub cpus_online: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// `tsc` or `clock_monotonic`.
    pub clock_source: String,
    /// Counter ticks per second, where a counter is used.
    pub clock_hz: u64,
    /// One clock read, ns.
    pub clock_read_ns: f64,
    /// What is under each file.
    pub storage: Vec<Storage>,
    /// What each engine made use of, as `engine: feature, feature`.
    pub engine_features: Vec<String>,
}

/// What is under one file of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Storage {
    /// The file.
    pub path: String,
    /// Mount point and file system type, for regular files.
    pub mount: String,
    /// File system type.
    pub filesystem: String,
    /// Block device, without /dev.
    pub device: String,
    /// Scheduler in force.
    pub scheduler: String,
    /// Logical block, bytes.
    pub logical_block_bytes: u64,
    /// Physical block, bytes.
    pub physical_block_bytes: u64,
    /// `nr_requests`.
    pub nr_requests: u64,
    /// `max_sectors_kb`.
    pub max_sectors_kib: u64,
    /// Rotational.
    pub rotational: bool,
}

/// One thing that was checked about the worth of a job's numbers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Validity {
    /// Job name; empty for the whole run.
    pub job: String,
    /// `page_cache`, `direct_io`, `queue_depth`, `working_set`, `cpu_bound`, `stolen_time`,
    /// `response_time`.
    pub check: String,
    /// Whether the numbers mean what their reader will take them for.
    pub ok: bool,
    /// A plain sentence.
    pub sentence: String,
    /// What was measured, as named numbers.
    pub figures: Vec<(String, f64)>,
}

/// What the user should know: what, why it matters, what helps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// A stable name: `depth_on_sync_engine`…
    pub code: String,
    /// Job name; empty for the whole run.
    pub job: String,
    /// What, and why it matters.
    pub message: String,
    /// What helps, in the imperative; empty if nothing does.
    pub hint: String,
}
