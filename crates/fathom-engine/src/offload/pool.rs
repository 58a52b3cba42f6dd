//! The workers: started when there is need of them, woken when there is work, joined at the end.

use std::hint::spin_loop;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread::{self, JoinHandle, Thread};

use fathom_core::{CompletionList, CompletionReader, EngineError, Nanos, Slot};
use fathom_sys::thread::Usage;
use fathom_sys::timer::Timer;

use super::Kick;
use super::cell::Cell;
use super::run_list::RunList;
use super::sleepers::Sleepers;
use super::worker;
use crate::EngineConfig;

/// What the submitter and the workers share.
pub(crate) struct Shared {
    pub(crate) list: RunList,
    /// The op of each slot.
    pub(crate) cells: Box<[Cell]>,
    pub(crate) done: CompletionList,
    /// The thread that submits, and reaps.
    owner: Thread,
    sleepers: Sleepers,
    /// The workers, by number.
    threads: Box<[OnceLock<Thread>]>,
    /// How many have been started.
    started: AtomicU32,
    /// How many more were wanted than could be had; the system's number says why.
    refused: AtomicU32,
    /// No more work comes.
    ending: AtomicBool,
    /// What an op takes of a worker's time, ns: a running mean.
    cost_ns: AtomicU64,
    /// What makes a worker: each makes an engine of its own from it.
    config: EngineConfig,
    /// Set by the submitter, waited for by a thread that wakes a worker then.
    timer: Option<Timer>,
    rare: Mutex<Rare>,
    is_broken: AtomicBool,
}

/// What is touched when workers come and go.
#[derive(Default)]
struct Rare {
    joins: Vec<JoinHandle<Usage>>,
    broken: Option<EngineError>,
}

/// The workers of one engine.
pub(crate) struct Pool {
    pub(crate) shared: Arc<Shared>,
}

impl Pool {
    /// A pool with its first worker, which has made its engine.
    pub(crate) fn start(
        config: EngineConfig,
        kick: Kick,
    ) -> Result<(Self, CompletionReader), EngineError> {
        let depth = config.depth;
        let timer = match kick {
            Kick::Delayed => Some(Timer::new().map_err(|error| no_timer(&error))?),
            Kick::Batch | Kick::Each | Kick::Reap => None,
        };
        let most = depth.min(MOST_WORKERS);
        let (done, reader) = CompletionList::new(depth);
        let shared = Arc::new(Shared {
            list: RunList::new(depth),
            cells: (0..depth).map(|_| Cell::default()).collect(),
            done,
            owner: thread::current(),
            sleepers: Sleepers::new(most),
            threads: (0..most).map(|_| OnceLock::new()).collect(),
            started: AtomicU32::new(0),
            refused: AtomicU32::new(0),
            ending: AtomicBool::new(false),
            cost_ns: AtomicU64::new(0),
            config,
            timer,
            rare: Mutex::default(),
            is_broken: AtomicBool::new(false),
        });
        let (sender, ready) = mpsc::sync_channel(1);
        let pool = Self { shared };
        pool.shared.start_worker(Some(sender))?;
        pool.shared.start_kicker()?;
        match ready.recv() {
            Ok(Ok(())) => Ok((pool, reader)),
            Ok(Err(error)) => Err(error),
            Err(_gone) => Err(pool.shared.broken().unwrap_or_else(ended_early)),
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
        let body = move || worker::run(&shared, number, ready);
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
        let body = move || {
            while let Some(timer) = shared.timer.as_ref().filter(|_| !shared.is_ending()) {
                if let Err(error) = timer.wait() {
                    shared.fail(no_timer(&error));
                    break;
                }
                shared.wake_one();
            }
            fathom_sys::thread::usage()
        };
        let spawned = thread::Builder::new().stack_size(STACK).spawn(body);
        let join = spawned.map_err(|error| refused(&error))?;
        self.rare().joins.push(join);
        Ok(())
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
        if !wanted || started as usize >= self.threads.len() || !self.sleepers.is_empty() {
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
        if let Some(number) = self.sleepers.choose(|| self.list.len() > 0) {
            self.unpark(number);
        }
    }

    /// Wakes a worker though another may be on its way.
    pub(crate) fn wake_another(&self) {
        if let Some(number) = self.sleepers.pop() {
            self.unpark(number);
        }
    }

    fn unpark(&self, number: u32) {
        // Set before anybody could see that worker sleep, or by itself.
        if let Some(thread) = self.threads[number as usize].get() {
            thread.unpark();
        }
    }

    /// A worker has nothing to do. Where ops are quick the next ones are quick to come: it looks
    /// for them a while before it sleeps, for to be woken takes longer.
    pub(crate) fn sleep(&self, number: u32) {
        for _ in 0..LOOKS {
            if self.is_slow() {
                break;
            }
            if self.list.len() > 0 {
                return;
            }
            spin_loop();
        }
        let _set_already = self.threads[number as usize].set(thread::current());
        let has_work = || self.list.len() > 0 || self.is_ending();
        self.sleepers.sleep(number, has_work, thread::park);
    }

    /// Takes a worker's share of the run list, `most` where ops are quick: what is left.
    pub(crate) fn take(&self, to: &mut Vec<Slot>, most: u64) -> u64 {
        let slow = self.is_slow();
        let others = u64::from(self.sleepers.count());
        self.list.take(to, |there| match slow {
            // Each sleeper gets as much.
            true => there.div_ceil(others + 1),
            false => there.min(most),
        })
    }

    /// Gives ops back, their results laid down.
    pub(crate) fn give_back(&self, slots: &[Slot]) {
        if self.done.push_all(slots) {
            self.owner.unpark();
        }
    }

    /// An op took so much of a worker's time.
    pub(crate) fn learn(&self, took: Nanos) {
        // Relaxed, and not in one step: it is a guess.
        let mean = self.cost_ns.load(Ordering::Relaxed);
        let next = mean - mean / 8 + took.get() / 8;
        if next != mean {
            self.cost_ns.store(next, Ordering::Relaxed);
        }
    }

    /// Whether workers are held up by their ops.
    pub(crate) fn is_slow(&self) -> bool {
        self.cost_ns.load(Ordering::Relaxed) > SLOW_NS
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    pub(crate) const fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// How many workers there are, and why there are no more (0 if none was refused).
    pub(crate) fn workers(&self) -> (u32, u32) {
        (self.started.load(Ordering::Relaxed), self.refused())
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
const MOST_WORKERS: u32 = 1024;
/// One at work, and one to be woken when that one is held up.
const STAND_BY: u32 = 2;
/// From here on an op is worth the waking of another worker, which costs some microseconds.
const SLOW_NS: u64 = 50_000;
/// Turns of a loop, two microseconds: as long as it takes to fall asleep. A guess.
const LOOKS: u32 = 50;
/// Bytes of a worker's stack: it calls a dozen functions deep at most.
const STACK: usize = 256 << 10;
/// The same on every architecture of Linux.
const EAGAIN: i32 = 11;
