//! Adaptive spinning before blocking.
//!
//! Blocking and the wake-up that ends it cost two threads about ten microseconds, half of it the
//! waker's, so an event that is due sooner is cheaper to spin for. After a spin that timed out, the
//! next one is skipped, then the next three, the next seven, and so on: a slow device costs little.

use std::hint::spin_loop;
use std::thread::yield_now;

use fathom_core::{Nanos, Tick};
use fathom_sys::clock::Clock;
use fathom_sys::thread;

/// Source of the event that a thread spins for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WakeSource {
    /// Another thread of the pool.
    Pool,
    /// The kernel, which may need this processor to produce it.
    Kernel,
}

impl WakeSource {
    /// Returns the interval at which a spinning thread yields its processor, because the thread
    /// that produces the event may be queued on the same one. That happens mostly in virtual
    /// machines: the host has descheduled an idle virtual CPU, and the guest's scheduler
    /// avoids it.
    ///
    /// Measured where the kernel passes io_uring's ops to its own worker threads: yielding every
    /// 4 µs completed two thirds of the ops of yielding every 0.5 µs. Elsewhere no difference was
    /// seen.
    const fn yield_interval(self) -> Nanos {
        match self {
            Self::Pool => Nanos::from_micros(4),
            Self::Kernel => Nanos::new(500),
        }
    }
}

/// Spinning state of one thread.
///
/// A check costs one read of the clock and of the caller's condition; the caller's cache line is
/// left alone in between. Spinning without limit was rejected: it takes a processor from the job,
/// and from the kernel's own threads.
pub(crate) struct AdaptiveSpin {
    clock: Clock,
    longest: Nanos,
    /// Spins to skip since the last one that timed out.
    to_skip: u32,
    skipped: u32,
    /// `None` if the thread stays on the processor that the kernel has chosen.
    shared_processor: Option<SharedProcessor>,
}

impl AdaptiveSpin {
    /// Creates the state; with a single processor it never spins, because nothing else could run.
    pub(crate) fn new(clock: Clock, processors: u32) -> Self {
        Self {
            clock,
            longest: if processors > 1 {
                SPIN_MAX
            } else {
                Nanos::ZERO
            },
            to_skip: 0,
            skipped: 0,
            shared_processor: None,
        }
    }

    /// Creates the state of a thread that moves away from a processor it has to share.
    pub(crate) fn of_worker(clock: Clock, processors: u32) -> Self {
        Self {
            shared_processor: Some(SharedProcessor::default()),
            ..Self::new(clock, processors)
        }
    }

    /// Spins until `is_there` returns true, for `limit` at most. Returns false on a timeout or if
    /// this spin is skipped.
    pub(crate) fn spin_until(
        &mut self,
        from: WakeSource,
        most: Option<Nanos>,
        mut is_there: impl FnMut() -> bool,
    ) -> bool {
        if self.longest.is_zero() {
            return false;
        }
        if self.skipped < self.to_skip {
            self.skipped += 1;
            return false;
        }
        let longest = most.map_or(self.longest, |most| most.min(self.longest));
        let started_at = self.clock.now();
        let interval = from.yield_interval();
        let (deadline, mut next_yield) = (started_at + longest, started_at + interval);
        while !is_there() {
            let now = self.clock.now();
            // `now < started_at`: the clock was set back, and the deadline may be far away.
            if now >= deadline || now < started_at {
                self.skipped = 0;
                self.to_skip = (self.to_skip * 2 + 1).min(SKIPS_MAX);
                return false;
            }
            if now >= next_yield {
                next_yield = self.yield_processor(from, now) + interval;
            }
            for _ in 0..PAUSES_PER_CHECK {
                spin_loop();
            }
        }
        self.to_skip = 0;
        self.skipped = 0;
        true
    }

    /// Yields the processor and returns the time afterwards.
    fn yield_processor(&mut self, from: WakeSource, now: Tick) -> Tick {
        yield_now();
        let after = self.clock.now();
        if let (Some(shared_processor), WakeSource::Pool) = (&mut self.shared_processor, from) {
            shared_processor.note_yield(after - now > IDLE_YIELD_MAX);
            shared_processor.migrate_if_lasting(after);
        }
        after
    }
}

/// Detector of a processor shared with another busy thread. The kernel separates two threads that
/// keep one processor busy while another is idle, but not if both have just run on it, as the
/// threads of a pool have.
#[derive(Default)]
struct SharedProcessor {
    /// Consecutive yields during which another thread ran.
    turns: u32,
    /// Earliest time of the next migration.
    not_before: Tick,
}

impl SharedProcessor {
    fn note_yield(&mut self, taken: bool) {
        self.turns = if taken { self.turns + 1 } else { 0 };
    }

    fn migrate_if_lasting(&mut self, now: Tick) {
        if self.turns < SHARED_YIELDS_MIN || now < self.not_before {
            return;
        }
        self.turns = 0;
        self.not_before = now + MIGRATION_INTERVAL;
        // Best effort: a thread confined to one processor stays there.
        let _left = thread::change_processor();
    }
}

/// Longest spin: a few times the cost of blocking and being woken in a virtual machine.
const SPIN_MAX: Nanos = Nanos::from_micros(50);
/// Pause instructions between two checks, which leave the watched cache line to its writer. A
/// guess.
const PAUSES_PER_CHECK: u32 = 4;
/// Most spins skipped in a row: 50 µs in 32 sleeps are less than two microseconds each, a fraction
/// of a sleep's own cost.
const SKIPS_MAX: u32 = 31;
/// Longest yield that ran no other thread. With another thread it takes two context switches and
/// that thread's time slice, which is more.
const IDLE_YIELD_MAX: Nanos = Nanos::from_micros(2);
/// Consecutive yields to another thread that are not a coincidence. A guess.
const SHARED_YIELDS_MIN: u32 = 32;
/// Interval between migrations: one takes some ten microseconds, so about a hundredth of the time.
const MIGRATION_INTERVAL: Nanos = Nanos::from_millis(1);
