//! Scheduling priority of the writer: behind the jobs, unless entries are about to be lost.

use fathom_sys::thread;

/// Priority of the calling thread.
///
/// A writer that competes for a processor on equal terms delays ops: on two processors that an
/// io_uring job and its kernel workers kept busy, p99 of clat with a log of each op was about twice
/// that without. With the lowest priority it is 1.2 times.
#[derive(Debug)]
pub(super) struct WriterPriority {
    /// Nice value that the process came with; `None` if the thread keeps it.
    usual: Option<i32>,
    is_low: bool,
}

impl WriterPriority {
    /// Lowers the calling thread's priority if it can be raised again: the kernel lets only
    /// privileged threads do that, and a starving writer would lose entries.
    pub(super) fn lowered() -> Self {
        let usual = thread::nice().ok().filter(|usual| can_raise(*usual));
        let mut priority = Self {
            usual,
            is_low: false,
        };
        priority.set_low(true);
        priority
    }

    /// Adapts the priority to the number of chunks that wait to be written, of all there are.
    #[inline]
    pub(super) fn adapt(&mut self, waiting: usize, all: usize) {
        // Lowered only when nothing waits, so that it does not change with every chunk.
        if self.is_low && waiting > all / 4 {
            self.set_low(false);
        } else if !self.is_low && waiting == 0 {
            self.set_low(true);
        }
    }

    /// Returns to the priority that the process came with.
    pub(super) fn restore(&mut self) {
        self.set_low(false);
    }

    fn set_low(&mut self, low: bool) {
        if let Some(usual) = self.usual.filter(|_| low != self.is_low) {
            let value = if low { LOWEST } else { usual };
            // Best effort: the log is written with any priority.
            let _ignored = thread::set_nice(value);
            self.is_low = low;
        }
    }
}

/// Returns whether the calling thread may raise its priority, by raising it for a moment.
fn can_raise(usual: i32) -> bool {
    if usual <= HIGHEST {
        return false;
    }
    let raised = thread::set_nice(usual - 1).is_ok();
    raised && thread::set_nice(usual).is_ok()
}

/// Nice value of the lowest priority.
const LOWEST: i32 = 19;
/// Nice value of the highest priority.
const HIGHEST: i32 = -20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_priority_is_low_until_chunks_pile_up() {
        // A thread of its own: the priority is that of a thread.
        let test = std::thread::spawn(|| {
            let usual = thread::nice().unwrap();
            if !can_raise(usual) {
                println!("skipped: raising a thread's priority takes privilege");
                return;
            }
            let mut priority = WriterPriority::lowered();
            for (waiting, want) in [
                (0, LOWEST),
                (10, LOWEST),
                (11, usual),
                (1, usual),
                (0, LOWEST),
            ] {
                priority.adapt(waiting, 40);
                assert_eq!(thread::nice().unwrap(), want, "{waiting} of 40");
            }
            priority.restore();
            assert_eq!(thread::nice().unwrap(), usual);
        });
        test.join().unwrap();
    }
}
