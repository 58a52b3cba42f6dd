//! A modelled device behind the engine trait.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, FileIndex, Op, OpKind, PerDirection,
    Slot, Submitted, SyncKind, Tick,
};

use crate::constant::FaultKind;
use crate::{Constant, VirtualClock};

/// A file of a modelled device.
#[derive(Clone, Debug, Default)]
pub struct ModelFile {
    /// Its bytes, where they matter (verification); empty: nothing is kept and reads give zeros.
    pub content: Vec<u8>,
}

/// One job's view of a modelled device.
#[derive(Debug)]
pub struct ModelEngine {
    clock: VirtualClock,
    device: Constant,
    capabilities: Capabilities,
    files: Vec<ModelFile>,
    buffers: Vec<u8>,
    buffer_bytes: usize,
    prepared: Vec<Op>,
    in_flight: BinaryHeap<Reverse<(Tick, u64, u32, i32)>>,
    numbers: PerDirection<u64>,
    order: u64,
    /// Syncs done, in order; for tests.
    pub syncs: Vec<(SyncKind, FileIndex)>,
    /// How often a file's cached pages were to be dropped; for tests.
    pub invalidations: u32,
}

impl ModelEngine {
    /// A job's engine of `depth` slots on `device`. With `files` that have content, buffers of
    /// `buffer_bytes` each are kept and data really move; else ops only take time. `synchronous`
    /// makes it count as one of the sync family.
    #[must_use]
    pub fn new(
        clock: VirtualClock,
        device: Constant,
        depth: u32,
        buffer_bytes: u32,
        synchronous: bool,
        files: Vec<ModelFile>,
    ) -> Self {
        let moves_data = files.iter().any(|file| !file.content.is_empty());
        let (depth, buffer_bytes) = (depth as usize, buffer_bytes as usize);
        Self {
            clock,
            device,
            capabilities: Capabilities {
                name: "model",
                synchronous,
                moves_data,
                queued_sync: true,
                queued_trim: true,
            },
            files,
            buffers: if moves_data {
                vec![0; depth * buffer_bytes]
            } else {
                Vec::new()
            },
            buffer_bytes: if moves_data { buffer_bytes } else { 0 },
            prepared: Vec::with_capacity(depth),
            in_flight: BinaryHeap::with_capacity(depth),
            numbers: PerDirection::default(),
            order: 0,
            syncs: Vec::new(),
            invalidations: 0,
        }
    }

    /// The files, with what was written to them.
    #[must_use]
    pub fn files(&self) -> &[ModelFile] {
        &self.files
    }

    /// When `count` ops of those in flight will have completed; `None` if there are not so many.
    #[must_use]
    pub fn completes(&self, count: u32) -> Option<Tick> {
        match count {
            0 => None,
            1 => self.in_flight.peek().map(|Reverse(event)| event.0),
            count => {
                let mut ticks: Vec<Tick> = self
                    .in_flight
                    .iter()
                    .map(|Reverse(event)| event.0)
                    .collect();
                ticks.sort_unstable();
                ticks.get(count as usize - 1).copied()
            }
        }
    }

    /// Moves the data of an op between its buffer and its file.
    fn transfer(&mut self, op: &Op, moved: i32) {
        let (OpKind::Data(direction), Ok(moved)) = (op.kind, usize::try_from(moved)) else {
            return;
        };
        let Some(file) = self.files.get_mut(op.file.index()) else {
            return;
        };
        if !self.capabilities.moves_data || file.content.is_empty() {
            return;
        }
        let Ok(offset) = usize::try_from(op.offset) else {
            return;
        };
        let begin = op.slot.index() * self.buffer_bytes + op.buffer_offset as usize;
        let Some(place) = file.content.get_mut(offset..offset + moved) else {
            return;
        };
        let buffer = &mut self.buffers[begin..begin + moved];
        match direction {
            Direction::Read => buffer.copy_from_slice(place),
            Direction::Write => place.copy_from_slice(buffer),
            Direction::Trim => place.fill(0),
        }
    }

    fn launch(&mut self, op: &Op, now: Tick) {
        let number = match op.kind {
            OpKind::Data(direction) => {
                let number = self.numbers[direction];
                self.numbers[direction] += 1;
                number
            }
            OpKind::Sync(kind) => {
                self.syncs.push((kind, op.file));
                0
            }
        };
        let result = self.device.result(op, number);
        let lost = matches!(op.kind, OpKind::Data(direction)
            if self.device.fault(direction, number) == Some(FaultKind::Lost));
        if !lost {
            self.transfer(op, result);
        }
        let end = self.device.completes(now);
        self.order += 1;
        self.in_flight
            .push(Reverse((end, self.order, op.slot.get(), result)));
    }
}

impl Engine for ModelEngine {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn open(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        Ok(())
    }

    fn close(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        Ok(())
    }

    fn invalidate(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        self.invalidations += 1;
        Ok(())
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        let begin = slot.index() * self.buffer_bytes;
        &mut self.buffers[begin..begin + self.buffer_bytes]
    }

    fn prepare(&mut self, op: &Op) {
        self.prepared.push(*op);
    }

    fn submit(&mut self, _want: u32) -> Submitted {
        let now = self.clock.now();
        for index in 0..self.prepared.len() {
            let op = self.prepared[index];
            self.launch(&op, now);
        }
        self.prepared.clear();
        Submitted::Issued { issue: now, now }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        let now = self.clock.now();
        let mut taken = 0;
        while taken < out.len() {
            match self.in_flight.peek() {
                Some(Reverse((end, _, slot, result))) if *end <= now => {
                    out[taken] = Completion {
                        slot: Slot::new(*slot),
                        result: *result,
                    };
                    taken += 1;
                }
                _ => break,
            }
            self.in_flight.pop();
        }
        taken
    }

    fn wait(&mut self, _min: u32, _until: Option<Tick>) -> Result<(), EngineError> {
        // The driver moves the clock; nobody else waits here.
        Ok(())
    }
}
