//! `lockfile`: jobs that share files take turns on them, whatever their engine.
//!
//! ```text
//! prepare ─► waiting ─► lock acquired? ─► inner engine ─► reaped, lock released
//!                          └ no: `Blocked`; the next `submit` tries again
//! ```
//!
//! A job holds a file's lock while it has ops in flight on the file. While others wait for the
//! lock, it starts no further ops, so that every job gets its turn at any queue depth.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, Errno, FileIndex, Op, OpKind,
    Submitted, Tick, pass_to_engine,
};

/// Lock of one file, shared by the jobs that use it. Clones refer to the same lock.
///
/// It never blocks a thread: a job that cannot have it polls again on its next `submit`. A mutex
/// was rejected, because the loop must stay free to reap, to stop and to run in virtual time.
#[derive(Clone, Debug)]
pub struct FileLock {
    shared: Arc<LockState>,
    /// Reads of several jobs may be in flight at the same time.
    shared_reads: bool,
}

#[derive(Debug, Default)]
struct LockState {
    /// 0: free; n > 0: shared by n reading jobs; −1: held exclusively.
    state: AtomicI32,
    /// Jobs that failed to acquire it and will try again.
    waiting: AtomicU32,
}

impl FileLock {
    /// Creates a free lock.
    #[must_use]
    pub fn new(shared_reads: bool) -> Self {
        Self {
            shared: Arc::default(),
            shared_reads,
        }
    }
}

/// Compares the identity of two locks.
impl PartialEq for FileLock {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for FileLock {}

/// Engine that holds ops back until the locks of their files are acquired.
pub(crate) struct Locking {
    inner: Box<dyn Engine>,
    locks: Vec<JobLock>,
    /// File of each slot whose op is with the inner engine and holds a lock.
    held_files: Vec<Option<FileIndex>>,
    /// Prepared ops without a lock, in order.
    waiting: VecDeque<Op>,
    /// Reaped from the inner engine, not yet returned.
    completed: VecDeque<Completion>,
    /// Issue time and last time of the ops of this submission that the inner engine already has.
    issued: Option<(Tick, Tick)>,
}

impl Locking {
    /// Wraps `inner`; `locks` are in the order of the files.
    pub(crate) fn new(inner: Box<dyn Engine>, locks: &[FileLock], depth: u32) -> Self {
        Self {
            inner,
            locks: locks.iter().map(JobLock::new).collect(),
            held_files: vec![None; depth as usize],
            waiting: VecDeque::with_capacity(depth as usize),
            completed: VecDeque::with_capacity(depth as usize),
            issued: None,
        }
    }

    /// Passes waiting ops to the inner engine, in order, until a lock cannot be acquired. Returns
    /// true if it passed any.
    fn start_ops(&mut self) -> bool {
        let mut any = false;
        while let Some(op) = self.waiting.front() {
            if let OpKind::Data(direction) = op.kind
                && let Some(lock) = self.locks.get_mut(op.file.index())
            {
                if !lock.acquire(direction) {
                    break;
                }
                self.held_files[op.slot.index()] = Some(op.file);
            }
            self.inner.prepare(op);
            self.waiting.pop_front();
            any = true;
        }
        any
    }

    /// Reaps completed ops early, so that other jobs do not wait for locks of finished ops.
    fn collect(&mut self) {
        let mut out = [Completion::default(); 16];
        loop {
            let count = self.inner.reap(&mut out);
            for completion in &out[..count] {
                if let Some(file) = self.held_files[completion.slot.index()].take() {
                    self.locks[file.index()].release();
                }
                self.completed.push_back(*completion);
            }
            if count < out.len() {
                return;
            }
        }
    }
}

impl Engine for Locking {
    pass_to_engine!(inner);

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.inner.open(file)
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.inner.close(file)
    }

    fn invalidate(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.inner.invalidate(file)
    }

    fn prepare(&mut self, op: &Op) {
        self.waiting.push_back(*op);
    }

    fn submit(&mut self, want: u32) -> Submitted {
        self.collect();
        if self.start_ops() {
            // Do not wait for completions while ops of this submission wait for locks: the holder
            // may be waiting for a lock that this job holds.
            let want = if self.waiting.is_empty() { want } else { 0 };
            match self.inner.submit(want) {
                Submitted::Issued { issue, now } => {
                    self.issued = Some((self.issued.map_or(issue, |issued| issued.0), now));
                }
                Submitted::Blocked => return Submitted::Blocked,
            }
            self.collect();
        }
        match self.issued.filter(|_| self.waiting.is_empty()) {
            Some((issue, now)) => {
                self.issued = None;
                Submitted::Issued { issue, now }
            }
            None if self.waiting.is_empty() => self.inner.submit(want),
            None => Submitted::Blocked,
        }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        self.collect();
        let count = out.len().min(self.completed.len());
        for (place, completion) in out.iter_mut().zip(self.completed.drain(..count)) {
            *place = completion;
        }
        count
    }

    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        let there = u32::try_from(self.completed.len()).unwrap_or(u32::MAX);
        match min.saturating_sub(there) {
            0 if min > 0 => Ok(()),
            missing => self.inner.wait(missing, until),
        }
    }

    fn explain(&self, errno: Errno) -> Option<String> {
        self.inner.explain(errno)
    }
}

/// One job's hold on one file's lock.
#[derive(Debug)]
struct JobLock {
    lock: FileLock,
    /// Ops in flight; the lock is held while there are any.
    ops: u32,
    /// Held exclusively, not shared with other readers.
    exclusive: bool,
    /// Failed to acquire the lock, and is counted in `LockState::waiting`.
    is_waiting: bool,
    /// Held the lock last: lets waiters go first, once.
    held_last: bool,
}

impl JobLock {
    fn new(lock: &FileLock) -> Self {
        Self {
            lock: lock.clone(),
            ops: 0,
            exclusive: false,
            is_waiting: false,
            held_last: false,
        }
    }

    /// Acquires the lock for one more op and returns true, unless another job holds it or waits.
    fn acquire(&mut self, direction: Direction) -> bool {
        let exclusive = direction != Direction::Read || !self.lock.shared_reads;
        // Relaxed: the count only decides who goes first; exclusion rests on `state`.
        let others = self.lock.shared.waiting.load(Ordering::Relaxed) > u32::from(self.is_waiting);
        if self.ops > 0 {
            if others || exclusive && !self.exclusive {
                return false;
            }
        } else if std::mem::take(&mut self.held_last) && others {
            // Skip a turn, or this job retakes the lock before any waiter retries.
            return false;
        } else if self.try_acquire(exclusive) {
            self.exclusive = exclusive;
        } else {
            if !std::mem::replace(&mut self.is_waiting, true) {
                self.lock.shared.waiting.fetch_add(1, Ordering::Relaxed);
            }
            return false;
        }
        self.stop_waiting();
        self.ops += 1;
        true
    }

    fn try_acquire(&self, exclusive: bool) -> bool {
        let next = |now: i32| match (exclusive, now) {
            (true, 0) => Some(-1),
            (false, 0..) => Some(now + 1),
            _ => None,
        };
        let state = &self.lock.shared.state;
        // Acquire: pairs with Release in `release`, so that the last holder's ops are visible.
        let taken = state.fetch_update(Ordering::Acquire, Ordering::Relaxed, next);
        taken.is_ok()
    }

    /// Ends one op; releases the lock with the last one.
    fn release(&mut self) {
        self.ops = self.ops.saturating_sub(1);
        if self.ops == 0 {
            self.held_last = true;
            let change = if self.exclusive { 1 } else { -1 };
            // Release: pairs with Acquire in `try_acquire`.
            self.lock.shared.state.fetch_add(change, Ordering::Release);
        }
    }

    fn stop_waiting(&mut self) {
        if std::mem::take(&mut self.is_waiting) {
            self.lock.shared.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for JobLock {
    /// Releases the lock of a job that ends, whatever it had in flight.
    fn drop(&mut self) {
        self.stop_waiting();
        if self.ops > 0 {
            self.ops = 1;
            self.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets two jobs acquire (`r`, `w`) and release (`-`) one lock; `want` has `+` for each
    /// success.
    #[track_caller]
    fn check(shared_reads: bool, steps: &str, want: &str) {
        let lock = FileLock::new(shared_reads);
        let mut jobs = [JobLock::new(&lock), JobLock::new(&lock)];
        let mut got = String::new();
        for step in steps.split(' ') {
            let (job, what) = step.split_at(1);
            let job = &mut jobs[usize::from(job == "b")];
            let direction = match what {
                "r" => Direction::Read,
                "w" => Direction::Write,
                _ => {
                    job.release();
                    continue;
                }
            };
            got.push(if job.acquire(direction) { '+' } else { '.' });
        }
        assert_eq!(got, want, "{steps}");
    }

    #[test]
    fn an_exclusive_lock_is_one_jobs() {
        check(false, "ar br a- br ar", "+.+.");
        // The last holder lets a waiter go first, once.
        check(false, "ar br a- ar br b- ar", "+..++");
        // An exclusive holder shares with no one, and starts no further ops while a job waits.
        check(false, "ar ar br ar a- a- br", "++..+");
    }

    #[test]
    fn readers_are_together_and_writers_alone() {
        check(true, "ar br", "++");
        check(true, "ar bw a- bw ar", "+.+.");
        check(true, "ar aw a- aw", "+.+");
        check(true, "aw br a- br ar", "+.++");
    }

    #[test]
    fn who_ends_gives_back_and_waits_no_more() {
        let lock = FileLock::new(false);
        let (mut one, mut other) = (JobLock::new(&lock), JobLock::new(&lock));
        assert!(one.acquire(Direction::Write) && !other.acquire(Direction::Write));
        drop(other);
        assert!(one.acquire(Direction::Write), "nobody waits any more");
        drop(one);
        assert!(JobLock::new(&lock).acquire(Direction::Read));
    }
}
