//! Admission of requests: pool, pacer and waiting requests of one thread of a target.

use std::collections::VecDeque;
use std::sync::Arc;

use fathom_core::{DataBuffer, Nanos, Tick};

use crate::buffer_pool::BufferPool;
use crate::pacer::{AutoStatistics, Load, Pacer, PacingConfig, RateStatistics};
use crate::thread_buffers::ThreadBuffers;
use crate::wanted::{AdmissionClass, Wanted};

/// Decides which requests of a thread get a data buffer, and when.
///
/// ```text
///  loop  request(…) ─► a buffer, or it waits      each command that moves data
///        release(…)                               its last byte is sent, or written
///        granted(now) ─► who may go on            once a turn, and after releases, until `None`
///        wake() ─► threads to wake                at the end of a turn, until `None`
///        sleep until next()
/// ```
///
/// Requests are served in the order in which they came, those whose data are in the stream already
/// ([`AdmissionClass::Unpaced`]) before all others. Admin and Fabrics commands do not come here, so
/// that a lack of buffers never delays a connect.
///
/// # Cost
/// A few stack and queue operations per request, in memory reserved by the largest number of
/// waiting requests; no clock and, in steady state, no lock.
#[derive(Debug)]
pub struct Admission {
    pool: Arc<BufferPool>,
    buffers: ThreadBuffers,
    pacer: Pacer,
    unpaced: VecDeque<Wanted>,
    /// Requests that the pacer has let go, and that wait for a buffer.
    ready: VecDeque<Wanted>,
    wakes: Vec<u32>,
    pending_total: u64,
    in_use_bytes: u64,
    bytes: u64,
    granted: u64,
    in_use_bytes_sum: u64,
}

/// Counters of an [`Admission`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmissionStatistics {
    /// Buffers that requests hold.
    pub in_use: u32,
    /// Bytes that these requests move.
    pub in_use_bytes: u64,
    /// Buffers in the thread's cache.
    pub cached: u32,
    /// Requests that wait.
    pub pending: u32,
    /// Requests that had to wait, so far.
    pub pending_total: u64,
    /// Buffers taken from the thread's cache, so far.
    pub cache_hits: u64,
    /// Buffers taken from the shared pool, so far.
    pub pool_hits: u64,
    /// Buffers allocated for an unlimited pool, so far.
    pub allocated: u64,
    /// Bytes of requests that got a buffer, so far.
    pub bytes: u64,
    /// Requests that got a buffer, so far.
    pub granted: u64,
    /// Sum of `in_use_bytes` as each of these requests found it, itself included. Divided by
    /// `granted` it is the mean in flight, which a snapshot between two turns cannot tell: a fast
    /// thread holds nothing then.
    pub in_use_bytes_sum: u64,
    /// Counters of rate pacing, if that is the policy.
    pub rate: Option<RateStatistics>,
    /// State of automatic pacing, if that is the policy.
    pub auto: Option<AutoStatistics>,
}

impl Admission {
    /// Creates the admission of one thread.
    ///
    /// # Panics
    /// If the pool is not shared by that many threads.
    #[must_use]
    pub fn new(pool: Arc<BufferPool>, pacing: &PacingConfig, thread: u32) -> Self {
        let pacer = Pacer::new(pacing, &pool, thread);
        Self {
            buffers: ThreadBuffers::new(Arc::clone(&pool), thread),
            pool,
            pacer,
            unpaced: VecDeque::new(),
            ready: VecDeque::new(),
            wakes: Vec::new(),
            pending_total: 0,
            in_use_bytes: 0,
            bytes: 0,
            granted: 0,
            in_use_bytes_sum: 0,
        }
    }

    /// Asks for a buffer. Without one the request waits, and [`granted`](Self::granted) returns it.
    #[inline]
    pub fn request(&mut self, wanted: Wanted, now: Tick) -> Option<Box<DataBuffer>> {
        let (is_first, is_held) = match wanted.class {
            AdmissionClass::Unpaced => (self.unpaced.is_empty(), false),
            AdmissionClass::Paced => {
                let is_first = self.is_ready_empty();
                (is_first, self.pacer.hold(wanted, !is_first, now))
            }
        };
        let wanted = if is_held {
            // Not it, if the pacer serves another one first.
            let passed = if is_first { self.pass(now) } else { None };
            match passed {
                Some(passed) if passed.id == wanted.id => passed,
                passed => {
                    self.ready.extend(passed);
                    self.pending_total += 1;
                    return None;
                }
            }
        } else {
            self.pacer.begin(&self.pool, &wanted);
            wanted
        };
        if is_first && let Some(buffer) = self.take(&wanted, self.waiting() + 1) {
            return Some(buffer);
        }
        self.pending_total += 1;
        match wanted.class {
            AdmissionClass::Unpaced => self.unpaced.push_back(wanted),
            AdmissionClass::Paced => self.ready.push_back(wanted),
        }
        None
    }

    /// Returns the next waiting request that may go on, with its buffer.
    #[inline]
    pub fn granted(&mut self, now: Tick) -> Option<(u64, Box<DataBuffer>)> {
        let granted = self.grant(now);
        if granted.is_none() {
            self.pacer.turn(now);
            self.buffers.free_idle(now, &mut self.wakes);
        }
        granted
    }

    fn grant(&mut self, now: Tick) -> Option<(u64, Box<DataBuffer>)> {
        if self.is_ready_empty()
            && let Some(wanted) = self.pass(now)
        {
            self.ready.push_back(wanted);
        }
        let first = self.unpaced.front().or_else(|| self.ready.front());
        let Some(&wanted) = first else {
            self.buffers.settle(&mut self.wakes);
            return None;
        };
        let buffer = self.take(&wanted, self.waiting())?;
        if self.unpaced.pop_front().is_none() {
            self.ready.pop_front();
        }
        Some((wanted.id, buffer))
    }

    /// Takes the buffer of a request back that moved `bytes` of `device`.
    #[inline]
    pub fn release(&mut self, buffer: Box<DataBuffer>, device: u32, bytes: u32, _now: Tick) {
        self.in_use_bytes -= u64::from(bytes);
        self.pacer.end(&self.pool, device, bytes, true);
        let waiting = self.waiting();
        self.buffers.put(buffer, waiting, &mut self.wakes);
    }

    /// Notes that a device completed a command `took` after its start: automatic pacing recognises
    /// slow devices by it. Time to receive or to send the data does not count.
    #[inline]
    pub fn served(&mut self, device: u32, took: Nanos) {
        self.pacer.served(device, took);
    }

    /// Forgets a waiting request.
    pub fn withdraw(&mut self, id: u64, now: Tick) {
        self.pacer.withdraw(id, now);
        for queue in [&mut self.unpaced, &mut self.ready] {
            if let Some(place) = queue.iter().position(|wanted| wanted.id == id)
                && let Some(wanted) = queue.remove(place)
            {
                let (device, bytes) = (wanted.device, wanted.bytes);
                self.pacer.end(&self.pool, device, bytes, false);
            }
        }
        if self.waiting() == 0 {
            self.buffers.settle(&mut self.wakes);
        }
    }

    /// Returns the next thread to wake: buffers were left for it, which its `granted` returns.
    #[inline]
    pub fn wake(&mut self) -> Option<u32> {
        self.wakes.pop()
    }

    /// Returns the time of the next call of `granted`, if one is due without a release.
    #[must_use]
    pub fn next(&self) -> Option<Tick> {
        // What waits for a buffer is granted by a release, and not earlier by the pacer.
        let pacer = self.pacer.next().filter(|_| self.is_ready_empty());
        pacer.into_iter().chain(self.buffers.next()).min()
    }

    /// Returns the counters.
    #[must_use]
    pub fn statistics(&self) -> AdmissionStatistics {
        let counts = self.buffers.counts();
        let held = u32::try_from(self.pacer.held()).unwrap_or(u32::MAX);
        AdmissionStatistics {
            in_use: self.buffers.in_use(),
            in_use_bytes: self.in_use_bytes,
            cached: u32::try_from(self.buffers.cached()).unwrap_or(u32::MAX),
            pending: self.waiting() + held,
            pending_total: self.pending_total,
            cache_hits: counts.cache_hits,
            pool_hits: counts.pool_hits,
            allocated: counts.allocated,
            bytes: self.bytes,
            granted: self.granted,
            in_use_bytes_sum: self.in_use_bytes_sum,
            rate: self.pacer.rate_statistics(),
            auto: self.pacer.auto_statistics(),
        }
    }

    /// Takes a request from the pacer.
    fn pass(&mut self, now: Tick) -> Option<Wanted> {
        let load = Load {
            pool: &self.pool,
            in_use_bytes: self.in_use_bytes,
        };
        let passed = self.pacer.pass(&load, now)?;
        self.pacer.begin(&self.pool, &passed);
        Some(passed)
    }

    #[inline]
    fn take(&mut self, wanted: &Wanted, waiting: u32) -> Option<Box<DataBuffer>> {
        let buffer = self.buffers.take(waiting)?;
        self.in_use_bytes += u64::from(wanted.bytes);
        self.bytes += u64::from(wanted.bytes);
        self.granted += 1;
        // Wraps after days at most; readers subtract.
        self.in_use_bytes_sum = self.in_use_bytes_sum.wrapping_add(self.in_use_bytes);
        Some(buffer)
    }

    /// Returns the number of requests that wait for a buffer, not for the pacer.
    fn waiting(&self) -> u32 {
        u32::try_from(self.unpaced.len() + self.ready.len()).unwrap_or(u32::MAX)
    }

    fn is_ready_empty(&self) -> bool {
        self.unpaced.is_empty() && self.ready.is_empty()
    }
}
