//! State of `auto` that the threads of a target share.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use fathom_core::{Nanos, Tick};

use super::epoch::Totals;
use super::search::Search;
use super::setting::{Beside, UNLIMITED, known};

/// Limits for all threads, their counters, and the search that reads these and sets those.
///
/// The bandwidth of all threads together decides: a thread by itself would gain by taking the
/// share of others, and all would end without a limit. All have the same limit per thread.
///
/// A thread touches its own line per request; the limits are written a few times per second. The
/// lock is only tried, once per epoch, by the first thread that comes round.
#[derive(Debug)]
pub(crate) struct AutoShared {
    limit: AtomicU64,
    slow_part: AtomicU32,
    /// Bytes per second of slow devices, per thread, that go before the requests of others.
    slow_rate: AtomicU64,
    /// Time of the next step.
    due: AtomicU64,
    /// Number of steps so far: peaks are recounted after each.
    steps: AtomicU64,
    threads: Box<[ThreadCounters]>,
    search: Mutex<Search>,
}

/// Counters of one thread, on a cache line of their own.
///
/// All orderings are relaxed: each is a number by itself, and a step that misses the last requests
/// counts them in the next epoch.
#[derive(Debug, Default)]
#[repr(align(128))]
struct ThreadCounters {
    fast_bytes: AtomicU64,
    fast_ops: AtomicU64,
    slow_bytes: AtomicU64,
    waited_bytes: AtomicU64,
    peak: AtomicU64,
    largest: AtomicU64,
    in_flight: AtomicU64,
    demand: AtomicU64,
}

/// Values of the counters, as their thread keeps them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThreadCounts {
    pub(super) fast_bytes: u64,
    pub(super) fast_ops: u64,
    pub(super) slow_bytes: u64,
    pub(super) waited_bytes: u64,
    /// Most bytes in flight since step `step`.
    pub(super) peak: u64,
    pub(super) largest: u64,
    /// Bytes in flight, of all devices.
    pub(super) in_flight: u64,
    /// Most bytes in flight or waiting since step `step`.
    pub(super) demand: u64,
    pub(super) step: u64,
}

/// State of automatic pacing, and the evidence for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AutoStatistics {
    /// Limit found: bytes in flight per thread, of devices that are not slow; `None`: no limit.
    pub limit_bytes: Option<u64>,
    /// Bytes per second at this limit, of all threads.
    pub bandwidth: u64,
    /// The same at a lower limit.
    pub below: Option<Beside>,
    /// The same at a higher limit.
    pub above: Option<Beside>,
    /// Divisor of what the target can move: slow devices get only this share, since others lost
    /// bandwidth beside them; `None`: all that they can.
    pub slow_part: Option<u32>,
    /// Devices that are slow beside others on this thread.
    pub slow_devices: u32,
    /// Time of the last change.
    pub changed_at: Tick,
    /// Sweeps over all limits so far: one at the start, and after each change of the load.
    pub sweeps: u64,
    /// Trials of a neighbouring limit so far.
    pub trials: u64,
}

impl AutoShared {
    pub(super) fn new(threads: u32, slow_part: u32) -> Self {
        Self {
            limit: AtomicU64::new(UNLIMITED),
            slow_part: AtomicU32::new(0),
            slow_rate: AtomicU64::new(0),
            due: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            threads: (0..threads).map(|_| ThreadCounters::default()).collect(),
            search: Mutex::new(Search::new(slow_part)),
        }
    }

    #[inline]
    pub(super) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn slow_part(&self) -> u32 {
        self.slow_part.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn slow_rate(&self) -> u64 {
        self.slow_rate.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn due(&self) -> Tick {
        Tick::new(self.due.load(Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn publish(&self, thread: usize, counts: &ThreadCounts) {
        let counters = &self.threads[thread];
        let store = |counter: &AtomicU64, value| counter.store(value, Ordering::Relaxed);
        store(&counters.fast_bytes, counts.fast_bytes);
        store(&counters.fast_ops, counts.fast_ops);
        store(&counters.slow_bytes, counts.slow_bytes);
        store(&counters.waited_bytes, counts.waited_bytes);
        store(&counters.peak, counts.peak);
        store(&counters.largest, counts.largest);
        store(&counters.in_flight, counts.in_flight);
        store(&counters.demand, counts.demand);
    }

    /// Takes a step of the search, unless another thread is at it.
    pub(super) fn step(&self, now: Tick) {
        let Ok(mut search) = self.search.try_lock() else {
            return;
        };
        if now < self.due() {
            return;
        }
        let (setting, due) = search.step(&self.totals(), now);
        self.limit.store(setting.limit, Ordering::Relaxed);
        self.slow_part.store(setting.slow_part, Ordering::Relaxed);
        let slow_rate = search.slow_rate() / self.threads.len().max(1) as u64;
        self.slow_rate.store(slow_rate, Ordering::Relaxed);
        self.due.store(due.get(), Ordering::Relaxed);
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn statistics(&self, slow_devices: u32) -> AutoStatistics {
        let search = self.search.lock();
        let search = search.unwrap_or_else(std::sync::PoisonError::into_inner);
        let (base, evidence) = (search.base(), search.evidence());
        AutoStatistics {
            limit_bytes: known(base.limit),
            bandwidth: evidence.bandwidth,
            below: evidence.below,
            above: evidence.above,
            slow_part: (base.slow_part > 0).then_some(base.slow_part),
            slow_devices,
            changed_at: evidence.changed_at,
            sweeps: evidence.sweeps,
            trials: evidence.trials,
        }
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for counters in &self.threads {
            let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            totals.fast_bytes += load(&counters.fast_bytes);
            totals.fast_ops += load(&counters.fast_ops);
            totals.slow_bytes += load(&counters.slow_bytes);
            totals.waited_bytes += load(&counters.waited_bytes);
            totals.peak = totals.peak.max(load(&counters.peak));
            totals.largest = totals.largest.max(load(&counters.largest));
            totals.demand = totals.demand.max(load(&counters.demand));
            totals.in_flight += load(&counters.in_flight);
        }
        totals
    }
}

/// Time after which a thread whose slow devices are held looks again, if nothing else happens.
pub(super) const LOOK_AGAIN: Nanos = Nanos::from_millis(1);
