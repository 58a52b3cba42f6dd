//! The workers: started when there is need of them, woken when there is work, joined at the end.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use fathom_core::{CompletionList, CompletionReader, EngineError, Nanos, Slot, Tick};
use fathom_sys::thread::Usage;
use fathom_sys::timer::Timer;

use super::adaptive_spin::{AdaptiveSpin, WakeSource};
use super::cell::Cell;
use super::parked_workers::ParkedWorkers;
use super::run_list::{OwnLine, RunList};
use super::worker;
use super::{Kick, WorkerThreads};
use crate::EngineConfig;

/// State shared by the submitter and the workers.
pub(crate) struct Shared {
    pub(crate) list: RunList,
    /// The op of each slot.
    pub(crate) cells: Box<[Cell]>,
    pub(crate) done: CompletionList,
    /// The thread that submits, and reaps.
    owner: Thread,
    parked_workers: ParkedWorkers,
    /// The workers, by number.
    threads: Box<[OnceLock<Thread>]>,
    /// Number of workers started.
    started: AtomicU32,
    /// Number of workers that have an engine and serve the run list.
    serving: AtomicU32,
    /// The most of them that there were.
    most_serving: AtomicU32,
    /// Number of workers that wait in the kernel for ops they have submitted.
    away: AtomicU32,
    /// A worker looks for work before it sleeps.
    looking: OwnLine<AtomicBool>,
    /// Number of workers awake that suffices while ops are quick: one for each CPU but the
    /// submitter's.
    enough: u32,
    processors: u32,
    /// Number of workers that could not be started; the errno says why.
    refused: AtomicU32,
    /// No more work comes.
    ending: AtomicBool,
    /// Cost of an op in a worker's time, ns: a running mean.
    cost_ns: AtomicU64,
    /// Number of ops in the last batch.
    together: AtomicU32,
    /// Configuration from which each worker creates an engine of its own.
    config: EngineConfig,
    /// Set by the submitter, waited for by a thread that wakes a worker then.
    timer: Option<Timer>,
    rare: Mutex<Rare>,
    at_work: WorkerThreads,
    is_broken: AtomicBool,
}

/// State touched only when workers start and end.
#[derive(Default)]
struct Rare {
    joins: Vec<JoinHandle<Usage>>,
    broken: Option<EngineError>,
}

/// The workers of one engine, and what the submitter keeps of them.
pub(crate) struct Pool {
    pub(crate) shared: Arc<Shared>,
    pub(crate) reader: CompletionReader,
    /// The submitter's.
    pub(crate) spin: AdaptiveSpin,
    /// Ops taken from the run list when the submitter last looked, and the time of that look.
    taken: (u64, Tick),
}

impl Pool {
    /// A pool with its first worker, which has made its engine and opened the files.
    pub(crate) fn start(
        config: EngineConfig,
        kick: Kick,
        at_work: WorkerThreads,
    ) -> Result<Self, EngineError> {
        let timer = match kick {
            Kick::Delayed => Some(Timer::new().map_err(|error| no_timer(&error))?),
            Kick::Batch | Kick::Each | Kick::Reap => None,
        };
        let (shared, reader) = Shared::new(config, timer, at_work);
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

    /// Returns true if work has waited longer than the workers awake should need to return for it:
    /// an op that was thought to be quick holds them up. Asked after each batch, `had_work` is how
    /// it was before.
    pub(crate) fn is_left_lying(&mut self, had_work: bool, now: Tick) -> bool {
        let taken = self.shared.list.taken();
        if taken != self.taken.0 || !had_work {
            self.taken = (taken, now);
        }
        now - self.taken.1 > HELD_UP
    }

    /// The submitter sleeps until something is done, or for `most`. Work that lies about meanwhile
    /// is seen to.
    pub(crate) fn sleep(&self, most: Option<Nanos>) {
        let shared = &self.shared;
        let before = shared.list.taken();
        let waiting = shared.list.len() > 0;
        let look_after = match shared.parked_workers.is_empty() {
            true => STUCK,
            false => HELD_UP,
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

    /// No more work comes: what is there is done, and all workers end. What they used.
    pub(crate) fn end(&self) -> Usage {
        let shared = &self.shared;
        shared.ending.store(true, Ordering::SeqCst);
        shared.kick_later();
        let mut used = Usage::default();
        loop {
            for thread in shared.threads.iter().filter_map(OnceLock::get) {
                thread.unpark();
            }
            let Some(join) = shared.rare().joins.pop() else {
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

impl Shared {
    /// Nobody is at work; with the submitter's end of the completion list.
    fn new(
        config: EngineConfig,
        timer: Option<Timer>,
        at_work: WorkerThreads,
    ) -> (Self, CompletionReader) {
        let depth = config.depth;
        let most = depth.min(WORKERS_MAX);
        let processors = thread::available_parallelism()
            .map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX));
        let (done, reader) = CompletionList::new(depth);
        let shared = Self {
            list: RunList::new(depth),
            cells: (0..depth).map(|_| Cell::default()).collect(),
            done,
            owner: thread::current(),
            parked_workers: ParkedWorkers::new(most),
            threads: (0..most).map(|_| OnceLock::new()).collect(),
            started: AtomicU32::new(0),
            serving: AtomicU32::new(0),
            most_serving: AtomicU32::new(0),
            away: AtomicU32::new(0),
            looking: OwnLine(AtomicBool::new(false)),
            enough: processors.saturating_sub(1).max(1),
            processors,
            refused: AtomicU32::new(0),
            ending: AtomicBool::new(false),
            cost_ns: AtomicU64::new(0),
            together: AtomicU32::new(0),
            config,
            timer,
            rare: Mutex::default(),
            at_work,
            is_broken: AtomicBool::new(false),
        };
        (shared, reader)
    }

    /// One more worker. `ready` hears whether it has its engine.
    fn start_worker(
        self: &Arc<Self>,
        ready: Option<mpsc::SyncSender<Result<(), EngineError>>>,
    ) -> Result<(), EngineError> {
        let mut rare = self.rare();
        // Relaxed: changed under the lock alone.
        let number = self.started.load(Ordering::Relaxed);
        let full = number as usize >= self.threads.len() || self.refused() != 0;
        if full || self.ending.load(Ordering::SeqCst) {
            return Ok(());
        }
        let shared = Arc::clone(self);
        let body = move || shared.at_work_in(|| worker::run(&shared, number, ready));
        match thread::Builder::new().stack_size(STACK).spawn(body) {
            Ok(join) => {
                let _unset = self.threads[number as usize].set(join.thread().clone());
                rare.joins.push(join);
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

    /// The thread that waits for the timer, if there is one.
    fn start_kicker(self: &Arc<Self>) -> Result<(), EngineError> {
        if self.timer.is_none() {
            return Ok(());
        }
        let shared = Arc::clone(self);
        let body = move || shared.at_work_in(|| shared.kick_by_timer());
        let spawned = thread::Builder::new().stack_size(STACK).spawn(body);
        let join = spawned.map_err(|error| refused(&error))?;
        self.rare().joins.push(join);
        Ok(())
    }

    /// The whole life of the thread that waits for the timer; what it used.
    fn kick_by_timer(&self) -> Usage {
        while let Some(timer) = self.timer.as_ref().filter(|_| !self.is_ending()) {
            if let Err(error) = timer.wait() {
                self.fail(no_timer(&error));
                break;
            }
            self.call();
        }
        fathom_sys::thread::usage()
    }

    /// The calling thread is at work until `life` ends: its number may be another thread's then.
    fn at_work_in(&self, life: impl FnOnce() -> Usage) -> Usage {
        let id = fathom_sys::thread::id();
        self.at_work().push(id);
        let used = life();
        self.at_work().retain(|&other| other != id);
        used
    }

    /// Has a worker woken by the timer.
    pub(crate) fn kick_later(&self) {
        if let Some(timer) = &self.timer
            && timer.set(Nanos::ZERO).is_err()
        {
            // The slow way is better than none.
            self.wake_one();
        }
    }

    /// One more worker if nobody is left to be woken and there is reason to think that those at
    /// work will not be back soon.
    pub(crate) fn grow(self: &Arc<Self>, stuck: bool) {
        let started = self.started.load(Ordering::Relaxed);
        let wanted = stuck || started < STAND_BY || self.is_slow();
        if !wanted || started as usize >= self.threads.len() || !self.parked_workers.is_empty() {
            return;
        }
        // A refusal is kept and told at the end; the others do the work.
        let _refused = self.start_worker(None);
    }

    /// A worker could not be: those that there are go on.
    pub(crate) fn refuse(&self, error: &EngineError) {
        let errno = error.errno.unsigned_abs().max(1);
        self.refused.store(errno, Ordering::Relaxed);
    }

    /// Wakes a worker if none is on its way.
    pub(crate) fn wake_one(&self) {
        if let Some(number) = self.parked_workers.choose(|| self.list.len() > 0) {
            self.unpark(number);
        }
    }

    /// Wakes a worker though another may be on its way.
    pub(crate) fn wake_another(&self) {
        if let Some(number) = self.parked_workers.pop() {
            self.unpark(number);
        }
    }

    fn unpark(&self, number: u32) {
        // Set before anybody could see that worker sleep, or by itself.
        if let Some(thread) = self.threads[number as usize].get() {
            thread.unpark();
        }
    }

    /// Work was laid down, or is left: wakes a worker if none is on its way, unless ops are quick
    /// and those awake will be back for it sooner than anybody could be woken.
    pub(crate) fn call(&self) {
        if self.is_slow() || self.awake() < self.enough {
            self.wake_one();
        }
    }

    /// Returns the number of workers awake that will check the run list before they sleep. Called
    /// after work was laid down: a worker about to sleep then sees it (the fences in `RunList::lay`
    /// and `ParkedWorkers::sleep`), and so does one about to leave or to block (those below).
    fn awake(&self) -> u32 {
        let serving = self.serving.load(Ordering::Relaxed);
        let away = self.away.load(Ordering::Relaxed);
        serving.saturating_sub(self.parked_workers.count() + away)
    }

    /// The calling worker has an engine.
    pub(crate) fn begin_to_serve(&self) {
        let serving = self.serving.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_serving.fetch_max(serving, Ordering::Relaxed);
    }

    /// The calling worker leaves; what it might have been trusted with is another's.
    pub(crate) fn end_serving(&self) {
        self.serving.fetch_sub(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.list.len() > 0 {
            self.wake_one();
        }
    }

    /// The calling worker waits in the kernel, unless there is work.
    pub(crate) fn go_away<T>(&self, wait: impl FnOnce() -> T) -> Option<T> {
        self.away.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let waited = (self.list.len() == 0).then(wait);
        self.away.fetch_sub(1, Ordering::Relaxed);
        waited
    }

    /// Looks for work, or for what `else_there` says, before the calling worker sleeps: where ops
    /// are quick the next ones are quick to come. One worker at a time does.
    pub(crate) fn look(
        &self,
        spin: &mut AdaptiveSpin,
        from: WakeSource,
        mut else_there: impl FnMut() -> bool,
    ) -> bool {
        let looking = &self.looking.0;
        if self.is_slow()
            || looking.load(Ordering::Relaxed)
            || looking.swap(true, Ordering::Relaxed)
        {
            return false;
        }
        let found = spin.look(from, None, || self.list.len() > 0 || else_there());
        looking.store(false, Ordering::Relaxed);
        found
    }

    /// For a worker.
    pub(crate) fn spin(&self) -> AdaptiveSpin {
        AdaptiveSpin::of_worker(self.config.clock, self.processors)
    }

    /// A worker has nothing to do.
    pub(crate) fn sleep(&self, number: u32) {
        let _set_already = self.threads[number as usize].set(thread::current());
        let has_work = || self.list.len() > 0 || self.is_ending();
        self.parked_workers.sleep(number, has_work, thread::park);
    }

    /// Takes a worker's share of the run list: what is left.
    pub(crate) fn take(&self, to: &mut Vec<Slot>) -> u64 {
        let cost = self.cost_ns.load(Ordering::Relaxed);
        if cost > SLOW_NS {
            // Each sleeper gets as much.
            let others = u64::from(self.parked_workers.count());
            return self.list.take(to, |there| there.div_ceil(others + 1));
        }
        // What was submitted together is handed over together; beyond that as much as keeps nobody
        // waiting long, so that the submitter has completions to go on with.
        let together = u64::from(self.together.load(Ordering::Relaxed));
        let most = together.max(PIECE_NS / cost.max(1)).min(TAKEN_MAX_OPS);
        self.list.take(to, |there| there.min(most))
    }

    /// So many ops are submitted together. The submitter's alone to call.
    pub(crate) fn submitted_together(&self, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        // Relaxed: a hint. Only a change is written, so that the workers keep the line.
        if self.together.load(Ordering::Relaxed) != count {
            self.together.store(count, Ordering::Relaxed);
        }
    }

    /// Gives ops back, their results laid down.
    pub(crate) fn give_back(&self, slots: &[Slot]) {
        if self.done.push_all(slots) {
            self.owner.unpark();
        }
    }

    /// An op took so much of a worker's time.
    pub(crate) fn learn(&self, took: Nanos) {
        // Relaxed, and not in one step: it is a guess. What is about the mean changes nothing, so
        // that everybody keeps the line.
        let (mean, took) = (self.cost_ns.load(Ordering::Relaxed), took.get());
        if took / 2 > mean || took < mean / 2 {
            let next = mean - mean / 8 + took / 8;
            self.cost_ns.store(next, Ordering::Relaxed);
        }
    }

    /// Returns true if workers are held up by their ops.
    pub(crate) fn is_slow(&self) -> bool {
        self.cost_ns.load(Ordering::Relaxed) > SLOW_NS
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    pub(crate) const fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// The most workers that served, and why there were no more (0 if none was refused).
    pub(crate) fn workers(&self) -> (u32, u32) {
        (self.most_serving.load(Ordering::Relaxed), self.refused())
    }

    fn refused(&self) -> u32 {
        self.refused.load(Ordering::Relaxed)
    }

    /// A worker's engine can no longer be used; the submitter hears of it.
    pub(crate) fn fail(&self, error: EngineError) {
        self.rare().broken.get_or_insert(error);
        self.is_broken.store(true, Ordering::SeqCst);
        self.owner.unpark();
    }

    /// Why the pool can no longer be used, if so.
    pub(crate) fn broken(&self) -> Option<EngineError> {
        match self.is_broken.load(Ordering::SeqCst) {
            true => self.rare().broken.clone(),
            false => None,
        }
    }

    fn at_work(&self) -> MutexGuard<'_, Vec<u32>> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rare(&self) -> MutexGuard<'_, Rare> {
        self.rare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refused(error: &io::Error) -> EngineError {
    EngineError {
        what: "start worker",
        target: "io_submit_mode=offload".into(),
        errno: error.raw_os_error().unwrap_or(EAGAIN),
        hint: "raise `ulimit -u`, or the pids.max of the control group".into(),
    }
}

fn no_timer(error: &io::Error) -> EngineError {
    EngineError {
        what: "timerfd",
        target: "offload_kick=delayed".into(),
        errno: error.raw_os_error().unwrap_or(0),
        hint: "raise `ulimit -n`, or leave offload_kick out".into(),
    }
}

fn ended_early() -> EngineError {
    EngineError {
        what: "start worker",
        target: "io_submit_mode=offload".into(),
        errno: 0,
        hint: "this is a bug in fathom; please report it".into(),
    }
}

/// Threads of one job at most: a process has room for some ten thousand.
const WORKERS_MAX: u32 = 1024;
/// One at work, and one to be woken when that one is held up.
const STAND_BY: u32 = 2;
/// From here on an op is worth the waking of another worker, which costs some microseconds.
const SLOW_NS: u64 = 50_000;
/// Work that a worker takes at once while ops are quick: a few times the cost of a hand-over. A
/// guess.
const PIECE_NS: u64 = 5_000;
/// As many at most: a worker that is held up holds up no more than these.
const TAKEN_MAX_OPS: u64 = 64;
/// Work that nobody has come for after so long is worth waking one more worker for, even where ops
/// are quick.
const HELD_UP: Nanos = Nanos::new(SLOW_NS);
/// Ops that nobody has taken for so long are reason enough for one more worker.
const STUCK: Nanos = Nanos::from_millis(1);
/// Bytes of a worker's stack: it calls a dozen functions deep at most.
const STACK: usize = 256 << 10;
/// The same on every architecture of Linux.
const EAGAIN: i32 = 11;
