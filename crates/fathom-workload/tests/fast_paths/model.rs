//! Modelled device: latencies from a list, data in memory.

use std::collections::VecDeque;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, Op, OpKind, Queueing, Slot,
    Submitted, Tick,
};
use proptest::prelude::*;

use crate::job::Job;

/// Latencies of successive ops, and which of them are short or fail.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) latencies: Vec<u64>,
    pub(crate) submit_ns: u64,
    pub(crate) short_every: u64,
    pub(crate) fail_every: u64,
    /// Time of the system call of a reap that finds nothing; 0: it makes none.
    pub(crate) look_ns: u64,
}

pub(crate) fn device() -> impl Strategy<Value = Device> {
    let latency = prop_oneof![
        8 => 1..30_000_u64,
        1 => Just(0_u64),
        1 => Just(5_000_000_000_u64),
    ];
    (
        prop::collection::vec(latency, 1..20),
        1..2_000_u64,
        prop_oneof![Just(u64::MAX), 2..40_u64],
        prop_oneof![Just(u64::MAX), 2..40_u64],
    )
        .prop_map(|(latencies, submit_ns, short_every, fail_every)| Device {
            latencies,
            submit_ns,
            short_every,
            fail_every,
            look_ns: 0,
        })
}

/// An op as its engine saw it: submission time, offset, length, buffer offset, sequence number (of
/// the first piece) and a checksum of the data it writes. The slot is left out: it may differ.
pub(crate) type Seen = (u64, u64, u32, u32, Option<u64>, u32);

/// Bytes of the largest op.
const OP_BYTES: usize = 16 << 10;

/// Bytes of a file.
const FILE_BYTES: usize = 1 << 20;

/// Engine over that device.
pub(crate) struct Model {
    device: Device,
    pub(crate) now: u64,
    prepared: Vec<Op>,
    /// Ops in flight, in order of completion.
    in_flight: VecDeque<(u64, Completion)>,
    pub(crate) seen: Vec<Seen>,
    /// Buffers by slot; empty if the job moves no data.
    buffers: Vec<Vec<u8>>,
    /// Contents by file; empty if the job moves no data.
    files: Vec<Vec<u8>>,
    looked: bool,
}

impl Model {
    /// Creates the engine of a job; it moves data if the job verifies them.
    pub(crate) fn new(device: Device, job: &Job) -> Self {
        let memory = |count: usize, bytes| match job.verify {
            true => vec![vec![0; bytes]; count],
            false => Vec::new(),
        };
        Self {
            device,
            now: 0,
            prepared: Vec::new(),
            in_flight: VecDeque::new(),
            seen: Vec::new(),
            buffers: memory(job.depth as usize, OP_BYTES),
            files: memory(
                usize::try_from(job.files).expect("a small number"),
                FILE_BYTES,
            ),
            looked: false,
        }
    }

    /// Advances the time until `min` ops have completed, or to `until`.
    pub(crate) fn pass_time(&mut self, min: u32, until: Option<Tick>) {
        let done = (min as usize)
            .checked_sub(1)
            .and_then(|last| self.in_flight.get(last));
        let moments = [done.map(|(end, _)| *end), until.map(Tick::get)];
        let next = moments
            .into_iter()
            .flatten()
            .min()
            .expect("something to wait for");
        let has_looked = self.device.look_ns > 0;
        assert!(
            has_looked || next > self.now,
            "a wait for what is there already"
        );
        self.now = next.max(self.now);
    }

    fn launch(&mut self, op: Op) {
        let number = self.seen.len();
        let device = &self.device;
        let end = self.now + device.latencies[number % device.latencies.len()];
        let number = number as u64 + 1;
        let result = if number.is_multiple_of(device.fail_every) {
            -5
        } else if number.is_multiple_of(device.short_every) {
            op.length.cast_signed() / 2
        } else {
            op.length.cast_signed()
        };
        let completion = Completion {
            slot: op.slot,
            result,
        };
        let taken = |(_, other): &(u64, Completion)| other.slot == op.slot;
        assert!(
            !self.in_flight.iter().any(taken),
            "{op:?}: its slot is in use"
        );
        let place = self.in_flight.partition_point(|(other, _)| *other <= end);
        self.in_flight.insert(place, (end, completion));
        // The rest of a short transfer need not tell its number.
        let whole = op.buffer_offset == 0;
        let seen = (
            self.now,
            op.offset,
            op.length,
            op.buffer_offset,
            whole.then_some(op.sequence),
            self.transfer(&op, completion.result),
        );
        self.seen.push(seen);
    }

    /// Moves the data of an op and returns the checksum of what it writes.
    fn transfer(&mut self, op: &Op, result: i32) -> u32 {
        let OpKind::Data(direction) = op.kind else {
            return 0;
        };
        if self.files.is_empty() {
            return 0;
        }
        let length = usize::try_from(result.max(0)).expect("not negative");
        let (at, from) = (
            usize::try_from(op.offset).expect("a small number"),
            op.buffer_offset as usize,
        );
        let buffer = &mut self.buffers[op.slot.index()][from..];
        let file = &mut self.files[op.file.index()][at..];
        if direction == Direction::Read {
            buffer[..length].copy_from_slice(&file[..length]);
            return 0;
        }
        file[..length].copy_from_slice(&buffer[..length]);
        fathom_checksum::crc32c(&buffer[..op.length as usize])
    }
}

impl Engine for Model {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "model",
            synchronous: false,
            moves_data: !self.files.is_empty(),
            syncs: Queueing::Queued,
            trims: Queueing::Queued,
        }
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.buffers
            .get_mut(slot.index())
            .map_or(&mut [], |buffer| buffer)
    }

    fn prepare(&mut self, op: &Op) {
        self.prepared.push(*op);
    }

    fn submit(&mut self, _want: u32) -> Submitted {
        self.now += self.device.submit_ns;
        for op in std::mem::take(&mut self.prepared) {
            self.launch(op);
        }
        let now = Tick::new(self.now);
        Submitted::Issued { issue: now, now }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        let mut ready = self.in_flight.partition_point(|(end, _)| *end <= self.now);
        if ready == 0 && self.device.look_ns > 0 {
            self.now += self.device.look_ns;
            self.looked = true;
            ready = self.in_flight.partition_point(|(end, _)| *end <= self.now);
        }
        let count = ready.min(out.len());
        for (place, (_, completion)) in out.iter_mut().zip(self.in_flight.drain(..count)) {
            *place = completion;
        }
        count
    }

    fn reaped_at(&mut self) -> Option<Tick> {
        std::mem::take(&mut self.looked).then(|| Tick::new(self.now))
    }

    fn wait(&mut self, _min: u32, _until: Option<Tick>) -> Result<(), EngineError> {
        Ok(())
    }
}
