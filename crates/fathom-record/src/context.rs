//! Machine of a run, and the validity of its numbers.

use serde::{Deserialize, Serialize};

/// Machine that a run used.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Kernel release and version.
    pub kernel: String,
    /// Processor model.
    pub cpu: String,
    /// Number of CPUs online.
    pub cpus_online: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Clock: `tsc` or `clock_monotonic`.
    pub clock_source: String,
    /// Ticks per second of the clock's counter; 0 without a counter.
    pub clock_hz: u64,
    /// Cost of one clock read, ns.
    pub clock_read_ns: f64,
    /// Storage under each file.
    pub storage: Vec<StorageRecord>,
    /// Kernel features that each engine used, as `engine: feature, feature`.
    pub engine_features: Vec<String>,
    /// Frequency governors of the CPUs, each name once; empty if the kernel does not set them.
    #[serde(default)]
    pub governor: String,
}

/// Storage under one file of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StorageRecord {
    /// Path of the file.
    pub path: String,
    /// Mount point, for regular files.
    pub mount: String,
    /// File system type.
    pub filesystem: String,
    /// Name of the block device, without /dev.
    pub device: String,
    /// I/O scheduler in use.
    pub scheduler: String,
    /// Logical block size.
    pub logical_block_bytes: u64,
    /// Physical block size.
    pub physical_block_bytes: u64,
    /// `queue/nr_requests` of the device.
    pub nr_requests: u64,
    /// `queue/max_sectors_kb` of the device.
    pub max_sectors_kib: u64,
    /// The device has rotating media.
    pub rotational: bool,
}

/// Result of one validity check of a job's numbers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Validity {
    /// Job name; empty for the whole run.
    pub job: String,
    /// Name of the check: `page_cache`, `direct_io`, `queue_depth`, `working_set`, `cpu_bound`,
    /// `stolen_time`, `response_time`…
    pub check: String,
    /// The numbers mean what they appear to mean.
    pub ok: bool,
    /// Finding, as a sentence.
    pub sentence: String,
    /// Figures behind the finding, with their names.
    pub figures: Vec<(String, f64)>,
}

/// Warning to the user, printed below the report and kept in JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable name for tools: `depth_on_sync_engine`…
    pub code: String,
    /// Job name; empty for the whole run.
    pub job: String,
    /// The fact, and why it matters.
    pub message: String,
    /// Remedy, in the imperative; empty if there is none.
    pub hint: String,
}
