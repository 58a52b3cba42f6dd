//! Looking for something a while before sleeping until it comes.
//!
//! A sleep and the wake-up that ends it take two threads some ten microseconds, half of it the
//! waker's: what comes sooner is better waited for awake. Where it did not come in time, the next
//! look is left out, then the next three, the next seven: so a slow device costs little.

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
    /// The kernel, which may need a processor for it.
    Kernel,
}

impl WakeSource {
    /// After so long whoever else wants the processor is let onto it, again and again: the one who
    /// is to bring it may have been put on the same one, as happens in virtual machines above all
    /// (a processor that sleeps has been taken away by the host, and is not idle to the kernel).
    /// Where the kernel hands io_uring's ops on to threads of its own, turns of 4 µs made two
    /// thirds of the ops that turns of 0.5 µs made; elsewhere no difference was seen.
    const fn is_let_on_after(self) -> Nanos {
        match self {
            Self::Pool => Nanos::from_micros(4),
            Self::Kernel => Nanos::new(500),
        }
    }
}

/// Spinning state of one thread.
pub(crate) struct AdaptiveSpin {
    clock: Clock,
    longest: Nanos,
    /// Number of spins to skip after the last one in vain.
    leave_out: u32,
    left_out: u32,
    /// None if the thread stays where the kernel has put it.
    crowd: Option<Crowd>,
}

impl AdaptiveSpin {
    /// On one processor nothing comes while it is looked for.
    pub(crate) fn new(clock: Clock, processors: u32) -> Self {
        Self {
            clock,
            longest: if processors > 1 {
                SPIN_MAX
            } else {
                Nanos::ZERO
            },
            leave_out: 0,
            left_out: 0,
            crowd: None,
        }
    }

    /// The same for a thread that leaves a processor which another one needs.
    pub(crate) fn of_worker(clock: Clock, processors: u32) -> Self {
        Self {
            crowd: Some(Crowd::default()),
            ..Self::new(clock, processors)
        }
    }

    /// Looks for what `from` will bring, for `most` at most; whether it was found.
    pub(crate) fn look(
        &mut self,
        from: WakeSource,
        most: Option<Nanos>,
        mut is_there: impl FnMut() -> bool,
    ) -> bool {
        if self.longest.is_zero() {
            return false;
        }
        if self.left_out < self.leave_out {
            self.left_out += 1;
            return false;
        }
        let longest = most.map_or(self.longest, |most| most.min(self.longest));
        let begun = self.clock.now();
        let keep = from.is_let_on_after();
        let (enough, mut stand_aside) = (begun + longest, begun + keep);
        while !is_there() {
            let now = self.clock.now();
            // Before `begun` on a clock that was set back.
            if now >= enough || now < begun {
                self.left_out = 0;
                self.leave_out = (self.leave_out * 2 + 1).min(SKIPS_MAX);
                return false;
            }
            if now >= stand_aside {
                stand_aside = self.stand_aside(from, now) + keep;
            }
            for _ in 0..PAUSE {
                spin_loop();
            }
        }
        self.leave_out = 0;
        self.left_out = 0;
        true
    }

    /// Lets others onto the processor; the time after.
    fn stand_aside(&mut self, from: WakeSource, now: Tick) -> Tick {
        yield_now();
        let after = self.clock.now();
        if let (Some(crowd), WakeSource::Pool) = (&mut self.crowd, from) {
            crowd.saw_turn(after - now > EMPTY_TURN);
            crowd.leave_if_lasting(after);
        }
        after
    }
}

/// Returns true if other threads run when this one yields. The kernel separates two threads that
/// keep one processor busy while another is idle, but not if both have just run on it, as these
/// have.
#[derive(Default)]
struct Crowd {
    /// Turns of others, without one between that nobody wanted.
    turns: u32,
    /// No processor is left before then.
    not_before: Tick,
}

impl Crowd {
    fn saw_turn(&mut self, taken: bool) {
        self.turns = if taken { self.turns + 1 } else { 0 };
    }

    fn leave_if_lasting(&mut self, now: Tick) {
        if self.turns < LASTING || now < self.not_before {
            return;
        }
        self.turns = 0;
        self.not_before = now + STAYS;
        // A thread that cannot leave stays.
        let _left = thread::change_processor();
    }
}

/// A few times what falling asleep and being woken take on a machine with a hypervisor.
const SPIN_MAX: Nanos = Nanos::from_micros(50);
/// Between two looks: the line that is looked at is left to whoever writes it. A guess.
const PAUSE: u32 = 4;
/// So looks in vain cost less than two microseconds for each sleep, a fraction of its own price.
const SKIPS_MAX: u32 = 31;
/// Standing aside takes a fraction of this where nobody else wants to run, and more where one does:
/// two switches, and what is done between them.
const EMPTY_TURN: Nanos = Nanos::from_micros(2);
/// So many turns are no chance.
const LASTING: u32 = 32;
/// Leaving a processor takes some ten microseconds: about a hundredth of the time.
const STAYS: Nanos = Nanos::from_millis(1);
