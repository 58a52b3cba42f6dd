//! The engines that make one blocking system call per op: `psync`, `sync`, `vsync`, `pvsync`,
//! `pvsync2`.

use std::mem;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, EngineInfo, EngineOption,
    EngineValues, FileIndex, Op, OpKind, Queueing, Slot, Submitted, Synchronous, Taus88, Tick,
    Zone, ZoneAction,
};
use fathom_sys::clock::Clock;
use fathom_sys::file_io::{self, RwFlags, Vectors};
use fathom_sys::in_flight::Ready;
use fathom_sys::memory::Buffers;

use crate::EngineConfig;
use crate::error::no_memory;
use crate::files::Files;
use crate::options::{HIPRI, NOWAIT, UNCACHED};

/// Facts about `psync`.
pub(crate) static PSYNC: EngineInfo = info("psync", "pread(2) and pwrite(2)");
/// Facts about `sync`.
pub(crate) static SYNC: EngineInfo = info("sync", "lseek(2), read(2) and write(2)");
/// Facts about `vsync`.
pub(crate) static VSYNC: EngineInfo = EngineInfo {
    synchronous: Synchronous::AtDepthOne,
    gathers: true,
    ..info("vsync", "readv(2) and writev(2); adjacent ops are merged")
};
/// Facts about `pvsync`.
pub(crate) static PVSYNC: EngineInfo = info("pvsync", "preadv(2) and pwritev(2)");
/// Facts about `pvsync2`.
pub(crate) static PVSYNC2: EngineInfo = EngineInfo {
    options: &[HIPRI, UNCACHED, NOWAIT, HIPRI_PERCENTAGE],
    atomic_writes: true,
    ..info("pvsync2", "preadv2(2) and pwritev2(2)")
};

const fn info(name: &'static str, help: &'static str) -> EngineInfo {
    EngineInfo {
        shares_buffers: true,
        ..EngineInfo::new(name, help)
    }
}

/// Share of the ops that poll.
pub const HIPRI_PERCENTAGE: EngineOption = EngineOption::int(
    "hipri_percentage",
    0,
    100,
    "Percentage of ops that poll with `hipri`",
    "hipri_percentage=50",
)
.default("100");

/// Options of `pvsync2`, read from a job's values.
#[derive(Clone, Copy, Debug)]
struct Options {
    polled: bool,
    polled_percent: u64,
    nowait: bool,
    uncached: bool,
}

impl From<&EngineValues> for Options {
    fn from(values: &EngineValues) -> Self {
        Self {
            polled: values.flag(&HIPRI),
            polled_percent: values.number(&HIPRI_PERCENTAGE).unwrap_or(100).min(100),
            nowait: values.flag(&NOWAIT),
            uncached: values.flag(&UNCACHED),
        }
    }
}

/// Any of the synchronous engines. `submit` executes the prepared ops in order, so a queue deeper
/// than one only delays them; `vsync` merges adjacent ops into one vectored call.
///
/// One type for five engines: they differ in the system call alone, and the branch on it costs less
/// than another copy of the compiled loop.
#[derive(Debug)]
pub struct SyncEngine {
    call: SyncCall,
    flags: RwFlags,
    /// Writes carry `RWF_ATOMIC`.
    atomic_writes: bool,
    /// Choice of the ops that poll, with `hipri_percentage`.
    partial_polling: Option<PartialPolling>,
    clock: Clock,
    depth: u32,
    buffers: Buffers,
    files: Files,
    /// Prepared, not yet executed.
    pending: Vec<Op>,
    done: Ready,
    /// Position of each file, for system calls that use it: a sequential op needs no `lseek`.
    positions: Vec<u64>,
    vectors: Vectors,
    /// System calls that move data.
    calls: u64,
}

/// Random choice of the ops that poll (`hipri_percentage`).
#[derive(Debug)]
struct PartialPolling {
    polled: RwFlags,
    plain: RwFlags,
    percent: u64,
    random: Taus88,
}

impl PartialPolling {
    /// Returns `None` if all ops poll, or none.
    fn new(options: Options) -> Option<Self> {
        let percent = options.polled_percent;
        (options.polled && percent < 100).then(|| Self {
            polled: RwFlags::new(true, options.nowait, options.uncached),
            plain: RwFlags::new(false, options.nowait, options.uncached),
            percent,
            random: Taus88::new(POLLED_SEED),
        })
    }

    fn draw(&mut self) -> RwFlags {
        match self.random.below(100) < self.percent {
            true => self.polled,
            false => self.plain,
        }
    }
}

/// System calls that move the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncCall {
    /// `pread`, `pwrite`.
    Psync,
    /// `lseek`, `read`, `write`.
    Sync,
    /// `lseek`, `readv`, `writev`: one call for a run of adjacent ops.
    Vsync,
    /// `preadv`, `pwritev`.
    Pvsync,
    /// `preadv2`, `pwritev2`.
    Pvsync2,
}

impl SyncEngine {
    pub(crate) fn start(call: SyncCall, config: &EngineConfig) -> Result<Self, EngineError> {
        let buffers = Buffers::within(&config.memory, config.depth, config.buffer_bytes);
        let buffers = buffers.map_err(|error| no_memory(config, &error))?;
        let options = Options::from(&config.options);
        let depth = config.depth as usize;
        Ok(Self {
            call,
            flags: RwFlags::new(options.polled, options.nowait, options.uncached),
            atomic_writes: config.atomic_write_bytes > 0,
            partial_polling: PartialPolling::new(options),
            clock: config.clock,
            depth: config.depth,
            buffers,
            files: Files::new(config),
            pending: Vec::with_capacity(depth),
            done: Ready::new(config.depth),
            positions: vec![UNKNOWN_POSITION; config.files.len()],
            vectors: Vectors::new(depth),
            calls: 0,
        })
    }

    /// Returns the number of system calls made for ops; seeks are not counted.
    #[must_use]
    #[inline]
    pub const fn system_calls(&self) -> u64 {
        self.calls
    }

    /// Returns the kernel's optional features in use.
    pub(crate) fn features(&self) -> Vec<String> {
        let flags = match self.atomic_writes {
            true => self.flags.atomic(),
            false => self.flags,
        };
        flags.names().map(String::from).collect()
    }

    /// Executes one op and returns its result.
    #[inline]
    fn perform(&mut self, op: &Op) -> i32 {
        let file = self.files.descriptor(op.file);
        let OpKind::Data(direction @ (Direction::Read | Direction::Write)) = op.kind else {
            return self.files.perform_dataless(op);
        };
        let write = direction == Direction::Write;
        self.calls += 1;
        if let Some(partial_polling) = &mut self.partial_polling {
            self.flags = partial_polling.draw();
        }
        let part = self.buffers.part(op.slot, op.buffer_offset, op.length);
        match (self.call, write) {
            (SyncCall::Psync, false) => file_io::pread(file, part, op.offset),
            (SyncCall::Psync, true) => file_io::pwrite(file, part, op.offset),
            (SyncCall::Pvsync | SyncCall::Pvsync2, false) => {
                file_io::preadv(file, part, op.offset, self.flags)
            }
            (SyncCall::Pvsync | SyncCall::Pvsync2, true) => {
                let flags = match self.atomic_writes {
                    true => self.flags.atomic(),
                    false => self.flags,
                };
                file_io::pwritev(file, part, op.offset, flags)
            }
            (SyncCall::Sync | SyncCall::Vsync, _) => {
                self.perform_run(std::slice::from_ref(op), write)
            }
        }
    }

    /// Transfers adjacent ops in one call at the file's position. Returns the result of the call,
    /// which may cover only a part of the run.
    fn perform_run(&mut self, run: &[Op], write: bool) -> i32 {
        let first = &run[0];
        let file = self.files.descriptor(first.file);
        let position = &mut self.positions[first.file.index()];
        if *position != first.offset {
            let failed = file_io::seek(file, first.offset);
            if failed < 0 {
                *position = UNKNOWN_POSITION;
                return failed;
            }
        }
        let result = if self.call == SyncCall::Vsync {
            self.vectors.transfer(file, write, &mut self.buffers, run)
        } else {
            let part = self
                .buffers
                .part(first.slot, first.buffer_offset, first.length);
            if write {
                file_io::write(file, part)
            } else {
                file_io::read(file, part)
            }
        };
        *position = match u64::try_from(result) {
            Ok(moved) => first.offset + moved,
            Err(_failed) => UNKNOWN_POSITION,
        };
        result
    }

    /// Executes the prepared ops, merging runs of adjacent ones.
    fn perform_runs(&mut self, ops: &[Op]) {
        let mut rest = ops;
        while let Some(first) = rest.first() {
            let write = match first.kind {
                OpKind::Data(Direction::Read) => false,
                OpKind::Data(Direction::Write) => true,
                OpKind::Data(Direction::Trim) | OpKind::Sync(_) => {
                    let result = self.perform(first);
                    self.complete(first, result);
                    rest = &rest[1..];
                    continue;
                }
            };
            let run = &rest[..run_length(rest, self.vectors.room())];
            self.calls += 1;
            let result = self.perform_run(run, write);
            let covered = self.complete_run(run, result);
            rest = &rest[covered..];
        }
    }

    /// Completes the ops that the result of a run covers, wholly or in part, and returns their
    /// number: at least one. The caller repeats the rest.
    fn complete_run(&mut self, run: &[Op], result: i32) -> usize {
        let Ok(mut left) = u32::try_from(result) else {
            self.complete(&run[0], result);
            return 1;
        };
        for (index, op) in run.iter().enumerate() {
            if left == 0 && index > 0 {
                return index;
            }
            let moved = left.min(op.length);
            left -= moved;
            self.complete(op, moved.cast_signed());
        }
        run.len()
    }

    #[inline]
    fn complete(&mut self, op: &Op, result: i32) {
        self.done.push(op.slot, result);
    }
}

impl Engine for SyncEngine {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: match self.call {
                SyncCall::Psync => PSYNC.name,
                SyncCall::Sync => SYNC.name,
                SyncCall::Vsync => VSYNC.name,
                SyncCall::Pvsync => PVSYNC.name,
                SyncCall::Pvsync2 => PVSYNC2.name,
            },
            synchronous: self.call != SyncCall::Vsync || VSYNC.synchronous.at_depth(self.depth),
            moves_data: true,
            syncs: Queueing::Queued,
            trims: Queueing::Queued,
        }
    }

    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.positions[file.index()] = UNKNOWN_POSITION;
        self.files.open(file)
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.files.close(file)
    }

    fn manage_zone(
        &mut self,
        file: FileIndex,
        action: ZoneAction,
        zone: &Zone,
    ) -> Result<(), EngineError> {
        self.files.manage_zone(file, action, zone)
    }

    fn report_zone(&mut self, file: FileIndex, offset: u64) -> Result<Zone, EngineError> {
        self.files.report_zone(file, offset)
    }

    fn invalidate(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.files.invalidate(file)
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        debug_assert!(self.pending.iter().all(|op| op.slot != slot), "in flight");
        self.buffers.get(slot)
    }

    #[inline]
    fn prepare(&mut self, op: &Op) {
        let in_flight = self.pending.len() + self.done.count();
        assert!(in_flight < self.depth as usize, "more ops than slots");
        self.pending.push(*op);
    }

    fn submit(&mut self, _want: u32) -> Submitted {
        let ops = mem::take(&mut self.pending);
        let issue = self.clock.now();
        if self.call == SyncCall::Vsync {
            self.perform_runs(&ops);
        } else {
            for op in &ops {
                let result = self.perform(op);
                self.complete(op, result);
            }
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
        self.buffers.release(slot);
    }
}

/// Returns the number of leading ops that are adjacent: same file, same direction, no gap.
fn run_length(ops: &[Op], most: usize) -> usize {
    let follows = |pair: &[Op]| {
        let [one, next] = pair else { return false };
        let adjacent = one.offset.checked_add(one.length.into()) == Some(next.offset);
        adjacent && one.file == next.file && one.kind == next.kind
    };
    let pairs = ops.windows(2).take_while(|pair| follows(pair));
    (pairs.count() + 1).min(most)
}

/// Unknown position, equal to no op's offset: the largest offset of a file is 2⁶³ − 1.
const UNKNOWN_POSITION: u64 = u64::MAX;

/// Arbitrary, but fixed: the same ops poll in every run.
const POLLED_SEED: u64 = 0x706f_6c6c;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ops: &[(u32, u64, u32)], most: usize, want: usize) {
        let list: Vec<Op> = ops
            .iter()
            .map(|&(file, offset, length)| Op {
                slot: Slot::new(0),
                kind: OpKind::Data(Direction::Read),
                priority: 0,
                file: FileIndex::new(file),
                length,
                buffer_offset: 0,
                offset,
                sequence: 0,
            })
            .collect();
        assert_eq!(run_length(&list, most), want);
    }

    #[test]
    fn so_many_ops_in_a_hundred_poll() {
        let options = |polled, percent| {
            let values = EngineValues::default().with(&HIPRI, polled);
            Options::from(&values.with(&HIPRI_PERCENTAGE, percent))
        };
        assert!(PartialPolling::new(options(1, 100)).is_none());
        assert!(PartialPolling::new(options(0, 30)).is_none());
        let mut partial_polling = PartialPolling::new(options(1, 30)).unwrap();
        let polled = (0..10_000).filter(|_| partial_polling.draw() == partial_polling.polled);
        assert!((2_850..3_150).contains(&polled.count()));
    }

    #[test]
    fn a_run_is_adjacent_ops_of_one_file() {
        check(&[(0, 0, 8)], 9, 1);
        check(&[(0, 0, 8), (0, 8, 4), (0, 12, 8)], 9, 3);
        check(&[(0, 0, 8), (0, 8, 4), (0, 12, 8)], 2, 2);
        check(&[(0, 0, 8), (1, 8, 4)], 9, 1);
        check(&[(0, 0, 8), (0, 9, 4)], 9, 1);
        check(&[(0, u64::MAX, 8), (0, 7, 4)], 9, 1);
    }
}
