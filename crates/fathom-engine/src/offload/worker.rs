//! One worker: takes ops from the run list, does them on an engine of its own, gives them back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};

use fathom_core::{
    Completion, Direction, Engine, EngineError, FileIndex, Op, OpKind, Slot, Submitted, Tick,
};
use fathom_sys::thread::{self, Usage};

use super::adaptive_spin::WakeSource;
use super::pool::Shared;
use crate::AnyEngine;

type Ready = Option<mpsc::SyncSender<Result<(), EngineError>>>;

/// The whole life of a worker; what it used.
pub(crate) fn run(shared: &Arc<Shared>, number: u32, ready: Ready) -> Usage {
    // A worker that cannot have its name works without.
    let _unnamed = thread::set_name(&format!("offload-{number}"));
    let body = AssertUnwindSafe(|| work(shared, number, ready));
    if let Err(panic) = catch_unwind(body) {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned());
        shared.fail(EngineError {
            what: "internal error",
            target: text.unwrap_or_default(),
            errno: 0,
            hint: "this is a bug in fathom; please report it".into(),
        });
    }
    thread::usage()
}

/// Makes the worker's engine and serves with it.
fn work(shared: &Arc<Shared>, number: u32, ready: Ready) {
    let config = shared.config();
    match (config.engine.start)(config) {
        Ok(AnyEngine::Null(engine)) => begin(engine, shared, number, ready),
        Ok(AnyEngine::Sync(engine)) => begin(engine, shared, number, ready),
        Ok(AnyEngine::Libaio(engine)) => begin(engine, shared, number, ready),
        Ok(AnyEngine::Uring(engine)) => begin(engine, shared, number, ready),
        Ok(other) => begin(other.boxed(), shared, number, ready),
        Err(error) => give_up(error, shared, ready),
    }
}

fn begin<E: Engine>(engine: E, shared: &Arc<Shared>, number: u32, ready: Ready) {
    let mut worker = Worker::new(engine, shared, number);
    if let Err(error) = worker.open_all() {
        return give_up(error, shared, ready);
    }
    if let Some(ready) = ready {
        // The pool waits for it.
        let _heard = ready.send(Ok(()));
    }
    shared.begin_to_serve();
    if let Err(error) = worker.serve() {
        shared.fail(error);
    }
    shared.end_serving();
}

/// Ends a worker that has no engine: the pool fails if it is the first, else goes on without it.
fn give_up(error: EngineError, shared: &Shared, ready: Ready) {
    match ready {
        Some(ready) => {
            let _heard = ready.send(Err(error));
        }
        None => shared.refuse(&error),
    }
}

struct Worker<'a, E> {
    engine: E,
    shared: &'a Arc<Shared>,
    number: u32,
    /// The engine does one op at a time.
    is_sync: bool,
    /// Files that this engine has open.
    opened: Vec<bool>,
    /// Taken from the run list.
    batch: Vec<Slot>,
    /// The ops of these slots.
    ops: Vec<Op>,
    /// Room for completions.
    out: Vec<Completion>,
    /// Completed, on their way back.
    back: Vec<Slot>,
    /// With this engine.
    in_flight: u32,
    /// Of which laid down only.
    prepared: u32,
}

impl<'a, E: Engine> Worker<'a, E> {
    fn new(engine: E, shared: &'a Arc<Shared>, number: u32) -> Self {
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
            back: Vec::with_capacity(depth.min(64)),
            in_flight: 0,
            prepared: 0,
        }
    }

    /// Works until no more comes.
    fn serve(&mut self) -> Result<(), EngineError> {
        let shared = self.shared;
        let mut spin = shared.spin();
        loop {
            self.batch.clear();
            let left = shared.take(&mut self.batch);
            if !self.batch.is_empty() {
                if left > 0 {
                    shared.call();
                }
                shared.grow(false);
                self.execute()?;
            } else if shared.look(&mut spin, self.waits_for(), || self.give_back() > 0) {
                // Work, or room for some.
            } else if self.in_flight > 0 {
                shared.go_away(|| self.engine.wait(1, None)).transpose()?;
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

    /// Hands what was taken to the engine.
    fn execute(&mut self) -> Result<(), EngineError> {
        let shared = self.shared;
        // All at once: another processor wrote them, and so the waits for them overlap.
        let ops = self.batch.iter();
        let ops = ops.map(|&slot| shared.cells[slot.index()].op(slot));
        self.ops.clear();
        self.ops.extend(ops);
        if self.ops.len() > 1 && shared.is_slow() {
            // Where each op is a device's work, in the device's order.
            self.ops.sort_unstable_by_key(|op| (op.file, op.offset));
        }
        let mut now = shared.config().clock.now();
        for index in 0..self.ops.len() {
            let op = self.ops[index];
            let cell = &shared.cells[op.slot.index()];
            if let Err(error) = self.open(op.file) {
                cell.begin(now);
                self.refuse(op.slot, &error);
                continue;
            }
            let alone = !matches!(op.kind, OpKind::Data(Direction::Read | Direction::Write));
            if alone {
                now = self.submit(now)?;
                self.drain()?;
            }
            cell.begin(now);
            self.engine.prepare(&op);
            self.prepared += 1;
            if alone || self.is_sync {
                now = self.submit(now)?;
            }
        }
        self.submit(now)?;
        Ok(())
    }

    /// Hands over what is laid down, gives back what has completed; the time after.
    fn submit(&mut self, before: Tick) -> Result<Tick, EngineError> {
        if self.prepared == 0 {
            return Ok(before);
        }
        let Submitted::Issued { now, .. } = self.engine.submit(0) else {
            // Only models and locks block, and neither is found here.
            return Ok(before);
        };
        let took = (now - before).get() / u64::from(self.prepared);
        self.shared.learn(fathom_core::Nanos::new(took));
        self.in_flight += self.prepared;
        self.prepared = 0;
        self.give_back();
        // A broken queue gives nothing back: its error is heard here.
        if self.in_flight > 0 {
            self.engine.wait(0, Some(Tick::ZERO))?;
        }
        Ok(now)
    }

    /// Waits for all that is with the engine.
    fn drain(&mut self) -> Result<(), EngineError> {
        while self.in_flight > 0 {
            self.engine.wait(1, None)?;
            self.give_back();
        }
        Ok(())
    }

    /// Gives back what has completed; how many they were.
    fn give_back(&mut self) -> usize {
        let mut given = 0;
        while self.in_flight > 0 {
            let count = self.engine.reap(&mut self.out);
            self.back.clear();
            for &Completion { slot, result } in &self.out[..count] {
                self.engine.release(slot);
                self.shared.cells[slot.index()].finish(result);
                self.back.push(slot);
                self.in_flight -= 1;
            }
            self.shared.give_back(&self.back);
            given += count;
            if count < self.out.len() {
                break;
            }
        }
        given
    }

    /// An op fails before it has begun.
    fn refuse(&mut self, slot: Slot, error: &EngineError) {
        let errno = match error.errno {
            0 => EIO,
            errno => errno,
        };
        self.shared.cells[slot.index()].finish(-errno);
        self.shared.give_back(&[slot]);
    }

    /// Opens all files before any op is taken: whoever cannot have one (no descriptor is left, it
    /// was removed) does not begin, and so fails no op. Of the first worker it is an op's affair,
    /// unless descriptors are short.
    fn open_all(&mut self) -> Result<(), EngineError> {
        for file in (0..).take(self.opened.len()).map(FileIndex::new) {
            match self.open(file) {
                Err(error) if self.number > 0 || matches!(error.errno, ENFILE | EMFILE) => {
                    return Err(error);
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Opens a file unless it is open.
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

/// The same on every architecture of Linux.
const EIO: i32 = 5;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
