//! Scheduling of the writer: behind the jobs, unless entries are about to be lost.

use fathom_sys::thread;

/// Scheduling of the calling thread.
///
/// A writer that competes for a processor on equal terms delays ops: on two processors that an
/// io_uring job and its kernel workers kept busy, p99 of clat with a log of each op was about twice
/// that without.
#[derive(Debug)]
pub(super) struct WriterPriority {
    /// The thread may become idle and return.
    can_change: bool,
    is_idle: bool,
}

impl WriterPriority {
    /// Lets every other thread go first if that can be undone: the kernel lets only privileged
    /// threads do so, and a starving writer would lose entries.
    pub(super) fn lowered() -> Self {
        let can_change = thread::is_time_shared() && can_raise();
        let mut priority = Self {
            can_change,
            is_idle: false,
        };
        priority.set_idle(true);
        priority
    }

    /// Adapts the priority to the number of chunks that wait to be written, of all there are.
    #[inline]
    pub(super) fn adapt(&mut self, waiting: usize, all: usize) {
        // Lowered only when nothing waits, so that it does not change with every chunk.
        if self.is_idle && waiting > all / 4 {
            self.set_idle(false);
        } else if !self.is_idle && waiting == 0 {
            self.set_idle(true);
        }
    }

    /// Restores the policy that the thread came with.
    pub(super) fn restore(&mut self) {
        self.set_idle(false);
    }

    fn set_idle(&mut self, idle: bool) {
        if self.can_change && idle != self.is_idle {
            // Best effort: the log is written with any policy.
            let _ignored = thread::set_idle(idle);
            self.is_idle = idle;
        }
    }
}

/// Returns whether the calling thread may raise its priority, by raising it for a moment.
fn can_raise() -> bool {
    let Ok(usual) = thread::nice() else {
        return false;
    };
    let raised = usual > HIGHEST && thread::set_nice(usual - 1).is_ok();
    raised && thread::set_nice(usual).is_ok()
}

/// Nice value of the highest priority.
const HIGHEST: i32 = -20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_go_first_until_chunks_pile_up() {
        // A thread of its own: the policy is that of a thread.
        let test = std::thread::spawn(|| {
            if !can_raise() {
                println!("skipped: raising a thread's priority takes privilege");
                return;
            }
            let mut priority = WriterPriority::lowered();
            for (waiting, idle) in [(0, true), (10, true), (11, false), (1, false), (0, true)] {
                priority.adapt(waiting, 40);
                assert_eq!(thread::is_idle(), idle, "{waiting} of 40");
            }
            priority.restore();
            assert!(thread::is_time_shared());
        });
        test.join().unwrap();
    }
}
