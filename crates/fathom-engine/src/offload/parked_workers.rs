//! The set of parked workers and the choice of the next one to wake: at most one wake-up is under
//! way at a time.
//!
//! The submitter wakes one worker; that worker takes its share and wakes the next if work is left.
//! A wake-up per op was rejected: the submitter would pay some microseconds for each. No wake-up is
//! lost: a worker announces that it parks, checks the work once more, and only then parks; the
//! submitter queues work first and looks for parked workers afterwards.

use super::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// Set of parked threads, by number.
#[derive(Debug)]
pub(crate) struct ParkedWorkers {
    /// A bit per thread, set while it is parked and has not been chosen to be woken.
    words: Box<[AtomicU64]>,
    /// A chosen worker has not yet checked for work.
    waking: AtomicBool,
}

impl ParkedWorkers {
    /// Creates the set for threads `0..threads`, all awake.
    pub(crate) fn new(threads: u32) -> Self {
        let words = threads.div_ceil(u64::BITS);
        Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            waking: AtomicBool::new(false),
        }
    }

    /// Parks the calling thread unless there is work. `has_work` is called once the thread is
    /// visibly parked; `sleep` may return spuriously.
    pub(crate) fn sleep(&self, thread: u32, has_work: impl Fn() -> bool, sleep: impl FnOnce()) {
        let (word, bit) = self.word_of(thread);
        // AcqRel: pairs with `pop`, which clears the bit; the fences order it with the work.
        word.fetch_or(bit, Ordering::AcqRel);
        // Pairs with the fence in `RunList::push`: either the submitter sees this worker parked, or
        // this worker sees the work.
        fence(Ordering::SeqCst);
        if !has_work() {
            sleep();
        }
        word.fetch_and(!bit, Ordering::AcqRel);
        // Also after a spurious return: one wake-up too many is better than one too few.
        self.waking.store(false, Ordering::Release);
        // As above: a submitter that saw a wake-up under way had queued its work before this
        // worker's next check.
        fence(Ordering::SeqCst);
    }

    /// Returns a worker for the caller to wake; `None` if a wake-up is already under way or no
    /// worker is parked.
    pub(crate) fn choose(&self, has_work: impl Fn() -> bool) -> Option<u32> {
        loop {
            // AcqRel: pairs with Release in `sleep`.
            if self.waking.swap(true, Ordering::AcqRel) {
                return None;
            }
            if let Some(thread) = self.pop() {
                return Some(thread);
            }
            self.waking.store(false, Ordering::Release);
            // Work queued meanwhile relied on this wake-up, which did not happen: check again.
            // Pairs with the fence in `RunList::push`.
            fence(Ordering::SeqCst);
            if !has_work() || self.is_empty() {
                return None;
            }
        }
    }

    /// Returns a worker for the caller to wake, even if another wake-up is under way.
    pub(crate) fn pop(&self) -> Option<u32> {
        for (number, word) in (0..).zip(&self.words) {
            let mut seen = word.load(Ordering::Acquire);
            while seen != 0 {
                let bit = seen & seen.wrapping_neg();
                let before = word.fetch_and(!bit, Ordering::AcqRel);
                if before & bit != 0 {
                    return Some(number * u64::BITS + bit.trailing_zeros());
                }
                seen = before & !bit;
            }
        }
        None
    }

    /// Returns true if no worker is parked.
    pub(crate) fn is_empty(&self) -> bool {
        let mut words = self.words.iter();
        words.all(|word| word.load(Ordering::Acquire) == 0)
    }

    /// Returns the number of parked workers, valid for a moment only.
    pub(crate) fn count(&self) -> u32 {
        // Relaxed: an estimate that no decision on correctness rests on.
        let of = |word: &AtomicU64| word.load(Ordering::Relaxed).count_ones();
        self.words.iter().map(of).sum()
    }

    fn word_of(&self, thread: u32) -> (&AtomicU64, u64) {
        let word = &self.words[(thread / u64::BITS) as usize];
        (word, 1 << (thread % u64::BITS))
    }
}
