//! Waits of a job's thread for the time at which its next op is due.
//!
//! ```text
//!  now ─────── sleep ───────► due − lead ──► woken ── spin or poll ──► due
//!                                   └ overshoot ┘
//! ```
//!
//! A thread that sleeps until an op is due issues it late: timer, exit from idle and scheduler take
//! some microseconds, on virtual machines tens. A job with a schedule therefore wakes early, by as
//! much as all but one in a thousand of its sleeps overshoot, and spins for the rest. It does so
//! only where each job of the run can have a processor to itself: elsewhere the spinning of one
//! would delay the others by more than it gains.
//!
//! Cost: at most [`LEAD_MAX`] of processor time per op; nothing for jobs without a schedule.
//! Rejected: spinning all the time, which
//! takes a whole processor even for ten ops per second, and a fixed lead, which is too long for
//! machines that wake fast and too short for others.

use fathom_core::{Engine, EngineError, Nanos, Tick};
use fathom_sys::clock::{Clock, sleep_until, spin_until, yield_until};

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
        let wake = before(until, self.lead.unwrap_or_default()).min(latest);
        if wake - now > TOO_SHORT_TO_SLEEP {
            sleep_until(clock, wake);
            if self.lead.is_none() {
                return;
            }
            self.learn(clock.now() - wake);
        }
        if until == latest {
            match self.lead {
                Some(_) => spin_until(clock, until),
                // Another job may need the processor for what this one waits for.
                None => yield_until(clock, until),
            }
        }
    }

    /// Waits for `min` completions or until the lead before `until` begins. Within the lead it only
    /// sends what the engine has held back, and the caller polls the engine.
    ///
    /// # Errors
    /// Those of [`Engine::wait`].
    pub(crate) fn wait<E: Engine>(
        &mut self,
        engine: &mut E,
        clock: &Clock,
        min: u32,
        until: Option<Tick>,
    ) -> Result<(), EngineError> {
        let (Some(lead), Some(due)) = (self.lead, until) else {
            return engine.wait(min, until);
        };
        let wake = before(due, lead);
        if wake - clock.now() <= TOO_SHORT_TO_SLEEP {
            engine.send_held();
            std::hint::spin_loop();
            return Ok(());
        }
        engine.wait(min, Some(wake))?;
        let woken = clock.now();
        if woken > wake {
            self.learn(woken - wake);
        }
        Ok(())
    }

    /// Moves the lead towards what one sleep in a thousand overshoots.
    fn learn(&mut self, overshoot: Nanos) {
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
    use fathom_core::{Capabilities, Completion, Op, Slot, Submitted};

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

    /// Engine that notes until when it was asked to wait.
    #[derive(Default)]
    struct Waits {
        until: Vec<Option<Tick>>,
        sent: usize,
    }

    impl Engine for Waits {
        fn capabilities(&self) -> Capabilities {
            unreachable!("only waits")
        }

        fn buffer(&mut self, _slot: Slot) -> &mut [u8] {
            unreachable!("only waits")
        }

        fn prepare(&mut self, _op: &Op) {
            unreachable!("only waits")
        }

        fn submit(&mut self, _want: u32) -> Submitted {
            unreachable!("only waits")
        }

        fn reap(&mut self, _out: &mut [Completion]) -> usize {
            unreachable!("only waits")
        }

        fn wait(&mut self, _min: u32, until: Option<Tick>) -> Result<(), EngineError> {
            self.until.push(until);
            Ok(())
        }

        fn send_held(&mut self) {
            self.sent += 1;
        }
    }

    #[test]
    fn engines_wait_until_the_lead_begins_and_are_polled_then() {
        let clock = Clock::monotonic();
        let (mut engine, mut pacer) = (Waits::default(), Pacer::new(true));
        let due = clock.now() + Nanos::from_secs(3600);
        pacer.wait(&mut engine, &clock, 1, Some(due)).unwrap();
        assert_eq!(engine.until, [Some(before(due, LEAD_FIRST))]);
        assert_eq!(engine.sent, 0);
        // Due now: polled, after what was held back has been sent.
        let due = clock.now();
        pacer.wait(&mut engine, &clock, 1, Some(due)).unwrap();
        assert_eq!((engine.until.len(), engine.sent), (1, 1));
        // Nothing is due: only completions end the wait.
        pacer.wait(&mut engine, &clock, 1, None).unwrap();
        assert_eq!(engine.until.last(), Some(&None));
    }

    #[test]
    fn jobs_that_do_not_wake_early_leave_the_wait_as_it_is() {
        let clock = Clock::monotonic();
        let (mut engine, mut pacer) = (Waits::default(), Pacer::new(false));
        let due = clock.now();
        pacer.wait(&mut engine, &clock, 1, Some(due)).unwrap();
        assert_eq!((engine.until, engine.sent), (vec![Some(due)], 0));
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
