//! Configuration of an engine: everything it is told when it starts.

use fathom_core::EngineValues;
use fathom_sys::clock::Clock;
use fathom_sys::memory::Memory;

use crate::{FileLock, Kick, Registration};

/// Configuration of an engine: final values, nothing left to look up.
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
    pub memory: Memory,
    /// Locks that ops wait for, in the order of the files; empty for none.
    pub locks: Vec<FileLock>,
    /// Access order that the kernel is told of.
    pub advice: FileAdvice,
    /// Ops are done by worker threads, which are woken this way.
    pub offload: Option<Kick>,
    /// Open files with `O_NOATIME` where the kernel allows it (a file of the same owner).
    pub keep_access_time: bool,
    /// Expected lifetime of written data, 1–5 (`RWH_WRITE_LIFE_NONE` to `…_EXTREME`); 0: no hint.
    pub write_hint: u8,
    /// Clock that issue times are read from.
    pub clock: Clock,
}

impl EngineConfig {
    /// One slot with a buffer of 4 KiB, no files, no options.
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
            memory: Memory::default(),
            locks: Vec::new(),
            advice: FileAdvice::ByOrder,
            offload: None,
            keep_access_time: false,
            write_hint: 0,
            clock,
        }
    }

    /// The engine's name in job files.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.engine.info.name
    }
}

/// A file of the job's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineFile {
    /// Its path.
    pub path: String,
    /// The job reads it.
    pub read: bool,
    /// The job writes or trims it.
    pub write: bool,
    /// Create it if it is missing when it is opened (`create_on_open`); never under /dev.
    pub create: bool,
    /// Remove it before it is opened for the second time, so that it is created anew; never a
    /// device.
    pub recreate: bool,
    /// Smallest size in bytes of a regular file that is written, for engines whose writes do not
    /// extend it; 0 where unknown.
    pub bytes: u64,
    /// Offsets come in no order: turn read-ahead off (else: turn it up).
    pub random: bool,
}

/// Access order of a file that the kernel is told of (`posix_fadvise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAdvice {
    /// [`EngineFile::random`] decides.
    ByOrder,
    /// No advice.
    None,
    /// In order.
    Sequential,
    /// In no order.
    Random,
    /// Once.
    NoReuse,
}
