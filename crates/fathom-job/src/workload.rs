//! Options of the workload that belong together.

use crate::plan::Size;

/// `file_service_type`: which file the next op goes to.
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
}

impl Default for ZoneOptions {
    fn default() -> Self {
        Self {
            mode: ZoneMode::None,
            size: 0,
            range: 0,
            skip: Size::Bytes(0),
        }
    }
}

/// `zonemode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneMode {
    /// No zones.
    None,
    /// `zonesize` bytes in each, one after the other.
    Strided,
    /// Those of a zoned device.
    Zbd,
}

/// One part of `random_distribution=zoned:…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessZone {
    /// Its share of the ops, percent.
    pub access: u8,
    /// How long it is.
    pub length: ZoneLength,
}

/// How long a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneLength {
    /// Percent of the range.
    Percent(u8),
    /// Bytes.
    Bytes(u64),
}

/// What written buffers hold, beside the plain ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentOptions {
    /// `buffer_compress_percentage`; `None` where it was not given.
    pub compress_percentage: Option<u8>,
    /// `buffer_compress_chunk`, bytes; 0 for the whole op.
    pub compress_chunk: u32,
    /// `dedupe_percentage`; `None` where it was not given.
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
    /// The last new buffer comes again.
    Repeat,
    /// Any buffer of a fixed set comes again.
    WorkingSet,
}

/// Where the buffers lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryOptions {
    /// `mem`, without its file.
    pub kind: MemoryKind,
    /// The file behind `mem=mmap:`, `mmapshared:` and `mmaphuge:`.
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

/// `offload_kick`: when a job with workers wakes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffloadKick {
    /// Once for each batch.
    Batch,
    /// Once for each op.
    Each,
    /// Once for each batch, by a timer that goes off at once.
    Delayed,
    /// When it reaps.
    Reap,
}

/// What kind of memory.
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

/// Which files there are, where a job begins in them, and what the kernel is told of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// `opendir`.
    pub opendir: Option<String>,
    /// `offset_align`, bytes; 0 for the smallest op.
    pub offset_align: u32,
    /// `file_append`.
    pub append: bool,
    /// `fadvise_hint`.
    pub fadvise_hint: FadviseHint,
    /// `write_hint`, as the kernel counts; 0 to say nothing.
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
    /// As the kernel has them: 1 waits before, 2 writes, 4 waits after.
    pub flags: u8,
    /// After so many writes; ≥ 1.
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
            fadvise_hint: FadviseHint::ByOrder,
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
    /// `1`: as `rw` says.
    ByOrder,
    /// `0`: nothing.
    None,
    /// `sequential`.
    Sequential,
    /// `random`.
    Random,
    /// `noreuse`.
    NoReuse,
}
