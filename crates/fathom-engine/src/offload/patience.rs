//! Looking for something a while before sleeping until it comes.
//!
//! A sleep and the wake-up that ends it take two threads some ten microseconds, half of it the
//! waker's: what comes sooner is better waited for awake. Where it did not come in time, the next
//! look is left out, then the next three, the next seven: so a slow device costs little.

use std::hint::spin_loop;

use fathom_core::Nanos;
use fathom_sys::clock::Clock;

/// How one thread looks for what it waits for.
pub(crate) struct Patience {
    clock: Clock,
    longest: Nanos,
    /// How many looks are left out after the last vain one.
    leave_out: u32,
    left_out: u32,
}

impl Patience {
    /// On one processor nothing comes while it is looked for.
    pub(crate) fn new(clock: Clock, processors: u32) -> Self {
        Self {
            clock,
            longest: if processors > 1 { LONGEST } else { Nanos::ZERO },
            leave_out: 0,
            left_out: 0,
        }
    }

    /// Looks for it, for `most` at most; whether it was found.
    pub(crate) fn look(&mut self, most: Option<Nanos>, mut is_there: impl FnMut() -> bool) -> bool {
        if self.longest.is_zero() {
            return false;
        }
        if self.left_out < self.leave_out {
            self.left_out += 1;
            return false;
        }
        let longest = most.map_or(self.longest, |most| most.min(self.longest));
        let enough = self.clock.now() + longest;
        while !is_there() {
            if self.clock.now() >= enough {
                self.left_out = 0;
                self.leave_out = (self.leave_out * 2 + 1).min(MOST_LEFT_OUT);
                return false;
            }
            for _ in 0..PAUSE {
                spin_loop();
            }
        }
        self.leave_out = 0;
        self.left_out = 0;
        true
    }
}

/// A few times what falling asleep and being woken take on a machine with a hypervisor.
const LONGEST: Nanos = Nanos::from_micros(50);
/// Between two looks: the line that is looked at is left to whoever writes it. A guess.
const PAUSE: u32 = 4;
/// So looks in vain cost less than two microseconds for each sleep, a fraction of its own price.
const MOST_LEFT_OUT: u32 = 31;
