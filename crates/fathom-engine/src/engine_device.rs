//! Any engine as a block device.
//!
//! ```text
//!  start ──► queue ── completed ──► prepare, submit ─► engine ── reap ──► Finished
//!    └ writes: copied to the slot's buffer              reads: copied from it ┘
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::os::fd::BorrowedFd;

use fathom_core::{
    BlockDevice, Capabilities, Command, CommandData, Completion, Direction, Engine, EngineError,
    FileIndex, Finished, Geometry, Op, OpKind, Queueing, Slot, Submitted, Tick,
};

use crate::options::POLLABLE;
use crate::{EngineConfig, start};

/// Block device that an engine performs on the first file of its list.
///
/// A command takes one of the engine's slots. Its data are copied between the command's buffer and
/// the slot's, once; a read keeps its buffer until then. To have the kernel use the command's
/// buffer itself, rings would have to take foreign memory. Commands started in a row are submitted
/// together, by the next [`completed`](BlockDevice::completed).
///
/// # Limits
/// An engine that fails as a whole completes no command any more: the driver needs a timeout of its
/// own, as it does for a device that hangs. The engine sees no priorities.
pub struct EngineDevice {
    engine: Box<dyn Engine>,
    capabilities: Capabilities,
    geometry: Geometry,
    /// By slot: the command, and the buffer of a read.
    commands: Box<[Option<(Command, CommandData)>]>,
    free: Vec<Slot>,
    /// Commands that the engine does not have yet, in order.
    queued: VecDeque<Slot>,
    /// Ops prepared and not submitted.
    prepared: bool,
    /// Ops that the engine has.
    in_engine: u32,
    /// One of them must be alone there.
    exclusive: bool,
    sequence: u64,
    done: VecDeque<Finished>,
    /// Time of the latest call.
    now: Tick,
}

impl EngineDevice {
    /// Starts the engine and opens its file, a device of `bytes` in blocks of `block_bytes`. The
    /// calling thread must be the one that uses it.
    ///
    /// # Errors
    /// The errno of the failed system call, with a remedy.
    ///
    /// # Panics
    /// As [`start`].
    pub fn open(config: EngineConfig, bytes: u64, block_bytes: u32) -> Result<Self, EngineError> {
        let (depth, transfer_bytes_max) = (config.depth, config.buffer_bytes);
        let read_only = config.files.first().is_some_and(|file| !file.write);
        let options = config.options.with(&POLLABLE, 1);
        let mut engine = start(EngineConfig { options, ..config })?.boxed();
        engine.open(FileIndex::new(0))?;
        let capabilities = engine.capabilities();
        let in_flight_max = if capabilities.synchronous { 1 } else { depth };
        Ok(Self {
            geometry: Geometry {
                bytes,
                block_bytes,
                transfer_bytes_max,
                in_flight_max,
                read_only,
                moves_data: capabilities.moves_data,
            },
            engine,
            capabilities,
            commands: (0..in_flight_max).map(|_| None).collect(),
            free: (0..in_flight_max).rev().map(Slot::new).collect(),
            queued: VecDeque::new(),
            prepared: false,
            in_engine: 0,
            exclusive: false,
            sequence: 0,
            done: VecDeque::new(),
            now: Tick::ZERO,
        })
    }

    /// Passes queued commands on to the engine.
    fn submit(&mut self) {
        while let Some((slot, command)) = self.submittable() {
            let op = Op {
                slot,
                kind: command.kind,
                priority: 0,
                file: FileIndex::new(0),
                length: command.length,
                buffer_offset: 0,
                offset: command.offset,
                sequence: self.sequence,
            };
            self.queued.pop_front();
            self.engine.prepare(&op);
            self.sequence += 1;
            self.in_engine += 1;
            self.exclusive = self.is_exclusive(command.kind);
            self.prepared = true;
        }
        if self.prepared {
            self.prepared = self.engine.submit(0) == Submitted::Blocked;
        }
    }

    /// Returns the oldest queued command, if the engine can have it now.
    fn submittable(&self) -> Option<(Slot, Command)> {
        let &slot = self.queued.front()?;
        let (command, _) = self.commands[slot.index()].as_ref()?;
        let waits = self.exclusive || (self.in_engine > 0 && self.is_exclusive(command.kind));
        (!waits).then_some((slot, *command))
    }

    /// Returns whether the engine is given such a command only while it has no other.
    fn is_exclusive(&self, kind: OpKind) -> bool {
        match kind {
            OpKind::Data(Direction::Trim) => self.capabilities.trims != Queueing::Queued,
            OpKind::Data(_) => false,
            OpKind::Sync(_) => self.capabilities.syncs != Queueing::Queued,
        }
    }

    /// Collects what the engine has completed; returns whether there was something.
    fn reap(&mut self, now: Tick) -> bool {
        let mut completions = [Completion::default(); REAPED_AT_ONCE];
        let count = self.engine.reap(&mut completions);
        for completion in &completions[..count] {
            let slot = completion.slot;
            let Some((command, mut data)) = self.commands[slot.index()].take() else {
                continue;
            };
            if let Some(into) = &mut data {
                let moved = usize::try_from(completion.result).unwrap_or(0);
                let from = &self.engine.buffer(slot)[..moved];
                into.bytes_mut()[..moved].copy_from_slice(from);
            }
            self.free.push(slot);
            self.in_engine -= 1;
            self.exclusive = false;
            self.done.push_back(Finished {
                data,
                ..Finished::new(command.tag, now, completion.result)
            });
        }
        count > 0
    }
}

impl BlockDevice for EngineDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Accepts a command.
    ///
    /// # Panics
    /// If more commands are in flight than the geometry allows, or the data are longer.
    fn start(&mut self, command: &Command, data: &mut CommandData, now: Tick) {
        self.now = now;
        let slot = self.free.pop().expect("fewer commands than in_flight_max");
        let length = command.length as usize;
        let mut taken = None;
        if self.geometry.moves_data {
            match (command.kind, data.as_deref()) {
                (OpKind::Data(Direction::Write), Some(data)) => {
                    let into = &mut self.engine.buffer(slot)[..length];
                    into.copy_from_slice(&data.bytes()[..length]);
                }
                (OpKind::Data(Direction::Read), Some(_)) => taken = data.take(),
                _ => {}
            }
        }
        self.commands[slot.index()] = Some((*command, taken));
        self.queued.push_back(slot);
    }

    fn next(&self) -> Option<Tick> {
        let must_poll = self.in_engine > 0 && self.engine.descriptor().is_none();
        let can_submit = self.prepared || self.submittable().is_some();
        let is_due = !self.done.is_empty() || can_submit || must_poll;
        is_due.then_some(self.now)
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        self.now = now;
        if self.done.is_empty() {
            self.submit();
            // What had to wait for others to complete goes at once.
            while self.reap(now) && !self.queued.is_empty() {
                self.submit();
            }
        }
        self.done.pop_front()
    }

    fn descriptors(&self, add: &mut dyn FnMut(BorrowedFd<'_>)) {
        if let Some(descriptor) = self.engine.descriptor() {
            add(descriptor);
        }
    }
}

impl fmt::Debug for EngineDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineDevice")
            .field("engine", &self.capabilities.name)
            .field("geometry", &self.geometry)
            .field("in_engine", &self.in_engine)
            .finish_non_exhaustive()
    }
}

/// Completions collected by one call of the engine.
const REAPED_AT_ONCE: usize = 32;
