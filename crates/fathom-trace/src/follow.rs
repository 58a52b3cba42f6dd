//! Merge of the per-CPU rings into one sequence of events in time order.

use fathom_core::Nanos;
use fathom_record::Warning;
use fathom_sys::clock::{self, Clock};

use crate::error::TraceError;
use crate::page::PageEntry;
use crate::tracing::Tracing;

/// Duration of a trace, and the caller's callbacks.
pub(crate) struct Following<'a> {
    /// Duration; `None` traces until a stop is requested.
    pub(crate) seconds: Option<u32>,
    /// Size of one ring.
    pub(crate) ring_bytes: u64,
    /// Number of stop requests so far; any ends the trace.
    pub(crate) stops: &'a dyn Fn() -> u32,
    /// Called once the kernel records.
    pub(crate) begun: &'a mut dyn FnMut(),
}

/// Summary of a finished trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Followed {
    /// Recorded duration.
    pub(crate) wall_ns: u64,
    /// Records that the kernel dropped because a ring was full.
    pub(crate) lost: u64,
    /// A stop request ended the trace before `seconds` had passed.
    pub(crate) stopped: bool,
}

/// Result of a trace.
#[derive(Clone, Debug)]
pub struct Traced<R> {
    /// Counts until the end.
    pub record: R,
    /// A stop request ended the trace before its time.
    pub interrupted: bool,
}

impl Followed {
    /// Returns the result of the trace with this record.
    pub(crate) const fn traced<R>(&self, record: R) -> Traced<R> {
        Traced {
            record,
            interrupted: self.stopped,
        }
    }

    /// Returns the caveats of the counts: lost events, an early end.
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

/// Records for the given duration and passes each event on with its time; `None` marks a gap,
/// before which events were lost.
pub(crate) fn follow<E: Copy>(
    tracing: &mut Tracing,
    how: Following<'_>,
    decode: &dyn Fn(&[u8]) -> Option<E>,
    take: &mut dyn FnMut(u64, Option<E>),
) -> Result<Followed, TraceError> {
    let clock = Clock::monotonic();
    let mut held = HeldEvents::default();
    let mut round = |tracing: &mut Tracing, held: &mut HeldEvents<E>| {
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
            POLL_BUSY
        } else {
            POLL_IDLE
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

/// Events held back, because an earlier one may still be in another CPU's ring.
#[derive(Debug)]
struct HeldEvents<E> {
    events: Vec<(u64, Option<E>)>,
}

impl<E> Default for HeldEvents<E> {
    fn default() -> Self {
        Self { events: Vec::new() }
    }
}

impl<E: Copy> HeldEvents<E> {
    fn add(&mut self, entry: PageEntry<'_>, decode: &dyn Fn(&[u8]) -> Option<E>) {
        match entry {
            PageEntry::Gap { at_ns } => self.events.push((at_ns, None)),
            PageEntry::Record { at_ns, bytes } => {
                let event = decode(bytes);
                // Records of other events decode to `None`.
                self.events.extend(event.map(|event| (at_ns, Some(event))));
            }
        }
    }

    /// Passes on all events up to a time. An event that arrives later than `LATE_NS` is passed on
    /// out of order, undetected.
    fn release(&mut self, until_ns: u64, take: &mut dyn FnMut(u64, Option<E>)) {
        self.events.sort_by_key(|&(at_ns, _)| at_ns);
        let due = self.events.partition_point(|&(at_ns, _)| at_ns <= until_ns);
        for (at_ns, event) in self.events.drain(..due) {
            take(at_ns, event);
        }
    }
}

/// Delay after which a record is expected in its ring. The kernel writes it with preemption off, so
/// only a hypervisor that deschedules the CPU can delay it (guess).
const LATE_NS: u64 = 20_000_000;

/// Poll interval while a ring was at least an eighth full.
const POLL_BUSY: Nanos = Nanos::from_millis(10);
/// Poll interval otherwise: a ring of 8 MiB holds what one CPU records in this time at a million
/// records per second.
const POLL_IDLE: Nanos = Nanos::from_millis(100);

/// Id of the clock that stamps records (`trace_clock` is `mono`).
const CLOCK_MONOTONIC: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_put_into_one_order() {
        let mut held = HeldEvents::default();
        let decode = |bytes: &[u8]| bytes.first().copied();
        for (at_ns, bytes) in [(10, &[1][..]), (30, &[3]), (25, &[]), (20, &[2])] {
            held.add(PageEntry::Record { at_ns, bytes }, &decode);
        }
        held.add(PageEntry::Gap { at_ns: 15 }, &decode);
        let mut taken = Vec::new();
        held.release(20, &mut |at_ns, event| taken.push((at_ns, event)));
        assert_eq!(taken, [(10, Some(1)), (15, None), (20, Some(2))]);
        held.release(u64::MAX, &mut |at_ns, event| taken.push((at_ns, event)));
        assert_eq!(taken[3..], [(30, Some(3))]);
    }
}
