//! Waits of a job's thread for the time at which its next op is due.
//!
//! ```text
//!  now ─────── sleep ───────► due − lead ──► woken ── spin or poll ──► due
//!                                   └ overshoot ┘
//! ```
//!
//! A thread that sleeps until an op is due issues it late, by the timer, the processor's way out of
//! idle and the scheduler: some microseconds, on virtual machines tens. A job with a schedule
//! therefore gets up early, by as much as all but one in a thousand of its sleeps overshoot, and
//! looks at the clock for the rest. It does so only where each job of the run can have a processor
//! to itself: elsewhere the spinning of one would delay the others by more than it gains.
//!
//! Cost: at most [`LEAD_MAX`] of processor time per op. Rejected: spinning all the time, which
//! takes a whole processor even for ten ops per second, and a fixed lead, which is too long for
//! machines that wake fast and too short for others.

use fathom_core::{Nanos, Tick};
use fathom_sys::clock::{Clock, sleep_until, spin_until};

/// Waits of one thread.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// Time by which sleeps end before an op is due; `None` if they end when it is.
    lead: Option<Nanos>,
}

impl Pacer {
    /// Creates a pacer that has seen no sleep; `early` if it may spin until ops are due.
    pub(crate) fn new(early: bool) -> Self {
        let lead = early.then_some(LEAD_FIRST);
        Self { lead }
    }

    /// Sleeps, spins or both until `until`, for at most [`LOOK_AROUND`].
    pub(crate) fn pause(&mut self, clock: &Clock, until: Tick, spin: bool) {
        let now = clock.now();
        let latest = until.min(now + LOOK_AROUND);
        if spin {
            return spin_until(clock, latest);
        }
        let up = before(until, self.lead.unwrap_or_default()).min(latest);
        if up - now > TOO_SHORT_TO_SLEEP {
            sleep_until(clock, up);
            if self.lead.is_none() {
                return;
            }
            self.learn(clock.now() - up);
        }
        if until == latest {
            spin_until(clock, until);
        }
    }

    /// Returns the end of an engine's wait for completions, before which nothing is due; `None` if
    /// it is too near to sleep, and the engine is to be polled.
    pub(crate) fn up(&self, now: Tick, until: Tick) -> Option<Tick> {
        let Some(lead) = self.lead else {
            return Some(until);
        };
        let up = before(until, lead);
        (up - now > TOO_SHORT_TO_SLEEP).then_some(up)
    }

    /// Moves the lead towards what one sleep in a thousand overshoots.
    pub(crate) fn learn(&mut self, overshoot: Nanos) {
        if let Some(lead) = &mut self.lead {
            *lead = if overshoot > *lead {
                (*lead + STEP_UP).min(LEAD_MAX)
            } else {
                *lead - STEP
            };
        }
    }
}

/// Returns the time so long before another one.
fn before(until: Tick, lead: Nanos) -> Tick {
    Tick::ZERO + (until.since(Tick::ZERO) - lead)
}

/// Maximum sleep between checks for a stop request.
pub(crate) const LOOK_AROUND: Nanos = Nanos::from_millis(100);
/// Waits up to this are spun: sleeping and waking take about as long, even without timer slack, so
/// the op would be issued late.
const TOO_SHORT_TO_SLEEP: Nanos = Nanos::from_micros(5);
/// Lead of the first sleep.
const LEAD_FIRST: Nanos = Nanos::from_micros(50);
/// Longest lead: a fifth of a processor at 1,000 ops per second.
const LEAD_MAX: Nanos = Nanos::from_micros(200);
/// Decrease of the lead after a sleep that it covered.
const STEP: Nanos = Nanos::new(50);
/// Increase after one that it did not cover. In balance, one sleep in a thousand is such.
const STEP_UP: Nanos = Nanos::from_micros(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn after(sleeps: impl IntoIterator<Item = u64>) -> u64 {
        let mut pacer = Pacer::new(true);
        for overshoot in sleeps {
            pacer.learn(Nanos::new(overshoot));
        }
        pacer.lead.unwrap().get()
    }

    #[test]
    fn the_lead_covers_what_sleeps_overshoot() {
        // All sleeps alike: within a step of the overshoot above it.
        assert!((7_000..=57_000).contains(&after(vec![7_000; 5000])));
        // One in a hundred is long: it is covered most of the time.
        let tail = (0..20_000).map(|n| if n % 100 == 0 { 90_000 } else { 5_000 });
        assert!((85_000..=140_000).contains(&after(tail)));
        // One in ten thousand is not worth it.
        let rare = (0..50_000).map(|n| if n % 10_000 == 0 { 150_000 } else { 0 });
        assert!(after(rare) < 60_000);
    }

    #[test]
    fn the_lead_is_limited() {
        assert_eq!(after(vec![50_000_000; 100]), LEAD_MAX.get());
        assert_eq!(after(vec![0; 5000]), 0);
    }

    #[test]
    fn engines_wait_until_the_lead_begins_and_are_polled_then() {
        let due = Tick::ZERO + Nanos::from_millis(1);
        let pacer = Pacer::new(true);
        let up = pacer.up(Tick::ZERO, due).unwrap();
        assert_eq!(due.since(up), LEAD_FIRST);
        assert_eq!(pacer.up(up, due), None);
        assert_eq!(pacer.up(due, due), None);
        assert_eq!(Pacer::new(false).up(up, due), Some(due));
    }

    #[test]
    fn no_pause_ends_before_it_is_due() {
        let clock = Clock::monotonic();
        for early in [false, true] {
            let mut pacer = Pacer::new(early);
            for micros in [0, 3, 20, 100, 400] {
                let until = clock.now() + Nanos::from_micros(micros);
                pacer.pause(&clock, until, false);
                assert!(clock.now() >= until);
            }
        }
    }

    #[test]
    fn a_long_pause_is_cut_to_look_around() {
        let clock = Clock::monotonic();
        let until = clock.now() + Nanos::from_secs(3600);
        Pacer::new(true).pause(&clock, until, false);
        assert!(clock.now() < until);
    }
}
