//! Time that threads take for their work, and for which they wait for a processor meanwhile.

use std::io;
use std::sync::{Barrier, Mutex};
use std::thread;

use fathom_sys::thread::{ScheduleTimes, ThreadSchedule, allowed_cpus};

use crate::table::Cell;

/// Clock: nanoseconds since an arbitrary time.
pub(super) type NowNs<'a> = &'a (dyn Fn() -> u64 + Sync);

/// Rate of one repeat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// Work per second, of all threads.
    pub(super) per_second: f64,
    /// Share of the time for which the thread that waited longest for a processor did so.
    pub(super) waited_percent: f64,
}

/// Span from the first thread's start of its work to the last one's end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    ns: u64,
    /// Longest wait of a thread for a processor, in all.
    waited_ns: u64,
}

/// Checks that this many threads can run at once. A thread that is refused later would leave the
/// others at their barrier.
///
/// # Errors
/// The error of starting the first that is refused.
pub fn check_threads(threads: u32) -> io::Result<()> {
    let hold = Mutex::new(());
    thread::scope(|scope| {
        let _all_started = hold.lock();
        (0..threads).try_for_each(|_| {
            let wait = || drop(hold.lock());
            thread::Builder::new().spawn_scoped(scope, wait).map(drop)
        })
    })
}

impl Span {
    /// Runs `work` on this many threads, with the number of the thread.
    pub(super) fn of(now_ns: NowNs<'_>, threads: u32, work: impl Fn(u32) + Sync) -> Self {
        let barrier = Barrier::new(threads as usize);
        let one = |thread: u32| {
            let schedule = ThreadSchedule::own().ok();
            barrier.wait();
            observed(now_ns, schedule.as_ref(), || work(thread))
        };
        let one = &one;
        let spans: Vec<(u64, u64, u64)> = thread::scope(|scope| {
            let running: Vec<_> = (0..threads)
                .map(|thread| scope.spawn(move || one(thread)))
                .collect();
            running
                .into_iter()
                .filter_map(|thread| thread.join().ok())
                .collect()
        });
        let first = spans.iter().map(|span| span.0).min().unwrap_or(0);
        let last = spans.iter().map(|span| span.1).max().unwrap_or(0);
        Self {
            ns: last.saturating_sub(first).max(1),
            waited_ns: spans.iter().map(|span| span.2).max().unwrap_or(0),
        }
    }

    /// Runs `work` on the calling thread.
    pub(super) fn here(now_ns: NowNs<'_>, work: impl FnOnce()) -> Self {
        let schedule = ThreadSchedule::own().ok();
        let (begun, ended, waited_ns) = observed(now_ns, schedule.as_ref(), work);
        Self {
            ns: ended.saturating_sub(begun).max(1),
            waited_ns,
        }
    }

    /// Returns the rate at which `count` units of work were done.
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    pub(super) fn rate(self, count: u64) -> Sample {
        Sample {
            per_second: count as f64 * 1e9 / self.ns as f64,
            waited_percent: self.waited_ns as f64 * 100.0 / self.ns as f64,
        }
    }
}

/// Returns start and end of `work`, and the calling thread's wait for a processor between them.
fn observed(
    now_ns: NowNs<'_>,
    schedule: Option<&ThreadSchedule>,
    work: impl FnOnce(),
) -> (u64, u64, u64) {
    let times = || schedule.and_then(ThreadSchedule::read);
    let before = times().unwrap_or_default();
    let begun = now_ns();
    work();
    let ended = now_ns();
    let ScheduleTimes { waited, .. } = times().unwrap_or_default().since(before);
    (begun, ended, waited.get())
}

/// Returns notes on the rows whose threads shared a processor, by the columns of the number of
/// threads and of the waits.
pub(super) fn sharing_notes(rows: &[Vec<Cell>], threads: usize, waited: usize) -> Vec<String> {
    let cpus = allowed_cpus().map_or(usize::MAX, |cpus| cpus.len());
    notes_for(rows, threads, waited, cpus)
}

#[expect(clippy::cast_precision_loss, reason = "a number of CPUs")]
fn notes_for(rows: &[Vec<Cell>], threads: usize, waited: usize, cpus: usize) -> Vec<String> {
    let of = |row: &Vec<Cell>| Some((row[threads].number()?, row[waited].number()?));
    let shared =
        |&(threads, waited): &(f64, f64)| waited >= WAITED_PERCENT || threads > cpus as f64;
    let mut shared: Vec<(f64, f64)> = rows.iter().filter_map(of).filter(shared).collect();
    shared.sort_by(|one, other| one.0.total_cmp(&other.0).then(other.1.total_cmp(&one.1)));
    shared.dedup_by_key(|row| row.0);
    let note = |(threads, waited): (f64, f64)| {
        let noun = if threads > 1.0 { "threads" } else { "thread" };
        let why = if threads > cpus as f64 {
            format!(
                "they shared {cpus} {}",
                if cpus == 1 { "CPU" } else { "CPUs" }
            )
        } else {
            "other programs used the CPUs".into()
        };
        let who = if threads > 1.0 { "one" } else { "it" };
        format!(
            "{threads:.0} {noun}: {why}, and {who} waited {waited:.0} % of the time for a \
             processor; the rates are also those of the kernel's scheduling"
        )
    };
    shared.into_iter().map(note).collect()
}

/// Share of the time from which waits for a processor are told. A guess: repeats on an idle machine
/// differ by as much.
const WAITED_PERCENT: f64 = 3.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_share_a_processor_are_told() {
        let row = |threads, waited| vec![Cell::Count(threads), Cell::Tenths(waited)];
        let rows = [row(1, 0.1), row(1, 2.9), row(2, 0.0), row(2, 2.0)];
        assert!(notes_for(&rows, 0, 1, 2).is_empty());
        let notes = notes_for(&rows, 0, 1, 1);
        assert_eq!(notes.len(), 1);
        assert!(notes[0].starts_with("2 threads: they shared 1 CPU, and one waited 2 %"));
        let notes = notes_for(&[row(1, 3.0), row(2, 40.0), row(2, 50.0)], 0, 1, 2);
        assert_eq!(notes.len(), 2);
        assert!(notes[0].starts_with("1 thread: other programs used the CPUs"));
        assert!(notes[1].contains("one waited 50 %"), "{notes:?}");
    }

    #[test]
    fn a_span_is_that_of_all_threads() {
        let clock = std::sync::atomic::AtomicU64::new(0);
        let now = || clock.fetch_add(10, std::sync::atomic::Ordering::Relaxed);
        let span = Span::of(&now, 2, |_| {});
        assert_eq!(span.ns, 30);
        assert_eq!(Span::here(&now, || {}).ns, 10);
        let sample = Span {
            ns: 1_000,
            waited_ns: 250,
        };
        assert_eq!(
            sample.rate(3),
            Sample {
                per_second: 3e6,
                waited_percent: 25.0
            }
        );
    }
}
