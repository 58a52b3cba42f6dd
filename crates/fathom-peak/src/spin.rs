//! The loop: prepare a batch, submit it, reap completions.
//!
//! With latency, one clock read per turn is both the completion time of the reaped ops and the
//! start time of the next batch; without it the engine's clock is stopped and costs nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fathom_core::{
    Completion, Direction, Engine, EngineError, FileIndex, Nanos, Op, OpKind, Slot, Submitted,
    Tick, Xoshiro256,
};
use fathom_stats::Latency;

/// Configuration of one thread's loop.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Limit of ops in flight.
    pub(crate) depth: u32,
    /// Ops per batch.
    pub(crate) submit: u32,
    /// Completions to wait for when no further batch fits.
    pub(crate) complete: u32,
    /// Size of an op.
    pub(crate) block_bytes: u32,
    /// Result of a successful op.
    pub(crate) expected: i32,
    /// Direction of all ops.
    pub(crate) direction: Direction,
    /// Access blocks in order instead of at random.
    pub(crate) sequential: bool,
    /// Number of blocks in each file, ≥ 1.
    pub(crate) blocks: Vec<u64>,
    /// Seed of the block numbers.
    pub(crate) seed: u64,
}

/// Progress of one loop, padded to its own cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ProgressCell {
    pub(crate) ops: AtomicU64,
    pub(crate) calls: AtomicU64,
}

/// A failed or short op.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpFailure {
    pub(crate) file: FileIndex,
    pub(crate) result: i32,
}

/// Reason why a loop ended early.
#[derive(Debug)]
pub(crate) enum LoopError {
    Op(OpFailure),
    Engine(EngineError),
}

/// Closed loop of one thread: keeps `depth` ops in flight until it is stopped.
///
/// Deliberately less than `fathom-workload`'s worker: no schedule, no verification, no retry. The
/// first failed op ends the measurement. All memory is reserved by [`new`](Self::new).
pub(crate) struct Spinner {
    task: Task,
    /// Slots not in flight: the first `free_count`. Last in, first out, so that few buffers are in
    /// use and stay in the CPU's cache.
    free: Box<[Slot]>,
    free_count: usize,
    out: Box<[Completion]>,
    /// Start time of each slot's op; used with `TIMED` only.
    starts: Box<[Tick]>,
    latency: Latency,
    random: Xoshiro256,
    /// Next block of each file, for sequential access.
    next: Vec<u64>,
    file: usize,
}

impl Spinner {
    pub(crate) fn new(task: Task) -> Self {
        let depth = task.depth as usize;
        Self {
            free: (0..task.depth).map(Slot::new).collect(),
            free_count: depth,
            out: vec![Completion::default(); depth].into_boxed_slice(),
            starts: vec![Tick::ZERO; depth].into_boxed_slice(),
            latency: Latency::new(true),
            random: Xoshiro256::new(task.seed),
            next: vec![0; task.blocks.len()],
            file: 0,
            task,
        }
    }

    /// Runs until `stop` is set. `calls` reads the engine's count of system calls.
    ///
    /// Not inlined: as one of six copies in its caller, the loop would spill registers.
    #[inline(never)]
    pub(crate) fn run<E: Engine, const TIMED: bool>(
        &mut self,
        engine: &mut E,
        calls: impl Fn(&E) -> u64,
        stop: &AtomicBool,
        cell: &ProgressCell,
        mut now: Tick,
    ) -> Result<(), LoopError> {
        let mut ops = 0;
        // Relaxed, here and below: the flag and the counters guard no other memory.
        while !stop.load(Ordering::Relaxed) {
            self.prepare_batch::<E, TIMED>(engine, now);
            let want = self.want();
            match engine.submit(want) {
                Submitted::Issued { now: after, .. } => now = after,
                Submitted::Blocked => {}
            }
            let count = engine.reap(&mut self.out);
            if count == 0 && want > 0 {
                Self::wait(engine, now)?;
                continue;
            }
            self.take::<TIMED>(count, now).map_err(LoopError::Op)?;
            ops += count as u64;
            cell.ops.store(ops, Ordering::Relaxed);
            cell.calls.store(calls(engine), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns the recorded latencies.
    pub(crate) fn into_latency(self) -> Latency {
        self.latency
    }

    /// Prepares a batch on one file, as far as slots are free.
    #[inline(always)]
    fn prepare_batch<E: Engine, const TIMED: bool>(&mut self, engine: &mut E, now: Tick) {
        let (file, blocks) = (self.file, self.task.blocks[self.file]);
        // Separate loops on copies of the state, which stay in registers while the engine writes
        // to memory.
        if self.task.sequential {
            let mut next = self.next[file];
            self.prepare_blocks::<E, TIMED>(engine, now, || {
                let block = next;
                next = if block + 1 == blocks { 0 } else { block + 1 };
                block
            });
            self.next[file] = next;
        } else {
            let mut random = self.random.clone();
            self.prepare_blocks::<E, TIMED>(engine, now, || random.below(blocks));
            self.random = random;
        }
        self.file = if file + 1 == self.task.blocks.len() {
            0
        } else {
            file + 1
        };
    }

    #[inline(always)]
    fn prepare_blocks<E: Engine, const TIMED: bool>(
        &mut self,
        engine: &mut E,
        now: Tick,
        mut block: impl FnMut() -> u64,
    ) {
        let count = self.free_count.min(self.task.submit as usize);
        let batch = &self.free[self.free_count - count..self.free_count];
        let block_bytes = self.task.block_bytes;
        if TIMED {
            for slot in batch {
                self.starts[slot.index()] = now;
            }
        }
        let op = Op {
            slot: Slot::new(0),
            kind: OpKind::Data(self.task.direction),
            priority: 0,
            file: file_index(self.file),
            length: block_bytes,
            buffer_offset: 0,
            offset: 0,
            sequence: 0,
        };
        // Cannot overflow: the block is within a file.
        engine.prepare_many(&op, batch, || block() * u64::from(block_bytes));
        self.free_count -= count;
    }

    /// Returns the completions to wait for: none while another whole batch fits.
    #[inline(always)]
    fn want(&self) -> u32 {
        if self.free_count >= self.task.submit as usize {
            return 0;
        }
        let in_flight = self.free.len() - self.free_count;
        u32::try_from(in_flight).map_or(1, |in_flight| in_flight.min(self.task.complete))
    }

    /// Processes `count` completions. Ops of a batch that complete together have the same latency,
    /// which is recorded once for all of them.
    #[inline(always)]
    fn take<const TIMED: bool>(&mut self, count: usize, now: Tick) -> Result<(), OpFailure> {
        let done = &self.out[..count];
        let places = &mut self.free[self.free_count..][..count];
        let expected = self.task.expected;
        let (mut start, mut same_count) = (Tick::ZERO, 0);
        for index in 0..count {
            let completion = done[index];
            if completion.result != expected {
                return Err(self.failure(completion.result));
            }
            places[index] = completion.slot;
            if TIMED {
                let own = self.starts[completion.slot.index()];
                if own != start {
                    record(&mut self.latency, now - start, same_count);
                    (start, same_count) = (own, 0);
                }
                same_count += 1;
            }
        }
        if TIMED {
            record(&mut self.latency, now - start, same_count);
        }
        self.free_count += count;
        Ok(())
    }

    #[cold]
    fn failure(&self, result: i32) -> OpFailure {
        // A completion does not name its file; with several files the last one is a guess.
        let file = file_index((self.file + self.task.blocks.len() - 1) % self.task.blocks.len());
        OpFailure { file, result }
    }

    /// Waits after an empty reap: a signal, a slow device, or a broken ring, which `wait` reports.
    #[cold]
    fn wait<E: Engine>(engine: &mut E, now: Tick) -> Result<(), LoopError> {
        // A stopped clock stands at its origin, and so does `now`.
        let waited = engine.wait(1, Some(now + STOP_CHECK));
        waited.map_err(LoopError::Engine)
    }
}

/// Records one latency for `times` ops. A single op is the common case without batches, and
/// cheaper.
#[inline]
fn record(latency: &mut Latency, span: Nanos, times: u64) {
    match times {
        0 => {}
        1 => latency.record(span.get()),
        _ => latency.record_n(span.get(), times),
    }
}

#[inline]
fn file_index(index: usize) -> FileIndex {
    FileIndex::new(u32::try_from(index).unwrap_or(u32::MAX))
}

/// Interval between checks for a stop request while waiting.
const STOP_CHECK: Nanos = Nanos::from_millis(100);

#[cfg(test)]
mod tests {
    use fathom_engine::{AnyEngine, EngineConfig, Null, built_in, start};
    use fathom_sys::clock::Clock;

    use super::*;

    /// An engine that stops the loop after a number of turns.
    struct Stopping<'a> {
        engine: Null,
        turns: u32,
        stop: &'a AtomicBool,
        seen: Vec<u64>,
    }

    impl Engine for Stopping<'_> {
        fn capabilities(&self) -> fathom_core::Capabilities {
            self.engine.capabilities()
        }

        fn buffer(&mut self, slot: Slot) -> &mut [u8] {
            self.engine.buffer(slot)
        }

        fn prepare(&mut self, op: &Op) {
            self.seen.push(op.offset);
            self.engine.prepare(op);
        }

        fn submit(&mut self, want: u32) -> Submitted {
            self.turns -= 1;
            self.stop.store(self.turns == 0, Ordering::Relaxed);
            self.engine.submit(want)
        }

        fn reap(&mut self, out: &mut [Completion]) -> usize {
            self.engine.reap(out)
        }

        fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
            self.engine.wait(min, until)
        }
    }

    /// Returns offsets, counted ops and latencies of a number of turns.
    fn turns(
        count: u32,
        sequential: bool,
        expected: i32,
    ) -> Result<(Vec<u64>, u64, u64), OpFailure> {
        let config = EngineConfig {
            depth: 8,
            buffer_bytes: 512,
            ..EngineConfig::new(built_in("null"), Clock::monotonic())
        };
        let Ok(AnyEngine::Null(engine)) = start(config) else {
            panic!("the null engine always starts");
        };
        let (stop, cell) = (AtomicBool::new(false), ProgressCell::default());
        let mut engine = Stopping {
            engine,
            turns: count,
            stop: &stop,
            seen: Vec::new(),
        };
        let mut spinner = Spinner::new(Task {
            depth: 8,
            submit: 4,
            complete: 4,
            block_bytes: 512,
            expected,
            direction: Direction::Read,
            sequential,
            blocks: vec![6],
            seed: 1,
        });
        let ended = spinner.run::<_, true>(&mut engine, |_| 7, &stop, &cell, Tick::ZERO);
        match ended {
            Ok(()) => {}
            Err(LoopError::Op(failure)) => return Err(failure),
            Err(LoopError::Engine(error)) => panic!("{error}"),
        }
        assert_eq!(cell.calls.load(Ordering::Relaxed), 7);
        let latency = spinner.into_latency();
        let kept = latency.histogram.as_ref().map_or(0, |kept| kept.count());
        assert_eq!(kept, latency.summary.count());
        Ok((engine.seen, cell.ops.load(Ordering::Relaxed), kept))
    }

    #[test]
    fn blocks_come_in_order_and_begin_anew() {
        let (seen, ops, kept) = turns(3, true, 512).unwrap();
        let want: Vec<u64> = (0..12).map(|block| block % 6 * 512).collect();
        assert_eq!(seen, want);
        assert_eq!((ops, kept), (12, 12));
    }

    #[test]
    fn random_blocks_lie_in_the_file_and_all_come() {
        let (mut seen, ops, _) = turns(100, false, 512).unwrap();
        assert_eq!(ops, 400);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, (0..6).map(|block| block * 512).collect::<Vec<_>>());
    }

    #[test]
    fn an_op_that_moves_less_ends_the_loop() {
        let failure = turns(3, true, 4096).unwrap_err();
        assert_eq!((failure.file.get(), failure.result), (0, 512));
    }
}
