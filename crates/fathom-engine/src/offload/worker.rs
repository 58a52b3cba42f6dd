//! One worker thread: takes ops from the run list, executes them on an engine of its own, and
//! returns them over the completion list.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};

use fathom_core::{
    Completion, Direction, Engine, EngineError, EngineStep, Errno, FileIndex, Op, OpKind, Slot,
    Submitted, Tick,
};
use fathom_sys::thread::{self, Usage};

use super::adaptive_spin::WakeSource;
use super::pool::PoolState;
use crate::AnyEngine;

type Ready = Option<mpsc::SyncSender<Result<(), EngineError>>>;

/// Runs a worker thread to its end and returns its CPU usage.
pub(crate) fn run(shared: &Arc<PoolState>, number: u32, ready: Ready) -> Usage {
    // Best effort: the name only helps in `top` and `perf`.
    let _unnamed = thread::set_name(&format!("offload-{number}"));
    let body = AssertUnwindSafe(|| start_and_serve(shared, number, ready));
    if let Err(panic) = catch_unwind(body) {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned());
        shared.fail(EngineError {
            step: EngineStep::Internal,
            target: text.unwrap_or_default(),
            errno: None,
            hint: "this is a bug in fathom; please report it".into(),
        });
    }
    thread::usage()
}

/// Starts the worker's engine and serves the run list with it. The match is outside the loop, so
/// that each hot engine gets a loop compiled for it.
fn start_and_serve(shared: &Arc<PoolState>, number: u32, ready: Ready) {
    let config = shared.config();
    match (config.engine.start)(config) {
        Ok(AnyEngine::Null(engine)) => serve_with(engine, shared, number, ready),
        Ok(AnyEngine::Sync(engine)) => serve_with(engine, shared, number, ready),
        Ok(AnyEngine::Libaio(engine)) => serve_with(engine, shared, number, ready),
        Ok(AnyEngine::Uring(engine)) => serve_with(engine, shared, number, ready),
        Ok(other) => serve_with(other.boxed(), shared, number, ready),
        Err(error) => fail_start(error, shared, ready),
    }
}

fn serve_with<E: Engine>(engine: E, shared: &Arc<PoolState>, number: u32, ready: Ready) {
    let mut worker = PoolWorker::new(engine, shared, number);
    if let Err(error) = worker.open_all() {
        return fail_start(error, shared, ready);
    }
    if let Some(ready) = ready {
        // The pool waits for this message.
        let _heard = ready.send(Ok(()));
    }
    shared.begin_serving();
    if let Err(error) = worker.serve() {
        shared.fail(error);
    }
    shared.end_serving();
}

/// Ends a worker whose engine could not be started: the pool fails to start if it is the first, and
/// otherwise continues without it.
fn fail_start(error: EngineError, shared: &PoolState, ready: Ready) {
    match ready {
        Some(ready) => {
            let _heard = ready.send(Err(error));
        }
        None => shared.refuse(&error),
    }
}

/// Worker thread of an offloaded job, with its engine and the ops it has taken.
///
/// All vectors are reserved for the full depth at start: no op allocates.
struct PoolWorker<'a, E> {
    engine: E,
    shared: &'a Arc<PoolState>,
    number: u32,
    /// The engine executes one op at a time.
    is_sync: bool,
    /// Files that this engine has open, by index.
    opened: Vec<bool>,
    /// Slots taken from the run list.
    batch: Vec<Slot>,
    /// Ops of these slots.
    ops: Vec<Op>,
    /// Buffer for reaped completions.
    out: Vec<Completion>,
    /// Completed slots to be returned.
    returned: Vec<Slot>,
    /// Ops submitted to this engine.
    in_flight: u32,
    /// Ops prepared and not yet submitted.
    prepared: u32,
}

impl<'a, E: Engine> PoolWorker<'a, E> {
    fn new(engine: E, shared: &'a Arc<PoolState>, number: u32) -> Self {
        let config = shared.config();
        let depth = config.depth as usize;
        Self {
            is_sync: engine.capabilities().synchronous,
            engine,
            shared,
            number,
            opened: vec![false; config.files.len()],
            batch: Vec::with_capacity(depth),
            ops: Vec::with_capacity(depth),
            out: vec![Completion::default(); depth.min(64)],
            returned: Vec::with_capacity(depth.min(64)),
            in_flight: 0,
            prepared: 0,
        }
    }

    /// Executes ops until the pool ends.
    fn serve(&mut self) -> Result<(), EngineError> {
        let shared = self.shared;
        let mut spin = shared.new_spin();
        loop {
            self.batch.clear();
            let left = shared.take(&mut self.batch);
            if !self.batch.is_empty() {
                if left > 0 {
                    shared.request_worker();
                }
                shared.grow(false);
                self.execute()?;
            } else if shared.spin_for_work(&mut spin, self.waits_for(), || self.give_back() > 0) {
                // Work arrived, or ops completed: look at the list again.
            } else if self.in_flight > 0 {
                shared
                    .block_in_kernel(|| self.engine.wait(1, None))
                    .transpose()?;
                self.give_back();
            } else if shared.is_ending() {
                return Ok(());
            } else {
                shared.sleep(self.number);
            }
        }
    }

    /// Returns the source of the next event.
    const fn waits_for(&self) -> WakeSource {
        match self.in_flight {
            0 => WakeSource::Pool,
            _ => WakeSource::Kernel,
        }
    }

    /// Executes the ops taken.
    fn execute(&mut self) -> Result<(), EngineError> {
        let shared = self.shared;
        // Read all cells first: they are cache misses, because the submitter wrote them, and
        // reading them in a row lets the misses overlap.
        let ops = self.batch.iter();
        let ops = ops.map(|&slot| shared.cells[slot.index()].op(slot));
        self.ops.clear();
        self.ops.extend(ops);
        if self.ops.len() > 1 && shared.is_slow() {
            // Slow ops are a device's work: sort them in the order that it likes best.
            self.ops.sort_unstable_by_key(|op| (op.file, op.offset));
        }
        let mut now = shared.config().clock.now();
        for index in 0..self.ops.len() {
            let op = self.ops[index];
            let cell = &shared.cells[op.slot.index()];
            if let Err(error) = self.open(op.file) {
                cell.start(now);
                self.refuse(op.slot, &error);
                continue;
            }
            let exclusive = !matches!(op.kind, OpKind::Data(Direction::Read | Direction::Write));
            if exclusive {
                now = self.submit(now)?;
                self.drain()?;
            }
            cell.start(now);
            self.engine.prepare(&op);
            self.prepared += 1;
            if exclusive || self.is_sync {
                now = self.submit(now)?;
            }
        }
        self.submit(now)?;
        Ok(())
    }

    /// Submits the prepared ops, returns completed ones, and returns the time afterwards.
    fn submit(&mut self, before: Tick) -> Result<Tick, EngineError> {
        if self.prepared == 0 {
            return Ok(before);
        }
        let Submitted::Issued { now, .. } = self.engine.submit(0) else {
            // Unreachable: only modelled devices and file locks block, and a worker has neither.
            return Ok(before);
        };
        let op_time = (now - before).get() / u64::from(self.prepared);
        self.shared.note_cost(fathom_core::Nanos::new(op_time));
        self.in_flight += self.prepared;
        self.prepared = 0;
        self.give_back();
        // A broken queue completes nothing; without this check its error would go unnoticed.
        if self.in_flight > 0 {
            self.engine.wait(0, Some(Tick::ZERO))?;
        }
        Ok(now)
    }

    /// Waits until the engine is idle.
    fn drain(&mut self) -> Result<(), EngineError> {
        while self.in_flight > 0 {
            self.engine.wait(1, None)?;
            self.give_back();
        }
        Ok(())
    }

    /// Returns completed ops to the submitter, and their number to the caller.
    fn give_back(&mut self) -> usize {
        let mut given = 0;
        while self.in_flight > 0 {
            let count = self.engine.reap(&mut self.out);
            self.returned.clear();
            for &Completion { slot, result } in &self.out[..count] {
                self.engine.release(slot);
                self.shared.cells[slot.index()].finish(result);
                self.returned.push(slot);
                self.in_flight -= 1;
            }
            self.shared.give_back(&self.returned);
            given += count;
            if count < self.out.len() {
                break;
            }
        }
        given
    }

    /// Fails an op that was not started.
    fn refuse(&mut self, slot: Slot, error: &EngineError) {
        let errno = error.errno.unwrap_or(Errno::EIO);
        self.shared.cells[slot.index()].finish(errno.result());
        self.shared.give_back(&[slot]);
    }

    /// Opens all files before any op is taken: a worker that cannot (out of descriptors, or a file
    /// was removed) does not start, so it fails no op. The first worker, which the job cannot do
    /// without, fails for lack of descriptors, or if the submitter opens no files; other errors
    /// become errors of ops.
    fn open_all(&mut self) -> Result<(), EngineError> {
        let optional = self.number > 0;
        let local = self.shared.config().engine.info.opens_local_files();
        for file in (0..).take(self.opened.len()).map(FileIndex::new) {
            match self.open(file) {
                Err(error) if optional || !local || is_out_of_files(&error) => {
                    return Err(error);
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Opens a file unless it is already open.
    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        match self.opened.get_mut(file.index()) {
            Some(opened) if !*opened => {
                self.engine.open(file)?;
                *opened = true;
                Ok(())
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Returns true if the process or the system has no descriptor left.
fn is_out_of_files(error: &EngineError) -> bool {
    matches!(error.errno, Some(Errno::ENFILE | Errno::EMFILE))
}
