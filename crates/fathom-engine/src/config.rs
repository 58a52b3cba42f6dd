//! What an engine is told when it is made.

use fathom_sys::clock::Clock;
use fathom_sys::memory::Memory;

use crate::{FileLock, Kick};

/// Everything an engine needs to know; final values, nothing to be looked up.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The name in job files: `psync`, `io_uring`…
    pub name: String,
    /// Slots: ops in flight at most, ≥ 1.
    pub depth: u32,
    /// Bytes of each slot's buffer: the largest op that moves data, ≥ 1.
    pub buffer_bytes: u32,
    /// The job's files, in the order of their `FileIndex`.
    pub files: Vec<EngineFile>,
    /// Past the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Every write is durable when it completes: 1 for `O_SYNC`, 2 for `O_DSYNC`, 0 for neither.
    pub sync_flag: u8,
    /// The engines' own options.
    pub options: EngineOptions,
    /// Where issue times are read.
    pub clock: Clock,
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
    /// Made when it is opened and missing (`create_on_open`); never under /dev.
    pub create: bool,
    /// Removed before it is opened for the second time, and so made anew; never a device.
    pub renew: bool,
    /// Bytes up to which a regular file that is written must reach, for engines whose writes do not
    /// extend it; 0 where that is not known.
    pub bytes: u64,
    /// Offsets come in no order: the kernel is told not to read ahead (else: to read ahead more).
    pub random: bool,
}

/// The engines' own options, by their names in job files. An engine reads those that are its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// `io_uring`: buffers are registered, so the kernel need not look them up for each op.
    pub fixedbufs: bool,
    /// `io_uring`: files are registered, likewise.
    pub registerfiles: bool,
    /// `io_uring`: a kernel thread takes the ops; submitting needs no system call.
    pub sqthread_poll: bool,
    /// `io_uring`: the processor of that thread.
    pub sqthread_poll_cpu: Option<u32>,
    /// `io_uring`, `pvsync2`: completions are polled for.
    pub hipri: bool,
    /// `io_uring`: plain reads and writes; false for vectors of one.
    pub nonvectored: bool,
    /// `io_uring`: every so many ops one is handed to a kernel worker; 0 never.
    pub force_async: u32,
    /// `io_uring`, `pvsync2`: pages are dropped from the cache after use (`RWF_DONTCACHE`).
    pub uncached: bool,
    /// `io_uring`, `libaio`, `pvsync2`: fail with EAGAIN rather than block (`RWF_NOWAIT`).
    pub nowait: bool,
    /// `libaio`: completions are taken from the ring without a system call. Always done where the
    /// ring can be read; asking for it makes it an error where it cannot.
    pub userspace_reap: bool,
    /// `libaio`: ops are vectors of one buffer.
    pub vectored: bool,
    /// `pvsync2`: how many of the ops poll with `hipri`, percent.
    pub hipri_percentage: u8,
    /// `mmap`: huge pages are asked for.
    pub huge_pages: bool,
    /// `io_uring`: every op is one that does nothing; no file is needed.
    pub nops: bool,
    /// `io_uring`: the ring's own descriptor is registered where the kernel can.
    pub register_ring: bool,
    /// All: where the buffers lie.
    pub memory: Memory,
    /// All: locks that the ops wait for, in the order of the files; empty for none.
    pub locks: Vec<FileLock>,
    /// All: what the kernel is told of the order in which files are read.
    pub advice: FileAdvice,
    /// All: ops are done by workers, which are woken so.
    pub offload: Option<Kick>,
    /// All: files are opened so that reading them leaves their access time alone, where the kernel
    /// allows it (a file of one's own).
    pub keep_access_time: bool,
    /// All: how long what is written will live, 1–5 as the kernel counts (`RWH_WRITE_LIFE_NONE` to
    /// `…_EXTREME`); 0 to say nothing.
    pub write_hint: u8,
}

/// What the kernel is told of the order in which a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAdvice {
    /// As [`EngineFile::random`] says.
    ByOrder,
    /// Nothing.
    None,
    /// In order.
    Sequential,
    /// In no order.
    Random,
    /// Once.
    NoReuse,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            fixedbufs: false,
            registerfiles: false,
            sqthread_poll: false,
            sqthread_poll_cpu: None,
            hipri: false,
            nonvectored: true,
            force_async: 0,
            uncached: false,
            nowait: false,
            userspace_reap: false,
            vectored: false,
            hipri_percentage: 100,
            huge_pages: false,
            nops: false,
            register_ring: true,
            memory: Memory::default(),
            locks: Vec::new(),
            advice: FileAdvice::ByOrder,
            offload: None,
            keep_access_time: false,
            write_hint: 0,
        }
    }
}
