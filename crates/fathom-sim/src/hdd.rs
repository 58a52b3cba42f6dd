//! Hard disk: a seeking arm, a rotating platter, and a command queue that the disk reorders.
//!
//! * **Seek**: `settle + root · √d + linear · d` for a distance of `d`, a part of all tracks.
//! * **Rotation**: each byte has an angle, so the delay after a seek is computed, not drawn. Tracks
//!   are skewed: a command that continues the last one has no delay if it arrives in time,
//!   otherwise a whole revolution.
//! * **Zones**: outer tracks hold more, so the arm crosses fewer of them for the same bytes.
//! * **Native command queueing**: among its oldest commands the disk picks the one it reaches
//!   first. It prefers one that continues the last, wherever it is in the queue, and starts a
//!   sequence of commands at its beginning.
//! * **Write cache**: off, a write completes on the platter; on, in the cache, from which the disk
//!   writes in its own order.
//!
//! # Limits
//! Defects, retries, thermal recalibration, shingled tracks and other traffic are not modelled, so
//! tail latencies are too low. There is no read cache: repeated reads go to the platter.

mod keys;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use fathom_core::{
    BlockDevice, Command, CommandData, Direction, Errno, Finished, Geometry, Nanos, OpKind, Tick,
};

use crate::platter::{Platter, PlatterConfig};

pub(crate) use keys::read;

/// Configuration of a hard disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HddConfig {
    /// Surface and arm.
    pub platter: PlatterConfig,
    /// Overhead of a command that does not continue the last one.
    pub overhead: Nanos,
    /// Number of oldest commands to choose among; 1 for arrival order.
    pub reorder_window: u32,
    /// Number of writes whose completions are reported together while others wait; 1 for each
    /// alone.
    pub reports_together: u32,
    /// Write cache, if it is on.
    pub write_cache: Option<WriteCache>,
}

/// Configuration of a disk's write cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteCache {
    /// Capacity in bytes.
    pub bytes: u64,
    /// Capacity in writes.
    pub writes: u32,
    /// Fill rate.
    pub bytes_per_second: u64,
}

/// Hard disk.
///
/// A command costs a search over the reorder window; memory is one entry per command and per cached
/// write.
#[derive(Debug)]
pub struct Hdd {
    config: HddConfig,
    platter: Platter,
    /// Work for the platter, the oldest first.
    waiting: Vec<Work>,
    /// Ends of all pending work, sorted, while the disk chooses.
    ends: Vec<u64>,
    current: Option<(Work, Tick)>,
    /// End of the last work: position, time, and whether it was a read.
    head: u64,
    free_at: Tick,
    was_read: bool,
    /// Writes completed but not yet reported.
    held: Vec<(u32, i32)>,
    /// Completions to report: time, order, tag, result.
    reports: BinaryHeap<Reverse<(Tick, u64, u32, i32)>>,
    order: u64,
    cached_bytes: u64,
    cached_writes: u32,
    /// Time at which the last write is in the cache.
    filled_at: Tick,
    /// Writes that wait for space in the cache.
    stalled: VecDeque<Command>,
    /// Syncs, each with the number of the last write it waits for.
    syncs: VecDeque<(u32, u64)>,
}

/// Read or write on the platter.
#[derive(Clone, Copy, Debug)]
struct Work {
    /// Tag of its command; `None` for a cached write.
    tag: Option<u32>,
    reads: bool,
    offset: u64,
    length: u32,
    /// Position in order of arrival.
    number: u64,
}

impl Work {
    const fn end(&self) -> u64 {
        self.offset + self.length as u64
    }
}

impl Hdd {
    /// Creates a disk whose arm is at the outer edge.
    ///
    /// # Panics
    /// If it does not rotate, has no capacity, or has a zone without a rate.
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

    /// Returns the time of a command without data; not 0, or a job of nothing else would never end.
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

    /// Puts a write into the cache, and returns whether there was space.
    fn cache(&mut self, command: &Command, now: Tick) -> bool {
        let Some(cache) = self.config.write_cache else {
            return false;
        };
        let length = u64::from(command.length);
        // A write larger than the cache passes through it alone.
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

    /// Starts the next work, as the platter is free at `at`.
    fn begin(&mut self, at: Tick) {
        let Some(place) = self.choose(at) else { return };
        let work = self.waiting.remove(place);
        let access = self.access(&work, at);
        let transfer = self.platter.transfer(work.offset, work.length);
        let mut end = at + access + transfer;
        if work.reads && self.was_read && work.offset == self.head {
            // Read-ahead has been running since the last read ended.
            end = (self.free_at + transfer).max(at + Nanos::new(1));
        }
        self.current = Some((work, end));
    }

    /// Chooses the next work.
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
            if looked_at > self.config.reorder_window.max(1) {
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

    /// Returns whether other work ends where this begins, and so comes first.
    fn continues_another(&self, work: &Work) -> bool {
        self.ends.binary_search(&work.offset).is_ok()
    }

    /// Returns the access time from `at`: seek and rotational delay.
    fn access(&self, work: &Work, at: Tick) -> Nanos {
        if work.offset == self.head && at == self.free_at {
            return Nanos::ZERO;
        }
        let seek = self.config.overhead + self.platter.seek(self.head, work.offset);
        seek + self.platter.turn_to(work.offset, at + seek)
    }

    /// Finishes the current work.
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

impl BlockDevice for Hdd {
    fn geometry(&self) -> Geometry {
        Geometry {
            bytes: self.config.platter.capacity,
            ..Geometry::UNBOUNDED
        }
    }

    fn start(&mut self, command: &Command, _no_data: &mut CommandData, now: Tick) {
        match command.kind {
            _ if command.end() > self.config.platter.capacity => {
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
                    return Some(Finished::new(tag, at, result));
                }
                _ => return None,
            }
        }
    }
}

const SECOND: u64 = 1_000_000_000;
