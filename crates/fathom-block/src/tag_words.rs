//! Bitmap of taken tags, spread over words on separate cache lines.
//!
//! ```text
//! bit 63        bits n…62        bits 0…n-1, n ≤ 32
//! contended     unused: set      one for each tag: set = taken
//! ```
//!
//! The bit that announces waiters is in the word itself. A thread that frees a tag thus learns in
//! the same atomic operation that there are waiters, and a thread about to wait learns in the
//! operation that sets the bit that a tag is free: one of the two always sees the other, on one
//! location and without a fence.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Words of one set.
#[derive(Debug)]
pub(crate) struct TagWords {
    words: Box<[Word]>,
    /// Logarithm to base 2 of the tags in each word but the last: 1…32 tags.
    shift: u32,
    /// Tags in the first words; the other words are the reserve.
    regular_words: usize,
}

/// Right to have one request in flight; returned with [`crate::TagSet::put`].
#[derive(Debug, PartialEq, Eq, Hash)]
#[must_use = "a tag that is dropped is lost to its set"]
pub struct Tag(u32);

impl Tag {
    /// Returns the tag's number, counted from 0; below [`crate::TagSet::capacity`].
    #[must_use]
    #[inline]
    pub const fn index(&self) -> usize {
        self.0 as usize
    }
}

/// Start of a thread's search: the word of its last tag. Each thread has its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hint(usize);

/// A word, alone on its cache lines.
#[derive(Debug)]
#[repr(align(128))]
struct Word(AtomicU64);

/// Tags from which a request may be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// Regular tags.
    Regular,
    /// Regular tags, then the reserve.
    All,
}

impl TagWords {
    pub(crate) fn new(tags: u32, reserve: u32) -> Self {
        let per_word = tags.div_ceil(WORDS_WANTED).next_power_of_two();
        let per_word = per_word.min(TAGS_PER_WORD_MAX);
        let spread = |tags: u32| {
            let full = (0..tags / per_word).map(move |_| per_word);
            full.chain(Some(tags % per_word).filter(|rest| *rest > 0))
        };
        Self {
            // A tag's number is its word times `per_word` plus its bit. The reserve begins with a
            // word of its own, so numbers have a gap before it if the last word is not full.
            regular_words: spread(tags).count(),
            words: spread(tags).chain(spread(reserve)).map(Word::new).collect(),
            shift: per_word.ilog2(),
        }
    }

    /// Creates the hint of the `nth` thread, so that threads start in different words.
    pub(crate) const fn hint(&self, nth: usize) -> Hint {
        Hint(nth % self.regular_words)
    }

    /// Returns a bound above the number of every tag.
    pub(crate) const fn capacity(&self) -> usize {
        self.words.len() << self.shift
    }

    /// Takes a regular tag; if `polite`, not from a word with waiters.
    #[inline]
    pub(crate) fn take(&self, hint: &mut Hint, polite: bool) -> Option<Tag> {
        let mut at = hint.0;
        for _ in 0..self.regular_words {
            let word = &self.words[at];
            if let Some(bit) = word.take(polite) {
                hint.0 = at;
                return Some(self.tag(at, bit));
            }
            at += 1;
            if at >= self.regular_words {
                at = 0;
            }
        }
        None
    }

    /// Takes `need` tags of `from`, or as many of them as are found free.
    pub(crate) fn take_many(&self, from: From, need: u32, polite: bool, tags: &mut Vec<Tag>) {
        let words = match from {
            From::Regular => self.regular_words,
            From::All => self.words.len(),
        };
        let wanted = tags.len() + need as usize;
        for (at, word) in self.words[..words].iter().enumerate() {
            while tags.len() < wanted {
                let Some(bit) = word.take(polite) else { break };
                tags.push(self.tag(at, bit));
            }
        }
    }

    /// Frees a tag and returns true if there are waiters.
    #[inline]
    #[expect(clippy::needless_pass_by_value, reason = "the tag is spent")]
    pub(crate) fn put(&self, tag: Tag) -> bool {
        let (at, bit) = (tag.0 >> self.shift, tag.0 & ((1 << self.shift) - 1));
        // AcqRel: Release pairs with Acquire of `take`, so that the next owner sees what this one
        // did. A subtraction: processors return the previous value of one at no extra cost.
        let before = self.words[at as usize]
            .0
            .fetch_sub(1 << bit, Ordering::AcqRel);
        debug_assert!(before >> bit & 1 == 1, "tag {} was not taken", tag.0);
        before & CONTENDED != 0
    }

    /// Marks the words: each thread that frees a tag learns of the waiters. Called under their
    /// lock.
    pub(crate) fn set_contended(&self) {
        for word in &self.words {
            word.0.fetch_or(CONTENDED, Ordering::AcqRel);
        }
    }

    /// Removes the marks, because there are no waiters left. Called under their lock.
    pub(crate) fn clear_contended(&self) {
        for word in &self.words {
            word.0.fetch_and(!CONTENDED, Ordering::AcqRel);
        }
    }

    /// Returns true if a thread waits, or did shortly before.
    #[inline]
    pub(crate) fn is_contended(&self) -> bool {
        // Relaxed: a stale value costs one attempt.
        self.words[0].0.load(Ordering::Relaxed) & CONTENDED != 0
    }

    /// Returns the number of free tags in `from`; exact while no thread takes or frees any.
    pub(crate) fn free(&self, from: From) -> u32 {
        let words = match from {
            From::Regular => self.regular_words,
            From::All => self.words.len(),
        };
        let free = |word: &Word| (!word.0.load(Ordering::Acquire) & !CONTENDED).count_ones();
        self.words[..words].iter().map(free).sum()
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "tags are counted in 32 bits"
    )]
    const fn tag(&self, word: usize, bit: u32) -> Tag {
        Tag((word as u32) << self.shift | bit)
    }
}

impl Word {
    fn new(tags: u32) -> Self {
        Self(AtomicU64::new(!CONTENDED & !((1 << tags) - 1)))
    }

    /// Takes the lowest free tag.
    #[inline]
    fn take(&self, polite: bool) -> Option<u32> {
        // Relaxed: a stale value costs a retry; the exchange below validates it.
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let free = !seen & !CONTENDED;
            if free == 0 || (polite && seen & CONTENDED != 0) {
                return None;
            }
            let lowest = free & free.wrapping_neg();
            // Acquire: pairs with Release of `put`.
            let taken = self.0.compare_exchange_weak(
                seen,
                seen | lowest,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match taken {
                Ok(_) => return Some(lowest.trailing_zeros()),
                Err(now) => seen = now,
            }
        }
    }
}

/// Bit of a word that announces waiters.
const CONTENDED: u64 = 1 << 63;
/// Largest power of two that leaves room for that bit: a tag's number needs no division.
const TAGS_PER_WORD_MAX: u32 = 32;
/// Words over which a small set is spread: more than the cores of one cluster gain little. A guess.
const WORDS_WANTED: u32 = 8;
