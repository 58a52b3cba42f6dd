//! Flash drive: channels with dies, each of which reads, programs or erases one page or block at a
//! time.
//!
//! ```text
//! write ─► link ─► buffer ─► page ─► channel ─► die: program … and what cleaning adds
//! read  ─► die: sense ─► channel ─► link
//! ```
//!
//! * A write completes when all of it is in the buffer; with a full buffer it waits for programs.
//! * A die prefers reads to programs, but does not suspend an operation.
//! * A die with few erased blocks cleans: each page it programs for the host is accompanied by a
//!   share of the valid units of the block that has the fewest.
//! * A sync waits for the buffer to be programmed, unless the buffer is power-loss protected.
//!
//! # Limits
//! No mapping cache, read cache, program suspension, SLC cache or wear: much of a real drive's tail
//! latency comes from its firmware.

mod keys;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use fathom_core::{
    BlockDevice, Command, CommandData, Direction, Finished, Geometry, Nanos, OpKind, Tick,
};

use crate::flash_map::{FREE_BLOCKS_MIN, FlashLayout, FlashMap};

pub(crate) use keys::{BLOCKS_MAX, read};

/// Configuration of a flash drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SsdConfig {
    /// Capacity visible to the host, in bytes.
    pub capacity: u64,
    /// Spare flash, percent of `capacity`.
    pub spare_percent: u32,
    /// Number of channels, which work in parallel.
    pub channels: u32,
    /// Dies per channel.
    pub dies_per_channel: u32,
    /// Bytes that a die reads or programs at once, over all its planes; a multiple of 4096.
    pub page_bytes: u32,
    /// Pages per erase block.
    pub pages_per_block: u32,
    /// Time to sense a page into the die's register.
    pub read: Nanos,
    /// Time to program a page.
    pub program: Nanos,
    /// Time to erase a block.
    pub erase: Nanos,
    /// Transfer rate of a channel.
    pub channel_bytes_per_second: u64,
    /// Transfer rate between host and drive, in each direction.
    pub link_bytes_per_second: u64,
    /// Controller overhead per command.
    pub command: Nanos,
    /// Size of the write buffer; at least two pages.
    pub buffer_bytes: u64,
    /// The buffer is power-loss protected, so syncs do not wait.
    pub buffer_is_safe: bool,
    /// The drive starts as if overwritten at random for long, and cleans from the start.
    pub worn: bool,
    /// Number of a slower die and its slowdown factor.
    pub slow_die: Option<(u32, u32)>,
}

/// Flash drive.
///
/// Memory grows with the units written, about 4 bytes per 4 KiB, and with the commands in flight. A
/// command costs a few heap operations per page.
#[derive(Debug)]
pub struct Ssd {
    config: SsdConfig,
    map: FlashMap,
    dies: Vec<Die>,
    /// Time at which each channel, and each direction of the link, is free.
    channels: Vec<Tick>,
    link: [Tick; 2],
    agenda: BinaryHeap<Reverse<(Tick, u64, Next)>>,
    noted: u64,
    /// Pages for which each command waits.
    reads: Vec<(u32, u32)>,
    done: VecDeque<Finished>,
    /// Units that wait until their page is full.
    staged: Vec<u64>,
    next_die: u32,
    buffered: u64,
    /// Writes not yet completely in the buffer: command, and units that are in it.
    entering: VecDeque<(Command, u64)>,
    /// Syncs, each with the number of programs that must have ended.
    syncs: VecDeque<(u32, u64)>,
    programs_begun: u64,
    programs_ended: u64,
}

#[derive(Debug, Default)]
struct Die {
    busy: bool,
    /// Pages to read: tag, bytes.
    reads: VecDeque<(u32, u32)>,
    programs: VecDeque<Vec<u64>>,
    reads_in_a_row: u32,
    cleaning: Option<Cleaning>,
}

/// Block being cleaned.
#[derive(Debug)]
struct Cleaning {
    block: u32,
    left: Vec<u64>,
    /// Units to move per page of the host.
    quota: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    /// A die has sensed a page of this number of bytes for this command.
    Sensed { die: u32, tag: u32, bytes: u32 },
    /// A die has programmed a page with this number of host units.
    Programmed { die: u32, units: u32 },
    /// A page has reached the host.
    Arrived { tag: u32 },
    /// A command completed.
    Done { tag: u32, result: i32 },
}

impl Ssd {
    /// Creates an idle drive.
    #[must_use]
    pub fn new(config: SsdConfig) -> Self {
        let dies = config.channels * config.dies_per_channel;
        let map = FlashMap::new(layout(&config));
        Self {
            map,
            dies: (0..dies).map(|_| Die::default()).collect(),
            channels: vec![Tick::ZERO; config.channels as usize],
            link: [Tick::ZERO; 2],
            agenda: BinaryHeap::new(),
            noted: 0,
            reads: Vec::new(),
            done: VecDeque::new(),
            staged: Vec::new(),
            next_die: 0,
            buffered: 0,
            entering: VecDeque::new(),
            syncs: VecDeque::new(),
            programs_begun: 0,
            programs_ended: 0,
            config,
        }
    }

    const fn count(&self) -> u32 {
        self.config.channels * self.config.dies_per_channel
    }

    fn note(&mut self, at: Tick, next: Next) {
        self.noted += 1;
        self.agenda.push(Reverse((at, self.noted, next)));
    }

    fn finish_at(&mut self, at: Tick, command: &Command) {
        let result = command.whole();
        let tag = command.tag;
        self.note(at, Next::Done { tag, result });
    }

    /// Passes the pages of a read to their dies.
    fn read(&mut self, command: &Command, now: Tick) {
        let page_units = u64::from(self.config.page_bytes / UNIT_BYTES);
        let first = command.offset / UNIT;
        let last = (command.offset + u64::from(command.length).max(1) - 1) / UNIT;
        let mut pages: Vec<(u32, u32)> = Vec::new();
        let mut before = None;
        for unit in first..=last {
            let place = (self.map.block_of(unit), unit / page_units);
            if before == Some(place) {
                if let Some((_, bytes)) = pages.last_mut() {
                    *bytes += UNIT_BYTES;
                }
                continue;
            }
            before = Some(place);
            // Unwritten units are read as if written once in order.
            let dies = u64::from(self.count());
            let die = match place.0 {
                Some(block) => self.map.die_of(block),
                None => u32::try_from(place.1 % dies).unwrap_or_default(),
            };
            pages.push((die, UNIT_BYTES));
        }
        self.expect(command, pages.len());
        for (die, bytes) in pages {
            self.dies[die as usize]
                .reads
                .push_back((command.tag, bytes));
            self.work(die, now + self.config.command);
        }
    }

    fn expect(&mut self, command: &Command, pages: usize) {
        let tag = command.tag as usize;
        if self.reads.len() <= tag {
            self.reads.resize(tag + 1, (0, 0));
        }
        self.reads[tag] = (u32::try_from(pages).unwrap_or(u32::MAX), command.length);
    }

    /// Moves writes into the buffer while there is space.
    fn enter(&mut self, now: Tick) {
        while let Some((command, inside)) = self.entering.front().copied() {
            let first = command.offset / UNIT;
            let units = units_of(&command);
            let mut inside = inside;
            while inside < units && self.buffered + UNIT <= self.config.buffer_bytes {
                self.buffered += UNIT;
                self.stage(first + inside, now);
                inside += 1;
            }
            if inside < units {
                self.entering[0].1 = inside;
                return;
            }
            self.entering.pop_front();
            let begun = self.link[0].max(now + self.config.command);
            let rate = self.config.link_bytes_per_second;
            self.link[0] = begun + transfer(u64::from(command.length), rate);
            self.finish_at(self.link[0], &command);
        }
    }

    fn stage(&mut self, unit: u64, now: Tick) {
        self.staged.push(unit);
        if self.staged.len() as u64 * UNIT == u64::from(self.config.page_bytes) {
            self.program_staged(now);
        }
    }

    fn program_staged(&mut self, now: Tick) {
        let units = std::mem::take(&mut self.staged);
        let die = self.die_to_program();
        self.next_die = (die + 1) % self.count();
        self.programs_begun += 1;
        self.dies[die as usize].programs.push_back(units);
        self.work(die, now);
    }

    /// Returns the next die in turn that has room for a page besides those that wait for it; if
    /// none has, the next one.
    fn die_to_program(&self) -> u32 {
        let page_units = u64::from(self.config.page_bytes / UNIT_BYTES);
        let has_room = |die: &u32| {
            let waiting = self.dies[*die as usize].programs.len() as u64;
            self.map.has_room(*die, (waiting + 1) * page_units)
        };
        let (next, count) = (self.next_die, self.count());
        (next..count).chain(0..next).find(has_room).unwrap_or(next)
    }

    /// Starts the next operation of an idle die.
    fn work(&mut self, die: u32, now: Tick) {
        let state = &mut self.dies[die as usize];
        if state.busy {
            return;
        }
        let programs_wait = !state.programs.is_empty();
        let patient = state.reads_in_a_row < OVERTAKING_READS_MAX || !programs_wait;
        if patient && let Some((tag, bytes)) = state.reads.pop_front() {
            state.busy = true;
            state.reads_in_a_row += 1;
            let at = now + self.slowed(die, self.config.read);
            self.note(at, Next::Sensed { die, tag, bytes });
        } else if let Some(units) = state.programs.pop_front() {
            state.busy = true;
            state.reads_in_a_row = 0;
            self.program(die, &units, now);
        }
    }

    fn program(&mut self, die: u32, units: &[u64], now: Tick) {
        let cleaning = self.clean(die);
        for &unit in units {
            // Without space a unit stays in place: only where the drive's last blocks are full.
            let _has_room = self.map.write(unit, die);
        }
        let moved = self.over_channel(die, u64::from(self.config.page_bytes), now);
        let at = moved + self.slowed(die, self.config.program + cleaning);
        let units = u32::try_from(units.len()).unwrap_or(u32::MAX);
        self.note(at, Next::Programmed { die, units });
    }

    /// Moves a share of the valid units of the block being cleaned, and returns the time it takes.
    fn clean(&mut self, die: u32) -> Nanos {
        let mut took = 0;
        let page_units = (self.config.page_bytes / UNIT_BYTES) as usize;
        loop {
            let mut cleaning = match self.dies[die as usize].cleaning.take() {
                Some(cleaning) => cleaning,
                None if self.map.free_blocks(die) >= FREE_BLOCKS_MIN as usize => break,
                None => match self.begin_cleaning(die, page_units) {
                    Some(cleaning) => cleaning,
                    None => break,
                },
            };
            let share = cleaning.left.len() - cleaning.quota.min(cleaning.left.len());
            let mut moved = 0_usize;
            let mut is_stuck = false;
            for unit in cleaning.left.split_off(share) {
                if self.map.block_of(unit) != Some(cleaning.block) {
                    continue;
                }
                match self.map.write(unit, die) {
                    true => moved += 1,
                    false => {
                        cleaning.left.push(unit);
                        is_stuck = true;
                    }
                }
            }
            let pages = moved.div_ceil(page_units) as u64;
            took += pages * (self.config.read.get() + self.config.program.get());
            if is_stuck || !cleaning.left.is_empty() {
                self.dies[die as usize].cleaning = Some(cleaning);
                break;
            }
            self.map.erase(cleaning.block);
            took += self.config.erase.get();
        }
        Nanos::new(took)
    }

    fn begin_cleaning(&self, die: u32, page_units: usize) -> Option<Cleaning> {
        let (block, left) = self.map.victim(die)?;
        let full = page_units * self.config.pages_per_block as usize;
        let won = full - left.len();
        // The block must be empty before the host has filled the space it frees.
        let quota = (left.len() * page_units).div_ceil(won).max(page_units);
        Some(Cleaning { block, left, quota })
    }

    /// Returns the time at which this number of bytes has crossed the die's channel.
    fn over_channel(&mut self, die: u32, bytes: u64, now: Tick) -> Tick {
        let channel = (die % self.config.channels) as usize;
        let begun = self.channels[channel].max(now);
        let rate = self.config.channel_bytes_per_second;
        self.channels[channel] = begun + transfer(bytes, rate);
        self.channels[channel]
    }

    fn slowed(&self, die: u32, time: Nanos) -> Nanos {
        match self.config.slow_die {
            Some((slow, times)) if slow == die => Nanos::new(time.get() * u64::from(times)),
            _ => time,
        }
    }

    fn sync(&mut self, command: &Command, now: Tick) {
        if !self.staged.is_empty() {
            self.program_staged(now);
        }
        if self.config.buffer_is_safe || self.programs_ended == self.programs_begun {
            return self.finish_at(now + self.config.command, command);
        }
        self.syncs.push_back((command.tag, self.programs_begun));
    }

    fn happen(&mut self, next: Next, now: Tick) {
        match next {
            Next::Sensed { die, tag, bytes } => {
                self.dies[die as usize].busy = false;
                let over = self.over_channel(die, u64::from(bytes), now);
                let rate = self.config.link_bytes_per_second;
                self.link[1] = self.link[1].max(over) + transfer(u64::from(bytes), rate);
                self.note(self.link[1], Next::Arrived { tag });
                self.work(die, now);
            }
            Next::Programmed { die, units } => {
                self.dies[die as usize].busy = false;
                self.buffered -= u64::from(units) * UNIT;
                self.programs_ended += 1;
                self.end_syncs(now);
                self.work(die, now);
                self.enter(now);
            }
            Next::Arrived { tag } => {
                let (pages, length) = &mut self.reads[tag as usize];
                *pages -= 1;
                if *pages == 0 {
                    let result = length.cast_signed();
                    self.done.push_back(Finished::new(tag, now, result));
                }
            }
            Next::Done { tag, result } => {
                self.done.push_back(Finished::new(tag, now, result));
            }
        }
    }

    /// Completes syncs. Programs end in any order, so a sync waits until as many have ended as had
    /// begun.
    fn end_syncs(&mut self, now: Tick) {
        while let Some(&(tag, wanted)) = self.syncs.front() {
            if self.programs_ended < wanted {
                return;
            }
            self.syncs.pop_front();
            self.note(now, Next::Done { tag, result: 0 });
        }
    }
}

impl BlockDevice for Ssd {
    fn geometry(&self) -> Geometry {
        Geometry {
            bytes: self.config.capacity,
            ..Geometry::UNBOUNDED
        }
    }

    fn start(&mut self, command: &Command, _no_data: &mut CommandData, now: Tick) {
        match command.kind {
            OpKind::Data(Direction::Read) => self.read(command, now),
            OpKind::Data(Direction::Write) => {
                self.entering.push_back((*command, 0));
                self.enter(now);
            }
            OpKind::Data(Direction::Trim) => {
                let first = command.offset / UNIT;
                (first..first + units_of(command)).for_each(|unit| self.map.discard(unit));
                self.finish_at(now + self.config.command, command);
            }
            OpKind::Sync(_) => self.sync(command, now),
        }
    }

    fn next(&self) -> Option<Tick> {
        if let Some(finished) = self.done.front() {
            return Some(finished.at);
        }
        self.agenda.peek().map(|Reverse((at, _, _))| *at)
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        while self.done.is_empty() {
            let &Reverse((at, _, next)) = self.agenda.peek()?;
            if at > now {
                return None;
            }
            self.agenda.pop();
            self.happen(next, at);
        }
        self.done.pop_front()
    }
}

fn layout(config: &SsdConfig) -> FlashLayout {
    let units_per_block = config.page_bytes / UNIT_BYTES * config.pages_per_block;
    let dies = config.channels * config.dies_per_channel;
    let units = config.capacity / UNIT;
    let flash = units + units * u64::from(config.spare_percent) / 100;
    let blocks = flash.div_ceil(u64::from(units_per_block) * u64::from(dies));
    FlashLayout {
        dies,
        units_per_block,
        units,
        blocks_per_die: u32::try_from(blocks).unwrap_or(u32::MAX / 2) + FREE_BLOCKS_MIN + 1,
        worn: config.worn,
    }
}

/// Returns the number of units that a command touches, partly covered ones included.
fn units_of(command: &Command) -> u64 {
    let end = command.offset + u64::from(command.length);
    end.div_ceil(UNIT) - command.offset / UNIT
}

fn transfer(bytes: u64, bytes_per_second: u64) -> Nanos {
    let ns = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second);
    Nanos::new(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// Size of a unit, in bytes.
const UNIT: u64 = 4096;
/// Size of a unit as a `u32`, for sizes of pages.
const UNIT_BYTES: u32 = 4096;

/// Consecutive reads that may overtake a waiting program (guess, without a source).
const OVERTAKING_READS_MAX: u32 = 16;

#[cfg(test)]
mod tests {
    use fathom_core::Xoshiro256;

    use super::*;

    #[test]
    fn data_that_stay_leave_no_die_without_space() {
        // A unit that is written again and again takes every second page: with dies in strict turn,
        // all others would be on one of the two dies, which cannot hold them.
        let mut ssd = Ssd::new(SsdConfig {
            capacity: 2 << 20,
            spare_percent: 3,
            channels: 1,
            dies_per_channel: 2,
            page_bytes: UNIT_BYTES,
            pages_per_block: 16,
            read: Nanos::from_micros(50),
            program: Nanos::from_micros(200),
            erase: Nanos::from_micros(2000),
            channel_bytes_per_second: 1 << 30,
            link_bytes_per_second: 1 << 30,
            command: Nanos::ZERO,
            buffer_bytes: 2 * UNIT,
            buffer_is_safe: false,
            worn: false,
            slow_die: None,
        });
        let mut now = Tick::ZERO;
        let mut write = |unit: u64| {
            let command = Command {
                tag: 0,
                kind: OpKind::Data(Direction::Write),
                offset: unit * UNIT,
                length: UNIT_BYTES,
            };
            ssd.start(&command, &mut None, now);
            while let Some(at) = ssd.next() {
                now = at;
                while ssd.completed(now).is_some() {}
            }
        };
        let mut random = Xoshiro256::new(7);
        for _ in 0..10_000 {
            write(random.below(448));
            write(448);
        }
        assert!((0..=448).all(|unit| ssd.map.block_of(unit).is_some()));
    }
}
