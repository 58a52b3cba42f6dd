//! From the rings of many processors to one sequence of events in the order of time.

use fathom_core::Nanos;
use fathom_record::Warning;
use fathom_sys::clock::{self, Clock};

use crate::error::TraceError;
use crate::page::Entry;
use crate::tracing::Tracing;

/// What is followed, and for how long.
pub(crate) struct Following<'a> {
    /// Until it is stopped, if there is none.
    pub(crate) seconds: Option<u32>,
    /// Bytes of a ring.
    pub(crate) ring_bytes: u64,
    /// Whether to end: how often somebody said so.
    pub(crate) stops: &'a dyn Fn() -> u32,
    /// Called when the kernel has begun to record.
    pub(crate) begun: &'a mut dyn FnMut(),
}

/// How it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Followed {
    /// How long was recorded.
    pub(crate) wall_ns: u64,
    /// Records that the kernel had no room for.
    pub(crate) lost: u64,
    /// Somebody ended it before its time.
    pub(crate) stopped: bool,
}

impl Followed {
    /// Returns what limits the counts: lost events, an early end.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let warning = |code: &str, message: String, hint: &str| Warning {
            code: code.into(),
            job: String::new(),
            message,
            hint: hint.into(),
        };
        let mut warnings = Vec::new();
        if self.lost > 0 {
            warnings.push(warning(
                "lost_events",
                format!(
                    "{} events were lost, the rings were full: every count is too low",
                    self.lost
                ),
                "give each processor a larger ring: --buffer MIB",
            ));
        }
        if self.stopped {
            let message = "interrupted: traced for less time than was asked for";
            warnings.push(warning("interrupted", message.into(), ""));
        }
        warnings
    }
}

/// Records for so long, and hands over each event at its time; `None` for a gap, before which
/// events were lost.
pub(crate) fn follow<E: Copy>(
    tracing: &mut Tracing,
    how: Following<'_>,
    decode: &dyn Fn(&[u8]) -> Option<E>,
    take: &mut dyn FnMut(u64, Option<E>),
) -> Result<Followed, TraceError> {
    let clock = Clock::monotonic();
    let mut held = Held::default();
    let mut round = |tracing: &mut Tracing, held: &mut Held<E>| {
        let before_ns = clock::read(CLOCK_MONOTONIC).unwrap_or(u64::MAX);
        let most = tracing.drain(&mut |entry| held.add(entry, decode))?;
        held.release(before_ns.saturating_sub(LATE_NS), take);
        Ok::<u64, TraceError>(most)
    };
    tracing.start()?;
    let begun = clock.now();
    (how.begun)();
    let end = how
        .seconds
        .map(|seconds| begun + Nanos::from_secs(seconds.into()));
    let over = || end.is_some_and(|end| clock.now() >= end);
    while !over() && (how.stops)() == 0 {
        let most = round(tracing, &mut held)?;
        let pause = if most > how.ring_bytes / 8 {
            SHORT
        } else {
            LONG
        };
        let wake = clock.now() + pause;
        clock::sleep_until(&clock, end.map_or(wake, |end| end.min(wake)));
    }
    let stopped = end.is_some() && !over();
    tracing.stop()?;
    let wall_ns = (clock.now() - begun).get();
    while round(tracing, &mut held)? > 0 {}
    held.release(u64::MAX, take);
    Ok(Followed {
        wall_ns,
        lost: tracing.lost(),
        stopped,
    })
}

/// Events whose turn has not come: an earlier one may still be in another processor's ring.
#[derive(Debug)]
struct Held<E> {
    events: Vec<(u64, Option<E>)>,
}

impl<E> Default for Held<E> {
    fn default() -> Self {
        Self { events: Vec::new() }
    }
}

impl<E: Copy> Held<E> {
    fn add(&mut self, entry: Entry<'_>, decode: &dyn Fn(&[u8]) -> Option<E>) {
        match entry {
            Entry::Gap { at_ns } => self.events.push((at_ns, None)),
            Entry::Record { at_ns, bytes } => {
                let event = decode(bytes);
                // A record of another kind is none of ours.
                self.events.extend(event.map(|event| (at_ns, Some(event))));
            }
        }
    }

    /// Hands over all that happened until then. What comes later than that is handed over late,
    /// which is told by nothing: see `LATE_NS`.
    fn release(&mut self, until_ns: u64, take: &mut dyn FnMut(u64, Option<E>)) {
        self.events.sort_by_key(|&(at_ns, _)| at_ns);
        let due = self.events.partition_point(|&(at_ns, _)| at_ns <= until_ns);
        for (at_ns, event) in self.events.drain(..due) {
            take(at_ns, event);
        }
    }
}

/// How long after its time a record may come into its ring: the kernel writes it with preemption
/// off, so only a host that takes the processor away makes it late (guess).
const LATE_NS: u64 = 20_000_000;

/// Between two looks at the rings, when an eighth of one was full.
const SHORT: Nanos = Nanos::from_millis(10);
/// Else: a ring of 8 MiB has room for what a processor records in so long at a million records a
/// second.
const LONG: Nanos = Nanos::from_millis(100);

/// The number of the clock that records are stamped with.
const CLOCK_MONOTONIC: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_put_into_one_order() {
        let mut held = Held::default();
        let decode = |bytes: &[u8]| bytes.first().copied();
        for (at_ns, bytes) in [(10, &[1][..]), (30, &[3]), (25, &[]), (20, &[2])] {
            held.add(Entry::Record { at_ns, bytes }, &decode);
        }
        held.add(Entry::Gap { at_ns: 15 }, &decode);
        let mut taken = Vec::new();
        held.release(20, &mut |at_ns, event| taken.push((at_ns, event)));
        assert_eq!(taken, [(10, Some(1)), (15, None), (20, Some(2))]);
        held.release(u64::MAX, &mut |at_ns, event| taken.push((at_ns, event)));
        assert_eq!(taken[3..], [(30, Some(3))]);
    }
}
