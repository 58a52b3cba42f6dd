//! The plan: every job with all options, typed, with defaults applied.
//!
//! A plan is what the user *wrote*; `fathom-run` translates it into what is *done*.

use core::net::SocketAddr;
use std::sync::Arc;

use fathom_checksum::{Checksum, HeaderLayout};
use fathom_core::{EngineInfo, EngineValues, IoPriority, Nanos, OutputFormat, PerDirection};

use crate::numbering::Numbering;
use crate::rank::{Rank, StartTime};
use crate::rank_place::RankPlace;
use crate::source::Origin;

/// The jobs of one invocation, in order.
///
/// The result of parsing, and the input of a run, a simulation and lint. It is complete (every
/// option has a value, inherited or default) but not resolved: percentages, file sizes and
/// `numjobs` are as written, because resolving them needs a look at the machine. It refers to the
/// source text of its options, so that later errors can show it.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The jobs, one for each section or `--name`; clones (`numjobs`) are not expanded.
    pub jobs: Vec<Job>,
    /// Options of the `[global]` sections, or before the first `--name`, as typed, for the report;
    /// of the last job file if there are several.
    pub global_options: Vec<(String, String)>,
    /// Place of the rank that runs it.
    pub place: RankPlace,
    /// Names of the sections that other ranks alone have (`ranks`, `hosts`), in order.
    pub left_out: Vec<String>,
    /// Options of job files without jobs, each with the number of jobs before it.
    pub(crate) jobless: Vec<(usize, Arc<[Typed]>)>,
}

/// One section of a job file, or one `--name` of a command line.
///
/// `options` is what counts. `typed` and `inherited` keep what was written, for reports and for
/// messages that point at the option; inherited options are shared between jobs, because a
/// `[global]` section may precede thousands of them.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Name: the value of `name`, or else of the section.
    pub name: String,
    /// Name of the section, or the value of the `--name` that started the job. Files and all clones
    /// but the first are named after it.
    pub section: String,
    /// Place of the section's header.
    pub origin: Origin,
    /// Options of the job itself as typed, in order, for the report.
    pub typed: Vec<Typed>,
    /// Options of preceding `[global]` sections, in order; shared between jobs.
    pub inherited: Arc<[Typed]>,
    /// Effective options, including defaults and globals.
    pub options: Options,
    /// Its numbers among all sections of the plan.
    pub numbering: Numbering,
    /// Place in which it works: that of this rank, or with `rank_shift` of another.
    pub place: Arc<RankPlace>,
}

impl Job {
    /// Returns the name of a clone. A `name` inside a section renames only the first clone, as in
    /// fio.
    #[must_use]
    pub fn clone_name(&self, clone: u32) -> &str {
        match clone {
            0 => &self.name,
            _ => &self.section,
        }
    }

    /// Returns an option as written last, in the job or else inherited.
    #[must_use]
    pub fn written(&self, option: &str) -> Option<&Typed> {
        let own = self.typed.iter().rev();
        own.chain(self.inherited.iter().rev())
            .find(|typed| typed.name == option)
    }

    /// Returns the place of the first of these options that was written, or else of the job.
    #[must_use]
    pub fn place(&self, options: &[&str]) -> &Origin {
        let written = options.iter().find_map(|option| self.written(option));
        written.map_or(&self.origin, |typed| &typed.origin)
    }
}

/// An option as the user wrote it.
#[derive(Clone, Debug)]
pub struct Typed {
    /// Canonical name (`rw`, not `readwrite`).
    pub name: String,
    /// Value; empty for a bare flag.
    pub value: String,
    /// Place in a job file or on the command line.
    pub origin: Origin,
}

/// Settings of an invocation: fio's command-line switches.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Job files, and the files that they include.
    pub job_files: Vec<String>,
    /// `--output`.
    pub output: Option<String>,
    /// `--output-format`, in the order given; empty means normal.
    pub formats: Vec<OutputFormat>,
    /// `--terse-version`; 0: the default.
    pub terse_version: u32,
    /// `--readonly`: refuse jobs that write or trim.
    pub read_only: bool,
    /// `--no-exec`: refuse jobs that run commands.
    pub no_exec: bool,
    /// `--trigger`: command to run when the trigger fires, which ends the run.
    pub trigger: Option<String>,
    /// `--trigger-file`: file whose appearance fires the trigger.
    pub trigger_file: Option<String>,
    /// `--trigger-timeout`: time after which the trigger fires.
    pub trigger_timeout: Option<Nanos>,
    /// `--parse-only`.
    pub parse_only: bool,
    /// `--merge-blktrace-only`.
    pub merge_only: bool,
    /// `--warnings-fatal`.
    pub warnings_fatal: bool,
    /// `--section`: run only these sections.
    pub sections: Vec<String>,
    /// `--eta`.
    pub eta: ShowMode,
    /// `--eta-interval`; `None` for 1 s.
    pub eta_interval: Option<Nanos>,
    /// `--eta-newline`.
    pub eta_newline: Option<Nanos>,
    /// `--eta-percentiles`: p50 and p99 in the status line.
    pub eta_percentiles: bool,
    /// `--debug`.
    pub debug: crate::debug::DebugOptions,
    /// `--status-interval`: interval between complete reports while jobs run.
    pub status_interval: Option<Nanos>,
    /// `--aux-path`: folder of the files that verification saves; `None`: the current one.
    pub aux_path: Option<String>,
    /// `--bandwidth-log`: prefix of the aggregate bandwidth logs.
    pub bandwidth_log: Option<String>,
    /// `--idle-prof`: measure CPU idleness while jobs run.
    pub idle_profile: Option<IdleProfile>,
    /// `--machine`: machine file to simulate in virtual time.
    pub machine: Option<String>,
    /// `--seeks`: report requests and seek distances of modelled devices.
    pub seeks: bool,
    /// `--summary`: a line per job at the end of the text report.
    pub summary: ShowMode,
    /// `--trace`: join ops with the kernel's events of their requests.
    pub trace: bool,
    /// `--save-distribution`: machine file to write with the latencies of this run.
    pub save_distribution: Option<String>,
    /// `--record`: file to write with the record of this run; with a rank, the folder.
    pub record: Option<String>,
    /// `--record-every`: interval at which the record is written while jobs run; zero: never.
    pub record_every: Option<Nanos>,
    /// `--metrics-file`: file to write with the figures of this run, for node_exporter.
    pub metrics_file: Option<String>,
    /// `--history`: keep the run in the history.
    pub history: bool,
    /// `--tag`: labels of the run in the history.
    pub tags: Vec<(String, String)>,
    /// `--live`: show the run in the terminal.
    pub live: bool,
    /// `--serve`: address of a page about the run.
    pub serve: Option<SocketAddr>,
    /// `--serve-any-host`: that address may be one that other machines reach.
    pub serve_any_host: bool,
    /// `--rank`: place among the hosts that run the plan.
    pub rank: Option<Rank>,
    /// `--start-at`: agreed start of the jobs.
    pub start_at: Option<StartTime>,
    /// `--stop-together`: when one rank is through with a wave, all end it.
    pub stop_together: bool,
}

impl Settings {
    /// Returns the interval at which to write the record while jobs run, in case they are killed;
    /// `None`: only at their end, as by default in a run alone.
    #[must_use]
    pub fn keep_every(&self) -> Option<Nanos> {
        let default = self.rank.map(|_| KEEP_EVERY);
        let every = self
            .record_every
            .or(default)
            .filter(|every| !every.is_zero());
        every.filter(|_| self.record.is_some())
    }

    /// Returns whether the run is looked at while it goes on, beyond a status line.
    #[must_use]
    pub const fn is_viewed(&self) -> bool {
        self.live || self.serve.is_some()
    }
}

/// Condition to show a part of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShowMode {
    /// Default: shown where it helps and no program reads the output.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Output of `--idle-prof`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleProfile {
    /// Total over all CPUs.
    System,
    /// Also per CPU.
    PerCpu,
}

/// A size in a job file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Bytes.
    Bytes(u64),
    /// Percent of the file or device.
    Percent(u32),
    /// Zones of `zonesize`, or of the device; in a finished plan, of the device alone.
    Zones(u32),
}

impl Size {
    /// Returns the size; `None` for 0 of any unit, which fio treats as not given.
    pub(crate) const fn unless_zero(self) -> Option<Self> {
        match self {
            Self::Bytes(0) | Self::Percent(0) | Self::Zones(0) => None,
            size => Some(size),
        }
    }
}

/// Block sizes of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockSize {
    /// `bs`.
    Fixed(u64),
    /// `bsrange`.
    Range {
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
    },
    /// `bssplit`: size and percentage; the percentages add up to 100.
    Split(Vec<(u64, u8)>),
}

/// `random_distribution`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RandomDistribution {
    /// `random`.
    Random,
    /// `zipf[:theta[:center]]`.
    Zipf(f64, Option<f64>),
    /// `pareto[:h[:center]]`.
    Pareto(f64, Option<f64>),
    /// `normal[:dev[:center]]`.
    Normal(f64, Option<f64>),
}

/// `random_generator`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomGenerator {
    /// Not given: 32 bits, or 64 if there are more blocks.
    Default,
    /// `tausworthe`.
    Tausworthe,
    /// `tausworthe64`.
    Tausworthe64,
    /// `lfsr`.
    Lfsr,
}

/// `fallocate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallocate {
    /// `none`, `0`.
    None,
    /// `native`: fallocate(2), unless the file system does not support it.
    Native,
    /// `posix`, `1`.
    Posix,
    /// `keep`.
    Keep,
    /// `truncate`.
    Truncate,
}

/// `verify`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// No verification.
    None,
    /// A checksum of each block's payload, in a header.
    Checksum(&'static Checksum),
    /// `pattern_hdr`.
    PatternHeader,
    /// `pattern`.
    Pattern,
    /// `null`.
    Null,
}

impl Verify {
    /// Returns the bytes in front of the payload under headers of this layout.
    #[must_use]
    pub const fn payload_start(self, layout: HeaderLayout) -> usize {
        match self {
            Self::Checksum(checksum) => checksum.payload_start(layout),
            Self::PatternHeader => layout.bytes(),
            Self::None | Self::Pattern | Self::Null => 0,
        }
    }
}

/// `cpus_allowed_policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuPolicy {
    /// Every clone may run on all CPUs.
    Shared,
    /// Each clone gets one CPU.
    Split,
}

/// `rate_process`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateProcess {
    /// Evenly spaced.
    Linear,
    /// Exponential gaps.
    Poisson,
}

/// `clocksource`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockSource {
    /// Not given: the TSC if it is reliable.
    Default,
    /// `cpu`.
    Cpu,
    /// `clock_gettime`.
    ClockGettime,
    /// `gettimeofday`.
    Gettimeofday,
}

/// One entry of `cmdprio_bssplit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityShare {
    /// Block size of the ops.
    pub bytes: u64,
    /// Percentage of these ops with the priority.
    pub percent: u8,
    /// Priority; `None` for that of `cmdprio_class`, `cmdprio` and `cmdprio_hint`.
    pub priority: Option<IoPriority>,
}

/// `continue_on_error`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContinueOnError {
    /// Reads.
    pub read: bool,
    /// Writes.
    pub write: bool,
    /// Verification.
    pub verify: bool,
}

/// `rw=…:N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequencerSuffix {
    /// The number after the colon: bytes for sequential, ops for random patterns.
    pub number: i64,
}

/// The effective options of one job.
///
/// A field has the name of its option; the option table documents it. Groups of options that belong
/// together have a struct of their own. Values are as read, with fio's defaults: 0 and `None` keep
/// the meaning they have for the option.
#[derive(Clone, Debug)]
#[expect(
    missing_docs,
    reason = "the field is the option; the option table is its documentation"
)]
pub struct Options {
    // General.
    pub description: Option<String>,
    pub engine: &'static EngineInfo,
    pub kb_base: u64,
    pub unit_base: u64,
    // I/O pattern.
    pub rw: crate::workload::ReadWrite,
    pub random: bool,
    pub rw_suffix: Option<SequencerSuffix>,
    /// `rw_sequencer=identical`.
    pub rw_identical: bool,
    /// Percent of reads, from `rwmixread` or `rwmixwrite`, whichever came last.
    pub rwmixread: u8,
    pub block_sizes: PerDirection<BlockSize>,
    pub blockalign: PerDirection<Option<u64>>,
    pub bs_is_seq_rand: bool,
    pub bs_unaligned: bool,
    pub zones: crate::workload::ZoneOptions,
    pub size: Option<Size>,
    pub io_size: Option<Size>,
    pub filesize: Option<(u64, u64)>,
    pub offset: Size,
    pub offset_increment: Size,
    pub number_ios: Option<u64>,
    // Files and memory.
    /// Number of files; with a `filename`, of its names that are used.
    pub nrfiles: u32,
    pub file_service: crate::workload::FileService,
    /// `None`: all.
    pub openfiles: Option<u32>,
    pub files: crate::workload::FileOptions,
    pub fill_device: bool,
    pub memory: crate::workload::MemoryOptions,
    pub serialize_overlap: bool,
    /// `io_submit_mode=offload`: a worker pool submits.
    pub offload: bool,
    pub offload_kick: crate::workload::OffloadKick,
    pub rate_ignore_thinktime: bool,
    /// Shared by the jobs that inherit it, until one adds a name.
    pub filename: Option<Arc<Vec<String>>>,
    pub directory: Option<Vec<String>>,
    pub filename_format: String,
    // Duration, repetition and order.
    pub numjobs: u32,
    pub placement: crate::placement::PlacementOptions,
    pub thread: bool,
    pub runtime: Option<Nanos>,
    pub time_based: bool,
    pub ramp_time: Nanos,
    /// Bytes; 0: none.
    pub ramp_size: u64,
    pub startdelay: (Nanos, Nanos),
    pub loops: u32,
    pub stonewall: bool,
    pub new_group: bool,
    pub group_reporting: bool,
    /// Start and end conditions.
    pub lifecycle: crate::lifecycle::LifecycleOptions,
    // Queue.
    pub iodepth: u32,
    /// 0 or more than `iodepth` means `iodepth`.
    pub iodepth_batch: u32,
    pub iodepth_batch_complete_min: u32,
    /// 0 means `iodepth_batch_complete_min`.
    pub iodepth_batch_complete_max: u32,
    /// 0 means `iodepth`.
    pub iodepth_low: u32,
    pub direct: bool,
    /// `sync`: 1 for `O_SYNC`, 2 for `O_DSYNC`, 0 for neither.
    pub sync: u8,
    // Randomness.
    pub norandommap: bool,
    pub softrandommap: bool,
    pub randrepeat: bool,
    /// `allrandrepeat=1`: also the same sequence on all ranks.
    pub allrandrepeat: bool,
    pub randseed: Option<u64>,
    pub random_generator: RandomGenerator,
    pub random_distribution: RandomDistribution,
    /// `random_distribution=zoned:…`.
    pub access_zones: Option<PerDirection<Vec<crate::workload::AccessZone>>>,
    /// `random_distribution=sequence:…`.
    pub random_sequence: Option<Vec<u64>>,
    pub random_sequence_stride: bool,
    pub percentage_random: PerDirection<u8>,
    // Rate and think time.
    pub rate: PerDirection<Option<u64>>,
    pub rate_iops: PerDirection<Option<u64>>,
    pub rate_min: PerDirection<Option<u64>>,
    pub rate_iops_min: PerDirection<Option<u64>>,
    pub rate_process: RateProcess,
    pub rate_cycle: Nanos,
    pub thinktime: Nanos,
    pub thinktime_spin: Nanos,
    pub thinkcycles: u32,
    pub thinktime_blocks: Option<u32>,
    pub thinktime_blocks_issue: bool,
    pub thinktime_iotime: Nanos,
    // Durability.
    pub fsync: u32,
    pub fdatasync: u32,
    pub end_fsync: bool,
    pub fsync_on_close: bool,
    // Layout and file handling.
    pub fallocate: Fallocate,
    pub create_serialize: bool,
    pub create_fsync: bool,
    pub create_on_open: bool,
    pub create_only: bool,
    pub allow_file_create: bool,
    pub allow_mounted_write: bool,
    pub unlink: bool,
    pub overwrite: bool,
    pub invalidate: bool,
    pub pre_read: bool,
    // Buffers and verification.
    /// `refill_buffers`, as given or implied by another option.
    pub refill_buffers: bool,
    /// Set if `refill_buffers` was given: `buffer_compress_percentage` then does not imply it.
    pub refill_given: bool,
    pub zero_buffers: bool,
    /// As given; by default, buffers that are not zero are scrambled.
    pub scramble_buffers: Option<bool>,
    pub buffer_pattern: Option<Vec<u8>>,
    /// The text of a pattern that names a file, until the file is read.
    pub buffer_pattern_text: Option<String>,
    pub content: crate::workload::ContentOptions,
    pub verify: Verify,
    pub verification: crate::verification::VerificationOptions,
    pub readback: crate::readback_options::ReadbackOptions,
    pub do_verify: bool,
    /// `verify_async`: threads that check what a job reads; 0: its own.
    pub verify_threads: u32,
    /// `verify_async_cpus`; `None` for those of the job.
    pub verify_cpus: Option<Vec<u32>>,
    pub verify_pattern: Option<Vec<u8>>,
    /// Positions of `%o` in the pattern: eight bytes that hold the offset of the block.
    pub verify_pattern_offsets: Vec<usize>,
    /// The text of a pattern that names a file, until the file is read.
    pub verify_pattern_text: Option<String>,
    // Measurement and reports.
    pub percentile_list: Vec<f64>,
    /// Number of decimals of the longest entry of `percentile_list`.
    pub percentile_precision: u32,
    pub clat_percentiles: bool,
    pub lat_percentiles: bool,
    pub slat_percentiles: bool,
    pub disable_lat: bool,
    pub disable_clat: bool,
    pub disable_slat: bool,
    pub disable_bw: bool,
    pub gtod_reduce: bool,
    pub clocksource: ClockSource,
    /// CPU of the thread that reads the clock for all jobs, if there is one.
    pub gtod_cpu: Option<u32>,
    pub continue_on_error: ContinueOnError,
    pub stats: bool,
    pub disk_util: bool,
    pub significant_figures: u32,
    /// I/O logs.
    pub logs: crate::logs::LogOptions,
    /// Recording and replay.
    pub replay: crate::replay::ReplayOptions,
    // Process.
    pub cpus_allowed: Option<Vec<u32>>,
    pub cpus_allowed_policy: CpuPolicy,
    pub nice: i32,
    pub prio: Option<u8>,
    pub prioclass: Option<u8>,
    pub priohint: Option<u16>,
    pub ioscheduler: Option<String>,
    pub process: crate::process::ProcessOptions,
    /// Features of the device.
    pub device: crate::device::DeviceOptions,
    /// `trim_percentage` and its family.
    pub trims: crate::device::TrimOptions,
    // Engine-specific.
    pub cmdprio_percentage: PerDirection<u8>,
    pub cmdprio_class: PerDirection<u8>,
    pub cmdprio: PerDirection<u8>,
    pub cmdprio_hint: PerDirection<u16>,
    pub cmdprio_bssplit: PerDirection<Vec<PriorityShare>>,
    /// The engine's own options.
    pub engine_values: EngineValues,
}

/// Default of `--record-every` where there are several ranks: longer than writing a record takes
/// anywhere, short against a run that is worth a record.
const KEEP_EVERY: Nanos = Nanos::from_secs(30);
