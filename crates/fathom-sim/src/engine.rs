//! Modelled engine of one job: its queue of ops and its buffers, behind the engine trait.

use std::collections::VecDeque;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, EngineStep, Errno, FileIndex, Op,
    OpKind, Queueing, Slot, Submitted, SyncKind, Tick, Zone, ZoneAction,
};

use crate::data_fault::DataFault;
use crate::files::ModelFile;
use crate::storage::{JobId, ModelledStorage, Request, SubmitResult};

/// Configuration of a job's engine.
#[derive(Clone, Debug, Default)]
pub struct EngineSpec {
    /// Number of slots.
    pub depth: u32,
    /// Size of a slot's buffer; allocated only if a file has content.
    pub buffer_bytes: u32,
    /// The engine is synchronous, like the sync family.
    pub synchronous: bool,
    /// Numbers of the job's files in the simulation.
    pub files: Vec<usize>,
}

/// Engine of one job. It acts only while the driver connects it to the storages.
#[derive(Debug)]
pub struct ModelEngine {
    capabilities: Capabilities,
    places: Vec<FileLocation>,
    buffers: Vec<u8>,
    buffer_bytes: usize,
    /// Prepared ops; the first `handed_over` have been submitted to the storage.
    prepared: Vec<Op>,
    handed_over: usize,
    /// Time since which the storage refuses the next op.
    blocked_since: Option<Tick>,
    /// Last op of each slot, if data are moved.
    ops: Vec<Op>,
    completed: VecDeque<Completion>,
    /// Slots whose op is in flight.
    in_flight: Vec<bool>,
    /// Completed syncs in order, for tests.
    pub syncs: Vec<(SyncKind, FileIndex)>,
    /// Number of page cache invalidations, for tests.
    pub invalidations: u32,
}

/// Location of a file of the job.
#[derive(Clone, Copy, Debug)]
struct FileLocation {
    file: usize,
    storage: usize,
    base: u64,
}

impl ModelEngine {
    /// Creates the engine that `spec` describes on files of a simulation.
    ///
    /// # Panics
    /// If `spec` names a file that does not exist.
    pub(crate) fn new(spec: &EngineSpec, files: &[ModelFile]) -> Self {
        let place = |&file: &usize| FileLocation {
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
                syncs: Queueing::Queued,
                trims: Queueing::Queued,
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

    /// Returns the engine's capabilities, constant over its lifetime.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Returns the number of ops to reap.
    pub(crate) fn completed(&self) -> usize {
        self.completed.len()
    }

    /// Returns whether the storage refuses the next op.
    pub(crate) const fn is_blocked(&self) -> bool {
        self.blocked_since.is_some()
    }

    /// Returns the time since which a call of a synchronous engine has been blocked.
    pub(crate) fn blocked_since(&self) -> Option<Tick> {
        self.blocked_since.filter(|_| self.capabilities.synchronous)
    }

    /// Returns whether an op of this job is in flight.
    pub(crate) fn has_in_flight(&self) -> bool {
        self.in_flight.contains(&true)
    }

    /// Records a completion, and moves its data, with this fault if there is one.
    ///
    /// # Panics
    /// If the op is not in flight: a model completed it twice, and no result could be trusted.
    pub(crate) fn complete(
        &mut self,
        done: Completion,
        fault: Option<DataFault>,
        files: &mut [ModelFile],
    ) {
        let in_flight = std::mem::take(&mut self.in_flight[done.slot.index()]);
        assert!(in_flight, "a model completed an op that was not in flight");
        if self.capabilities.moves_data {
            self.transfer(done, fault, files);
        }
        self.completed.push_back(done);
    }

    /// Moves the data of an op between its buffer and its file.
    #[cold]
    fn transfer(&mut self, done: Completion, fault: Option<DataFault>, files: &mut [ModelFile]) {
        let op = self.ops[done.slot.index()];
        // Part of a write that fails may be on the medium.
        let result = match fault {
            Some(DataFault::Torn(bytes)) if done.result < 0 => i64::from(bytes.min(op.length)),
            _ => done.result.into(),
        };
        let (OpKind::Data(direction), Ok(moved)) = (op.kind, usize::try_from(result)) else {
            return;
        };
        let file = self.places[op.file.index()].file;
        let file = &mut files[file];
        let Some(content) = &file.content else {
            return;
        };
        let begin = done.slot.index() * self.buffer_bytes + op.buffer_offset as usize;
        // A trim has no buffer.
        let end = if direction == Direction::Trim {
            begin
        } else {
            begin + moved
        };
        let buffer = &mut self.buffers[begin..end];
        match (direction, fault) {
            (Direction::Read, None) => content.read(op.offset, buffer),
            (Direction::Read, Some(fault)) => fault.read(file, op.offset, buffer),
            (Direction::Write, None) => file.write(op.offset, buffer),
            (Direction::Write, Some(fault)) => fault.write(file, op.offset, buffer),
            (Direction::Trim, Some(DataFault::Lost)) => {}
            (Direction::Trim, _) => file.discard(op.offset, moved),
        }
    }
}

/// Engine connected to the storages at one time, which is what the loop sees.
pub(crate) struct Seat<'a, S> {
    pub(crate) engine: &'a mut ModelEngine,
    pub(crate) storages: &'a mut [S],
    pub(crate) files: &'a mut [ModelFile],
    pub(crate) job: JobId,
    pub(crate) now: Tick,
}

impl<S: ModelledStorage> Seat<'_, S> {
    /// Submits the prepared ops to the storages; false if one refuses the next op.
    #[inline]
    pub(crate) fn submit_prepared(&mut self) -> bool {
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
                length: carried(op),
                priority: op.priority,
            };
            match self.storages[place.storage].submit(self.job, &request, self.now) {
                SubmitResult::Accepted => {
                    engine.handed_over += 1;
                    engine.in_flight[op.slot.index()] = true;
                }
                SubmitResult::Blocked => {
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

/// Returns the bytes of an op that one request carries: a read or a write of more is short, as the
/// kernel has it, and continued.
const fn carried(op: &Op) -> u32 {
    match op.kind {
        OpKind::Data(Direction::Read | Direction::Write) if op.length > TRANSFER_MAX => {
            TRANSFER_MAX
        }
        _ => op.length,
    }
}

/// `MAX_RW_COUNT` of Linux with pages of 4 KiB.
const TRANSFER_MAX: u32 = 0x7fff_f000;

impl<S: ModelledStorage> Engine for Seat<'_, S> {
    fn capabilities(&self) -> Capabilities {
        self.engine.capabilities
    }

    fn invalidate(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        self.engine.invalidations += 1;
        Ok(())
    }

    fn manage_zone(
        &mut self,
        file: FileIndex,
        action: ZoneAction,
        zone: &Zone,
    ) -> Result<(), EngineError> {
        let place = self.engine.places[file.index()];
        let storage = &mut self.storages[place.storage];
        let done = storage.manage_zone(action, place.base + zone.start);
        done.map_err(|errno| zone_error(action.name(), errno))?;
        if action == ZoneAction::Reset {
            let length = usize::try_from(zone.length).unwrap_or(usize::MAX);
            self.files[place.file].discard(zone.start, length);
        }
        Ok(())
    }

    fn report_zone(&mut self, file: FileIndex, offset: u64) -> Result<Zone, EngineError> {
        let place = self.engine.places[file.index()];
        let zone = self.storages[place.storage].zone(place.base + offset);
        zone.ok_or_else(|| zone_error("report zones", Errno::EOPNOTSUPP))
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        let begin = slot.index() * self.engine.buffer_bytes;
        &mut self.engine.buffers[begin..begin + self.engine.buffer_bytes]
    }

    fn prepare(&mut self, op: &Op) {
        self.engine.prepared.push(*op);
    }

    fn submit(&mut self, _want: u32) -> Submitted {
        if !self.submit_prepared() {
            return Submitted::Blocked;
        }
        let engine = &mut *self.engine;
        engine.prepared.clear();
        engine.handed_over = 0;
        // A synchronous call begins when it is made, however long it is then blocked.
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
        // Only the driver moves the clock; there is nothing to wait for here.
        Ok(())
    }
}

#[cold]
fn zone_error(call: &'static str, errno: Errno) -> EngineError {
    EngineError {
        step: EngineStep::Call(call),
        target: "modelled device".to_owned(),
        errno: Some(errno),
        hint: String::new(),
    }
}

/// Initial op of a slot.
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
