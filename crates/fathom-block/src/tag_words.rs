//! Taken tags: a bitmap spread over words that are cache lines apart.
//!
//! ```text
//! bit 63        bits n…62        bits 0…n-1, n ≤ 32
//! contended     not there: set   one for each tag: set = taken
//! ```
//!
//! The bit that says that somebody waits stands in the word itself. So whoever frees a tag
//! learns in the same step whether anybody waits, and whoever is about to wait learns in the
//! step that sets the bit whether a tag is free: one of the two always sees the other, on one
//! location and without a fence.

use crate::sync::atomic::{AtomicU64, Ordering};

/// The words of one set.
#[derive(Debug)]
pub(crate) struct TagWords {
    words: Box<[Word]>,
    /// Tags of each word but the last, as a power of two: 1…32 of them.
    shift: u32,
    /// Of the first words; the others are the reserve.
    regular_words: usize,
}

/// The right to have one request in flight; given back with [`crate::TagSet::put`].
#[derive(Debug, PartialEq, Eq, Hash)]
#[must_use = "a tag that is dropped is lost to its set"]
pub struct Tag(u32);

impl Tag {
    /// The tag's number, counted from 0; below [`crate::TagSet::capacity`].
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
    /// The tags that everybody may have.
    Regular,
    /// Those, and the reserve when they are gone.
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

    /// A hint for the `nth` thread, so that threads begin in words of their own.
    pub(crate) const fn hint(&self, nth: usize) -> Hint {
        Hint(nth % self.regular_words)
    }

    /// Above the number of every tag.
    pub(crate) const fn capacity(&self) -> usize {
        self.words.len() << self.shift
    }

    /// Takes a regular tag; if `polite`, none of a word where somebody waits.
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

    /// Frees a tag; whether somebody waits.
    #[inline]
    #[expect(clippy::needless_pass_by_value, reason = "the tag is spent")]
    pub(crate) fn put(&self, tag: Tag) -> bool {
        let (at, bit) = (tag.0 >> self.shift, tag.0 & ((1 << self.shift) - 1));
        // AcqRel: Release pairs with Acquire of `take`, so that the next owner sees what this one
        // did. A subtraction, as processors give back what was there before for no more than that.
        let before = self.words[at as usize]
            .0
            .fetch_sub(1 << bit, Ordering::AcqRel);
        debug_assert!(before >> bit & 1 == 1, "tag {} was not taken", tag.0);
        before & CONTENDED != 0
    }

    /// From now on whoever frees a tag is told that somebody waits. Called under the waiters' lock.
    pub(crate) fn set_contended(&self) {
        for word in &self.words {
            word.0.fetch_or(CONTENDED, Ordering::AcqRel);
        }
    }

    /// Nobody waits any more. Called under the waiters' lock.
    pub(crate) fn clear_contended(&self) {
        for word in &self.words {
            word.0.fetch_and(!CONTENDED, Ordering::AcqRel);
        }
    }

    /// Returns whether a thread waits, or did a moment ago.
    #[inline]
    pub(crate) fn is_contended(&self) -> bool {
        // Relaxed: a guess that saves a try.
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
        // Relaxed: a guess, which the exchange checks.
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

/// The bit of a word that says that somebody waits.
const CONTENDED: u64 = 1 << 63;
/// The largest power of two beside that bit, so that a tag's number needs no division.
const TAGS_PER_WORD_MAX: u32 = 32;
/// Words that a set is spread over if it is not larger than they are: with more than the cores
/// of a socket's cluster little is gained. A guess.
const WORDS_WANTED: u32 = 8;
