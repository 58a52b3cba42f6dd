//! `lockfile`: jobs that have files in common take turns on them, whatever their engine.
//!
//! ```text
//! prepare ─► waiting ─► lock got? ─► inner engine ─► reaped, lock given back
//!                          └ no: `Blocked`, and asked again with the next `submit`
//! ```
//!
//! A job holds a file's lock while ops of it are in flight there. While others wait for it, it
//! starts no more, so that at any depth everybody comes to their turn.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, FileIndex, Op, OpKind, Slot,
    Submitted, Tick,
};

/// The lock of one file, shared by the jobs that use it.
#[derive(Clone, Debug)]
pub struct FileLock {
    shared: Arc<Shared>,
    /// Reads of several jobs may go on at the same time.
    readers_together: bool,
}

#[derive(Debug, Default)]
struct Shared {
    /// 0 free; n > 0: n jobs read; −1: one job has it for itself.
    state: AtomicI32,
    /// Jobs that have asked in vain.
    waiting: AtomicU32,
}

impl FileLock {
    /// A lock that nobody has.
    #[must_use]
    pub fn new(readers_together: bool) -> Self {
        Self {
            shared: Arc::default(),
            readers_together,
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

/// An engine whose ops wait for the locks of their files.
pub(crate) struct Locking {
    inner: Box<dyn Engine>,
    locks: Vec<Own>,
    /// The file of each slot whose op is with the inner engine and holds a lock.
    holds: Vec<Option<FileIndex>>,
    /// Laid down, without a lock so far.
    waiting: VecDeque<Op>,
    /// Taken from the inner engine, not yet given out.
    done: VecDeque<Completion>,
    /// Times returned by the inner engine for the ops of this submission that it already has.
    begun: Option<(Tick, Tick)>,
}

impl Locking {
    /// `locks` in the order of the files.
    pub(crate) fn new(inner: Box<dyn Engine>, locks: &[FileLock], depth: u32) -> Self {
        Self {
            inner,
            locks: locks.iter().map(Own::new).collect(),
            holds: vec![None; depth as usize],
            waiting: VecDeque::with_capacity(depth as usize),
            done: VecDeque::with_capacity(depth as usize),
            begun: None,
        }
    }

    /// Gives the ops to the inner engine whose locks are to be had, in their order.
    fn start(&mut self) -> bool {
        let mut any = false;
        while let Some(op) = self.waiting.front() {
            if let OpKind::Data(direction) = op.kind
                && let Some(own) = self.locks.get_mut(op.file.index())
            {
                if !own.take(direction) {
                    break;
                }
                self.holds[op.slot.index()] = Some(op.file);
            }
            self.inner.prepare(op);
            self.waiting.pop_front();
            any = true;
        }
        any
    }

    /// Takes what has completed, so that nobody waits for locks of ops that are long done.
    fn collect(&mut self) {
        let mut out = [Completion::default(); 16];
        loop {
            let count = self.inner.reap(&mut out);
            for completion in &out[..count] {
                if let Some(file) = self.holds[completion.slot.index()].take() {
                    self.locks[file.index()].give();
                }
                self.done.push_back(*completion);
            }
            if count < out.len() {
                return;
            }
        }
    }
}

impl Engine for Locking {
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

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.inner.buffer(slot)
    }

    fn prepare(&mut self, op: &Op) {
        self.waiting.push_back(*op);
    }

    fn submit(&mut self, want: u32) -> Submitted {
        self.collect();
        if self.start() {
            // While ops of this submission wait, nobody may wait for completions in it.
            let want = if self.waiting.is_empty() { want } else { 0 };
            match self.inner.submit(want) {
                Submitted::Issued { issue, now } => {
                    self.begun = Some((self.begun.map_or(issue, |begun| begun.0), now));
                }
                Submitted::Blocked => return Submitted::Blocked,
            }
            self.collect();
        }
        match self.begun.filter(|_| self.waiting.is_empty()) {
            Some((issue, now)) => {
                self.begun = None;
                Submitted::Issued { issue, now }
            }
            None if self.waiting.is_empty() => self.inner.submit(want),
            None => Submitted::Blocked,
        }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        self.collect();
        let count = out.len().min(self.done.len());
        for (place, completion) in out.iter_mut().zip(self.done.drain(..count)) {
            *place = completion;
        }
        count
    }

    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        let there = u32::try_from(self.done.len()).unwrap_or(u32::MAX);
        match min.saturating_sub(there) {
            0 if min > 0 => Ok(()),
            missing => self.inner.wait(missing, until),
        }
    }
}

/// State of one job's lock on one file.
#[derive(Debug)]
struct Own {
    lock: FileLock,
    /// Ops in flight; the lock is held while there are any.
    ops: u32,
    /// Held for itself, not only for reading.
    alone: bool,
    /// It has asked in vain, and is counted among those who wait.
    waits: bool,
    /// It had the lock last time: those who wait come first, once.
    had: bool,
}

impl Own {
    fn new(lock: &FileLock) -> Self {
        Self {
            lock: lock.clone(),
            ops: 0,
            alone: false,
            waits: false,
            had: false,
        }
    }

    /// Takes the lock for one more op, if it is to be had.
    fn take(&mut self, direction: Direction) -> bool {
        let alone = direction != Direction::Read || !self.lock.readers_together;
        // Relaxed: a count that only decides who is to be kind.
        let others = self.lock.shared.waiting.load(Ordering::Relaxed) > u32::from(self.waits);
        if self.ops > 0 {
            if others || alone && !self.alone {
                return false;
            }
        } else if std::mem::take(&mut self.had) && others {
            // Without this, who is quick takes it again before anybody else has looked.
            return false;
        } else if self.acquire(alone) {
            self.alone = alone;
        } else {
            if !std::mem::replace(&mut self.waits, true) {
                self.lock.shared.waiting.fetch_add(1, Ordering::Relaxed);
            }
            return false;
        }
        self.wait_no_more();
        self.ops += 1;
        true
    }

    fn acquire(&self, alone: bool) -> bool {
        let next = |now: i32| match (alone, now) {
            (true, 0) => Some(-1),
            (false, 0..) => Some(now + 1),
            _ => None,
        };
        let state = &self.lock.shared.state;
        // Acquire: what the last holder's ops have done is seen; the partner is in `give`.
        let taken = state.fetch_update(Ordering::Acquire, Ordering::Relaxed, next);
        taken.is_ok()
    }

    /// An op has ended.
    fn give(&mut self) {
        self.ops = self.ops.saturating_sub(1);
        if self.ops == 0 {
            self.had = true;
            let change = if self.alone { 1 } else { -1 };
            // Release: the partner is in `acquire`.
            self.lock.shared.state.fetch_add(change, Ordering::Release);
        }
    }

    fn wait_no_more(&mut self) {
        if std::mem::take(&mut self.waits) {
            self.lock.shared.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Own {
    /// A job that has ended keeps nobody waiting.
    fn drop(&mut self) {
        self.wait_no_more();
        if self.ops > 0 {
            self.ops = 1;
            self.give();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two jobs on one file take and give in turn; for each take, whether it had the lock.
    #[track_caller]
    fn check(readers_together: bool, steps: &str, want: &str) {
        let lock = FileLock::new(readers_together);
        let mut jobs = [Own::new(&lock), Own::new(&lock)];
        let mut got = String::new();
        for step in steps.split(' ') {
            let (job, what) = step.split_at(1);
            let job = &mut jobs[usize::from(job == "b")];
            let direction = match what {
                "r" => Direction::Read,
                "w" => Direction::Write,
                _ => {
                    job.give();
                    continue;
                }
            };
            got.push(if job.take(direction) { '+' } else { '.' });
        }
        assert_eq!(got, want, "{steps}");
    }

    #[test]
    fn an_exclusive_lock_is_one_jobs() {
        check(false, "ar br a- br ar", "+.+.");
        // Who had it lets the others come first, once.
        check(false, "ar br a- ar br b- ar", "+..++");
        // Who has it shares it with nobody, and starts no more while somebody waits.
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
        let (mut one, mut other) = (Own::new(&lock), Own::new(&lock));
        assert!(one.take(Direction::Write) && !other.take(Direction::Write));
        drop(other);
        assert!(one.take(Direction::Write), "nobody waits any more");
        drop(one);
        assert!(Own::new(&lock).take(Direction::Read));
    }
}
