//! Auto: the fewest bytes in flight that keep full bandwidth, found by measurement.

use std::sync::Arc;

use fathom_core::{Nanos, Tick};

use super::auto_shared::{AutoShared, AutoStatistics, LOOK_AGAIN, ThreadCounts};
use super::device_speeds::DeviceSpeeds;
use crate::buffer_pool::BufferPool;
use crate::device_queues::DeviceQueues;
use crate::wanted::Wanted;

/// Configuration of automatic pacing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoConfig {
    /// Share of slow devices as a divisor of what the target can move: they get at least this
    /// share, and no more than it while more would cost the others bandwidth.
    pub slow_part: u32,
}

impl Default for AutoConfig {
    /// A sixteenth: the others keep nine tenths with room for what measuring costs.
    fn default() -> Self {
        Self { slow_part: 16 }
    }
}

/// Automatic pacer of one thread.
///
/// Requests of devices that are not slow pass while the bytes in flight are below a limit, devices
/// in rotation. Slow ones ([`DeviceSpeeds`]) do not count there: a buffer that waits a millisecond
/// for its data is not in the cache in the meantime. They pass freely, or while they have credit:
/// a part of what the target can move. Both limits come from the search
/// ([`AutoShared`]), by what they do to bandwidth.
#[derive(Debug)]
pub(crate) struct AutoPacer {
    shared: Arc<AutoShared>,
    thread: usize,
    fast: DeviceQueues,
    slow: DeviceQueues,
    /// Bytes of the requests in `fast`.
    fast_held: u64,
    speeds: DeviceSpeeds,
    /// Bytes that slow devices may still move; below zero after a long request.
    slow_credit: i64,
    counts: ThreadCounts,
    /// Time of the last turn.
    turned: Tick,
}

impl AutoPacer {
    pub(super) fn new(config: AutoConfig, pool: &BufferPool, thread: u32) -> Self {
        let sharing = pool.sharing();
        let shared = pool.auto().get_or_init(|| {
            let shared = AutoShared::new(sharing.threads, config.slow_part.max(1));
            Arc::new(shared)
        });
        Self {
            shared: Arc::clone(shared),
            thread: thread as usize,
            fast: DeviceQueues::new(sharing.devices),
            slow: DeviceQueues::new(sharing.devices),
            fast_held: 0,
            speeds: DeviceSpeeds::new(sharing.devices),
            slow_credit: 0,
            counts: ThreadCounts::default(),
            turned: Tick::ZERO,
        }
    }

    /// Holds a request and returns true, unless it may go on at once. It may not if others wait for
    /// buffers (`is_blocked`): slow devices would fill that queue.
    #[inline]
    pub(super) fn hold(&mut self, wanted: Wanted, is_blocked: bool) -> bool {
        if self.speeds.is_slow(wanted.device) {
            let passes = !is_blocked && self.slow.len() == 0 && self.slow_may_pass();
            if passes {
                self.charge_slow(&wanted);
            } else {
                self.slow.push(wanted);
            }
            return !passes;
        }
        if !is_blocked && self.fast.len() == 0 && self.fast_may_pass(&wanted) {
            return false;
        }
        self.counts.waited_bytes += u64::from(wanted.bytes);
        self.fast_held += u64::from(wanted.bytes);
        self.fast.push(wanted);
        self.note_peaks();
        true
    }

    /// Returns the next request that may go on.
    #[inline]
    pub(super) fn pass(&mut self) -> Option<Wanted> {
        if self.slow.len() > 0 && self.slow_credit > 0 {
            return self.pass_slow();
        }
        if let Some(first) = self.fast.first()
            && self.fast_may_pass(first)
        {
            let wanted = self.fast.pop(|_| true)?;
            self.fast_held -= u64::from(wanted.bytes);
            return Some(wanted);
        }
        if self.slow.len() > 0 && self.slow_may_pass() {
            return self.pass_slow();
        }
        None
    }

    fn pass_slow(&mut self) -> Option<Wanted> {
        let wanted = self.slow.pop(|_| true)?;
        self.charge_slow(&wanted);
        Some(wanted)
    }

    /// Takes what is due once per turn. Of several calls at the same time the first one counts: the
    /// counters are those of the turn before.
    #[inline]
    pub(super) fn turn(&mut self, now: Tick) {
        if now == self.turned {
            return;
        }
        self.accrue(now);
        self.counts.in_flight = self.speeds.fast_bytes() + self.speeds.slow_bytes();
        self.shared.publish(self.thread, &self.counts);
        if now >= self.shared.due() {
            self.shared.step(now);
        }
        if self.speeds.classify(now) {
            self.sort_again();
        }
    }

    /// Adds the credit of slow devices since the last turn.
    fn accrue(&mut self, now: Tick) {
        let elapsed = now.since(self.turned).min(CREDIT_TIME);
        self.turned = now;
        let rate = self.shared.slow_rate();
        let bytes = |time: Nanos| {
            let bytes = u128::from(rate) * u128::from(time.get()) / 1_000_000_000;
            i64::try_from(bytes).unwrap_or(i64::MAX)
        };
        let most = bytes(CREDIT_TIME).max(SLOW_CREDIT_MIN);
        self.slow_credit = (self.slow_credit + bytes(elapsed)).min(most);
    }

    /// Counts a request that goes on.
    #[inline]
    pub(super) fn begin(&mut self, wanted: &Wanted) {
        let bytes = u64::from(wanted.bytes);
        self.speeds.begin(wanted.device, bytes);
        self.note_peaks();
        let counts = &mut self.counts;
        counts.largest = counts.largest.max(bytes);
    }

    /// Follows the peaks since the last step of the search.
    fn note_peaks(&mut self) {
        let in_flight = self.speeds.fast_bytes();
        let demand = in_flight + self.fast_held;
        let step = self.shared.steps();
        let counts = &mut self.counts;
        if counts.step != step {
            (counts.step, counts.peak, counts.demand) = (step, 0, 0);
        }
        counts.peak = counts.peak.max(in_flight);
        counts.demand = counts.demand.max(demand);
    }

    /// Counts a request that ends, or that is withdrawn if `moved` is false.
    #[inline]
    pub(super) fn end(&mut self, device: u32, bytes: u32, moved: bool) {
        let bytes = u64::from(bytes);
        self.speeds.end(device, bytes);
        if !moved {
            return;
        }
        self.speeds.moved(device, bytes);
        if self.speeds.is_slow(device) {
            self.counts.slow_bytes += bytes;
        } else {
            self.counts.fast_bytes += bytes;
            self.counts.fast_ops += 1;
        }
    }

    /// Notes how long a device took for a command.
    #[inline]
    pub(super) fn served(&mut self, device: u32, took: Nanos) {
        self.speeds.served(device, took);
    }

    pub(super) fn withdraw(&mut self, id: u64) {
        if let Some(wanted) = self.fast.withdraw(id) {
            self.fast_held -= u64::from(wanted.bytes);
        }
        self.slow.withdraw(id);
    }

    /// Returns the time at which requests may pass that nothing in flight lets go.
    pub(super) fn next(&self) -> Option<Tick> {
        (self.slow.len() > 0).then(|| self.shared.due().max(self.turned + LOOK_AGAIN))
    }

    pub(super) fn held(&self) -> usize {
        self.fast.len() + self.slow.len()
    }

    pub(super) fn statistics(&self) -> AutoStatistics {
        self.shared.statistics(self.speeds.slow_count())
    }

    /// Returns true if a request keeps to the limit. A thread with nothing in flight may always
    /// have one.
    fn fast_may_pass(&self, wanted: &Wanted) -> bool {
        let in_flight = self.speeds.fast_bytes();
        in_flight == 0 || in_flight + u64::from(wanted.bytes) <= self.shared.limit()
    }

    fn slow_may_pass(&self) -> bool {
        self.shared.slow_part() == 0 || self.slow_credit > 0 || self.speeds.slow_bytes() == 0
    }

    fn charge_slow(&mut self, wanted: &Wanted) {
        // Never far below zero: what passes without credit is not paid back.
        let left = self.slow_credit - i64::from(wanted.bytes);
        self.slow_credit = left.max(-SLOW_CREDIT_MIN);
    }

    /// Moves waiting requests to the queues of their device's new class.
    fn sort_again(&mut self) {
        let all = [&mut self.fast, &mut self.slow].map(|queues| queues.take_all());
        self.fast_held = 0;
        for wanted in all.into_iter().flatten() {
            if self.speeds.is_slow(wanted.device) {
                self.slow.push(wanted);
            } else {
                self.fast_held += u64::from(wanted.bytes);
                self.fast.push(wanted);
            }
        }
    }
}

/// Time whose credit slow devices may pile up: some turns of a busy target.
const CREDIT_TIME: Nanos = Nanos::from_millis(4);
/// Credit that they may pile up at any rate, and owe: a few transfers.
const SLOW_CREDIT_MIN: i64 = 512 << 10;
