//! Engine of a file in memory, for jobs that read back.

use std::collections::VecDeque;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, Errno, Op, OpKind, Queueing, Slot,
    Step, StopRequest, Submitted, Tick,
};
use fathom_workload::{Results, Worker, WorkerConfig, turn};

/// Runs a job and returns its results, and the end of each op. `latency` is the latency of an op
/// that begins at a time, both in ms.
pub(crate) fn run(
    config: WorkerConfig,
    latency: fn(OpKind, u64) -> u64,
) -> (Results, Vec<(OpKind, u64)>) {
    let (results, engine) = run_on(engine(&config, latency), config);
    (results, engine.done)
}

/// Returns the engine of a job.
pub(crate) fn engine(config: &WorkerConfig, latency: fn(OpKind, u64) -> u64) -> Memory {
    let bytes = config.pattern.files[0].file;
    Memory {
        file: vec![0; usize::try_from(bytes).expect("a small file")],
        buffers: vec![vec![0; 16 << 10]; config.depth as usize],
        damaged: None,
        rejects: false,
        compares_next: false,
        compared: Vec::new(),
        latency,
        now: 0,
        in_flight: VecDeque::new(),
        prepared: Vec::new(),
        done: Vec::new(),
    }
}

/// Runs a job on an engine; returns its results and the engine.
pub(crate) fn run_on(mut engine: Memory, config: WorkerConfig) -> (Results, Memory) {
    let mut worker =
        Worker::new(config, engine.capabilities(), Tick::ZERO).expect("it makes sense");
    let stop = StopRequest::default();
    for _ in 0..1_000_000 {
        let now = Tick::new(engine.now);
        match turn(&mut worker, &mut engine, &stop, now) {
            Step::Again => {}
            Step::Wait { min, until, .. } => engine.pass_time(min, until),
            Step::Blocked => panic!("this engine never blocks"),
            Step::Done => return (worker.into_results(), engine),
        }
    }
    panic!("the job does not end");
}

/// Engine of a file in memory, which serves one op after the other.
pub(crate) struct Memory {
    file: Vec<u8>,
    buffers: Vec<Vec<u8>>,
    /// Offset of a byte that reads find damaged.
    pub(crate) damaged: Option<u64>,
    /// Comparisons find other data, whatever there is.
    pub(crate) rejects: bool,
    compares_next: bool,
    /// Offsets of the reads that were compared.
    pub(crate) compared: Vec<u64>,
    latency: fn(OpKind, u64) -> u64,
    now: u64,
    /// Ops, each with whether it is a comparison.
    prepared: Vec<(Op, bool)>,
    /// Each with the time of its end, and its result.
    in_flight: VecDeque<(u64, Op, i32)>,
    /// Kind and end of each op.
    pub(crate) done: Vec<(OpKind, u64)>,
}

impl Memory {
    fn pass_time(&mut self, min: u32, until: Option<Tick>) {
        let first = self.in_flight.front().filter(|_| min > 0);
        let moments = [first.map(|(end, ..)| *end), until.map(Tick::get)];
        let next = moments.into_iter().flatten().min();
        self.now = self.now.max(next.expect("something to wait for"));
    }

    /// Performs an op, and returns its result.
    fn transfer(&mut self, op: &Op, compares: bool) -> i32 {
        let OpKind::Data(direction) = op.kind else {
            return 0;
        };
        let at = usize::try_from(op.offset).expect("a small offset");
        let part = &mut self.file[at..][..op.length as usize];
        let buffer = &mut self.buffers[op.slot.index()][..op.length as usize];
        match direction {
            Direction::Read => {
                let mut data = part.to_vec();
                let damaged = self.damaged.and_then(|at| at.checked_sub(op.offset));
                let damaged = damaged.and_then(|at| data.get_mut(usize::try_from(at).ok()?));
                damaged.into_iter().for_each(|byte| *byte ^= 1);
                if compares && (self.rejects || data != buffer) {
                    return Errno::EILSEQ.result();
                }
                buffer.copy_from_slice(&data);
            }
            Direction::Write => part.copy_from_slice(buffer),
            Direction::Trim => part.fill(0),
        }
        op.length.cast_signed()
    }
}

impl Engine for Memory {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "memory",
            synchronous: false,
            moves_data: true,
            syncs: Queueing::Queued,
            trims: Queueing::Queued,
        }
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        &mut self.buffers[slot.index()]
    }

    fn compare_next(&mut self, _slot: Slot) {
        self.compares_next = true;
    }

    fn prepare(&mut self, op: &Op) {
        let compares = std::mem::take(&mut self.compares_next);
        if compares {
            assert_eq!(op.kind, OpKind::Data(Direction::Read));
            self.compared.push(op.offset);
        }
        self.prepared.push((*op, compares));
    }

    fn submit(&mut self, _want: u32) -> Submitted {
        for (op, compares) in std::mem::take(&mut self.prepared) {
            let result = self.transfer(&op, compares);
            let begin = self.in_flight.back().map_or(self.now, |(end, ..)| *end);
            let begin = begin.max(self.now);
            let latency = (self.latency)(op.kind, begin / MS) * MS;
            self.in_flight.push_back((begin + latency, op, result));
        }
        let now = Tick::new(self.now);
        Submitted::Issued { issue: now, now }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        let ready = self.in_flight.partition_point(|(end, ..)| *end <= self.now);
        let count = ready.min(out.len());
        for (place, (end, op, result)) in out.iter_mut().zip(self.in_flight.drain(..count)) {
            self.done.push((op.kind, end / MS));
            *place = Completion {
                slot: op.slot,
                result,
            };
        }
        count
    }

    fn wait(&mut self, _min: u32, _until: Option<Tick>) -> Result<(), EngineError> {
        Ok(())
    }
}

/// A millisecond, ns.
const MS: u64 = 1_000_000;
