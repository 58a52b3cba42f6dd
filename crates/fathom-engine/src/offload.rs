//! `io_submit_mode=offload`: worker threads execute the ops, so submission never blocks.
//!
//! ```text
//!               batch               share              private
//!  submit ──► run list ──► worker ──────────► engine (one for each worker)
//!    ▲                                           │
//!  reap  ◄── completion list ◄───────────────────┘
//! ```
//!
//! The submitter pushes a whole batch onto the run list and wakes at most one worker; that worker
//! takes its share and wakes the next if work is left. While ops are quick, one worker takes many;
//! while they block, the list is split among the parked workers and more are started, up to one per
//! slot. Completions come back over a lock-free list.
//!
//! Buffers change owner with their ops. The submitter opens local files, so that `open` reports
//! their errors; each worker opens all files for its own engine before it takes an op.

mod adaptive_spin;
mod cell;
mod parked_workers;
mod pool;
mod run_list;
mod submitter_files;
mod worker;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, EngineInfo, EngineStep, Errno,
    FileIndex, Op, OpKind, PerDirection, Queueing, Slot, Storage, Submitted, Tick, Zone,
    ZoneAction,
};
use fathom_stats::Latency;
use fathom_sys::clock::Clock;
use fathom_sys::in_flight::Ready;
use fathom_sys::memory::{Buffers, MemoryPlacement, SharedBuffers};
use fathom_sys::thread::Usage;

use crate::EngineConfig;
use crate::error::no_memory;

use adaptive_spin::WakeSource;
use pool::Pool;
use submitter_files::SubmitterFiles;

/// Synchronisation primitives of the run list and the parked workers, replaceable by a model
/// checker.
mod sync {
    pub(crate) use std::sync::atomic;
}

/// Time at which the submitter wakes a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kick {
    /// Once per batch.
    #[default]
    Batch,
    /// Once per op.
    Each,
    /// Once per batch, by a timer that expires at once: the kicker thread pays for the wake-up.
    Delayed,
    /// Once per call in which the submitter reaps.
    Reap,
}

/// Statistics of an offloaded job's workers.
#[derive(Clone, Debug)]
pub struct OffloadStats {
    /// Time from submission until a worker started the op, ns.
    pub queued: PerDirection<Latency>,
    /// CPU usage of the workers that have ended.
    pub usage: Usage,
    /// Threads that have not ended.
    pub live_threads: WorkerThreads,
    /// Largest number of workers at a time.
    pub workers: u32,
    /// Errno of a worker that could not be started, if one was refused.
    pub refused: Option<Errno>,
}

impl Default for OffloadStats {
    fn default() -> Self {
        Self {
            queued: PerDirection::from_fn(|_| Latency::new(true)),
            usage: Usage::default(),
            live_threads: WorkerThreads::default(),
            workers: 0,
            refused: None,
        }
    }
}

/// Kernel thread ids of live workers. Locked when a worker starts or ends, and by readers of CPU
/// usage; never per op.
pub type WorkerThreads = Arc<Mutex<Vec<u32>>>;

/// Statistics of an engine in use, shared with the driver on the same thread.
pub type SharedStats = Rc<RefCell<OffloadStats>>;

/// Engine that executes ops on worker threads, each with an engine of its own.
///
/// Start it through [`start`](crate::start) with [`EngineConfig::offload`] set. The first worker
/// starts with the engine, or when the last file is opened; the others on demand. An op costs a
/// push and a pop on two lock-free lists, and a wake-up when workers are parked. One engine shared
/// by all workers was rejected: rings and contexts are not thread-safe, and a lock around them
/// would serialise what offloading is to make parallel.
pub struct Offload {
    config: EngineConfig,
    capabilities: Capabilities,
    kick: Kick,
    clock: Clock,
    files: SubmitterFiles,
    buffers: Buffers,
    /// `None` after a file was closed: workers must not keep files open longer than the submitter.
    pool: Option<Pool>,
    /// A pool was started before.
    began: bool,
    /// Prepared, not yet submitted.
    batch: Vec<Slot>,
    /// Kind and issue time of each slot's op, for the queueing time.
    issued: Vec<(OpKind, Tick)>,
    ready: Ready,
    /// Submitted to the workers.
    in_flight: u32,
    stats: SharedStats,
}

impl Offload {
    /// Starts the engine, and its first worker if no file needs opening.
    pub(crate) fn start(mut config: EngineConfig, kick: Kick) -> Result<Self, EngineError> {
        check_shares_buffers(&config)?;
        let memory = &config.memory;
        let shared = SharedBuffers::new(memory, config.depth, config.buffer_bytes);
        let shared = shared.map_err(|error| no_memory(&config, &error))?;
        config.memory = MemoryPlacement {
            buffers: Some(shared),
            ..memory.clone()
        };
        let buffers = Buffers::within(&config.memory, config.depth, config.buffer_bytes);
        let buffers = buffers.map_err(|error| no_memory(&config, &error))?;
        let files = SubmitterFiles::new(&config);
        // Only the submitter creates files: workers would race, or recreate a file in use.
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
            stats: Rc::default(),
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
        Rc::clone(&self.stats)
    }

    fn start_pool(&mut self) -> Result<(), EngineError> {
        if self.pool.is_none() {
            let live_threads = Arc::clone(&self.stats.borrow().live_threads);
            self.pool = Some(Pool::start(self.config.clone(), self.kick, live_threads)?);
            self.began = true;
        }
        Ok(())
    }

    /// Ends all workers, which closes their files.
    fn end_pool(&mut self) {
        let Some(pool) = &self.pool else { return };
        let used = pool.end();
        let (workers, refused) = pool.shared.workers();
        // All ops in flight are complete by now.
        self.collect(true);
        self.pool = None;
        let mut stats = self.stats.borrow_mut();
        stats.usage = stats.usage.plus(used);
        stats.workers = stats.workers.max(workers);
        stats.refused = stats.refused.max(refused);
    }

    /// Pushes the batch onto the run list, requests a worker, and returns the issue time.
    fn push(&mut self) -> Tick {
        let Some(pool) = &mut self.pool else {
            return self.clock.now();
        };
        let shared = &pool.shared;
        let had_work = shared.list.len() > 0;
        shared.note_batch(self.batch.len());
        shared.list.push(&self.batch);
        match self.kick {
            Kick::Batch => shared.request_worker(),
            Kick::Each => {
                for _op in &self.batch {
                    shared.wake_another();
                }
            }
            Kick::Delayed => shared.kick_later(),
            Kick::Reap => {}
        }
        let mut issue = self.clock.now();
        if pool.is_stalled(had_work, issue) && self.kick == Kick::Batch {
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

    /// Fails the batch because no worker could be started.
    #[cold]
    fn refuse(&mut self, error: &EngineError) {
        let errno = error.errno.unwrap_or(Errno::EIO);
        for slot in self.batch.drain(..) {
            self.ready.push(slot, errno.result());
        }
    }

    /// Collects completed ops. A caller that blocks if there are none must set `must_be_sure`: the
    /// quick check without it may miss a completion just pushed.
    fn collect(&mut self, must_be_sure: bool) {
        let Some(pool) = &mut self.pool else {
            return;
        };
        let shared = &pool.shared;
        if shared.done.is_empty() && !must_be_sure {
            return;
        }
        let (ready, issued) = (&mut self.ready, &self.issued);
        let mut stats = self.stats.borrow_mut();
        let count = shared.done.drain(&mut pool.reader, u32::MAX, |slot| {
            let cell = &shared.cells[slot.index()];
            let (kind, issue) = issued[slot.index()];
            if let OpKind::Data(direction) = kind {
                let queued = cell.started_at() - issue;
                stats.queued[direction].record(queued.get());
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
        // The first worker opens its files before any job starts; otherwise extra workers of other
        // jobs could take the last descriptors. Later pools start with their first op.
        if !self.began && self.files.are_open() {
            self.start_pool()?;
        }
        Ok(())
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.end_pool();
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
        }
        if self.config.engine.info.storage != Storage::None && !self.files.is_open(op.file) {
            // The submitter has no such file open, so no worker may open it.
            return self.ready.push(op.slot, Errno::EBADF.result());
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
            false => self.push(),
        };
        if want == 0 {
            return Submitted::Issued { issue, now: issue };
        }
        // Submission and waiting are separate here. An error is sticky: the next `wait` returns it.
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
            pool.shared.request_worker();
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
                shared.request_worker();
            }
            if !shared.is_slow()
                && pool
                    .spin
                    .spin_until(WakeSource::Pool, left, || !shared.done.is_empty())
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

/// Refuses an engine whose buffers cannot change owner with their ops.
fn check_shares_buffers(config: &EngineConfig) -> Result<(), EngineError> {
    let info = config.engine.info;
    let hint = if !info.performs_io() || info.storage == Storage::Peer {
        "its ops come one after the other: leave out io_submit_mode"
    } else if !info.moves_data() || info.shares_buffers {
        return Ok(());
    } else {
        "its buffers belong to one thread: leave out io_submit_mode"
    };
    Err(EngineError {
        step: EngineStep::Option("io_submit_mode=offload"),
        target: format!("engine `{}`", info.name),
        errno: None,
        hint: hint.into(),
    })
}

/// Returns the capabilities of the offloaded engine, as the submitter sees them.
fn capabilities(info: &EngineInfo) -> Capabilities {
    Capabilities {
        name: info.name,
        synchronous: false,
        moves_data: info.moves_data(),
        syncs: Queueing::Queued,
        trims: Queueing::Queued,
    }
}
