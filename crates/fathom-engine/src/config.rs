//! Configuration of an engine, fixed when it starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fathom_core::{EngineValues, Nanos, PlacementRange, StopRequest};
use fathom_sys::clock::Clock;
use fathom_sys::file_io::RwFlags;
use fathom_sys::memory::MemoryPlacement;

use crate::{FileLock, Kick, Registration};

/// Configuration of an engine, fully resolved: no defaults left to apply.
///
/// Start from [`EngineConfig::new`] and override what differs.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The engine, and its constructor.
    pub engine: Registration,
    /// Slots: the largest number of ops in flight, ≥ 1.
    pub depth: u32,
    /// Bytes of each slot's buffer: the largest op that moves data, ≥ 1.
    pub buffer_bytes: u32,
    /// The job's files, in the order of their `FileIndex`.
    pub files: Vec<EngineFile>,
    /// Bypass the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Durability of each write when it completes: 1 for `O_SYNC`, 2 for `O_DSYNC`, 0 for neither.
    pub sync_flag: u8,
    /// The engine's own options; it reads them into a struct of its own.
    pub options: EngineValues,
    /// Memory that the buffers are mapped in.
    pub memory: MemoryPlacement,
    /// Locks that ops wait for, in the order of the files; empty for none.
    pub locks: Vec<FileLock>,
    /// Access order advised to the kernel.
    pub advice: FileAdvice,
    /// Execution by worker threads, and when they are woken; `None`: on the caller's thread.
    pub offload: Option<Kick>,
    /// Open files with `O_NOATIME` where the kernel permits it (to the file's owner).
    pub keep_access_time: bool,
    /// Expected lifetime of written data, 1–5 (`RWH_WRITE_LIFE_NONE` to `…_EXTREME`); 0: no hint.
    pub write_hint: u8,
    /// Size of the writes, if each must be stored whole or not at all (`RWF_ATOMIC`); 0: no need.
    pub atomic_write_bytes: u32,
    /// Facts about the job for engines whose options refer to it.
    pub job: JobFacts,
    /// Numbers of the streams that writes take in turn; empty for none.
    pub write_streams: Box<[u8]>,
    /// Handles under which an engine of devices places writes in turn, all if empty; `None`: it
    /// places none.
    pub placement: Option<Box<[u8]>>,
    /// Ranges of each file whose writes are placed under identifiers of their own, the first that
    /// applies; empty: by `placement`.
    pub placement_ranges: Arc<[PlacementRange]>,
    /// Ranges of a trim, 1–256.
    pub trim_ranges: u32,
    /// Draw the stream or handle of a write instead.
    pub random_streams: bool,
    /// Clock that issue times are read from.
    pub clock: Clock,
    /// Counter of the requests that the engine sends again, shared by the engines of offload
    /// workers.
    pub repeated: RepeatedRequests,
    /// Request that the job stops, for engines that wait within a submission.
    pub stop: StopRequest,
}

/// Number of requests that an engine has sent again by itself, such as after a lost connection.
#[derive(Clone, Debug, Default)]
pub struct RepeatedRequests(Arc<AtomicU64>);

impl RepeatedRequests {
    /// Counts a repetition.
    pub fn count(&self) {
        // Relaxed: a counter that guards no other memory. The job's thread reads it when the
        // threads that count have ended.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Facts about a job that an engine's options refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFacts {
    /// Name of the clone.
    pub name: String,
    /// Number of the clone within its job, from 0.
    pub clone: u32,
    /// Time after which the job ends, if it is limited.
    pub runtime: Option<Nanos>,
}

impl EngineConfig {
    /// Returns whether each write has to be durable when it completes (`O_SYNC` or `O_DSYNC`).
    /// Commands and protocols have one bit for both.
    #[must_use]
    pub const fn syncs_writes(&self) -> bool {
        self.sync_flag != 0
    }

    /// Creates a configuration with one slot, a buffer of 4 KiB, no files and no options.
    #[must_use]
    pub fn new(engine: Registration, clock: Clock) -> Self {
        Self {
            engine,
            depth: 1,
            buffer_bytes: 4096,
            files: Vec::new(),
            direct: false,
            sync_flag: 0,
            options: EngineValues::default(),
            memory: MemoryPlacement::default(),
            locks: Vec::new(),
            advice: FileAdvice::ByOrder,
            offload: None,
            keep_access_time: false,
            write_hint: 0,
            atomic_write_bytes: 0,
            job: JobFacts::default(),
            write_streams: Box::default(),
            placement: None,
            trim_ranges: 1,
            placement_ranges: Arc::default(),
            random_streams: false,
            clock,
            repeated: RepeatedRequests::default(),
            stop: StopRequest::default(),
        }
    }

    /// Returns the flags of writes, given those of all ops.
    pub(crate) const fn write_flags(&self, flags: RwFlags) -> RwFlags {
        match self.atomic_write_bytes {
            0 => flags,
            _ => flags.atomic(),
        }
    }

    /// Returns the engine's name in job files.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.engine.info.name
    }
}

/// A file of the job's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineFile {
    /// Path of the file.
    pub path: String,
    /// The job reads it.
    pub read: bool,
    /// The job writes or trims it.
    pub write: bool,
    /// Create it if it is missing when it is opened (`create_on_open`); never under /dev.
    pub create: bool,
    /// Remove it before every open but the first, so that each pass creates it again; never a
    /// device.
    pub recreate: bool,
    /// Trims reset the zones of the device, and are whole zones (`zonemode=zbd`).
    pub trims_reset_zones: bool,
    /// Smallest size, bytes, of a regular file that is written, for engines whose writes cannot
    /// extend it; 0 if unknown.
    pub bytes: u64,
    /// Random offsets: advise against read-ahead (otherwise: for more of it).
    pub random: bool,
}

/// Access order advised to the kernel (`posix_fadvise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAdvice {
    /// [`EngineFile::random`] decides.
    ByOrder,
    /// No advice.
    None,
    /// Sequential.
    Sequential,
    /// Random.
    Random,
    /// Accessed once (`POSIX_FADV_NOREUSE`).
    NoReuse,
}
