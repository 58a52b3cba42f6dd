//! Tag set of a request queue: it grants tags, queues waiters, and selects the ones to wake.
//!
//! ```text
//! try_get ─► a word of the bitmap, one exchange              no waiters: no lock
//! put     ─► the same word ─► waiters? ─► lock ─► waiters to wake
//! get     ─► no tag ─► lock, mark the words, try again ─► one of eight wait queues
//! ```
//!
//! Nothing here blocks or wakes: `get` returns that the caller must wait, and every call that may
//! end a wait returns the waiters that the caller must wake. A woken waiter requests its tags
//! again.
//!
//! No wake-up is lost, because a waiter marks each word *before* its last attempt there: a thread
//! that later frees a tag of that word sees the mark and counts the tag here, under the lock. In
//! `plain` and `elastic` a batch is at most an eighth of the tags, and waiters join only while all
//! tags are taken, so at least eight batches follow the last waiter. A batch wakes fewer waiters
//! than it has tags only if it empties a queue; that happens to at most seven queues before the
//! last, and each full batch moves on to the next queue. In `fair` free tags are recounted each
//! time, and only waiters that were granted tags may take them.

use crate::sync::{Mutex, MutexGuard, PoisonError};
use crate::tag_words::{From, Hint, Tag, TagWords};
use crate::wait_queues::{QUEUES, State, WAKES_MAX, WaitQueues, WaiterId, Wakes};

/// Policy for a tag that is freed while others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The first request gets it: newcomers may overtake the waiters. A split request takes its
    /// tags one by one. A batch of freed tags wakes as many waiters of the next queue in rotation.
    Plain,
    /// Waiters get it: newcomers queue behind them until enough tags are free again. A split
    /// request waits for all its tags at once; a wake-up counts tags and serves the longest queue.
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
    /// A split request can get all its tags at once; no effect in [`Policy::Plain`].
    pub together: bool,
}

/// Tags of a queue and the waiters for them.
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
    /// No tag: the caller waits, and repeats the request once it has been woken, not before.
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
    /// `plain`, `elastic`: freed tags that have not caused a wake-up yet.
    freed: u32,
    /// `fair`: tags that woken waiters have not taken yet.
    granted: u32,
    /// Next queue in rotation.
    turn: usize,
}

impl TagSet {
    /// Creates a set with all tags free.
    ///
    /// # Panics
    /// If there are no tags, or more than 2²⁴.
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

    /// Returns the size of a table indexed by tags, those of the reserve included.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.words.capacity()
    }

    /// Takes a tag, if one is free for a caller that does not wait.
    #[inline]
    pub fn try_get(&self, hint: &mut Hint) -> Option<Tag> {
        self.words.take(hint, self.is_fair())
    }

    /// Takes tags for a request that is split into `need` pieces and appends them to `tags`, or
    /// queues the waiter.
    ///
    /// It takes one tag if pieces are served one by one, otherwise `need` tags or as many as the
    /// set has; the caller requests the rest afterwards. `tags` grows by no more than that.
    ///
    /// # Panics
    /// If the waiter's number is too large, if it is still queued, or if in a fair policy it
    /// requests another number of tags than when it was queued.
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

    /// Returns a tag to the set, and the waiters to wake to the caller.
    #[inline]
    pub fn put(&self, tag: Tag) -> Wakes {
        if self.words.put(tag) {
            self.put_in_line()
        } else {
            Wakes::NONE
        }
    }

    /// Withdraws a waiter, queued or woken, and returns the waiters to wake instead.
    ///
    /// # Panics
    /// If the waiter's number is too large.
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
            // Not counted as freed: other threads could see them taken only under the lock.
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
            // All waiters have been served since this tag was freed.
            return Wakes::NONE;
        }
        self.count_freed(&mut line, 1);
        self.wake_and_settle(&mut line)
    }

    /// Takes `need` tags, or as many as there are, and returns whether these are all.
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

    /// `fair`: takes the tags granted, or spare ones if no waiter is ahead, and returns whether it
    /// took any. While words are marked, tags are taken only here, under the lock, so those counted
    /// are free.
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

    /// Frees tags of a request that did not get enough, and returns how many of them others may
    /// wait for.
    fn give_back(&self, tags: &mut Vec<Tag>, start: usize) -> u32 {
        let in_vain = tags.drain(start..);
        in_vain.map(|tag| u32::from(self.words.put(tag))).sum()
    }

    /// Selects the waiters to wake, and lets newcomers take tags without the lock again if none
    /// are left.
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

    /// `plain`, `elastic`: a batch of freed tags wakes as many waiters of the next queue, or all of
    /// them if it is shorter: queues are not balanced.
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

    /// `fair`: while a batch of tags is spare, or as many as are needed, grants them to waiters of
    /// one queue. If more waiters could be woken than one call may wake, the requests of those
    /// woken wake the rest.
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

    /// Returns the number of free tags that are not granted.
    fn spare(&self, line: &Line) -> u32 {
        self.words.free(From::Regular).saturating_sub(line.granted)
    }

    /// `plain`, `elastic`: counts freed tags towards a wake-up. `fair` counts free tags instead.
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

/// Wake-up batch of the published mechanism, which has eight queues.
const EIGHT: u32 = 8;
/// A request of eight pieces holds one tag and seven of the reserve. At least 1: a request that
/// finds the reserve empty then leaves as many tags taken as the set has, which will wake it.
const RESERVE_PER_TAG: u32 = 7;
/// Far more than any queue has; tags and their reserve still fit into 32 bits.
const TAGS_MAX: u32 = 1 << 24;

const _: () = assert!(EIGHT as usize <= WAKES_MAX, "a batch fits one answer");
