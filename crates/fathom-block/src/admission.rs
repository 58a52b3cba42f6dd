//! Admission of requests: pool, pacer and waiting requests of one thread of a target.

use std::collections::VecDeque;
use std::sync::Arc;

use fathom_core::{DataBuffer, Tick};

use crate::buffer_pool::BufferPool;
use crate::thread_buffers::ThreadBuffers;

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
    buffers: ThreadBuffers,
    unpaced: VecDeque<Wanted>,
    /// Requests that the pacer has let go, and that wait for a buffer.
    ready: VecDeque<Wanted>,
    wakes: Vec<u32>,
    pending_total: u64,
    in_use_bytes: u64,
}

/// Policy for requests beside the limit of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacingConfig {
    /// None: the pool is the only limit, if it has one.
    #[default]
    None,
}

/// Request for a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Identifies the request among those of its thread that wait.
    pub id: u64,
    /// Index of the device, below [`Sharing::devices`](crate::Sharing).
    pub device: u32,
    /// Bytes that the request moves, at most those of a buffer.
    pub bytes: u32,
    /// Order among requests.
    pub class: AdmissionClass,
}

/// Class of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdmissionClass {
    /// The target decides when the data move: a read, or a write that waits for an R2T.
    Paced,
    /// The data are in the stream already, and whatever is behind them waits with them.
    Unpaced,
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
}

impl Admission {
    /// Creates the admission of one thread.
    ///
    /// # Panics
    /// If the pool is not shared by that many threads.
    #[must_use]
    pub fn new(pool: Arc<BufferPool>, pacing: &PacingConfig, thread: u32) -> Self {
        let PacingConfig::None = pacing;
        Self {
            buffers: ThreadBuffers::new(pool, thread),
            unpaced: VecDeque::new(),
            ready: VecDeque::new(),
            wakes: Vec::new(),
            pending_total: 0,
            in_use_bytes: 0,
        }
    }

    /// Asks for a buffer. Without one the request waits, and [`granted`](Self::granted) returns it.
    #[inline]
    pub fn request(&mut self, wanted: Wanted, _now: Tick) -> Option<Box<DataBuffer>> {
        let must_queue = match wanted.class {
            AdmissionClass::Unpaced => !self.unpaced.is_empty(),
            AdmissionClass::Paced => self.pending() > 0,
        };
        if !must_queue && let Some(buffer) = self.take(&wanted, self.pending() + 1) {
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
    pub fn granted(&mut self, now: Tick) -> Option<(u64, Box<DataBuffer>)> {
        let first = self.unpaced.front().or_else(|| self.ready.front());
        let Some(&wanted) = first else {
            self.buffers.free_idle(now);
            self.buffers.settle(&mut self.wakes);
            return None;
        };
        let buffer = self.take(&wanted, self.pending())?;
        if self.unpaced.pop_front().is_none() {
            self.ready.pop_front();
        }
        Some((wanted.id, buffer))
    }

    /// Takes the buffer of a request back that moved `bytes` of `device`.
    #[inline]
    pub fn release(&mut self, buffer: Box<DataBuffer>, _device: u32, bytes: u32, _now: Tick) {
        self.in_use_bytes -= u64::from(bytes);
        let pending = self.pending();
        self.buffers.put(buffer, pending, &mut self.wakes);
    }

    /// Forgets a waiting request.
    pub fn withdraw(&mut self, id: u64, _now: Tick) {
        self.unpaced.retain(|wanted| wanted.id != id);
        self.ready.retain(|wanted| wanted.id != id);
        if self.pending() == 0 {
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
        self.buffers.next()
    }

    /// Returns the counters.
    #[must_use]
    pub fn statistics(&self) -> AdmissionStatistics {
        let counts = self.buffers.counts();
        AdmissionStatistics {
            in_use: self.buffers.in_use(),
            in_use_bytes: self.in_use_bytes,
            cached: u32::try_from(self.buffers.cached()).unwrap_or(u32::MAX),
            pending: self.pending(),
            pending_total: self.pending_total,
            cache_hits: counts.cache_hits,
            pool_hits: counts.pool_hits,
            allocated: counts.allocated,
        }
    }

    #[inline]
    fn take(&mut self, wanted: &Wanted, pending: u32) -> Option<Box<DataBuffer>> {
        let buffer = self.buffers.take(pending)?;
        self.in_use_bytes += u64::from(wanted.bytes);
        Some(buffer)
    }

    fn pending(&self) -> u32 {
        u32::try_from(self.unpaced.len() + self.ready.len()).unwrap_or(u32::MAX)
    }
}
