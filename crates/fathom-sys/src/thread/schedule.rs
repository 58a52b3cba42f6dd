//! Time that a thread spent on a processor and waiting for one, from its `schedstat`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use fathom_core::Nanos;

/// Processor time of a thread since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScheduleTimes {
    /// Time on a processor. Of a running thread, the kernel may add up to a tick later.
    pub ran: Nanos,
    /// Time ready to run, but waiting for a processor. A wait is added when it ends.
    pub waited: Nanos,
    /// Number of times that it was given a processor.
    pub turns: u64,
}

impl ScheduleTimes {
    /// Returns the times between `earlier` and this.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            ran: self.ran - earlier.ran,
            waited: self.waited - earlier.waited,
            turns: self.turns.saturating_sub(earlier.turns),
        }
    }

    /// Returns the sum of both, as of two threads.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            ran: self.ran + other.ran,
            waited: self.waited + other.waited,
            turns: self.turns + other.turns,
        }
    }
}

/// Open `schedstat` of one thread of this process.
///
/// A reading is one `pread(2)` into memory of the caller's stack: about a microsecond, and no
/// allocation, so that a job can take it between ops. Any thread may read; of a thread that has
/// ended, nothing can be read any more.
#[derive(Debug)]
pub struct ThreadSchedule(File);

impl ThreadSchedule {
    /// Opens that of the calling thread.
    ///
    /// # Errors
    /// The error of `open(2)`: /proc is not mounted, or the kernel has no `schedstat`.
    pub fn own() -> io::Result<Self> {
        Self::of(super::id())
    }

    /// Opens that of a thread of this process.
    ///
    /// # Errors
    /// As [`own`](Self::own); `ENOENT` also if there is no such thread.
    pub fn of(thread_id: u32) -> io::Result<Self> {
        File::open(format!("/proc/self/task/{thread_id}/schedstat")).map(Self)
    }

    /// Reads the times so far; `None` if the thread has ended or the kernel does not count them.
    #[must_use]
    pub fn read(&self) -> Option<ScheduleTimes> {
        let mut text = [0; TEXT_BYTES];
        let length = self.0.read_at(&mut text, 0).ok()?;
        times_in(text.get(..length)?)
    }
}

/// Parses the three numbers. A kernel that does not count gives zeros, but every thread that can be
/// asked has been given a processor at least once.
fn times_in(text: &[u8]) -> Option<ScheduleTimes> {
    let mut numbers = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
    let mut next = || numbers.next()?.parse::<u64>().ok();
    let times = ScheduleTimes {
        ran: Nanos::new(next()?),
        waited: Nanos::new(next()?),
        turns: next()?,
    };
    (times.turns > 0).then_some(times)
}

/// Three numbers of at most 20 digits, each with a separator.
const TEXT_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_does_not_count_says_nothing() {
        let times = |text: &str| times_in(text.as_bytes());
        assert_eq!(
            times("1500 20 3\n"),
            Some(ScheduleTimes {
                ran: Nanos::new(1500),
                waited: Nanos::new(20),
                turns: 3,
            })
        );
        assert_eq!(times("0 0 0\n"), None);
        assert_eq!(times("1500 20"), None);
        assert_eq!(times("1500 x 3"), None);
        let longest = format!("{0} {0} {0}\n", u64::MAX);
        assert!(longest.len() <= TEXT_BYTES && times(&longest).is_some());
    }

    #[test]
    fn readings_of_one_descriptor_advance() {
        let schedule = ThreadSchedule::own().expect("/proc");
        let Some(first) = schedule.read() else {
            return println!("skipped: the kernel does not count");
        };
        // Each switch ends a turn, and the one after it is counted.
        let mut last = first;
        while last.turns == first.turns {
            std::thread::yield_now();
            crate::clock::sleep(Nanos::new(1));
            last = schedule.read().expect("as before");
        }
        assert!(last.ran >= first.ran && last.waited >= first.waited);
        assert_eq!(last.since(first).turns, last.turns - first.turns);
    }

    #[test]
    fn an_ended_thread_cannot_be_read() {
        let ended = std::thread::spawn(ThreadSchedule::own);
        let schedule = ended.join().expect("a thread").expect("/proc");
        // Joining a thread returns a little before the kernel has removed it.
        while schedule.read().is_some() {
            std::thread::yield_now();
        }
    }
}
