//! Groups of workload options: directions, files, zones, buffers, offload.

use fathom_core::Direction;

use crate::plan::Size;

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

impl ReadWrite {
    /// Returns the directions of its ops.
    #[must_use]
    pub const fn directions(self) -> &'static [Direction] {
        match self {
            Self::Read => &[Direction::Read],
            Self::Write => &[Direction::Write],
            Self::Trim => &[Direction::Trim],
            Self::Mixed => &[Direction::Read, Direction::Write],
            Self::TrimWrite => &[Direction::Trim, Direction::Write],
        }
    }
}

/// `file_service_type`: selection of the file of the next op.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FileService {
    /// `roundrobin[:N]`.
    RoundRobin(u32),
    /// `random[:N]`.
    Random(u32),
    /// `sequential`.
    Sequential,
    /// `zipf[:theta]`.
    Zipf(f64),
    /// `pareto[:h]`.
    Pareto(f64),
    /// `normal[:deviation]`, `gauss`.
    Normal(f64),
}

/// The zones of a job's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneOptions {
    /// `zonemode`.
    pub mode: ZoneMode,
    /// `zonesize`, bytes.
    pub size: u64,
    /// `zonerange`, bytes.
    pub range: u64,
    /// `zoneskip`.
    pub skip: Size,
    /// `zonecapacity`, bytes; 0 for all of a zone.
    pub capacity: u64,
    /// `max_open_zones`; 0 without a limit.
    pub open_max: u32,
    /// `job_max_open_zones`; 0 without a limit.
    pub job_open_max: u32,
    /// `ignore_zone_limits`.
    pub ignores_device_limit: bool,
    /// `read_beyond_wp`.
    pub reads_beyond: bool,
    /// `zone_reset_threshold`, millionths.
    pub reset_threshold_ppm: u32,
    /// `zone_reset_frequency`, millionths; 0 for no resets by the threshold.
    pub reset_frequency_ppm: u32,
    /// `recover_zbd_write_error`.
    pub recovers: bool,
    /// `write_zone_remainder`.
    pub writes_remainder: bool,
    /// `zrwa`.
    pub areas: bool,
}

impl Default for ZoneOptions {
    fn default() -> Self {
        Self {
            mode: ZoneMode::None,
            size: 0,
            range: 0,
            skip: Size::Bytes(0),
            capacity: 0,
            open_max: 0,
            job_open_max: 0,
            ignores_device_limit: false,
            reads_beyond: false,
            reset_threshold_ppm: 0,
            reset_frequency_ppm: 0,
            recovers: false,
            writes_remainder: false,
            areas: false,
        }
    }
}

/// `zonemode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneMode {
    /// No zones.
    None,
    /// `zonesize` bytes per zone, zone after zone.
    Strided,
    /// The zones of a zoned device.
    Zbd,
}

/// One part of `random_distribution=zoned:…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessZone {
    /// Share of ops, percent.
    pub access: u8,
    /// Length.
    pub length: ZoneLength,
}

/// Length of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneLength {
    /// Percent of the range.
    Percent(u8),
    /// Bytes.
    Bytes(u64),
}

/// Compressibility and duplication of written data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentOptions {
    /// `buffer_compress_percentage`; `None` if not given.
    pub compress_percentage: Option<u8>,
    /// `buffer_compress_chunk`, bytes; 0 for the whole op.
    pub compress_chunk: u32,
    /// `dedupe_percentage`; `None` if not given.
    pub dedupe_percentage: Option<u8>,
    /// `dedupe_mode`.
    pub dedupe_mode: DedupeMode,
    /// `dedupe_working_set_percentage`.
    pub dedupe_working_set_percentage: u8,
    /// `dedupe_global`.
    pub dedupe_global: bool,
}

impl Default for ContentOptions {
    fn default() -> Self {
        Self {
            compress_percentage: None,
            compress_chunk: 512,
            dedupe_percentage: None,
            dedupe_mode: DedupeMode::Repeat,
            dedupe_working_set_percentage: 5,
            dedupe_global: false,
        }
    }
}

/// `dedupe_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DedupeMode {
    /// Repeat the previous unique buffer.
    Repeat,
    /// Repeat any buffer of a fixed working set.
    WorkingSet,
}

/// Memory of the I/O buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryOptions {
    /// `mem`, without its file.
    pub kind: MemoryKind,
    /// The file of `mem=mmap:`, `mmapshared:` and `mmaphuge:`.
    pub file: Option<String>,
    /// `iomem_align`, bytes.
    pub align: u32,
    /// `hugepage-size`, bytes.
    pub hugepage_size: u32,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            kind: MemoryKind::Private,
            file: None,
            align: 0,
            hugepage_size: 2 << 20,
        }
    }
}

/// `offload_kick`: time at which a job wakes a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffloadKick {
    /// Once per batch.
    Batch,
    /// Once per op.
    Each,
    /// Once per batch, from a timer that expires immediately.
    Delayed,
    /// As the job reaps completions.
    Reap,
}

/// Type of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// `malloc`, `mmap`.
    Private,
    /// `shm`, `mmapshared`.
    Shared,
    /// `mmaphuge`.
    Huge,
    /// `shmhuge`.
    SharedHuge,
}

/// Files of a job, and advice on them to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// `opendir`.
    pub opendir: Option<String>,
    /// `offset_align`, bytes; 0 for the smallest op.
    pub offset_align: u32,
    /// `file_append`.
    pub append: bool,
    /// `unique_filename`.
    pub unique: bool,
    /// `fadvise_hint`.
    pub fadvise_hint: FadviseHint,
    /// `noatime`.
    pub noatime: bool,
    /// `write_hint`, as numbered by the kernel; 0: no hint.
    pub write_hint: u8,
    /// `sync_file_range`.
    pub sync_range: Option<RangeSync>,
    /// `end_syncfs`.
    pub end_syncfs: bool,
    /// `unlink_each_loop`.
    pub unlink_each_loop: bool,
    /// `lockfile`.
    pub lockfile: LockFile,
}

/// `sync_file_range`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeSync {
    /// Flags as in the kernel: 1 waits before, 2 writes, 4 waits after.
    pub flags: u8,
    /// Number of writes between calls; ≥ 1.
    pub every: u32,
}

/// `lockfile`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockFile {
    /// `none`.
    None,
    /// `exclusive`.
    Exclusive,
    /// `readwrite`.
    ReadWrite,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            opendir: None,
            offset_align: 0,
            append: false,
            unique: true,
            fadvise_hint: FadviseHint::ByOrder,
            noatime: false,
            write_hint: 0,
            sync_range: None,
            end_syncfs: false,
            unlink_each_loop: false,
            lockfile: LockFile::None,
        }
    }
}

/// `fadvise_hint`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FadviseHint {
    /// `1`: derived from `rw`.
    ByOrder,
    /// `0`: no advice.
    None,
    /// `sequential`.
    Sequential,
    /// `random`.
    Random,
    /// `noreuse`.
    NoReuse,
}
