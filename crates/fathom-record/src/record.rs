//! The record of a run.
//!
//! Later versions of Fathom read older records: fields are added with `#[serde(default)]`, never
//! reused.

use fathom_core::PerDirection;
use fathom_stats::{Latency, SampleStats};
use serde::{Deserialize, Serialize};

use crate::device_trace::DeviceTraceRecord;
use crate::errno_text;
use crate::{
    BlockLivesRecord, HostRecord, LatencyTargetRecord, Machine, ProcessorsRecord, SchedulingRecord,
    SeekRecord, StallRecord, SteadyStateRecord, TimelineRecord, Unified, Validity, Warning,
};

/// Result of a run, from which every report is rendered.
///
/// Both drivers build it once, after the last job has ended, and again for each interim report. It
/// holds full histograms, so a job takes tens of KiB; merging jobs into groups is left to reports.
/// Nothing in it is computed from a clock or the host when it is read again: a stored record gives
/// the same reports on another machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// Version of the layout; see [`RECORD_VERSION`].
    pub version: u32,
    /// Time of the report: milliseconds since 1970-01-01 UTC.
    pub timestamp_ms: u64,
    /// The same as `ctime(3)` prints it, without the line feed.
    pub time: String,
    /// Time since the program started, ms.
    #[serde(default)]
    pub elapsed_ms: u64,
    /// Expected time until the jobs end, s; only in interim reports, if known.
    #[serde(default)]
    pub eta_s: Option<u64>,
    /// Ranks that ran the plan: this one, or all whose sum this is; empty for a run alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostRecord>,
    /// `[global]` options as typed.
    pub global_options: Vec<(String, String)>,
    /// Jobs in order of creation, clones included.
    pub jobs: Vec<JobRecord>,
    /// Ops by windows of time, of each reporting group and direction; absent in interim reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timelines: Vec<TimelineRecord>,
    /// Block devices under the files.
    pub disks: Vec<DiskRecord>,
    /// Idle time of the CPUs, if requested.
    #[serde(default)]
    pub idleness: Option<Idleness>,
    /// Use of the processors during a real run; absent in interim reports and in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<ProcessorsRecord>,
    /// Stages of the ops (`--trace`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_trace: Option<DeviceTraceRecord>,
    /// Machine of a real run; absent in virtual time.
    pub machine: Option<Machine>,
    /// Modelled machine of a run in virtual time; absent for a real run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modelled: Option<ModelledMachine>,
    /// Results of the validity checks.
    pub validity: Vec<Validity>,
    /// Warnings to the user.
    pub warnings: Vec<Warning>,
    /// Number of the jobs' own commands (`exec_prerun`, `exec_postrun`) that failed.
    #[serde(default)]
    pub failed_commands: u32,
    /// An I/O log is incomplete because writing it failed, not because lines were dropped.
    #[serde(default)]
    pub log_failed: bool,
}

/// Modelled machine of a run in virtual time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelledMachine {
    /// Path of the machine file, as given.
    pub file: String,
    /// Modelled devices.
    pub devices: Vec<ModelledDevice>,
    /// Noise that the machine file assumes, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<String>,
}

/// Modelled device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelledDevice {
    /// File name patterns that it serves, as written in the machine file.
    pub names: Vec<String>,
    /// Model: `hdd`, `ssd`…
    pub model: String,
    /// Capacity.
    pub capacity_bytes: u64,
    /// Requests and seek distances, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeks: Option<SeekRecord>,
}

/// Idle time of the CPUs while the jobs ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Idleness {
    /// Idle time of all CPUs, percent 0–100.
    pub all_percent: f64,
    /// Number and idle time of each CPU, percent 0–100; empty if only the total was requested.
    pub each_percent: Vec<(u32, f64)>,
    /// Mean duration of fio's unit of work, µs.
    pub unit_mean_us: f64,
    /// Standard deviation of that duration, µs.
    pub unit_stddev_us: f64,
}

/// Current version of the layout of [`Record`].
pub const RECORD_VERSION: u32 = 3;

/// Result of one job: a section or one of its clones.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JobRecord {
    /// Name of the section; clones share it.
    pub name: String,
    /// Index of its host in [`Record::hosts`]; `None` in a run alone and in a sum of hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<u32>,
    /// Text of `description`, if set.
    pub description: Option<String>,
    /// Reporting group, from 0.
    pub group_id: u32,
    /// Jobs of one wave run at once, and `stonewall` begins the next, from 0; `None` in records of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave: Option<u32>,
    /// Reports merge the job with its neighbours of the same group.
    pub group_reporting: bool,
    /// Thread number over the whole run, from 1.
    pub number: u32,
    /// Kernel thread id.
    pub pid: u32,
    /// Own options as typed (canonical name, value; bare flags have an empty value).
    pub options: Vec<(String, String)>,
    /// The first error that ended the job: errno; 0 for none.
    pub error: u32,
    /// Description of that error: where, why.
    pub error_text: Option<String>,
    /// That error as fio puts it; not stored.
    #[serde(skip)]
    pub fio_error: Option<FioError>,
    /// Errors tolerated through `continue_on_error`.
    pub tolerated: Option<Tolerated>,
    /// Start of the measurement: milliseconds since 1970-01-01 UTC.
    pub start_ms: u64,
    /// `rw`, as fio's header prints it (`randread`…).
    pub rw: String,
    /// Engine name.
    pub engine: String,
    /// The engine is asynchronous, so that slat has a meaning.
    pub asynchronous: bool,
    /// I/O priority of the job's thread (`ioprio`); 0 if none was set.
    #[serde(default)]
    pub priority: u16,
    /// Configured queue depth.
    pub iodepth: u32,
    /// Smallest and largest op size.
    #[serde(rename = "block_sizes_bytes")]
    pub block_sizes: PerDirectionRecord<(u64, u64)>,
    /// `bs_is_seq_rand`: the size of reads is that of sequential ops, the size of writes that of
    /// random ops.
    #[serde(default)]
    pub block_sizes_by_order: bool,
    /// Results by direction.
    pub directions: PerDirectionRecord<DirectionRecord>,
    /// Sync ops.
    pub sync: SyncRecord,
    /// Runtime, ms: the longest of its directions' runtimes.
    pub runtime_ms: u64,
    /// CPU use of the job, its kernel workers included.
    pub cpu: CpuRecord,
    /// Scheduling of the job's own thread; `None` in virtual time, and if the kernel does not count
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<SchedulingRecord>,
    /// Use of the processors on which the job may run, while it ran; `None` for most of many
    /// clones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<ProcessorsRecord>,
    /// Ops in flight at each issue, in buckets 1, 2, 4, 8, 16, 32, ≥ 64.
    pub depth_level: [u64; 7],
    /// Ops per submission, in buckets 0, ≤ 4, ≤ 8, ≤ 16, ≤ 32, ≤ 64, > 64.
    pub depth_submit: [u64; 7],
    /// Completions per reap, in the same buckets.
    pub depth_complete: [u64; 7],
    /// Number of submissions in `depth_submit`.
    pub submissions: u64,
    /// Number of reaps in `depth_complete`.
    pub reapings: u64,
    /// Requests that the engine has sent again by itself, such as after a lost connection; those
    /// of a ramp time included. The ops that they belong to count once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated_requests: u64,
    /// Zones reset by a job that writes or trims with `zonemode=zbd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_resets: Option<u64>,
    /// Result of the search for a depth, with `latency_target`.
    #[serde(default)]
    pub latency_target: Option<LatencyTargetRecord>,
    /// Result of the wait for a steady state, with `steadystate`.
    #[serde(default)]
    pub steady_state: Option<SteadyStateRecord>,
    /// Lives of blocks, with `block_error_percentiles`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_lives: Option<BlockLivesRecord>,
    /// The tool's own cost; absent in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_cost: Option<OwnCostRecord>,
    /// Worst stalls, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<StallRecord>,
    /// Result of the verification, if the job verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<VerifyRecord>,
    /// Presentation in reports.
    pub display: Display,
    /// I/O logs, if the job has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogRecord>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The tool's own cost, measured before the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OwnCostRecord {
    /// Time of a clock read.
    pub clock_read_ns: u64,
    /// Time per op of the job's loop over an engine without I/O, clock reads included.
    pub loop_ns_per_op: Option<f64>,
}

/// I/O logs of one job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRecord {
    /// Lines written to all log files.
    pub lines_kept: u64,
    /// Lines dropped because the writer was too slow or the disk full.
    pub lines_dropped: u64,
}

/// Result of the verification of a job's data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyRecord {
    /// Number of reads whose data differed from what was written.
    pub mismatches: u64,
    /// Number of blocks that were compared with what must be in them.
    #[serde(default)]
    pub compared: u64,
    /// Number of blocks that were read and may hold anything: they were not written, not by a job
    /// that verifies, or had writes in flight.
    #[serde(default)]
    pub unknown: u64,
    /// Descriptions of the first mismatches: kind, file, place, origin of the block.
    pub first: Vec<String>,
}

/// Errors that a job tolerated.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Tolerated {
    /// Number of errors.
    pub total: u64,
    /// Errno of the first.
    pub first: u32,
}

/// Error of a job as fio puts it, for programs that look for its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FioError {
    /// Function of fio that finds the error.
    pub function: &'static str,
    /// Lines that it prints on standard error.
    pub lines: String,
}

impl FioError {
    /// Returns function and description of the error, as they stand in fio's reports.
    #[must_use]
    pub fn text(&self, errno: u32) -> String {
        format!("func={}, error={}", self.function, errno_text(errno))
    }
}

/// Presentation of a job in reports.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Display {
    /// Base of unit prefixes: 1024 or 1000.
    pub kb_base: u64,
    /// Unit of rates: 0 or 8 for bytes, 1 for bits.
    pub unit_base: u64,
    /// Percentiles to print, 0–100, ascending; fio's default list unless set.
    pub percentiles: Vec<f64>,
    /// Decimals of the percentiles.
    pub percentile_precision: u32,
    /// Print percentiles of slat.
    pub slat_percentiles: bool,
    /// Print percentiles of clat.
    pub clat_percentiles: bool,
    /// Print percentiles of lat.
    pub lat_percentiles: bool,
    /// Significant digits of rates in text.
    pub significant_figures: u32,
    /// Print `errors` and `total_err` (`continue_on_error` was given).
    pub tolerates_errors: bool,
    /// Leave the job out of reports (`stats=0`).
    pub hidden: bool,
    /// Print disk statistics (`disk_util`).
    pub disk_util: bool,
    /// Presentation of directions.
    #[serde(default)]
    pub unified: Unified,
}

/// Percentiles without `percentile_list`, as in fio.
const DEFAULT_PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

impl Default for Display {
    fn default() -> Self {
        Self {
            kb_base: 1024,
            unit_base: 0,
            percentiles: DEFAULT_PERCENTILES.to_vec(),
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

/// Serialisable counterpart of [`PerDirection`].
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
    /// Returns reads, writes and trims, in this order.
    pub fn each(&self) -> [&T; 3] {
        [&self.read, &self.write, &self.trim]
    }
}

/// Results of one direction of a job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DirectionRecord {
    /// Bytes moved.
    pub bytes: u64,
    /// Ops completed.
    pub ios: u64,
    /// Short transfers, whose rest was issued again.
    pub short_ios: u64,
    /// Ops abandoned.
    pub dropped_ios: u64,
    /// Measured runtime of this direction.
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
    /// start − due; only if a rate was set.
    #[serde(rename = "lag_ns")]
    pub lag: Option<Latency>,
    /// complete − due; only if a rate was set.
    #[serde(rename = "resp_ns")]
    pub resp: Option<Latency>,
    /// Time from submission until an offload worker takes the op; only with offload workers.
    #[serde(rename = "queued_ns", default)]
    pub queued: Option<Latency>,
    /// Ops by I/O priority, if ops have priorities other than the job's.
    #[serde(default)]
    pub priorities: Vec<PriorityRecord>,
    /// Bandwidth samples, KiB/s.
    #[serde(rename = "bandwidth_kib_per_s")]
    pub bandwidth: SampleStats,
    /// IOPS samples.
    #[serde(rename = "iops_per_s")]
    pub iops: SampleStats,
}

/// Latency of the ops of one I/O priority.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PriorityRecord {
    /// The priority as the kernel encodes it (`ioprio`).
    pub priority: u16,
    /// lat if its percentiles are shown, otherwise clat.
    #[serde(rename = "latency_ns")]
    pub latency: Latency,
}

/// Sync ops of a job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SyncRecord {
    /// Number of syncs.
    pub ios: u64,
    /// Latency of the syncs.
    #[serde(rename = "lat_ns")]
    pub lat: Latency,
}

/// CPU use of a job.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct CpuRecord {
    /// User time.
    pub user_us: u64,
    /// System time.
    pub system_us: u64,
    /// Wall time over which CPU time was measured.
    pub wall_us: u64,
    /// Voluntary and involuntary context switches.
    pub context_switches: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// Minor page faults.
    pub minor_faults: u64,
}

/// Statistics of a block device over the run, from its `stat` file in sysfs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DiskRecord {
    /// Name: `vda`, `nvme0n1`…; in a sum of hosts after that of its host, `host/vda`.
    pub name: String,
    /// Index of its host in [`Record::hosts`]; `None` in a run alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<u32>,
    /// Names of the disks under a stacked device (`md0`, `dm-0`), which have entries of their own.
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
    /// Time spent on reads.
    pub read_ticks_ms: u64,
    /// Time spent on writes.
    pub write_ticks_ms: u64,
    /// Queue time, weighted by the number of requests in flight.
    pub in_queue_ms: u64,
    /// Share of the run with requests in flight, percent 0–100.
    pub util_percent: f64,
}
