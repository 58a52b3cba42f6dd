//! Rate: a credit of bytes per period, for devices in rotation.

use fathom_core::{Nanos, Tick};

use super::Load;
use super::tuner::{TunerConfig, Tuning, period_of};
use crate::buffer_pool::BufferPool;
use crate::device_queues::DeviceQueues;
use crate::wanted::Wanted;

/// Configuration of rate pacing, per thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateConfig {
    /// Time in which a thread gets one credit.
    pub period: Nanos,
    /// Bytes per period.
    pub credit: u32,
    /// Bytes up to which a request is not paced.
    pub threshold: u32,
    /// Requests in flight per device, over all threads, at which it gets no more; 0: no limit.
    pub device_credit: u32,
    /// Rule that changes the period.
    pub tuner: Option<TunerConfig>,
}

impl Default for RateConfig {
    /// 128 KiB every 23 µs, or 45.6 Gb/s per thread: a quarter of what two 100-Gb/s links carried
    /// in the published measurements, which had four threads.
    fn default() -> Self {
        Self {
            period: Nanos::from_micros(23),
            credit: 131_072,
            threshold: 0,
            device_credit: 0,
            tuner: None,
        }
    }
}

/// Counters of a rate pacer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateStatistics {
    /// Times that credit was added.
    pub polls: u64,
    /// Times that credit was added while nothing waited.
    pub idle_polls: u64,
    /// Periods that passed while requests waited.
    pub ticks: u64,
    /// Requests let go.
    pub grants: u64,
    /// Bytes of these requests.
    pub bytes: u64,
    /// Period, as configured or as the tuner has set it.
    pub period: Nanos,
    /// Time in which a credit of bytes was let go, on average while requests waited.
    pub period_measured: Nanos,
}

/// Rate pacer of one thread.
///
/// A request goes on while there is credit, and is charged whole: one that is longer than the rest
/// leaves a debt for later periods. Unused credit does not accumulate beyond one period's. Credit
/// of periods that passed while requests waited is kept, up to [`LATE_PERIODS_MAX`]: a loop that
/// comes round late would otherwise be slower than configured.
#[derive(Debug)]
pub(crate) struct RatePacer {
    config: RateConfig,
    queues: DeviceQueues,
    period: Nanos,
    tuning: Option<Tuning>,
    /// Beginning of the current period.
    ticked: Option<Tick>,
    /// Bytes that may go on; a debt if negative.
    remaining: i64,
    /// Time since which requests have waited.
    busy_since: Option<Tick>,
    busy: Nanos,
    counts: RateStatistics,
}

impl RatePacer {
    pub(super) fn new(config: &RateConfig, pool: &BufferPool) -> Self {
        let sharing = pool.sharing();
        let config = RateConfig {
            // Guards of divisions; a period of 0 is refused or means no pacing where it is read.
            period: config.period.max(Nanos::new(1)),
            credit: config.credit.max(1),
            ..*config
        };
        let tuning = |tuner| Tuning::new(tuner, config.period, config.credit, sharing.threads);
        Self {
            queues: DeviceQueues::new(sharing.devices),
            period: config.period,
            tuning: config.tuner.map(tuning),
            ticked: None,
            remaining: 0,
            busy_since: None,
            busy: Nanos::ZERO,
            counts: RateStatistics::default(),
            config,
        }
    }

    /// Holds a request and returns true, unless it is no larger than the threshold.
    pub(super) fn hold(&mut self, wanted: Wanted, now: Tick) -> bool {
        if wanted.bytes <= self.config.threshold {
            return false;
        }
        // Settles the time before this request: an idle pacer keeps no credit.
        self.refill(now);
        self.queues.push(wanted);
        self.busy_since.get_or_insert(now);
        true
    }

    pub(super) fn pass(&mut self, load: &Load<'_>, now: Tick) -> Option<Wanted> {
        if let Some(tuning) = &mut self.tuning
            && let Some(period) = tuning.tune(self.period, load.in_use_bytes, now)
        {
            self.period = period;
        }
        if self.queues.len() == 0 {
            return None;
        }
        self.refill(now);
        if self.remaining <= 0 {
            return None;
        }
        let limit = self.config.device_credit;
        let wanted = self
            .queues
            .pop(|wanted| limit == 0 || load.pool.in_flight(wanted.device) < limit)?;
        self.remaining -= i64::from(wanted.bytes);
        self.counts.grants += 1;
        self.counts.bytes += u64::from(wanted.bytes);
        if let Some(tuning) = &mut self.tuning {
            tuning.count(wanted.bytes);
        }
        self.end_busy(now);
        Some(wanted)
    }

    pub(super) fn withdraw(&mut self, id: u64, now: Tick) {
        self.queues.withdraw(id);
        self.end_busy(now);
    }

    /// Returns the time at which there is credit again; the next period's if only devices are full,
    /// since other threads may have made room by then.
    pub(super) fn next(&self) -> Option<Tick> {
        let ticked = self.ticked.filter(|_| self.queues.len() > 0)?;
        let credit = i64::from(self.config.credit);
        let debt = (-self.remaining).max(0);
        let periods = u64::try_from(debt / credit + 1).unwrap_or(1);
        Some(ticked + Nanos::new(self.period.get().saturating_mul(periods)))
    }

    pub(super) const fn held(&self) -> usize {
        self.queues.len()
    }

    #[inline]
    pub(super) fn begin(&self, pool: &BufferPool, device: u32) {
        if self.config.device_credit != 0 {
            pool.begin(device);
        }
    }

    #[inline]
    pub(super) fn end(&self, pool: &BufferPool, device: u32) {
        if self.config.device_credit != 0 {
            pool.end(device);
        }
    }

    pub(super) fn statistics(&self) -> RateStatistics {
        RateStatistics {
            period: self.period,
            period_measured: if self.counts.bytes == 0 {
                Nanos::ZERO
            } else {
                let credit = u64::from(self.config.credit);
                period_of(self.busy, credit, self.counts.bytes)
            },
            ..self.counts
        }
    }

    /// Adds the credit of the periods that have ended.
    fn refill(&mut self, now: Tick) {
        let credit = i64::from(self.config.credit);
        let Some(ticked) = self.ticked else {
            self.ticked = Some(now);
            self.remaining = credit;
            return;
        };
        let elapsed = now.since(ticked).get();
        let periods = elapsed / self.period.get();
        if periods == 0 {
            return;
        }
        // Phase is kept: the rest of the elapsed time belongs to the period that has begun.
        self.ticked = Some(Tick::new(now.get() - elapsed % self.period.get()));
        let waits = self.queues.len() > 0;
        self.counts.polls += 1;
        self.counts.idle_polls += u64::from(!waits);
        let most = if waits {
            self.counts.ticks += periods;
            credit.saturating_mul(LATE_PERIODS_MAX)
        } else {
            credit
        };
        let added = i64::try_from(periods).unwrap_or(i64::MAX);
        let added = credit.saturating_mul(added);
        self.remaining = self.remaining.saturating_add(added).min(most);
    }

    fn end_busy(&mut self, now: Tick) {
        if self.queues.len() == 0
            && let Some(since) = self.busy_since.take()
        {
            self.busy += now.since(since);
        }
    }
}

/// Periods whose credit a late loop keeps. A turn of a busy target takes some ten transfers; more
/// would let a burst through that the pacing is there to prevent.
const LATE_PERIODS_MAX: i64 = 16;
