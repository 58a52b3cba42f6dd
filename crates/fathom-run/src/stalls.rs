//! Evidence of the cause of stalls: times for which a job's thread waited for a processor, and for
//! which the whole process did not run.
//!
//! ```text
//!  thread's waits:  │──100 ms──│──100 ms──│──stall──┤   read with each update of progress, and
//!                   read       read       read      read   when a stall is found: the difference
//!  process:         nap of the watcher ├──too long──┤   not waiting, and yet it did not run
//! ```
//!
//! A thread that waits for a processor is counted by the scheduler. A stopped process (`SIGSTOP`, a
//! frozen control group, a paused virtual machine) is not: a watcher that overslept without waiting
//! for a processor proves it. Only its naps count. What it does between them may block, such as a
//! write of the status line to a file on the device that stalls: this is not evidence.

use fathom_core::{Nanos, Tick};
use fathom_setup::outcome::JobOutcome;
use fathom_sys::thread::ThreadSchedule;

/// Recent readings of the time for which a thread has waited for a processor.
///
/// Cost: a `pread(2)` per reading, a microsecond, ten times a second and for each stall.
#[derive(Debug)]
pub(crate) struct ProcessorWaits {
    /// `None` if the kernel does not count them.
    schedule: Option<ThreadSchedule>,
    /// The latest readings, overwritten in turn.
    readings: [(Tick, Nanos); READINGS],
    next: usize,
}

impl ProcessorWaits {
    /// Opens those of the calling thread, before the measurement: later there is no allocation.
    pub(crate) fn open() -> Self {
        Self {
            schedule: ThreadSchedule::own().ok(),
            readings: [(Tick::MAX, Nanos::ZERO); READINGS],
            next: 0,
        }
    }

    /// Takes a reading.
    pub(crate) fn note(&mut self, now: Tick) {
        if let Some(waited) = self.read() {
            self.add(now, waited);
        }
    }

    /// Adds a reading that has been taken.
    pub(crate) fn add(&mut self, now: Tick, waited: Nanos) {
        self.readings[self.next % READINGS] = (now, waited);
        self.next += 1;
    }

    /// Returns the time for which the thread has waited since the last reading before `since`, or
    /// since the oldest one. Waits before `since` may be among it, but none after are missing.
    pub(crate) fn since(&self, since: Tick) -> Nanos {
        let Some(waited) = self.read() else {
            return Nanos::ZERO;
        };
        waited - reading_before(&self.readings, since).unwrap_or(waited)
    }

    fn read(&self) -> Option<Nanos> {
        let times = self.schedule.as_ref()?.read()?;
        Some(times.waited)
    }
}

/// Returns the last of these readings that is not later than `at`, else the oldest.
fn reading_before(readings: &[(Tick, Nanos)], at: Tick) -> Option<Nanos> {
    let taken = readings.iter().filter(|reading| reading.0 != Tick::MAX);
    let before = taken.clone().filter(|reading| reading.0 <= at).max();
    before.or_else(|| taken.min()).map(|reading| reading.1)
}

/// Times for which the process did not run, as seen by the thread that watches the jobs.
#[derive(Debug)]
pub(crate) struct Pauses {
    schedule: Option<ThreadSchedule>,
    /// The longest pauses: start and end.
    found: Vec<(Tick, Tick)>,
    /// Start, planned length and waits so far of the current nap.
    nap: (Tick, Nanos, Nanos),
}

impl Pauses {
    /// Starts watching on the calling thread.
    pub(crate) fn watch() -> Self {
        Self {
            schedule: ThreadSchedule::own().ok(),
            found: Vec::with_capacity(PAUSES_MAX + 1),
            nap: Default::default(),
        }
    }

    /// Notes that the thread goes to sleep for at most this time.
    pub(crate) fn falls_asleep(&mut self, now: Tick, nap: Nanos) {
        self.nap = (now, nap, self.waited());
    }

    /// Notes that it is awake again.
    pub(crate) fn wakes(&mut self, now: Tick) {
        let (from, nap, waited) = self.nap;
        let waited = self.waited() - waited;
        if now - from > nap + waited + OVERSLEPT {
            self.add(from, now);
        }
    }

    /// Adds a pause, and drops the shortest if they are too many.
    fn add(&mut self, from: Tick, to: Tick) {
        self.found.push((from, to));
        if self.found.len() > PAUSES_MAX {
            let lengths = self.found.iter().map(|(from, to)| *to - *from);
            if let Some((shortest, _)) = lengths.enumerate().min_by_key(|&(_, length)| length) {
                self.found.remove(shortest);
            }
        }
    }

    /// Adds to the stalls of a job for how much of them the process did not run.
    pub(crate) fn explain(&self, outcome: &mut JobOutcome) {
        let Some(results) = &mut outcome.results else {
            return;
        };
        for stall in &mut results.stalls {
            let end = stall.due + stall.length;
            let parts = self.found.iter().map(|&(from, to)| {
                // A difference of times is 0 if it were negative.
                to.min(end) - from.max(stall.due)
            });
            stall.stopped = parts.fold(Nanos::ZERO, |sum, part| sum + part);
        }
    }

    fn waited(&self) -> Nanos {
        let times = self.schedule.as_ref().and_then(ThreadSchedule::read);
        times.map_or(Nanos::ZERO, |times| times.waited)
    }
}

/// Readings kept: those of the last seconds. A thread that does not run takes none, so even a
/// longer stall has one from before it.
const READINGS: usize = 16;
/// Oversleeping that counts as a pause. Timers are milliseconds late at most where the thread need
/// not wait for a processor.
const OVERSLEPT: Nanos = Nanos::from_millis(10);
/// Pauses kept: more than there are stalls to explain.
const PAUSES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reading_before_a_stall_counts() {
        let ms = |ms: u64| (Tick::new(ms * 1_000_000), Nanos::from_millis(ms / 10));
        let free = (Tick::MAX, Nanos::ZERO);
        let readings = [ms(400), ms(500), ms(200), ms(300), free];
        let at = |at: u64| reading_before(&readings, Tick::new(at * 1_000_000));
        assert_eq!(at(450), Some(Nanos::from_millis(40)));
        assert_eq!(at(500), Some(Nanos::from_millis(50)));
        assert_eq!(at(100), Some(Nanos::from_millis(20)));
        assert_eq!(reading_before(&[free], Tick::ZERO), None);
    }

    #[test]
    fn the_shortest_pauses_are_dropped() {
        let mut pauses = Pauses::watch();
        for length in (1..=70).rev() {
            pauses.add(Tick::new(1), Tick::new(1 + length));
        }
        assert_eq!(pauses.found.len(), PAUSES_MAX);
        assert!(pauses.found.contains(&(Tick::new(1), Tick::new(71))));
        assert!(!pauses.found.contains(&(Tick::new(1), Tick::new(2))));
    }
}
