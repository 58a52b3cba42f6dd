//! Buffers of one thread: its cache, and its side of the hand-over between threads.

use std::sync::Arc;

use fathom_core::{DataBuffer, Nanos, Tick};

use crate::buffer_pool::{BufferPool, NOBODY};

/// Access of one thread to a [`BufferPool`].
///
/// In steady state taking and returning a buffer cost a push and a pop of the thread's own stack,
/// and two relaxed accesses to lines that rarely change; the lock of the pool is taken when the
/// cache is empty or full, when another thread has fewer buffers and waits, and for buffers that
/// were cached for a while without use.
#[derive(Debug)]
pub(crate) struct ThreadBuffers {
    pool: Arc<BufferPool>,
    thread: usize,
    is_limited: bool,
    /// Cached buffers; the one returned last is taken first, while it is in the processor's cache.
    #[expect(
        clippy::vec_box,
        reason = "boxes move to and from commands as they are"
    )]
    cache: Vec<Box<DataBuffer>>,
    in_use: u32,
    /// The pool counts this thread among those that wait, or has mail for it.
    is_registered: bool,
    idle: Idle,
    counts: BufferCounts,
}

/// Ways in which buffers were obtained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BufferCounts {
    /// From the thread's cache.
    pub(crate) cache_hits: u64,
    /// From the shared pool, or from another thread.
    pub(crate) pool_hits: u64,
    /// Newly allocated, in an unlimited pool.
    pub(crate) allocated: u64,
}

/// Cached buffers that are of no use.
#[derive(Debug)]
struct Idle {
    /// Smallest number of cached buffers in the current interval.
    least: usize,
    /// End of the interval.
    until: Option<Tick>,
}

impl ThreadBuffers {
    pub(crate) fn new(pool: Arc<BufferPool>, thread: u32) -> Self {
        assert!(thread < pool.sharing().threads, "thread {thread} of a pool");
        Self {
            is_limited: pool.config().count.is_some(),
            pool,
            thread: thread as usize,
            cache: Vec::new(),
            in_use: 0,
            is_registered: false,
            idle: Idle {
                least: 0,
                until: None,
            },
            counts: BufferCounts::default(),
        }
    }

    /// Takes a buffer for the first of `wanted` requests. Without one, the thread is woken later.
    #[inline]
    pub(crate) fn take(&mut self, wanted: u32) -> Option<Box<DataBuffer>> {
        let buffer = match self.cache.pop() {
            Some(buffer) => {
                self.counts.cache_hits += 1;
                self.idle.least = self.idle.least.min(self.cache.len());
                buffer
            }
            None => self.take_elsewhere(wanted)?,
        };
        self.set_in_use(self.in_use + 1);
        Some(buffer)
    }

    #[cold]
    fn take_elsewhere(&mut self, wanted: u32) -> Option<Box<DataBuffer>> {
        if !self.is_limited {
            self.counts.allocated += 1;
            let bytes = self.pool.config().bytes;
            return Some(Box::new(DataBuffer::new(bytes)));
        }
        // Registered and nothing has come: the pool has nothing, or it would have come.
        if self.is_registered && !self.pool.has_mail(self.thread) {
            return None;
        }
        let taken = self.pool.take(self.thread, wanted);
        self.counts.pool_hits += u64::from(taken.buffer.is_some());
        self.is_registered = taken.is_registered;
        taken.buffer
    }

    /// Gives back a buffer; `waiting` requests of this thread wait for one.
    #[inline]
    pub(crate) fn put(&mut self, buffer: Box<DataBuffer>, waiting: u32, wakes: &mut Vec<u32>) {
        self.cache.push(buffer);
        self.set_in_use(self.in_use - 1);
        if self.is_limited && !self.may_keep(waiting) {
            self.share(waiting, wakes);
        }
    }

    /// Returns true if the thread may keep what it caches: its requests wait for it, or it is no
    /// more than its share; and no other thread waits with fewer buffers.
    #[inline]
    fn may_keep(&self, waiting: u32) -> bool {
        let cached = u32::try_from(self.cache.len()).unwrap_or(u32::MAX);
        let neediest = self.pool.neediest();
        if waiting == 0 {
            // Even with nothing in flight: a fast device answers a burst within a turn, and each
            // buffer would go through the pool. `free_idle` has the rest.
            return neediest == NOBODY && cached <= self.pool.cache();
        }
        let held = self.in_use + cached;
        // A difference of one is tolerated, or a buffer would circulate between equals forever.
        neediest == NOBODY || (neediest > 0 && neediest + 1 >= held)
    }

    #[cold]
    fn share(&mut self, waiting: u32, wakes: &mut Vec<u32>) {
        while !self.may_keep(waiting) {
            let Some(buffer) = self.cache.pop() else {
                break;
            };
            let woken = self.pool.put(self.thread, buffer);
            wakes.extend(woken.filter(|&woken| woken as usize != self.thread));
        }
    }

    /// Ends the wait for buffers, since no request of this thread waits any more, and gives those
    /// that other threads wait for away.
    #[inline]
    pub(crate) fn settle(&mut self, wakes: &mut Vec<u32>) {
        if self.is_limited && (self.is_registered || !self.cache.is_empty()) {
            self.settle_limited(wakes);
        }
    }

    fn settle_limited(&mut self, wakes: &mut Vec<u32>) {
        if self.is_registered {
            self.is_registered = false;
            self.pool.leave(self.thread, wakes);
        }
        self.share(0, wakes);
    }

    /// Gives up the cached buffers that were not used since the last interval began.
    #[inline]
    pub(crate) fn free_idle(&mut self, now: Tick, wakes: &mut Vec<u32>) {
        if self.idle.until.is_none_or(|until| until <= now) {
            self.end_interval(now, wakes);
        }
    }

    fn end_interval(&mut self, now: Tick, wakes: &mut Vec<u32>) {
        if self.idle.until.is_some() {
            // The oldest ones, at the bottom: those on top are in the processor's cache.
            let unused = self.idle.least.min(self.cache.len());
            for buffer in self.cache.drain(..unused) {
                if self.is_limited {
                    wakes.extend(self.pool.put(self.thread, buffer));
                }
            }
        }
        let interval = match self.is_limited {
            true => KEEP_INTERVAL,
            false => IDLE_INTERVAL,
        };
        self.idle.least = self.cache.len();
        self.idle.until = (!self.cache.is_empty()).then(|| now + interval);
    }

    /// Returns the time at which idle buffers are to be given up.
    pub(crate) fn next(&self) -> Option<Tick> {
        self.idle.until
    }

    /// Returns the number of buffers that requests of this thread hold.
    pub(crate) const fn in_use(&self) -> u32 {
        self.in_use
    }

    /// Returns the number of buffers that wait in the thread's cache.
    pub(crate) const fn cached(&self) -> usize {
        self.cache.len()
    }

    /// Returns the counts so far.
    pub(crate) const fn counts(&self) -> BufferCounts {
        self.counts
    }

    fn set_in_use(&mut self, in_use: u32) {
        self.in_use = in_use;
        self.pool.set_in_use(self.thread, in_use);
    }
}

impl Drop for ThreadBuffers {
    /// Gives what is cached back. Wakes no thread: they end together, with their target.
    fn drop(&mut self) {
        if !self.is_limited {
            return;
        }
        let mut wakes = Vec::new();
        self.pool.leave(self.thread, &mut wakes);
        for buffer in self.cache.drain(..) {
            wakes.extend(self.pool.put(self.thread, buffer));
        }
    }
}

/// Time for which a thread keeps a cached buffer of a limited pool without use, at most twice over.
/// Longer than the pauses of a host that waits for its answers, and too short for others to miss
/// the buffers: each has its share meanwhile.
const KEEP_INTERVAL: Nanos = Nanos::from_millis(10);
/// Time after which an unused buffer of an unlimited pool is freed; it may take twice as long. Long
/// enough that a load which comes and goes allocates rarely, short enough that a thousand idle
/// connections hold no memory when they are looked at.
const IDLE_INTERVAL: Nanos = Nanos::from_millis(500);
