//! A hard disk: an arm that seeks, a platter that turns, and a queue out of which it chooses.
//!
//! * **Seek**: `settle + root · √(d/capacity) + linear · d/capacity` for a distance of `d` bytes.
//! * **Rotation**: each byte has an angle, so the wait after a seek is computed, not drawn. Tracks
//!   are skewed such that what goes on where the last command ended needs no wait, if it was there
//!   in time; else its place has just passed, and comes again after a whole turn.
//! * **Zones**: tracks farther out hold more.
//! * **Native command queueing**: of its oldest commands it takes the one it reaches first, but
//!   goes on with what continues the last one wherever that stands in the queue, and begins a row
//!   of commands at its beginning.
//! * **Write cache**: off, a write is done when it is on the platter; on, when it is in the cache,
//!   from where the disk writes it in the order it likes.
//!
//! # What it must not be used for
//! Defects, retries, thermal recalibration, shingled tracks and other traffic are not there: the
//! tail of its latencies is too good. What is read again is read from the platter again.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use fathom_core::{Direction, Errno, Nanos, OpKind, Tick};

use crate::device::{Command, Device, Finished};
use crate::platter::{Platter, PlatterConfig};

/// What a disk is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HddConfig {
    /// Its surface and arm.
    pub platter: PlatterConfig,
    /// Time that each command costs that does not continue the last one.
    pub overhead: Nanos,
    /// How many of its oldest commands it chooses among; 1 is the order in which they came.
    pub looks_at: u32,
    /// How many writes it reports as done at once, while others wait; 1 is each by itself.
    pub reports_together: u32,
    /// Its write cache, if it is on.
    pub write_cache: Option<WriteCache>,
}

/// A disk's write cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteCache {
    /// What it holds.
    pub bytes: u64,
    /// How many writes it holds.
    pub writes: u32,
    /// How fast it is filled.
    pub bytes_per_second: u64,
}

/// A hard disk.
#[derive(Debug)]
pub struct Hdd {
    config: HddConfig,
    platter: Platter,
    /// What is to be done on the platter, the oldest first.
    waiting: Vec<Work>,
    /// Where each of it ends, sorted, while the disk chooses.
    ends: Vec<u64>,
    current: Option<(Work, Tick)>,
    /// Where the last work ended, when, and whether it read.
    head: u64,
    free_at: Tick,
    was_read: bool,
    /// Writes that are done and not yet reported.
    held: Vec<(u32, i32)>,
    /// What will be heard of: when, in which order, tag, result.
    reports: BinaryHeap<Reverse<(Tick, u64, u32, i32)>>,
    order: u64,
    cached_bytes: u64,
    cached_writes: u32,
    /// When the last write will be in the cache.
    filled_at: Tick,
    /// Writes for which the cache has no room.
    stalled: VecDeque<Command>,
    /// Syncs, and the number of the last write that each waits for.
    syncs: VecDeque<(u32, u64)>,
}

/// Something to be read or written.
#[derive(Clone, Copy, Debug)]
struct Work {
    /// Of its command; none for what the cache holds.
    tag: Option<u32>,
    reads: bool,
    offset: u64,
    length: u32,
    /// Its place in the order in which work came.
    number: u64,
}

impl Work {
    const fn end(&self) -> u64 {
        self.offset + self.length as u64
    }
}

impl Hdd {
    /// A disk whose arm is at the outer edge.
    ///
    /// # Panics
    /// It does not turn, has no capacity, or a zone without a rate.
    #[must_use]
    pub fn new(config: HddConfig) -> Self {
        Self {
            platter: Platter::new(&config.platter),
            config,
            waiting: Vec::new(),
            ends: Vec::new(),
            current: None,
            head: 0,
            free_at: Tick::ZERO,
            was_read: false,
            held: Vec::new(),
            reports: BinaryHeap::new(),
            order: 0,
            cached_bytes: 0,
            cached_writes: 0,
            filled_at: Tick::ZERO,
            stalled: VecDeque::new(),
            syncs: VecDeque::new(),
        }
    }

    /// What a command takes that moves nothing. If it took no time, a job of nothing else would
    /// never end.
    fn reply(&self) -> Nanos {
        self.config.overhead.max(Nanos::from_micros(1))
    }

    fn report(&mut self, tag: u32, result: i32, at: Tick) {
        self.order += 1;
        self.reports.push(Reverse((at, self.order, tag, result)));
    }

    fn put_down(&mut self, command: &Command, tag: Option<u32>) {
        self.order += 1;
        self.waiting.push(Work {
            tag,
            reads: command.kind == OpKind::Data(Direction::Read),
            offset: command.offset,
            length: command.length,
            number: self.order,
        });
    }

    /// Takes a write into the cache, if there is room.
    fn cache(&mut self, command: &Command, now: Tick) -> bool {
        let Some(cache) = self.config.write_cache else {
            return false;
        };
        let length = u64::from(command.length);
        // One that is larger than the cache goes through it alone.
        let fits = self.cached_bytes + length <= cache.bytes || self.cached_writes == 0;
        if !fits || self.cached_writes >= cache.writes {
            return false;
        }
        self.cached_bytes += length;
        self.cached_writes += 1;
        let filling = length * SECOND / cache.bytes_per_second.max(1);
        self.filled_at = self.filled_at.max(now) + Nanos::new(filling);
        self.report(command.tag, command.whole(), self.filled_at);
        self.put_down(command, None);
        true
    }

    fn write(&mut self, command: &Command, now: Tick) {
        if self.config.write_cache.is_none() {
            self.put_down(command, Some(command.tag));
        } else if !self.stalled.is_empty() || !self.cache(command, now) {
            self.stalled.push_back(*command);
        }
    }

    /// The platter is free at `at`: the next work begins.
    fn begin(&mut self, at: Tick) {
        let Some(place) = self.choose(at) else { return };
        let work = self.waiting.remove(place);
        let access = self.access(&work, at);
        let transfer = self.platter.transfer(work.offset, work.length);
        let mut end = at + access + transfer;
        if work.reads && self.was_read && work.offset == self.head {
            // It was being read ahead since the last one ended.
            end = (self.free_at + transfer).max(at + Nanos::new(1));
        }
        self.current = Some((work, end));
    }

    /// What to do next.
    fn choose(&mut self, at: Tick) -> Option<usize> {
        let only_commands =
            self.stalled.is_empty() && self.waiting.iter().any(|it| it.tag.is_some());
        let allowed = |work: &Work| !only_commands || work.tag.is_some();
        let follows = |work: &Work| work.offset == self.head && allowed(work);
        if let Some(place) = self.waiting.iter().position(follows) {
            return Some(place);
        }
        self.ends.clear();
        self.ends.extend(self.waiting.iter().map(Work::end));
        self.ends.sort_unstable();
        let mut looked_at = 0;
        let mut first = None;
        let mut best: Option<(Nanos, usize)> = None;
        for (place, work) in self.waiting.iter().enumerate().filter(|it| allowed(it.1)) {
            looked_at += u32::from(work.tag.is_some());
            if looked_at > self.config.looks_at.max(1) {
                break;
            }
            first.get_or_insert(place);
            if self.continues_another(work) {
                continue;
            }
            let access = self.access(work, at);
            if best.is_none_or(|(least, _)| access < least) {
                best = Some((access, place));
            }
        }
        best.map(|(_, place)| place).or(first)
    }

    /// Whether other work ends where this begins, so that this comes after it.
    fn continues_another(&self, work: &Work) -> bool {
        self.ends.binary_search(&work.offset).is_ok()
    }

    /// From `at` until the first byte passes under the head.
    fn access(&self, work: &Work, at: Tick) -> Nanos {
        if work.offset == self.head && at == self.free_at {
            return Nanos::ZERO;
        }
        let distance = self.head.abs_diff(work.offset);
        let seek = self.config.overhead + self.platter.seek(distance);
        seek + self.platter.turn_to(work.offset, at + seek)
    }

    /// What was going on is done.
    fn end(&mut self, work: &Work, at: Tick) {
        self.head = work.end();
        self.free_at = at;
        self.was_read = work.reads;
        match work.tag {
            Some(tag) if work.reads => self.report(tag, work.length.cast_signed(), at),
            Some(tag) => self.held.push((tag, work.length.cast_signed())),
            None => {
                self.cached_bytes -= u64::from(work.length);
                self.cached_writes -= 1;
                self.let_in_stalled(at);
                self.end_syncs(at);
            }
        }
        let together = self.config.reports_together.max(1) as usize;
        if self.held.len() >= together || self.waiting.is_empty() {
            for (tag, moved) in std::mem::take(&mut self.held) {
                self.report(tag, moved, at);
            }
        }
    }

    fn let_in_stalled(&mut self, now: Tick) {
        while let Some(command) = self.stalled.pop_front() {
            if !self.cache(&command, now) {
                self.stalled.push_front(command);
                break;
            }
        }
    }

    fn end_syncs(&mut self, now: Tick) {
        while let Some(&(tag, last)) = self.syncs.front() {
            let waiting = self
                .waiting
                .iter()
                .chain(self.current.iter().map(|it| &it.0));
            let mut cached = waiting.filter(|work| work.tag.is_none());
            let is_stalled = self.stalled.iter().any(|command| command.tag == tag);
            if is_stalled || cached.any(|work| work.number <= last) {
                break;
            }
            self.syncs.pop_front();
            self.report(tag, 0, now + self.reply());
        }
    }
}

impl Device for Hdd {
    fn start(&mut self, command: &Command, now: Tick) {
        let end = command.offset.saturating_add(u64::from(command.length));
        match command.kind {
            _ if end > self.config.platter.capacity => {
                self.report(command.tag, Errno::EIO.result(), now + self.reply());
            }
            OpKind::Data(Direction::Read) => self.put_down(command, Some(command.tag)),
            OpKind::Data(Direction::Write) => self.write(command, now),
            OpKind::Data(Direction::Trim) => {
                self.report(command.tag, command.whole(), now + self.reply());
            }
            OpKind::Sync(_) => {
                self.syncs.push_back((command.tag, self.order));
                self.end_syncs(now);
            }
        }
        if self.current.is_none() {
            self.begin(now);
        }
    }

    fn next(&self) -> Option<Tick> {
        let report = self.reports.peek().map(|Reverse((at, ..))| *at);
        let end = self.current.map(|(_, end)| end);
        report.into_iter().chain(end).min()
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        loop {
            let report = self.reports.peek().map(|Reverse((at, ..))| *at);
            match self.current {
                Some((work, end)) if end <= now && report.is_none_or(|at| end < at) => {
                    self.current = None;
                    self.end(&work, end);
                    self.begin(end);
                }
                _ if report.is_some_and(|at| at <= now) => {
                    let Reverse((at, _, tag, result)) = self.reports.pop()?;
                    return Some(Finished { tag, at, result });
                }
                _ => return None,
            }
        }
    }
}

const SECOND: u64 = 1_000_000_000;
