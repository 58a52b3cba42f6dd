//! The contract between what decides (the workload) and what acts (an engine).
//!
//! One worker owns one engine. The calling order of a turn is
//!
//! ```text
//! prepare(op)…  →  submit(want)  →  reap(out)…  →  [the driver: wait(min, until)]
//! ```
//!
//! An engine decides nothing: no retry, no reordering by its own will, no hidden fallback.

use std::fmt;

use crate::{Completion, FileIndex, Op, Slot, Tick};

/// Takes ops, hands them to a kernel, a network or a model, and gives back completions.
///
/// Invariants that the conformance suite holds every engine to:
/// * each prepared op completes exactly once, with its own slot;
/// * a slot's buffer is touched by nobody but the engine from `prepare` until its completion was
///   given out by `reap`;
/// * at most `depth` ops (set when the engine is made) are in flight;
/// * dropping an engine with ops in flight waits for them, or leaks their buffers.
pub trait Engine {
    /// What this engine can do; constant over its life.
    fn capabilities(&self) -> Capabilities;

    /// Opens a file of the job's list. Opening an open file is a programming error.
    ///
    /// # Errors
    /// What the system said, with the path.
    fn open(&mut self, file: FileIndex) -> Result<(), EngineError>;

    /// Closes a file; nothing of it may be in flight.
    ///
    /// # Errors
    /// What the system said, with the path.
    fn close(&mut self, file: FileIndex) -> Result<(), EngineError>;

    /// Drops the file's clean pages from the page cache, where there is one.
    ///
    /// # Errors
    /// What the system said, with the path.
    fn invalidate(&mut self, file: FileIndex) -> Result<(), EngineError>;

    /// The buffer of a slot that is not in flight. Empty where the engine moves no data
    /// (`Capabilities::moves_data` is false).
    fn buffer(&mut self, slot: Slot) -> &mut [u8];

    /// Lays an op down in the engine's queue; no system call for asynchronous engines. A
    /// synchronous engine may do the op here or in `submit`.
    fn prepare(&mut self, op: &Op);

    /// Lays down reads or writes that are like `op` in all but slot and offset: one for each of
    /// `slots`, at the offset that `offset` gives for it, and numbered on from `op`. An engine may
    /// do once what they share.
    #[inline]
    fn prepare_many(&mut self, op: &Op, slots: &[Slot], mut offset: impl FnMut() -> u64)
    where
        Self: Sized,
    {
        for (&slot, sequence) in slots.iter().zip(op.sequence..) {
            self.prepare(&Op {
                slot,
                offset: offset(),
                sequence,
                ..*op
            });
        }
    }

    /// Hands over all that is laid down, in one system call that may also run completion work and
    /// wait until `want` completions are there. Failures of single ops come back as completions.
    fn submit(&mut self, want: u32) -> Submitted;

    /// Collects what has completed, without waiting; returns how many entries of `out` are filled.
    fn reap(&mut self, out: &mut [Completion]) -> usize;

    /// Sleeps until `min` completions can be reaped or the clock passes `until`; `min` is at most
    /// the number in flight. The driver's call, never the workload's.
    ///
    /// # Errors
    /// What the system said; the engine can no longer be used.
    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError>;
}

/// An engine behind a pointer, so that the rare ones need no loop compiled for each of them.
impl<E: Engine + ?Sized> Engine for Box<E> {
    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        (**self).open(file)
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        (**self).close(file)
    }

    fn invalidate(&mut self, file: FileIndex) -> Result<(), EngineError> {
        (**self).invalidate(file)
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        (**self).buffer(slot)
    }

    fn prepare(&mut self, op: &Op) {
        (**self).prepare(op);
    }

    fn submit(&mut self, want: u32) -> Submitted {
        (**self).submit(want)
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        (**self).reap(out)
    }

    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        (**self).wait(min, until)
    }
}

/// What `submit` did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// The ops are with the kernel.
    Issued {
        /// Their issue time. Asynchronous: when the call returned. Synchronous: just before it.
        issue: Tick,
        /// The clock when the call had returned; `issue` itself for asynchronous engines. It is
        /// the completion time of what `reap` gives next, and the next op's start.
        now: Tick,
    },
    /// Not all were accepted: no tag is free, or another job holds the lock on a file. The driver
    /// waits and the worker submits again; the wait counts as slat.
    Blocked,
}

/// What an engine can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The name in job files: `psync`, `io_uring`…
    pub name: &'static str,
    /// Ops complete inside `submit`: depth is 1 and there is no slat.
    pub synchronous: bool,
    /// Buffers reach a device: content matters and can be verified.
    pub moves_data: bool,
    /// `OpKind::Sync` may be prepared while other ops are in flight; else the queue is drained
    /// first, and no other op is prepared until the sync has completed.
    pub queued_sync: bool,
    /// The same of `Direction::Trim`.
    pub queued_trim: bool,
}

/// What a worker's turn asks its driver for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Call again, with a fresh time.
    Again,
    /// Sleep until `min` completions can be reaped, or `until`, whichever is first; with `min` 0
    /// it is a plain sleep. `spin`: burn the processor instead of sleeping.
    Wait {
        /// Completions to wait for; 0 for none.
        min: u32,
        /// The latest moment to call again.
        until: Option<Tick>,
        /// Keep the processor busy while waiting (`thinktime_spin`).
        spin: bool,
    },
    /// The engine blocked in `submit`; call again when it was woken.
    Blocked,
    /// The worker has finished; nothing is in flight.
    Done,
}

/// Why an engine could not do what it was told; ops that fail are completions, not this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineError {
    /// What was tried, as the system calls it: `open`, `io_uring_setup`…
    pub what: &'static str,
    /// The file or the engine it was tried on.
    pub target: String,
    /// The system's error number; 0 where there is none.
    pub errno: i32,
    /// What the user can do about it, in the imperative; empty if nothing is known to help.
    pub hint: String,
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.target)?;
        if self.errno != 0 {
            write!(f, ": {}", std::io::Error::from_raw_os_error(self.errno))?;
        }
        Ok(())
    }
}

impl std::error::Error for EngineError {}
