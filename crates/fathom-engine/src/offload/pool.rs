//! The worker pool: starts workers on demand, wakes them when there is work, joins them at the end.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use fathom_core::{
    CompletionList, CompletionReader, EngineError, EngineStep, Errno, Nanos, Slot, Tick,
};
use fathom_sys::thread::Usage;
use fathom_sys::timer::Timer;

use super::adaptive_spin::{AdaptiveSpin, WakeSource};
use super::cell::OpCell;
use super::parked_workers::ParkedWorkers;
use super::run_list::{CacheAligned, RunList};
use super::worker;
use super::{Kick, WorkerThreads};
use crate::EngineConfig;

/// State shared by the submitter and the workers of one engine.
///
/// The hot parts (`list`, `cells`, `done`) are lock-free; the mutexes are taken only when workers
/// start or end. Counters that guide a decision (`cost_ns`, `batch_ops`, the number of workers
/// awake) are Relaxed estimates: a stale value costs a wake-up too many or some microseconds of
/// delay, never an op.
pub(crate) struct PoolState {
    pub(crate) list: RunList,
    /// Op and result of each slot.
    pub(crate) cells: Box<[OpCell]>,
    pub(crate) done: CompletionList,
    /// The thread that submits and reaps.
    owner: Thread,
    parked_workers: ParkedWorkers,
    /// Handles of the workers, by number.
    threads: Box<[OnceLock<Thread>]>,
    /// Number of workers started.
    started: AtomicU32,
    /// Number of workers that have an engine and serve the run list.
    serving: AtomicU32,
    /// Maximum of `serving`.
    serving_max: AtomicU32,
    /// Number of workers blocked in the kernel, waiting for ops they have submitted.
    blocked: AtomicU32,
    /// A worker is spinning for work; one at a time does.
    spinning: CacheAligned<AtomicBool>,
    /// Workers awake that suffice while ops are quick: one per CPU, less the submitter's.
    awake_enough: u32,
    processors: u32,
    /// Errno of a worker that could not be started; 0 if none was refused.
    refused: AtomicU32,
    /// The pool is shutting down.
    ending: AtomicBool,
    /// Running mean of a worker's time per op, ns.
    cost_ns: AtomicU64,
    /// Number of ops in the last batch submitted.
    batch_ops: AtomicU32,
    /// Configuration from which each worker starts an engine of its own.
    config: EngineConfig,
    /// Timer that the submitter sets and the kicker thread waits for (`offload_kick=delayed`).
    timer: Option<Timer>,
    cold: Mutex<ColdState>,
    live_threads: WorkerThreads,
    is_broken: AtomicBool,
}

/// State used only when workers start, fail or end.
#[derive(Default)]
struct ColdState {
    joins: Vec<JoinHandle<Usage>>,
    broken: Option<EngineError>,
}

/// The submitter's end of the pool. Dropping it ends and joins all workers.
pub(crate) struct Pool {
    pub(crate) shared: Arc<PoolState>,
    pub(crate) reader: CompletionReader,
    /// Spinning state of the submitter.
    pub(crate) spin: AdaptiveSpin,
    /// Number of ops taken from the run list at the submitter's last check, and its time.
    taken: (u64, Tick),
}

impl Pool {
    /// Starts a pool and waits until its first worker has started its engine and opened the files.
    pub(crate) fn start(
        config: EngineConfig,
        kick: Kick,
        live_threads: WorkerThreads,
    ) -> Result<Self, EngineError> {
        let timer = match kick {
            Kick::Delayed => Some(Timer::new().map_err(|error| no_timer(&error))?),
            Kick::Batch | Kick::Each | Kick::Reap => None,
        };
        let (shared, reader) = PoolState::new(config, timer, live_threads);
        let shared = Arc::new(shared);
        let (sender, ready) = mpsc::sync_channel(1);
        let pool = Self {
            spin: AdaptiveSpin::new(shared.config.clock, shared.processors),
            taken: (0, shared.config.clock.now()),
            shared,
            reader,
        };
        pool.shared.start_worker(Some(sender))?;
        pool.shared.start_kicker()?;
        match ready.recv() {
            Ok(Ok(())) => Ok(pool),
            Ok(Err(error)) => Err(error),
            Err(_gone) => Err(pool.shared.broken().unwrap_or_else(ended_early)),
        }
    }

    /// Returns true if queued work has waited longer than the workers awake should need to come
    /// back for it: an op expected to be quick is holding them up. Called after each batch;
    /// `had_work` says if the list held work before it.
    pub(crate) fn is_stalled(&mut self, had_work: bool, now: Tick) -> bool {
        let taken = self.shared.list.taken();
        if taken != self.taken.0 || !had_work {
            self.taken = (taken, now);
        }
        now - self.taken.1 > WAKE_AFTER
    }

    /// Blocks the submitter until an op completes, or for `most`. If queued work makes no progress
    /// meanwhile, wakes or starts a worker.
    pub(crate) fn sleep(&self, most: Option<Nanos>) {
        let shared = &self.shared;
        let before = shared.list.taken();
        let waiting = shared.list.len() > 0;
        let look_after = match shared.parked_workers.is_empty() {
            true => START_AFTER,
            false => WAKE_AFTER,
        };
        let most = match waiting {
            true => Some(most.unwrap_or(look_after).min(look_after)),
            false => most,
        };
        match most {
            Some(most) => thread::park_timeout(Duration::from_nanos(most.get())),
            None => thread::park(),
        }
        if waiting && shared.list.len() > 0 && shared.list.taken() == before {
            shared.wake_one();
            shared.grow(true);
        }
    }

    /// Ends the pool: queued ops are executed, workers joined. Returns the workers' CPU usage.
    pub(crate) fn end(&self) -> Usage {
        let shared = &self.shared;
        shared.ending.store(true, Ordering::SeqCst);
        // The kicker thread sees the flag when its timer expires.
        shared.kick_later();
        let mut used = Usage::default();
        loop {
            for thread in shared.threads.iter().filter_map(OnceLock::get) {
                thread.unpark();
            }
            let Some(join) = shared.cold().joins.pop() else {
                return used;
            };
            used = used.plus(join.join().unwrap_or_default());
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let _used = self.end();
    }
}

impl PoolState {
    /// Creates the state of a pool without workers, and the submitter's end of the completion list.
    fn new(
        config: EngineConfig,
        timer: Option<Timer>,
        live_threads: WorkerThreads,
    ) -> (Self, CompletionReader) {
        let depth = config.depth;
        let most = depth.min(WORKERS_MAX);
        let processors = thread::available_parallelism()
            .map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX));
        let (done, reader) = CompletionList::new(depth);
        let shared = Self {
            list: RunList::new(depth),
            cells: (0..depth).map(|_| OpCell::default()).collect(),
            done,
            owner: thread::current(),
            parked_workers: ParkedWorkers::new(most),
            threads: (0..most).map(|_| OnceLock::new()).collect(),
            started: AtomicU32::new(0),
            serving: AtomicU32::new(0),
            serving_max: AtomicU32::new(0),
            blocked: AtomicU32::new(0),
            spinning: CacheAligned(AtomicBool::new(false)),
            awake_enough: processors.saturating_sub(1).max(1),
            processors,
            refused: AtomicU32::new(0),
            ending: AtomicBool::new(false),
            cost_ns: AtomicU64::new(0),
            batch_ops: AtomicU32::new(0),
            config,
            timer,
            cold: Mutex::default(),
            live_threads,
            is_broken: AtomicBool::new(false),
        };
        (shared, reader)
    }

    /// Starts one more worker, unless there are enough, one was refused, or the pool is ending.
    /// `ready` receives the result of starting its engine.
    fn start_worker(
        self: &Arc<Self>,
        ready: Option<mpsc::SyncSender<Result<(), EngineError>>>,
    ) -> Result<(), EngineError> {
        let mut cold = self.cold();
        // Relaxed: only changed under the lock.
        let number = self.started.load(Ordering::Relaxed);
        let full = number as usize >= self.threads.len() || self.refused().is_some();
        if full || self.ending.load(Ordering::SeqCst) {
            return Ok(());
        }
        let shared = Arc::clone(self);
        let body = move || shared.live_while(|| worker::run(&shared, number, ready));
        match thread::Builder::new().stack_size(STACK_BYTES).spawn(body) {
            Ok(join) => {
                let _unset = self.threads[number as usize].set(join.thread().clone());
                cold.joins.push(join);
                self.started.store(number + 1, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                let error = refused(&error);
                self.refuse(&error);
                Err(error)
            }
        }
    }

    /// Starts the kicker thread if the pool has a timer.
    fn start_kicker(self: &Arc<Self>) -> Result<(), EngineError> {
        if self.timer.is_none() {
            return Ok(());
        }
        let shared = Arc::clone(self);
        let body = move || shared.live_while(|| shared.kick_by_timer());
        let spawned = thread::Builder::new().stack_size(STACK_BYTES).spawn(body);
        let join = spawned.map_err(|error| refused(&error))?;
        self.cold().joins.push(join);
        Ok(())
    }

    /// Runs the kicker thread to its end and returns its CPU usage.
    fn kick_by_timer(&self) -> Usage {
        while let Some(timer) = self.timer.as_ref().filter(|_| !self.is_ending()) {
            if let Err(error) = timer.wait() {
                self.fail(no_timer(&error));
                break;
            }
            self.request_worker();
        }
        fathom_sys::thread::usage()
    }

    /// Lists the calling thread as live while `life` runs. The entry must go with the thread: the
    /// kernel may give its id to another one.
    fn live_while(&self, life: impl FnOnce() -> Usage) -> Usage {
        let id = fathom_sys::thread::id();
        self.live_threads().push(id);
        let used = life();
        self.live_threads().retain(|&other| other != id);
        used
    }

    /// Sets the timer, whose thread wakes a worker.
    pub(crate) fn kick_later(&self) {
        if let Some(timer) = &self.timer
            && timer.set(Nanos::ZERO).is_err()
        {
            // Without a timer, wake a worker at the submitter's own cost.
            self.wake_one();
        }
    }

    /// Starts one more worker if none is parked and those awake are not expected back soon.
    pub(crate) fn grow(self: &Arc<Self>, stuck: bool) {
        let started = self.started.load(Ordering::Relaxed);
        let wanted = stuck || started < WORKERS_MIN || self.is_slow();
        if !wanted || started as usize >= self.threads.len() || !self.parked_workers.is_empty() {
            return;
        }
        // A refusal is recorded and reported at the end; the other workers execute the ops.
        let _refused = self.start_worker(None);
    }

    /// Records that a worker could not be started. The others continue.
    pub(crate) fn refuse(&self, error: &EngineError) {
        let errno = error.errno.unwrap_or(Errno::EIO);
        self.refused.store(errno.unsigned(), Ordering::Relaxed);
    }

    /// Wakes a worker unless a wake-up is under way.
    pub(crate) fn wake_one(&self) {
        if let Some(number) = self.parked_workers.choose(|| self.list.len() > 0) {
            self.unpark(number);
        }
    }

    /// Wakes a worker even if another wake-up is under way.
    pub(crate) fn wake_another(&self) {
        if let Some(number) = self.parked_workers.pop() {
            self.unpark(number);
        }
    }

    fn unpark(&self, number: u32) {
        // Always set: `sleep` sets it before the worker becomes visible as parked.
        if let Some(thread) = self.threads[number as usize].get() {
            thread.unpark();
        }
    }

    /// Requests a worker for queued work: wakes one unless a wake-up is under way, or ops are quick
    /// and the workers awake will return sooner than another could be woken.
    pub(crate) fn request_worker(&self) {
        if self.is_slow() || self.awake() < self.awake_enough {
            self.wake_one();
        }
    }

    /// Returns the number of workers awake that will check the run list before they park. Called
    /// after work was queued: a worker about to park then sees it (fences in `RunList::push` and
    /// `ParkedWorkers::sleep`), and so does one about to end or to block (fences below).
    fn awake(&self) -> u32 {
        let serving = self.serving.load(Ordering::Relaxed);
        let blocked = self.blocked.load(Ordering::Relaxed);
        serving.saturating_sub(self.parked_workers.count() + blocked)
    }

    /// Counts the calling worker, which has its engine, as serving.
    pub(crate) fn begin_serving(&self) {
        let serving = self.serving.fetch_add(1, Ordering::Relaxed) + 1;
        self.serving_max.fetch_max(serving, Ordering::Relaxed);
    }

    /// Ends the calling worker's service and passes work that was counting on it to another.
    pub(crate) fn end_serving(&self) {
        self.serving.fetch_sub(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.list.len() > 0 {
            self.wake_one();
        }
    }

    /// Runs `wait`, which blocks the calling worker in the kernel, unless there is work.
    pub(crate) fn block_in_kernel<T>(&self, wait: impl FnOnce() -> T) -> Option<T> {
        self.blocked.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let waited = (self.list.len() == 0).then(wait);
        self.blocked.fetch_sub(1, Ordering::Relaxed);
        waited
    }

    /// Spins for work, or for `else_there`, before the calling worker blocks: while ops are quick,
    /// the next ones arrive soon. One worker at a time spins; returns true if there is something to
    /// do.
    pub(crate) fn spin_for_work(
        &self,
        spin: &mut AdaptiveSpin,
        from: WakeSource,
        mut else_there: impl FnMut() -> bool,
    ) -> bool {
        let spinning = &self.spinning.0;
        if self.is_slow()
            || spinning.load(Ordering::Relaxed)
            || spinning.swap(true, Ordering::Relaxed)
        {
            return false;
        }
        let found = spin.spin_until(from, None, || self.list.len() > 0 || else_there());
        spinning.store(false, Ordering::Relaxed);
        found
    }

    /// Creates the spinning state of a worker.
    pub(crate) fn new_spin(&self) -> AdaptiveSpin {
        AdaptiveSpin::of_worker(self.config.clock, self.processors)
    }

    /// Parks a worker that has nothing to do.
    pub(crate) fn sleep(&self, number: u32) {
        let _set_already = self.threads[number as usize].set(thread::current());
        let has_work = || self.list.len() > 0 || self.is_ending();
        self.parked_workers.sleep(number, has_work, thread::park);
    }

    /// Moves a worker's share of the run list to `to` and returns the number of ops left.
    pub(crate) fn take(&self, to: &mut Vec<Slot>) -> u64 {
        let cost = self.cost_ns.load(Ordering::Relaxed);
        if cost > SLOW_OP_NS {
            // Slow ops: leave as much for each parked worker, so that all ops run at once.
            let others = u64::from(self.parked_workers.count());
            return self.list.take(to, |there| there.div_ceil(others + 1));
        }
        // Quick ops: take a whole batch, so that it is handed over once. Beyond that take only what
        // is done in a few microseconds, so that completions reach the submitter early.
        let batch_ops = u64::from(self.batch_ops.load(Ordering::Relaxed));
        let most = batch_ops.max(TAKEN_MAX_NS / cost.max(1)).min(TAKEN_MAX_OPS);
        self.list.take(to, |there| there.min(most))
    }

    /// Records the size of a batch. Only the submitter may call it.
    pub(crate) fn note_batch(&self, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        // Relaxed: a hint. Written only if it changes, so that the workers keep the cache line.
        if self.batch_ops.load(Ordering::Relaxed) != count {
            self.batch_ops.store(count, Ordering::Relaxed);
        }
    }

    /// Gives completed ops, whose results are in their cells, back to the submitter.
    pub(crate) fn give_back(&self, slots: &[Slot]) {
        if self.done.push_all(slots) {
            self.owner.unpark();
        }
    }

    /// Updates the running mean of a worker's time per op.
    pub(crate) fn note_cost(&self, took: Nanos) {
        // Relaxed, and not atomic as a whole: a lost update does not matter to an estimate. Values
        // near the mean are not written, so that all workers keep the cache line.
        let (mean, took) = (self.cost_ns.load(Ordering::Relaxed), took.get());
        if took / 2 > mean || took < mean / 2 {
            let next = mean - mean / 8 + took / 8;
            self.cost_ns.store(next, Ordering::Relaxed);
        }
    }

    /// Returns true if an op takes a worker long enough to be worth waking another one.
    pub(crate) fn is_slow(&self) -> bool {
        self.cost_ns.load(Ordering::Relaxed) > SLOW_OP_NS
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    pub(crate) const fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// Returns the largest number of serving workers, and the errno of a refused one, if any.
    pub(crate) fn workers(&self) -> (u32, Option<Errno>) {
        (self.serving_max.load(Ordering::Relaxed), self.refused())
    }

    fn refused(&self) -> Option<Errno> {
        let errno = self.refused.load(Ordering::Relaxed);
        Errno::try_from(errno.cast_signed()).ok()
    }

    /// Records that a worker's engine has failed for good, and wakes the submitter.
    pub(crate) fn fail(&self, error: EngineError) {
        self.cold().broken.get_or_insert(error);
        self.is_broken.store(true, Ordering::SeqCst);
        self.owner.unpark();
    }

    /// Returns the error by which the pool failed, if it did.
    pub(crate) fn broken(&self) -> Option<EngineError> {
        match self.is_broken.load(Ordering::SeqCst) {
            true => self.cold().broken.clone(),
            false => None,
        }
    }

    fn live_threads(&self) -> MutexGuard<'_, Vec<u32>> {
        self.live_threads
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn cold(&self) -> MutexGuard<'_, ColdState> {
        self.cold.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refused(error: &io::Error) -> EngineError {
    EngineError {
        step: EngineStep::StartWorker,
        target: "io_submit_mode=offload".into(),
        errno: Errno::of(error).or(Some(Errno::EAGAIN)),
        hint: "raise `ulimit -u`, or the pids.max of the control group".into(),
    }
}

fn no_timer(error: &io::Error) -> EngineError {
    EngineError {
        step: EngineStep::Call("timerfd"),
        target: "offload_kick=delayed".into(),
        errno: Errno::of(error),
        hint: "raise `ulimit -n`, or leave offload_kick out".into(),
    }
}

fn ended_early() -> EngineError {
    EngineError {
        step: EngineStep::StartWorker,
        target: "io_submit_mode=offload".into(),
        errno: None,
        hint: "this is a bug in fathom; please report it".into(),
    }
}

/// Most workers of a job: a process has room for some ten thousand threads.
const WORKERS_MAX: u32 = 1024;
/// Workers started without need: one that executes ops, and one to wake when that one is held up.
const WORKERS_MIN: u32 = 2;
/// Time per op above which waking another worker pays off; a wake-up costs some microseconds.
const SLOW_OP_NS: u64 = 50_000;
/// Work that a worker takes at once while ops are quick, ns: a few times the cost of handing it
/// over. A guess.
const TAKEN_MAX_NS: u64 = 5_000;
/// Most quick ops taken at once: a worker that is held up delays no more than these.
const TAKEN_MAX_OPS: u64 = 64;
/// Time after which untouched work is worth waking another worker, even if ops are quick.
const WAKE_AFTER: Nanos = Nanos::new(SLOW_OP_NS);
/// Time after which untouched work is worth starting another worker.
const START_AFTER: Nanos = Nanos::from_millis(1);
/// Bytes of a worker's stack: calls are a dozen deep at most, and 1024 stacks of the default 2 MiB
/// would reserve 2 GiB.
const STACK_BYTES: usize = 256 << 10;
