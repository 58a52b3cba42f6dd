//! The result of a run: everything that any output is drawn from.
//!
//! Field names carry their units where they leave the program. A later version of this program
//! reads older records: fields are added (with `#[serde(default)]`), never reused.

use fathom_core::PerDirection;
use fathom_stats::{Latency, SampleStats};
use serde::{Deserialize, Serialize};

use crate::{
    LatencyTargetRecord, Machine, SeekRecord, SteadyStateRecord, Unified, Validity, Warning,
};

/// Everything a run leaves behind.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// The layout's version; see `RECORD_VERSION`.
    pub version: u32,
    /// When the report was made: milliseconds since 1970-01-01 UTC.
    pub timestamp_ms: u64,
    /// The same as `ctime(3)` prints it, without the line feed.
    pub time: String,
    /// Time since the program started, ms.
    #[serde(default)]
    pub elapsed_ms: u64,
    /// In a report made while the jobs run: how long they will go on, s, where that is known.
    #[serde(default)]
    pub eta_s: Option<u64>,
    /// `[global]` options as typed.
    pub global_options: Vec<(String, String)>,
    /// The jobs (clones multiplied out), in the order they were made.
    pub jobs: Vec<JobRecord>,
    /// Devices under the files.
    pub disks: Vec<DiskRecord>,
    /// How idle the processors were, where that was asked for.
    #[serde(default)]
    pub idleness: Option<Idleness>,
    /// Where it ran; absent in virtual time.
    pub machine: Option<Machine>,
    /// The modelled machine it ran on in virtual time; absent for a real run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modelled: Option<ModelledMachine>,
    /// What the numbers are worth.
    pub validity: Vec<Validity>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
}

/// A machine that is not there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelledMachine {
    /// The file that describes it, as it was named.
    pub file: String,
    /// Its devices.
    pub devices: Vec<ModelledDevice>,
}

/// One device of such a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelledDevice {
    /// The names that stand for it, as written in the file.
    pub names: Vec<String>,
    /// Its model: `hdd`, `ssd`…
    pub model: String,
    /// What it holds.
    pub capacity_bytes: u64,
    /// What it was given, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeks: Option<SeekRecord>,
}

/// How idle the processors were while the jobs ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Idleness {
    /// All of them together, percent 0–100.
    pub all_percent: f64,
    /// Number and idle time of each, percent 0–100; empty where only the whole was asked for.
    pub each_percent: Vec<(u32, f64)>,
    /// Mean time of fio's unit of work, µs.
    pub unit_mean_us: f64,
    /// Its deviation, µs.
    pub unit_stddev_us: f64,
}

/// The version of the layout of `Record`.
pub const RECORD_VERSION: u32 = 1;

/// One job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JobRecord {
    /// Section name; clones share it.
    pub name: String,
    /// Text of `description`, if set.
    pub description: Option<String>,
    /// Reporting group, from 0.
    pub group_id: u32,
    /// Merged with its neighbours of the same group when reported.
    pub group_reporting: bool,
    /// Thread number over the whole run, from 1.
    pub number: u32,
    /// Kernel thread id.
    pub pid: u32,
    /// Own options as typed (canonical name, value; bare flags have an empty value).
    pub options: Vec<(String, String)>,
    /// The first error that ended the job: errno; 0 for none.
    pub error: u32,
    /// Where and why, for that error.
    pub error_text: Option<String>,
    /// Errors that were tolerated (`continue_on_error`): how many, and the first one's errno.
    pub tolerated: Option<Tolerated>,
    /// Wall-clock milliseconds since 1970 when the job started to measure.
    pub start_ms: u64,
    /// `rw`, as fio's header prints it (`randread`…).
    pub rw: String,
    /// Engine name.
    pub engine: String,
    /// Whether slat means anything: the engine is asynchronous.
    pub asynchronous: bool,
    /// The I/O priority of its thread (`ioprio`); 0 where none was asked for.
    #[serde(default)]
    pub priority: u16,
    /// Depth asked for.
    pub iodepth: u32,
    /// Smallest and largest op size, bytes.
    #[serde(rename = "block_sizes_bytes")]
    pub block_sizes: PerDirectionRecord<(u64, u64)>,
    /// `bs_is_seq_rand`: reads have the size of ops in order, writes that of random ops.
    #[serde(default)]
    pub block_sizes_by_order: bool,
    /// What happened, by direction.
    pub directions: PerDirectionRecord<DirectionRecord>,
    /// Syncs that were counted.
    pub sync: SyncRecord,
    /// Time the job ran, ms: the largest of its directions' runtimes.
    pub runtime_ms: u64,
    /// User and system time of the job and its kernel workers, µs.
    pub cpu: CpuRecord,
    /// Ops found in flight at each issue, by bucket 1, 2, 4, 8, 16, 32, ≥ 64.
    pub depth_level: [u64; 7],
    /// Ops handed over per submission, by bucket 0, ≤ 4, ≤ 8, ≤ 16, ≤ 32, ≤ 64, > 64.
    pub depth_submit: [u64; 7],
    /// Completions per reaping, same buckets.
    pub depth_complete: [u64; 7],
    /// Submissions in `depth_submit`.
    pub submissions: u64,
    /// Reapings in `depth_complete`.
    pub reapings: u64,
    /// The search for a depth, where a latency was to be kept to.
    #[serde(default)]
    pub latency_target: Option<LatencyTargetRecord>,
    /// The wait for a steady state, where one was asked for.
    #[serde(default)]
    pub steady_state: Option<SteadyStateRecord>,
    /// How it is to be shown.
    pub display: Display,
    /// Its I/O logs, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogRecord>,
}

/// The I/O logs of one job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRecord {
    /// Lines that stand in its files, all of them together.
    pub lines_kept: u64,
    /// Lines that came faster than they could be written, or that had no room on the disk.
    pub lines_dropped: u64,
}

/// Errors that did not end a job.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Tolerated {
    /// How many.
    pub total: u64,
    /// errno of the first.
    pub first: u32,
}

/// How a job is to be shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Display {
    /// 1024 or 1000.
    pub kb_base: u64,
    /// 0 (bytes), 8 (bytes) or 1 (bits).
    pub unit_base: u64,
    /// Percentiles, 0–100, ascending.
    pub percentiles: Vec<f64>,
    /// Decimals they are printed with.
    pub percentile_precision: u32,
    /// Print percentiles of these.
    pub slat_percentiles: bool,
    /// Print percentiles of these.
    pub clat_percentiles: bool,
    /// Print percentiles of these.
    pub lat_percentiles: bool,
    /// Digits of rates in text.
    pub significant_figures: u32,
    /// Print `errors` and `total_err` (`continue_on_error` was given).
    pub tolerates_errors: bool,
    /// `stats=0` hides a job.
    pub hidden: bool,
    /// Show devices (`disk_util`).
    pub disk_util: bool,
    /// Show directions as one.
    #[serde(default)]
    pub unified: Unified,
}

impl Default for Display {
    fn default() -> Self {
        Self {
            kb_base: 1024,
            unit_base: 0,
            percentiles: Vec::new(),
            percentile_precision: 2,
            slat_percentiles: false,
            clat_percentiles: true,
            lat_percentiles: false,
            significant_figures: 4,
            tolerates_errors: false,
            hidden: false,
            disk_util: true,
            unified: Unified::None,
        }
    }
}

/// `PerDirection` in a form that is serialised.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PerDirectionRecord<T> {
    /// Reads.
    pub read: T,
    /// Writes.
    pub write: T,
    /// Trims.
    pub trim: T,
}

impl<T> From<PerDirection<T>> for PerDirectionRecord<T> {
    fn from(values: PerDirection<T>) -> Self {
        Self {
            read: values.read,
            write: values.write,
            trim: values.trim,
        }
    }
}

impl<T> PerDirectionRecord<T> {
    /// Reads, writes, trims, in this order.
    pub fn each(&self) -> [&T; 3] {
        [&self.read, &self.write, &self.trim]
    }
}

/// One direction of one job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DirectionRecord {
    /// Bytes moved.
    pub bytes: u64,
    /// Ops completed.
    pub ios: u64,
    /// Short transfers whose rest was issued again.
    pub short_ios: u64,
    /// Ops given up.
    pub dropped_ios: u64,
    /// Measured time of this direction, ms.
    pub runtime_ms: u64,
    /// issue − start.
    #[serde(rename = "slat_ns")]
    pub slat: Option<Latency>,
    /// complete − issue.
    #[serde(rename = "clat_ns")]
    pub clat: Option<Latency>,
    /// complete − start.
    #[serde(rename = "lat_ns")]
    pub lat: Option<Latency>,
    /// start − due; only where a rate was set.
    #[serde(rename = "lag_ns")]
    pub lag: Option<Latency>,
    /// complete − due; only where a rate was set.
    #[serde(rename = "resp_ns")]
    pub resp: Option<Latency>,
    /// From being submitted to being taken up by a worker; only where there are workers.
    #[serde(rename = "queued_ns", default)]
    pub queued: Option<Latency>,
    /// Ops by I/O priority, where more than the job's own was asked for.
    #[serde(default)]
    pub priorities: Vec<PriorityRecord>,
    /// Bandwidth samples, KiB/s.
    #[serde(rename = "bandwidth_kib_per_s")]
    pub bandwidth: SampleStats,
    /// IOPS samples.
    #[serde(rename = "iops_per_s")]
    pub iops: SampleStats,
}

/// Ops of one I/O priority.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PriorityRecord {
    /// The kernel's number for it (`ioprio`).
    pub priority: u16,
    /// lat where its percentiles are shown, else clat.
    #[serde(rename = "latency_ns")]
    pub latency: Latency,
}

/// Syncs of one job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SyncRecord {
    /// How many.
    pub ios: u64,
    /// How long each took.
    #[serde(rename = "lat_ns")]
    pub lat: Latency,
}

/// Processor use of one job.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct CpuRecord {
    /// User time, µs.
    pub user_us: u64,
    /// System time, µs.
    pub system_us: u64,
    /// Wall time these are measured over, µs.
    pub wall_us: u64,
    /// Voluntary and involuntary context switches.
    pub context_switches: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// Minor page faults.
    pub minor_faults: u64,
}

/// One block device, from /sys/block/*/stat, over the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DiskRecord {
    /// `vda`, `nvme0n1`…
    pub name: String,
    /// Names of the disks that a stacked device (`md0`, `dm-0`) is made of; they have entries of
    /// their own.
    #[serde(default)]
    pub parts: Vec<String>,
    /// Read requests completed.
    pub read_ios: u64,
    /// Write requests completed.
    pub write_ios: u64,
    /// Sectors (512 B) read.
    pub read_sectors: u64,
    /// Sectors (512 B) written.
    pub write_sectors: u64,
    /// Read requests merged.
    pub read_merges: u64,
    /// Write requests merged.
    pub write_merges: u64,
    /// Time in reads, ms.
    pub read_ticks_ms: u64,
    /// Time in writes, ms.
    pub write_ticks_ms: u64,
    /// Time-weighted queue, ms.
    pub in_queue_ms: u64,
    /// Share of the run in which something was in flight, percent 0–100.
    pub util_percent: f64,
}
