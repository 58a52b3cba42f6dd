//! Common form of the engines that perform ops one after the other inside `submit`.

use std::mem;

use fathom_core::{
    Capabilities, Completion, Engine, EngineError, EngineInfo, FileIndex, Op, Queueing, Slot,
    Submitted, Tick,
};
use fathom_sys::clock::Clock;
use fathom_sys::in_flight::Ready;

use crate::files::Files;
use crate::{AnyEngine, EngineConfig};

/// Files and system calls of an engine, which [`Serial`] turns into one.
pub(crate) trait Performer {
    /// Returns the files that the performer opens by `open(2)`, if it does.
    fn files(&mut self) -> Option<&mut Files> {
        None
    }

    /// Opens a file, as [`Engine::open`].
    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.files().map_or(Ok(()), |files| files.open(file))
    }

    /// Closes a file, as [`Engine::close`].
    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.files().map_or(Ok(()), |files| files.close(file))
    }

    /// Drops a file's cached pages, as [`Engine::invalidate`].
    fn invalidate(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.files().map_or(Ok(()), |files| files.invalidate(file))
    }

    /// Performs one op and returns its result, as in [`Completion::result`].
    fn perform(&mut self, op: &Op) -> i32;

    /// Does what an op needs and is not part of it, before its issue time is taken.
    fn prepare(&mut self, op: &Op) {
        let _nothing = op;
    }

    /// Returns the buffer of a slot, as [`Engine::buffer`]; empty if the engine moves no data.
    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        let _none = slot;
        &mut []
    }

    /// Hands a buffer on, as [`Engine::release`].
    fn release(&mut self, slot: Slot) {
        let _none = slot;
    }
}

/// Synchronous engine whose ops are a [`Performer`]'s.
///
/// `submit` performs the prepared ops in order, so a queue deeper than one only delays them.
pub(crate) struct Serial<P> {
    info: &'static EngineInfo,
    performer: P,
    clock: Clock,
    depth: u32,
    /// Prepared, not yet performed.
    pending: Vec<Op>,
    done: Ready,
}

impl<P: Performer + 'static> Serial<P> {
    /// Boxes the engine of a performer.
    pub(crate) fn start(config: &EngineConfig, performer: P) -> AnyEngine {
        AnyEngine::Boxed(Box::new(Self {
            info: config.engine.info,
            performer,
            clock: config.clock,
            depth: config.depth,
            pending: Vec::with_capacity(config.depth as usize),
            done: Ready::new(config.depth),
        }))
    }
}

impl<P: Performer> Engine for Serial<P> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: self.info.name,
            synchronous: true,
            moves_data: self.info.moves_data(),
            syncs: Queueing::Queued,
            trims: Queueing::Queued,
        }
    }

    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.performer.open(file)
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.performer.close(file)
    }

    fn invalidate(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.performer.invalidate(file)
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        debug_assert!(self.pending.iter().all(|op| op.slot != slot), "in flight");
        self.performer.buffer(slot)
    }

    fn prepare(&mut self, op: &Op) {
        let in_flight = self.pending.len() + self.done.count();
        assert!(in_flight < self.depth as usize, "more ops than slots");
        self.performer.prepare(op);
        self.pending.push(*op);
    }

    fn submit(&mut self, _want: u32) -> Submitted {
        let ops = mem::take(&mut self.pending);
        let issue = self.clock.now();
        for op in &ops {
            let result = self.performer.perform(op);
            self.done.push(op.slot, result);
        }
        let now = self.clock.now();
        // Put the vector back: its capacity is reserved for the whole run.
        self.pending = ops;
        self.pending.clear();
        Submitted::Issued { issue, now }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        self.done.take(out)
    }

    fn wait(&mut self, min: u32, _until: Option<Tick>) -> Result<(), EngineError> {
        assert!(
            self.done.count() >= min as usize,
            "everything submitted has completed"
        );
        Ok(())
    }

    fn release(&mut self, slot: Slot) {
        self.performer.release(slot);
    }
}

/// Returns the result of an op that was performed whole: its length, capped at what a result holds.
pub(crate) fn whole(op: &Op) -> i32 {
    op.length.min(Completion::BYTES_MAX).cast_signed()
}

/// Returns the result of an op whose system call returned 0 or a negated errno.
pub(crate) fn whole_or(failed: i32, op: &Op) -> i32 {
    match failed {
        0 => whole(op),
        failed => failed,
    }
}
