//! The set of sleeping workers and the choice of whom to wake: never more than one wake-up under
//! way.
//!
//! Whoever lays work down wakes one sleeper; the woken one takes its share and wakes the next if
//! anything is left. Nothing is lost: a sleeper says that it sleeps, looks at the work once more,
//! and only then sleeps; who lays work down does so first and looks for parked workers then.

use super::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// A set of numbered threads that sleep.
#[derive(Debug)]
pub(crate) struct ParkedWorkers {
    /// A bit for each thread: set while it sleeps and nobody has set out to wake it.
    words: Box<[AtomicU64]>,
    /// Somebody was woken and has not yet looked for work.
    waking: AtomicBool,
}

impl ParkedWorkers {
    /// For threads below `threads`; all are awake.
    pub(crate) fn new(threads: u32) -> Self {
        let words = threads.div_ceil(u64::BITS);
        Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            waking: AtomicBool::new(false),
        }
    }

    /// The calling thread goes to sleep, unless there is work: `has_work` is asked when everybody
    /// can see that it sleeps. `sleep` may come back at any time.
    pub(crate) fn sleep(&self, thread: u32, has_work: impl Fn() -> bool, sleep: impl FnOnce()) {
        let (word, bit) = self.place(thread);
        // AcqRel: who wakes this thread sees that it sleeps; the fences do the rest.
        word.fetch_or(bit, Ordering::AcqRel);
        // Pairs with the one in `RunList::lay`: either that look for workers sees this one, or
        // this one sees the work.
        fence(Ordering::SeqCst);
        if !has_work() {
            sleep();
        }
        word.fetch_and(!bit, Ordering::AcqRel);
        // Even where it was not we who were woken: one wake-up too many is better than none.
        self.waking.store(false, Ordering::Release);
        // As above: who saw a wake-up under way had laid its work down before this look at it.
        fence(Ordering::SeqCst);
    }

    /// Chooses one to be woken, the caller wakes it; none if one is on its way already, or if
    /// nobody sleeps.
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
            // Work that was laid down meanwhile relied on the wake-up that did not take place.
            // Pairs with the one in `RunList::lay`.
            fence(Ordering::SeqCst);
            if !has_work() || self.is_empty() {
                return None;
            }
        }
    }

    /// Chooses one to be woken, though another may be on its way.
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

    /// Returns true if no worker sleeps.
    pub(crate) fn is_empty(&self) -> bool {
        let mut words = self.words.iter();
        words.all(|word| word.load(Ordering::Acquire) == 0)
    }

    /// Returns the number of sleeping workers.
    pub(crate) fn count(&self) -> u32 {
        // Relaxed: a guess.
        let of = |word: &AtomicU64| word.load(Ordering::Relaxed).count_ones();
        self.words.iter().map(of).sum()
    }

    fn place(&self, thread: u32) -> (&AtomicU64, u64) {
        let word = &self.words[(thread / u64::BITS) as usize];
        (word, 1 << (thread % u64::BITS))
    }
}
