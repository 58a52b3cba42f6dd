//! The set of tags of a request queue: who gets one, who waits, and who is woken.
//!
//! ```text
//! try_get ─► a word of the bitmap, one exchange              nobody waits: no lock
//! put     ─► the same word ─► somebody waits? ─► lock ─► whom to wake
//! get     ─► no tag ─► lock, mark the words, look again ─► one of eight wait queues
//! ```
//!
//! Nothing blocks and nothing is woken here: `get` says that the caller waits, and all calls
//! that may free somebody say whom the caller has to wake. Who was woken asks again.
//!
//! Why no wake-up is lost: a waiter marks each word *before* it looks there for the last time.
//! So each tag that it saw taken will be given back by somebody who sees the mark, and is
//! counted here under the lock. In `plain` and `elastic` a batch is at most an eighth of the
//! tags, and waiters join only while all tags are taken: so after the last one joined at least
//! eight batches come. A batch wakes fewer than it counts only when it empties a queue; that
//! happens to seven queues at most before the last, and each full batch brings the next. In
//! `fair` what is free is counted anew each time, and only who was granted tags may take them.

use crate::sync::{Mutex, MutexGuard, PoisonError};
use crate::tag_words::{From, Hint, Tag, TagWords};
use crate::wait_queues::{QUEUES, State, WAKES_MAX, WaitQueues, WaiterId, Wakes};

/// Policy for a tag that is freed while others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Whoever asks first: newcomers may pass the waiters. A split request asks for its tags one by
    /// one. Each batch of freed tags wakes as many waiters, all of the next queue in rotation.
    Plain,
    /// The waiters: newcomers wait behind them until free tags are sufficient again. A split
    /// request waits for all its tags at once; a wake-up counts tags, and takes the longest queue.
    Fair,
    /// As `Fair`, with wake-ups in rotation while no queue is longer than another by a batch.
    FairRoundRobin,
    /// As `Plain`, but a split request that has one tag gets the others at once, from a reserve
    /// beyond the set's tags if need be.
    Elastic,
}

/// Configuration of a tag set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagSetConfig {
    /// Number of tags, without the reserve of [`Policy::Elastic`].
    pub tags: u32,
    /// Number of possible waiters: all threads or jobs that request tags.
    pub waiters: u32,
    /// Policy for freed tags.
    pub policy: Policy,
    /// A split request may get its tags together; no effect in [`Policy::Plain`].
    pub together: bool,
}

/// The tags, and who waits for them.
#[derive(Debug)]
pub struct TagSet {
    words: TagWords,
    config: TagSetConfig,
    /// Freed tags per wake-up: 1…8, and at most an eighth of the tags if there are
    /// eight.
    batch: u32,
    line: Mutex<Line>,
}

/// Result of a request for tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the caller may have to wait, and others are to be woken"]
pub struct Asked {
    /// The caller got nothing and waits; it asks for the same again once it has been woken, and not
    /// before.
    pub waits: bool,
    /// Waiters to wake.
    pub wake: Wakes,
}

/// State of the waiters.
#[derive(Debug)]
struct Line {
    queues: WaitQueues,
    /// The words are marked.
    contended: bool,
    /// `plain`, `elastic`: freed tags that have woken nobody yet.
    freed: u32,
    /// `fair`: tags that woken waiters have not taken yet.
    granted: u32,
    /// The queue whose turn it is.
    turn: usize,
}

impl TagSet {
    /// A set of which no tag is taken.
    ///
    /// # Panics
    /// There are no tags, or more than 2²⁴.
    #[must_use]
    pub fn new(config: TagSetConfig) -> Self {
        assert!((1..=TAGS_MAX).contains(&config.tags), "1 to 2^24 tags");
        let reserve = match config.policy {
            Policy::Elastic => config.tags * RESERVE_PER_TAG,
            Policy::Plain | Policy::Fair | Policy::FairRoundRobin => 0,
        };
        Self {
            words: TagWords::new(config.tags, reserve),
            config,
            batch: (config.tags / EIGHT).clamp(1, EIGHT),
            line: Mutex::new(Line {
                queues: WaitQueues::new(config.waiters),
                contended: false,
                freed: 0,
                granted: 0,
                turn: 0,
            }),
        }
    }

    /// Returns the place where the `nth` thread starts its search.
    #[must_use]
    pub const fn hint(&self, nth: usize) -> Hint {
        self.words.hint(nth)
    }

    /// Above the number of every tag, those of the reserve too: the size of a table of tags.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.words.capacity()
    }

    /// A tag, if there is one for a caller that does not wait.
    #[inline]
    pub fn try_get(&self, hint: &mut Hint) -> Option<Tag> {
        self.words.take(hint, self.is_fair())
    }

    /// Tags for a request that is split into `need` pieces, put behind those in `tags`; or a place
    /// among those who wait.
    ///
    /// One tag where pieces ask one by one, else `need` of them, or all that the set has if that is
    /// less: the caller asks again for the rest. `tags` grows by no more than that.
    ///
    /// # Panics
    /// The waiter's number is too large, or it has not been woken since it was told to wait, or in
    /// a fair policy asks for another number than then.
    #[inline]
    pub fn get(&self, hint: &mut Hint, waiter: WaiterId, need: u32, tags: &mut Vec<Tag>) -> Asked {
        let need = self.at_once(need);
        let start = tags.len();
        let alone = need == 1 && !self.is_fair();
        if (alone || !self.words.is_contended()) && self.take(hint, need, tags) {
            return Asked {
                waits: false,
                wake: Wakes::NONE,
            };
        }
        self.get_in_line(hint, waiter, need, tags, start)
    }

    /// Gives a tag back; whom to wake.
    #[inline]
    pub fn put(&self, tag: Tag) -> Wakes {
        if self.words.put(tag) {
            self.put_in_line()
        } else {
            Wakes::NONE
        }
    }

    /// The waiter gives up, queued or woken; whom to wake instead.
    ///
    /// # Panics
    /// The waiter's number is too large.
    pub fn cancel(&self, waiter: WaiterId) -> Wakes {
        let mut line = self.lock();
        match line.queues.state(waiter) {
            State::Idle => return Wakes::NONE,
            State::Queued { .. } => line.queues.leave(waiter, State::Idle),
            State::Woken => {
                if self.is_fair() {
                    line.granted -= line.queues.need(waiter);
                }
                self.count_freed(&mut line, 1);
                line.queues.set_idle(waiter);
            }
        }
        self.wake_and_settle(&mut line)
    }

    #[cold]
    fn get_in_line(
        &self,
        hint: &mut Hint,
        waiter: WaiterId,
        need: u32,
        tags: &mut Vec<Tag>,
        start: usize,
    ) -> Asked {
        let mut line = self.lock();
        let state = line.queues.state(waiter);
        assert!(
            !matches!(state, State::Queued { .. }),
            "{waiter:?} asks before it was woken"
        );
        // Others may have seen these taken and wait for them.
        let freed = self.give_back(tags, start);
        self.count_freed(&mut line, freed);
        if !line.contended {
            line.contended = true;
            self.words.set_contended();
        }
        let got = if self.is_fair() {
            self.take_in_turn(&mut line, waiter, need, tags)
        } else {
            self.take(hint, need, tags)
        };
        if got {
            line.queues.set_idle(waiter);
        } else {
            // Not counted as freed: nobody could see them taken but under the lock.
            self.give_back(tags, start);
            line.queues.join(waiter, need);
        }
        let wake = self.wake_and_settle(&mut line);
        Asked { waits: !got, wake }
    }

    #[cold]
    fn put_in_line(&self) -> Wakes {
        let mut line = self.lock();
        if !line.contended {
            // All who waited have been served since this tag was freed.
            return Wakes::NONE;
        }
        self.count_freed(&mut line, 1);
        self.wake_and_settle(&mut line)
    }

    /// Takes `need` tags, or some of them if not all are there.
    #[inline]
    fn take(&self, hint: &mut Hint, need: u32, tags: &mut Vec<Tag>) -> bool {
        let wanted = tags.len() + need as usize;
        if need > 1 && self.is_fair() {
            self.words.take_many(From::Regular, need, true, tags);
        } else if let Some(tag) = self.try_get(hint) {
            tags.push(tag);
            if need > 1 {
                self.words.take_many(From::All, need - 1, false, tags);
            }
        }
        tags.len() == wanted
    }

    /// `fair`: what was granted, or what is left over if nobody is ahead. While words are marked no
    /// tag is taken but here, under the lock, so what is counted is there.
    fn take_in_turn(
        &self,
        line: &mut Line,
        waiter: WaiterId,
        need: u32,
        tags: &mut Vec<Tag>,
    ) -> bool {
        let woken = line.queues.state(waiter) == State::Woken;
        if woken {
            assert_eq!(line.queues.need(waiter), need, "{waiter:?} asks for other");
            line.granted -= need;
        } else if line.queues.waiting > 0 || self.spare(line) < need {
            return false;
        }
        let wanted = tags.len() + need as usize;
        self.words.take_many(From::Regular, need, false, tags);
        debug_assert_eq!(tags.len(), wanted, "tags that were granted are gone");
        true
    }

    /// Frees what was taken in vain; how many of them others may wait for.
    fn give_back(&self, tags: &mut Vec<Tag>, start: usize) -> u32 {
        let in_vain = tags.drain(start..);
        in_vain.map(|tag| u32::from(self.words.put(tag))).sum()
    }

    /// Finds out whom to wake, and whether newcomers may take tags by themselves again.
    fn wake_and_settle(&self, line: &mut Line) -> Wakes {
        let wake = if self.is_fair() {
            self.wake_by_tags(line)
        } else {
            self.wake_by_batches(line)
        };
        let settled = line.queues.waiting == 0
            && line.granted == 0
            && (!self.is_fair() || self.words.free(From::Regular) >= self.batch);
        if line.contended && settled {
            line.contended = false;
            line.freed = 0;
            self.words.clear_contended();
        }
        wake
    }

    /// `plain`, `elastic`: a batch of freed tags wakes as many of the next queue, or all of it
    /// if it is shorter: queues are not balanced.
    fn wake_by_batches(&self, line: &mut Line) -> Wakes {
        let mut wake = Wakes::NONE;
        if line.freed < self.batch {
            return wake;
        }
        let Some(queue) = line.queues.next_from(line.turn) else {
            return wake;
        };
        line.turn = (queue + 1) % QUEUES;
        line.freed -= self.batch;
        for _ in 0..self.batch {
            let Some(waiter) = line.queues.first(queue) else {
                break;
            };
            line.queues.leave(waiter, State::Woken);
            wake.push(waiter);
        }
        wake
    }

    /// `fair`: once a batch of tags is spare, or all that is needed, grants them to waiters of one
    /// queue, and goes on while that is so. If more could be woken than one call may, those who are
    /// woken find the others when they ask.
    fn wake_by_tags(&self, line: &mut Line) -> Wakes {
        let mut wake = Wakes::NONE;
        while let Some((queue, first)) = self.whose_turn(line) {
            let spare = self.spare(line);
            let enough = self.batch.min(line.queues.needed);
            if spare < enough.max(line.queues.need(first)) || wake.is_full() {
                break;
            }
            line.turn = (queue + 1) % QUEUES;
            let mut granted = 0;
            while let Some(waiter) = line.queues.first(queue) {
                let need = line.queues.need(waiter);
                if granted >= self.batch || granted + need > spare || wake.is_full() {
                    break;
                }
                line.queues.leave(waiter, State::Woken);
                granted += need;
                wake.push(waiter);
            }
            line.granted += granted;
        }
        wake
    }

    fn whose_turn(&self, line: &Line) -> Option<(usize, WaiterId)> {
        let balanced = line.queues.imbalance() <= self.batch;
        let queue = if self.config.policy == Policy::FairRoundRobin && balanced {
            line.queues.next_from(line.turn)
        } else {
            line.queues.longest_from(line.turn)
        }?;
        Some((queue, line.queues.first(queue)?))
    }

    /// Free tags that are granted to nobody.
    fn spare(&self, line: &Line) -> u32 {
        self.words.free(From::Regular).saturating_sub(line.granted)
    }

    /// `plain`, `elastic`: these wake somebody. `fair` counts what is free instead.
    const fn count_freed(&self, line: &mut Line, tags: u32) {
        if !self.is_fair() {
            line.freed += tags;
        }
    }

    /// Returns the number of tags granted to one request.
    const fn at_once(&self, need: u32) -> u32 {
        let together = self.config.together && !matches!(self.config.policy, Policy::Plain);
        if !together || need <= 1 {
            1
        } else if need > self.config.tags {
            self.config.tags
        } else {
            need
        }
    }

    #[inline]
    const fn is_fair(&self) -> bool {
        matches!(self.config.policy, Policy::Fair | Policy::FairRoundRobin)
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The published mechanism has eight queues and wakes by eights.
const EIGHT: u32 = 8;
/// A request of eight pieces holds one tag and seven of the reserve. At least 1: then a request
/// that fails for want of reserve leaves as many tags taken as the set has, which will wake it.
const RESERVE_PER_TAG: u32 = 7;
/// Far more than any queue has, and tags with their reserve are still counted in 32 bits.
const TAGS_MAX: u32 = 1 << 24;

const _: () = assert!(EIGHT as usize <= WAKES_MAX, "a batch fits one answer");
