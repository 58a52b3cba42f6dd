//! What was asked for: every job with every option, typed, defaults filled in.
//!
//! A plan is what was *written*; `fathom-run` turns it into what is *done*.

use std::sync::Arc;

use fathom_core::{IoPriority, Nanos, OutputFormat, PerDirection};

use crate::source::Origin;

/// The jobs of one invocation, in order, and what holds for all of them.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The jobs, one for each section (or `--name`), `numjobs` not yet multiplied out.
    pub jobs: Vec<Job>,
    /// Options of the `[global]` sections (or before the first `--name`) as typed, for the report:
    /// those of the last job file where there are several.
    pub global_options: Vec<(String, String)>,
    /// Options of job files without a job, each with the number of jobs before it.
    pub(crate) jobless: Vec<(usize, Arc<[Typed]>)>,
}

/// One section of a job file, or one `--name` of a command line.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its name: the value of `name`, or else the section's.
    pub name: String,
    /// Name of the section, or the value of the `--name` that began the job. Files are named after
    /// it, and so are all clones but the first.
    pub section: String,
    /// Where the section begins.
    pub origin: Origin,
    /// Its own options as typed, in order, for the report.
    pub typed: Vec<Typed>,
    /// Those of the `[global]` sections before it, in order; jobs share them.
    pub inherited: Arc<[Typed]>,
    /// All options, typed, with defaults and globals folded in.
    pub options: Options,
}

impl Job {
    /// Returns the name of one clone. A `name` inside a section renames the first clone alone, as
    /// in fio.
    #[must_use]
    pub fn clone_name(&self, clone: u32) -> &str {
        match clone {
            0 => &self.name,
            _ => &self.section,
        }
    }

    /// This option as it was written last: in the job, or else in what it inherits.
    #[must_use]
    pub fn written(&self, option: &str) -> Option<&Typed> {
        let own = self.typed.iter().rev();
        own.chain(self.inherited.iter().rev())
            .find(|typed| typed.name == option)
    }

    /// Where the first of these options was written, or else the job.
    #[must_use]
    pub fn place(&self, options: &[&str]) -> &Origin {
        let written = options.iter().find_map(|option| self.written(option));
        written.map_or(&self.origin, |typed| &typed.origin)
    }
}

/// An option as the user wrote it.
#[derive(Clone, Debug)]
pub struct Typed {
    /// The option's canonical name (`rw`, not `readwrite`).
    pub name: String,
    /// Its value; empty for a bare flag.
    pub value: String,
    /// Where it stands.
    pub origin: Origin,
}

/// Settings that are not a job's: fio's command-line switches.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `--output`.
    pub output: Option<String>,
    /// `--output-format`, in the order asked; empty means normal.
    pub formats: Vec<OutputFormat>,
    /// `--terse-version`; 0 for the usual one.
    pub terse_version: u32,
    /// `--readonly`: refuse whatever writes or trims.
    pub read_only: bool,
    /// `--no-exec`: refuse whatever runs commands.
    pub no_exec: bool,
    /// `--trigger`: a command to run when the trigger fires; the run ends then.
    pub trigger: Option<String>,
    /// `--trigger-file`: it fires when this file appears.
    pub trigger_file: Option<String>,
    /// `--trigger-timeout`: it fires after this time.
    pub trigger_timeout: Option<Nanos>,
    /// `--parse-only`.
    pub parse_only: bool,
    /// `--warnings-fatal`.
    pub warnings_fatal: bool,
    /// `--section`: only these.
    pub sections: Vec<String>,
    /// `--eta`.
    pub eta: EtaMode,
    /// `--eta-interval`; `None` for 1 s.
    pub eta_interval: Option<Nanos>,
    /// `--eta-newline`.
    pub eta_newline: Option<Nanos>,
    /// `--debug`.
    pub debug: crate::debug::DebugOptions,
    /// `--status-interval`: a whole report so often while the jobs run.
    pub status_interval: Option<Nanos>,
    /// `--bandwidth-log`: the prefix of the logs of all jobs' bandwidth.
    pub bandwidth_log: Option<String>,
    /// `--idle-prof`: measure how idle the processors are while the jobs run.
    pub idle_profile: Option<IdleProfile>,
    /// `--machine`: run in virtual time on the devices that this file describes.
    pub machine: Option<String>,
    /// `--seeks`: say what the modelled devices were given, and how far apart.
    pub seeks: bool,
    /// `--save-distribution`: write a machine file that gives ops the latencies of this run.
    pub save_distribution: Option<String>,
}

/// When the status line is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EtaMode {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What `--idle-prof` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleProfile {
    /// All processors together.
    System,
    /// Each by itself, too.
    PerCpu,
}

/// A size in a job file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Bytes.
    Bytes(u64),
    /// Percent of what is there.
    Percent(u32),
    /// Zones of `zonesize`; none is left in a job of a plan.
    Zones(u32),
}

impl Size {
    /// The size; `None` for 0 of any unit, with which fio means that no size is given.
    pub(crate) const fn unless_zero(self) -> Option<Self> {
        match self {
            Self::Bytes(0) | Self::Percent(0) | Self::Zones(0) => None,
            size => Some(size),
        }
    }
}

/// `rw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadWrite {
    /// `read`, `randread`.
    Read,
    /// `write`, `randwrite`.
    Write,
    /// `trim`, `randtrim`.
    Trim,
    /// `rw`, `randrw`.
    Mixed,
    /// `trimwrite`, `randtrimwrite`.
    TrimWrite,
}

/// Op sizes of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockSize {
    /// `bs`.
    Fixed(u64),
    /// `bsrange`.
    Range {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// `bssplit`: size and percent; the percents add up to 100.
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
    /// Not given: 32 bits, 64 where there are more blocks than that.
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
    /// `native`: try, and go on where the filesystem cannot.
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
    /// Not at all.
    None,
    /// `crc32c`, `crc32c-intel`.
    Crc32c,
    /// `md5`.
    Md5,
    /// `pattern`.
    Pattern,
}

/// `cpus_allowed_policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuPolicy {
    /// Each job may run on all of them.
    Shared,
    /// Each job gets one.
    Split,
}

/// `rate_process`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateProcess {
    /// Even.
    Linear,
    /// Exponential gaps.
    Poisson,
}

/// `clocksource`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockSource {
    /// Not given: the processor's counter where it can be trusted.
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
    /// The op size it is about.
    pub bytes: u64,
    /// How many of these ops get the priority, percent.
    pub percent: u8,
    /// The priority; `None` for what `cmdprio_class`, `cmdprio` and `cmdprio_hint` say.
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
    /// The number behind the colon: bytes for sequential, ops for random patterns.
    pub number: i64,
}

/// The options of one job. Each field is the option of the same name, in the unit it says.
#[derive(Clone, Debug)]
#[expect(
    missing_docs,
    reason = "the field is the option; the option table is its documentation"
)]
pub struct Options {
    // What it is.
    pub description: Option<String>,
    pub ioengine: String,
    pub kb_base: u64,
    pub unit_base: u64,
    // What it does.
    pub rw: ReadWrite,
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
    // Where.
    /// With a `filename`, how many of its names are used.
    pub nrfiles: u32,
    pub file_service: crate::workload::FileService,
    /// `None` for all.
    pub openfiles: Option<u32>,
    pub files: crate::workload::FileOptions,
    pub fill_device: bool,
    pub memory: crate::workload::MemoryOptions,
    pub serialize_overlap: bool,
    /// `io_submit_mode=offload`: workers do the ops.
    pub offload: bool,
    pub offload_kick: crate::workload::OffloadKick,
    pub rate_ignore_thinktime: bool,
    pub filename: Option<Vec<String>>,
    pub directory: Option<Vec<String>>,
    pub filename_format: String,
    // How often, how long, in what order.
    pub numjobs: u32,
    pub thread: bool,
    pub runtime: Option<Nanos>,
    pub time_based: bool,
    pub ramp_time: Nanos,
    /// Bytes; 0 for none.
    pub ramp_size: u64,
    pub startdelay: (Nanos, Nanos),
    pub loops: u32,
    pub stonewall: bool,
    pub new_group: bool,
    pub group_reporting: bool,
    /// Who starts after whom, and who ends with whom.
    pub lifecycle: crate::lifecycle::LifecycleOptions,
    // The queue.
    pub iodepth: u32,
    /// 0 or more than `iodepth` means `iodepth`.
    pub iodepth_batch: u32,
    pub iodepth_batch_complete_min: u32,
    /// 0 means `iodepth_batch_complete_min`.
    pub iodepth_batch_complete_max: u32,
    /// 0 means `iodepth`.
    pub iodepth_low: u32,
    pub direct: bool,
    /// `sync=`: `O_SYNC` (1) or `O_DSYNC` (2) on every write; 0 none.
    pub sync: u8,
    // Randomness.
    pub norandommap: bool,
    pub softrandommap: bool,
    pub randrepeat: bool,
    pub randseed: Option<u64>,
    pub random_generator: RandomGenerator,
    pub random_distribution: RandomDistribution,
    /// `random_distribution=zoned:…`.
    pub access_zones: Option<PerDirection<Vec<crate::workload::AccessZone>>>,
    /// `random_distribution=sequence:…`.
    pub random_sequence: Option<Vec<u64>>,
    pub random_sequence_stride: bool,
    pub percentage_random: PerDirection<u8>,
    // Pace.
    pub rate: PerDirection<Option<u64>>,
    pub rate_iops: PerDirection<Option<u64>>,
    pub rate_min: PerDirection<Option<u64>>,
    pub rate_iops_min: PerDirection<Option<u64>>,
    pub rate_process: RateProcess,
    pub rate_cycle: Nanos,
    pub thinktime: Nanos,
    pub thinktime_spin: Nanos,
    pub thinkcycles: u32,
    pub thinktime_blocks: u32,
    pub thinktime_blocks_issue: bool,
    pub thinktime_iotime: Nanos,
    // Durability.
    pub fsync: u32,
    pub fdatasync: u32,
    pub end_fsync: bool,
    pub fsync_on_close: bool,
    // Files.
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
    // Content.
    /// `refill_buffers`, or what an option that implies it made of it.
    pub refill_buffers: bool,
    /// `refill_buffers` was given: `buffer_compress_percentage` does not imply it then.
    pub refill_given: bool,
    pub zero_buffers: bool,
    /// As said; by default what is not zero is scrambled.
    pub scramble_buffers: Option<bool>,
    pub buffer_pattern: Option<Vec<u8>>,
    /// As written, where it names a file, until that is read.
    pub buffer_pattern_text: Option<String>,
    pub content: crate::workload::ContentOptions,
    pub verify: Verify,
    pub do_verify: bool,
    pub verify_pattern: Option<Vec<u8>>,
    /// Where in it eight bytes are a block's offset (`%o`).
    pub verify_pattern_offsets: Vec<usize>,
    /// As written, where it names a file, until that is read.
    pub verify_pattern_text: Option<String>,
    // What is measured and shown.
    pub percentile_list: Vec<f64>,
    /// Decimals of the longest number in `percentile_list`.
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
    /// The processor of the thread that reads the clock for all others, if there is to be one.
    pub gtod_cpu: Option<u32>,
    pub continue_on_error: ContinueOnError,
    pub stats: bool,
    pub disk_util: bool,
    pub significant_figures: u32,
    /// I/O logs.
    pub logs: crate::logs::LogOptions,
    // The process.
    pub cpus_allowed: Option<Vec<u32>>,
    pub cpus_allowed_policy: CpuPolicy,
    pub nice: i32,
    pub prio: Option<u8>,
    pub prioclass: Option<u8>,
    pub priohint: Option<u16>,
    pub ioscheduler: Option<String>,
    pub process: crate::process::ProcessOptions,
    // Engines' own.
    pub cmdprio_percentage: PerDirection<u8>,
    pub cmdprio_class: PerDirection<u8>,
    pub cmdprio: PerDirection<u8>,
    pub cmdprio_hint: PerDirection<u16>,
    pub cmdprio_bssplit: PerDirection<Vec<PriorityShare>>,
    pub fixedbufs: bool,
    pub registerfiles: bool,
    pub sqthread_poll: bool,
    pub sqthread_poll_cpu: Option<u32>,
    pub hipri: bool,
    pub nonvectored: bool,
    pub force_async: u32,
    pub uncached: bool,
    pub userspace_reap: bool,
    pub nowait: bool,
    pub libaio_vectored: bool,
    pub hipri_percentage: u8,
    pub thp: bool,
}
