//! A job's side of what jobs share: its queue of ops, its buffers, behind the engine trait.

use std::collections::VecDeque;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, FileIndex, Op, OpKind, Slot,
    Submitted, SyncKind, Tick,
};

use crate::files::ModelFile;
use crate::storage::{JobId, Request, Storage, Taken};

/// What a job's engine is to be.
#[derive(Clone, Debug, Default)]
pub struct EngineSpec {
    /// Slots.
    pub depth: u32,
    /// Bytes of a slot's buffer; kept only where a file has content.
    pub buffer_bytes: u32,
    /// It counts as one of the sync family.
    pub synchronous: bool,
    /// The job's files, by their numbers in the simulation.
    pub files: Vec<usize>,
}

/// One job's engine. It acts only when the driver seats it before the storages of the simulation.
#[derive(Debug)]
pub struct ModelEngine {
    capabilities: Capabilities,
    places: Vec<Place>,
    buffers: Vec<u8>,
    buffer_bytes: usize,
    /// What is laid down; the first `handed_over` are with the storage already.
    prepared: Vec<Op>,
    handed_over: usize,
    /// Since when the storage has had no room for the next one.
    blocked_since: Option<Tick>,
    /// What each slot was last asked to do, where data move.
    ops: Vec<Op>,
    completed: VecDeque<Completion>,
    /// Slots whose op is with a storage.
    in_flight: Vec<bool>,
    /// Syncs done, in order; for tests.
    pub syncs: Vec<(SyncKind, FileIndex)>,
    /// How often a file's cached pages were to be dropped; for tests.
    pub invalidations: u32,
}

/// Where a file of the job is.
#[derive(Clone, Copy, Debug)]
struct Place {
    file: usize,
    storage: usize,
    base: u64,
}

impl ModelEngine {
    /// The engine that `spec` asks for, on `files` of a simulation.
    ///
    /// # Panics
    /// If there is no file of a number in `spec`.
    pub(crate) fn new(spec: &EngineSpec, files: &[ModelFile]) -> Self {
        let place = |&file: &usize| Place {
            file,
            storage: files[file].storage,
            base: files[file].base,
        };
        let moves_data = (spec.files.iter()).any(|&file| files[file].content.is_some());
        let depth = spec.depth as usize;
        let buffer_bytes = if moves_data { spec.buffer_bytes } else { 0 } as usize;
        Self {
            capabilities: Capabilities {
                name: "model",
                synchronous: spec.synchronous,
                moves_data,
                queued_sync: true,
                queued_trim: true,
            },
            places: spec.files.iter().map(place).collect(),
            buffers: vec![0; depth * buffer_bytes],
            buffer_bytes,
            prepared: Vec::with_capacity(depth),
            handed_over: 0,
            blocked_since: None,
            ops: vec![NO_OP; if moves_data { depth } else { 0 }],
            completed: VecDeque::with_capacity(depth),
            in_flight: vec![false; depth],
            syncs: Vec::new(),
            invalidations: 0,
        }
    }

    /// What this engine can do; constant over its life.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Ops that can be reaped.
    pub(crate) fn completed(&self) -> usize {
        self.completed.len()
    }

    /// Whether it waits for room in the storage.
    pub(crate) const fn is_blocked(&self) -> bool {
        self.blocked_since.is_some()
    }

    /// Since when a call of a synchronous engine has waited for room.
    pub(crate) fn blocked_since(&self) -> Option<Tick> {
        self.blocked_since.filter(|_| self.capabilities.synchronous)
    }

    /// Whether an op of this job is with a storage.
    pub(crate) fn has_in_flight(&self) -> bool {
        self.in_flight.contains(&true)
    }

    /// An op is done; `moved` says whether its data really were.
    ///
    /// # Panics
    /// If the op is not in flight: a model completed it twice, and no result could be trusted.
    pub(crate) fn complete(&mut self, done: Completion, moved: bool, files: &mut [ModelFile]) {
        let in_flight = std::mem::take(&mut self.in_flight[done.slot.index()]);
        assert!(in_flight, "a model completed an op that was not in flight");
        if self.capabilities.moves_data && moved {
            self.transfer(done, files);
        }
        self.completed.push_back(done);
    }

    /// Moves the data of an op between its buffer and its file.
    #[cold]
    fn transfer(&mut self, done: Completion, files: &mut [ModelFile]) {
        let op = self.ops[done.slot.index()];
        let (OpKind::Data(direction), Ok(moved)) = (op.kind, usize::try_from(done.result)) else {
            return;
        };
        let file = self.places[op.file.index()].file;
        let Some(content) = &mut files[file].content else {
            return;
        };
        let begin = done.slot.index() * self.buffer_bytes + op.buffer_offset as usize;
        match direction {
            Direction::Read => content.read(op.offset, &mut self.buffers[begin..begin + moved]),
            Direction::Write => content.write(op.offset, &self.buffers[begin..begin + moved]),
            Direction::Trim => content.discard(op.offset, moved),
        }
    }
}

/// A job's engine before the storages, at one moment.
pub(crate) struct Seat<'a, S> {
    pub(crate) engine: &'a mut ModelEngine,
    pub(crate) storages: &'a mut [S],
    pub(crate) job: JobId,
    pub(crate) now: Tick,
}

impl<S: Storage> Seat<'_, S> {
    /// Gives what is laid down to the storages; false where one has no room for the next op.
    #[inline]
    pub(crate) fn hand_over(&mut self) -> bool {
        let engine = &mut *self.engine;
        while let Some(op) = engine.prepared.get(engine.handed_over) {
            let place = engine.places[op.file.index()];
            let request = Request {
                slot: op.slot,
                kind: op.kind,
                offset: match op.kind {
                    OpKind::Data(_) => place.base + op.offset,
                    OpKind::Sync(_) => 0,
                },
                length: op.length,
                priority: op.priority,
            };
            match self.storages[place.storage].submit(self.job, &request, self.now) {
                Taken::Yes => {
                    engine.handed_over += 1;
                    engine.in_flight[op.slot.index()] = true;
                }
                Taken::Blocked => {
                    engine.blocked_since.get_or_insert(self.now);
                    return false;
                }
            }
            if let OpKind::Sync(kind) = op.kind {
                engine.syncs.push((kind, op.file));
            }
            if let Some(last) = engine.ops.get_mut(op.slot.index()) {
                *last = *op;
            }
        }
        true
    }
}

impl<S: Storage> Engine for Seat<'_, S> {
    fn capabilities(&self) -> Capabilities {
        self.engine.capabilities
    }

    fn open(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        Ok(())
    }

    fn close(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        Ok(())
    }

    fn invalidate(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        self.engine.invalidations += 1;
        Ok(())
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        let begin = slot.index() * self.engine.buffer_bytes;
        &mut self.engine.buffers[begin..begin + self.engine.buffer_bytes]
    }

    fn prepare(&mut self, op: &Op) {
        self.engine.prepared.push(*op);
    }

    fn submit(&mut self, _want: u32) -> Submitted {
        if !self.hand_over() {
            return Submitted::Blocked;
        }
        let engine = &mut *self.engine;
        engine.prepared.clear();
        engine.handed_over = 0;
        // A synchronous call begins when it is made, however long it then waits for room.
        let blocked = engine.blocked_since.take();
        let issue = match blocked.filter(|_| engine.capabilities.synchronous) {
            Some(since) => since,
            None => self.now,
        };
        Submitted::Issued {
            issue,
            now: self.now,
        }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        let taken = out.len().min(self.engine.completed.len());
        let done = self.engine.completed.drain(..taken);
        out.iter_mut().zip(done).for_each(|(to, from)| *to = from);
        taken
    }

    fn wait(&mut self, _min: u32, _until: Option<Tick>) -> Result<(), EngineError> {
        // The driver moves the clock; nobody else waits here.
        Ok(())
    }
}

/// What a slot is asked to do before it is asked for anything.
const NO_OP: Op = Op {
    slot: Slot::new(0),
    kind: OpKind::Data(Direction::Read),
    priority: 0,
    file: FileIndex::new(0),
    length: 0,
    buffer_offset: 0,
    offset: 0,
    sequence: 0,
};
