//! `io_submit_mode=offload`: ops are done by workers, so that submitting them never blocks.
//!
//! ```text
//!               batch               share              private
//!  submit ──► run list ──► worker ──────────► engine (one for each worker)
//!    ▲                                           │
//!  reap  ◄── completion list ◄───────────────────┘
//! ```
//!
//! The submitter lays a whole batch on the run list and wakes one worker at most; the woken one
//! takes its share and wakes the next if anything is left. Where ops are quick one worker takes
//! many; where they hold workers up the list is split among those that sleep, and more are started,
//! up to one for each slot. Completions come back over a list without a lock.
//!
//! Buffers change hands with their ops. Files are opened by the submitter, so that errors are told
//! where they are expected, and once more by each worker before it takes an op.

mod adaptive_spin;
mod cell;
mod parked_workers;
mod pool;
mod run_list;
mod worker;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, EngineInfo, FileIndex, Op, OpKind,
    PerDirection, Slot, Storage, Submitted, Tick,
};
use fathom_stats::Latency;
use fathom_sys::clock::Clock;
use fathom_sys::in_flight::Ready;
use fathom_sys::memory::{Buffers, BuffersInTurns, Memory};
use fathom_sys::thread::Usage;

use crate::EngineConfig;
use crate::error::no_memory;
use crate::files::Files;

use adaptive_spin::WakeSource;
use pool::Pool;

/// Synchronisation primitives of the run list and the parked workers, replaceable by a model
/// checker.
mod sync {
    pub(crate) use std::sync::atomic;
}

/// When the submitter wakes a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kick {
    /// Once for each batch.
    #[default]
    Batch,
    /// Once for each op.
    Each,
    /// Once for each batch, by a timer that goes off at once.
    Delayed,
    /// When it reaps.
    Reap,
}

/// Statistics of an offloaded job's workers.
#[derive(Clone, Debug)]
pub struct OffloadStats {
    /// Time that ops lay on the run list, ns.
    pub queued: PerDirection<Latency>,
    /// CPU usage of the workers that have ended.
    pub usage: Usage,
    /// The threads of those that have not.
    pub at_work: WorkerThreads,
    /// The most workers that did ops.
    pub workers: u32,
    /// Why there were no more, by the system's number; 0 if none was refused.
    pub refused: u32,
}

impl Default for OffloadStats {
    fn default() -> Self {
        Self {
            queued: PerDirection::from_fn(|_| Latency::new(true)),
            usage: Usage::default(),
            at_work: WorkerThreads::default(),
            workers: 0,
            refused: 0,
        }
    }
}

/// Threads, by the kernel's numbers. Touched when workers come and go, and when somebody asks.
pub type WorkerThreads = Arc<Mutex<Vec<u32>>>;

/// The figures of an engine that is at work.
pub type SharedStats = Rc<RefCell<OffloadStats>>;

/// An engine whose ops are done by other threads.
pub struct Offload {
    config: EngineConfig,
    capabilities: Capabilities,
    kick: Kick,
    clock: Clock,
    files: Files,
    buffers: Buffers,
    /// None when a file was closed: workers keep files open only as long as the submitter does.
    pool: Option<Pool>,
    /// There has been a pool.
    began: bool,
    /// Laid down, not yet submitted.
    batch: Vec<Slot>,
    /// The op and the issue of each slot, for what is told of its wait.
    issued: Vec<(OpKind, Tick)>,
    ready: Ready,
    /// With the workers.
    in_flight: u32,
    figures: SharedStats,
}

impl Offload {
    /// `capabilities` are those of the engine inside.
    pub(crate) fn start(mut config: EngineConfig, kick: Kick) -> Result<Self, EngineError> {
        refuse_own_buffers(&config)?;
        let memory = &config.memory;
        let turns = BuffersInTurns::new(memory, config.depth, config.buffer_bytes);
        let turns = turns.map_err(|error| no_memory(&config, &error))?;
        config.memory = Memory {
            turns: Some(turns),
            ..memory.clone()
        };
        let buffers = Buffers::within(&config.memory, config.depth, config.buffer_bytes);
        let buffers = buffers.map_err(|error| no_memory(&config, &error))?;
        let files = Files::new(&config);
        // Files are made by the submitter alone.
        for file in &mut config.files {
            file.create = false;
            file.recreate = false;
        }
        let mut offload = Self {
            capabilities: capabilities(config.engine.info),
            kick,
            clock: config.clock,
            files,
            buffers,
            pool: None,
            began: false,
            batch: Vec::with_capacity(config.depth as usize),
            issued: vec![(OpKind::Data(Direction::Read), Tick::ZERO); config.depth as usize],
            ready: Ready::new(config.depth),
            in_flight: 0,
            figures: Rc::default(),
            config,
        };
        if offload.files.are_open() {
            offload.start_pool()?;
        }
        Ok(offload)
    }

    /// Returns the shared statistics, which the workers fill in.
    #[must_use]
    pub fn stats(&self) -> SharedStats {
        Rc::clone(&self.figures)
    }

    fn start_pool(&mut self) -> Result<(), EngineError> {
        if self.pool.is_none() {
            let at_work = Arc::clone(&self.figures.borrow().at_work);
            self.pool = Some(Pool::start(self.config.clone(), self.kick, at_work)?);
            self.began = true;
        }
        Ok(())
    }

    /// All workers end; files that they had open are closed.
    fn end_pool(&mut self) {
        let Some(pool) = &self.pool else { return };
        let used = pool.end();
        let (workers, refused) = pool.shared.workers();
        // What was in flight is done by now.
        self.collect(true);
        self.pool = None;
        let mut figures = self.figures.borrow_mut();
        figures.usage = figures.usage.plus(used);
        figures.workers = figures.workers.max(workers);
        figures.refused = figures.refused.max(refused);
    }

    /// Lays the batch on the run list; the time after.
    fn lay(&mut self) -> Tick {
        let Some(pool) = &mut self.pool else {
            return self.clock.now();
        };
        let shared = &pool.shared;
        let had_work = shared.list.len() > 0;
        shared.submitted_together(self.batch.len());
        shared.list.lay(&self.batch);
        match self.kick {
            Kick::Batch => shared.call(),
            Kick::Each => {
                for _op in &self.batch {
                    shared.wake_another();
                }
            }
            Kick::Delayed => shared.kick_later(),
            Kick::Reap => {}
        }
        let mut issue = self.clock.now();
        if pool.is_left_lying(had_work, issue) && self.kick == Kick::Batch {
            pool.shared.wake_one();
            issue = self.clock.now();
        }
        for slot in &self.batch {
            self.issued[slot.index()].1 = issue;
        }
        self.in_flight += u32::try_from(self.batch.len()).unwrap_or(u32::MAX);
        self.batch.clear();
        issue
    }

    /// Fails the batch, because there is nobody to do it.
    #[cold]
    fn refuse(&mut self, error: &EngineError) {
        let errno = match error.errno {
            0 => EIO,
            errno => errno,
        };
        for slot in self.batch.drain(..) {
            self.ready.push(slot, -errno);
        }
    }

    /// Takes what the workers have given back. Who sleeps if it is nothing must be sure of it.
    fn collect(&mut self, must_be_sure: bool) {
        let Some(pool) = &mut self.pool else {
            return;
        };
        let shared = &pool.shared;
        if shared.done.is_empty() && !must_be_sure {
            return;
        }
        let (ready, issued) = (&mut self.ready, &self.issued);
        let mut figures = self.figures.borrow_mut();
        let count = shared.done.drain(&mut pool.reader, u32::MAX, |slot| {
            let cell = &shared.cells[slot.index()];
            let (kind, issue) = issued[slot.index()];
            if let OpKind::Data(direction) = kind {
                let queued = cell.begun() - issue;
                figures.queued[direction].record(queued.get());
            }
            ready.push(slot, cell.result());
        });
        self.in_flight -= count;
    }
}

impl Engine for Offload {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.files.open(file)?;
        // The first worker opens its files before any job begins, so that no other worker has the
        // last descriptors. Where files are made anew, the next op is soon enough.
        if !self.began && self.files.are_open() {
            self.start_pool()?;
        }
        Ok(())
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.end_pool();
        self.files.close(file)
    }

    fn invalidate(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.files.invalidate(file)
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        match self.capabilities.moves_data {
            true => self.buffers.get(slot),
            false => &mut [],
        }
    }

    fn prepare(&mut self, op: &Op) {
        let waiting = self.batch.len() + self.ready.count();
        assert!(
            waiting + (self.in_flight as usize) < self.config.depth as usize,
            "more ops than slots"
        );
        if self.capabilities.moves_data {
            self.buffers.release(op.slot);
            if self.files.descriptor(op.file).is_none() {
                // No worker could open it either.
                return self.ready.push(op.slot, -EBADF);
            }
        }
        if self.pool.is_none()
            && let Err(error) = self.start_pool()
        {
            self.batch.push(op.slot);
            return self.refuse(&error);
        }
        if let Some(pool) = &self.pool {
            pool.shared.cells[op.slot.index()].put(op);
            self.issued[op.slot.index()].0 = op.kind;
            self.batch.push(op.slot);
        }
    }

    fn submit(&mut self, want: u32) -> Submitted {
        let issue = match self.batch.is_empty() {
            true => self.clock.now(),
            false => self.lay(),
        };
        if want == 0 {
            return Submitted::Issued { issue, now: issue };
        }
        // Submitting and waiting are two things here; an error is kept for the next `wait`.
        let _told_again = self.wait(want, None);
        let now = self.clock.now();
        Submitted::Issued { issue, now }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        if self.ready.count() == 0 && self.in_flight > 0 {
            self.collect(false);
        }
        if self.kick == Kick::Reap
            && let Some(pool) = &self.pool
            && pool.shared.list.len() > 0
        {
            pool.shared.call();
        }
        self.ready.take(out)
    }

    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        loop {
            if self.in_flight > 0 {
                self.collect(true);
            }
            let ready = u32::try_from(self.ready.count()).unwrap_or(u32::MAX);
            if ready >= min.min(ready + self.in_flight) {
                return Ok(());
            }
            let Some(pool) = &mut self.pool else {
                return Ok(());
            };
            let shared = &pool.shared;
            if let Some(error) = shared.broken() {
                return Err(error);
            }
            let left = until.map(|until| until - self.clock.now());
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(());
            }
            if self.kick == Kick::Reap {
                shared.call();
            }
            if !shared.is_slow()
                && pool
                    .spin
                    .look(WakeSource::Pool, left, || !shared.done.is_empty())
            {
                continue;
            }
            pool.sleep(left);
        }
    }
}

impl Drop for Offload {
    fn drop(&mut self) {
        self.end_pool();
    }
}

/// Refuses an engine whose buffers cannot change hands with their ops.
fn refuse_own_buffers(config: &EngineConfig) -> Result<(), EngineError> {
    let info = config.engine.info;
    if info.storage == Storage::None || info.storage == Storage::LocalFiles && info.shares_buffers {
        return Ok(());
    }
    Err(EngineError {
        what: "io_submit_mode=offload",
        target: format!("engine `{}`", info.name),
        errno: 0,
        hint: "its buffers belong to one thread: leave out io_submit_mode".into(),
    })
}

/// Capabilities of the whole, seen from the submitter.
fn capabilities(info: &EngineInfo) -> Capabilities {
    Capabilities {
        name: info.name,
        synchronous: false,
        moves_data: info.storage != Storage::None,
        // Workers keep no order among them, so an op that needs one waits for the others.
        queued_sync: false,
        queued_trim: false,
    }
}

/// The same on every architecture of Linux.
const EIO: i32 = 5;
const EBADF: i32 = 9;
