//! I/O log of a job: entries are stored in chunks reserved before the start, and full chunks are
//! passed to a writer. No allocation, no lock and, unless requested, no pause.
//!
//! ```text
//!                          ┌─────────── empty ◄───────────┐
//!                          ▼                              │
//!  job: [entry … ] ──► [chunk      ] ──────► full ──► writer (of all jobs) ──► files
//! ```
//!
//! Entries are stored in a small buffer of the job, which is copied into the chunk when full. The
//! writer has just read the chunk on another CPU: storing entry by entry would wait for its cache
//! lines one at a time, while a copy fetches them together. Without an empty chunk nothing is
//! copied, and the entries are counted as dropped.
//!
//! # What this costs
//! 16 bytes per op, whichever of fio's five per-op logs are written: lat is the sum of slat and
//! clat, bandwidth follows from length and clat. Offsets, and lags for resp, take 16 more each.
//! One copy per 256 ops, and one queue operation per full chunk.

mod channel;
mod entry;
mod histogram;
mod windows;

use std::sync::Arc;

use fathom_core::{Direction, Nanos, PerDirection, Tick};

use crate::slots::SlotState;

pub use self::channel::{Batch, Dropped, LogChannel};
use self::entry::EntryKind;
pub use self::entry::{LogEntry, LogItem, LoggedOp, Series};
use self::histogram::Histograms;
use self::windows::Windows;

/// Configuration of a job's log.
#[derive(Clone, Debug, Default)]
pub struct LogConfig {
    /// Number of the job in its batches.
    pub job: u32,
    /// Directions of the job, which get windows.
    pub used: PerDirection<bool>,
    /// Log each op.
    pub ops: bool,
    /// Lines written per op.
    pub lines: u64,
    /// Keep offsets.
    pub offsets: bool,
    /// Keep lags.
    pub lags: bool,
    /// Window length of averages, by series.
    pub windows: Vec<(Series, Nanos)>,
    /// Window length of clat histograms.
    pub histograms: Option<Nanos>,
    /// Behaviour without an empty chunk.
    pub when_full: WhenFull,
}

/// Behaviour without an empty chunk.
#[derive(Clone, Copy, Debug, Default)]
pub enum WhenFull {
    /// Entries are dropped and counted.
    #[default]
    Drop,
    /// The job waits for the writer, by calling this function until a chunk is free.
    Wait(fn()),
    /// The chunk grows. For virtual time, where no writer runs meanwhile.
    Grow,
}

/// Log of one job.
#[derive(Debug)]
pub struct JobLog {
    /// Buffer of new entries.
    entries: Box<[LogEntry]>,
    /// Number of entries in the buffer.
    at: usize,
    /// Base of times, on the run's clock, ns.
    base: u64,
    /// Measuring has begun, and only single ops are logged.
    plain: bool,
    /// Chunk being filled and its number of entries; without capacity if there is none.
    chunk: Box<[LogEntry]>,
    filled: usize,
    dropped: u64,
    windows: Box<[Windows]>,
    histograms: Option<Box<Histograms>>,
    started: Option<Tick>,
    config: LogConfig,
    channel: Arc<LogChannel>,
}

impl JobLog {
    /// Memory of a log besides the chunks.
    pub const OWN_BYTES: usize = BUFFER_ENTRIES * size_of::<LogEntry>();

    /// Creates a log that passes its chunks to `channel`.
    #[must_use]
    pub fn new(config: LogConfig, channel: Arc<LogChannel>) -> Self {
        let windows = config.windows.iter();
        let windows = windows.map(|(series, every)| Windows::new(*series, *every, config.used));
        Self {
            windows: windows.collect(),
            histograms: config
                .histograms
                .map(|every| Box::new(Histograms::new(every, config.used))),
            entries: channel::made(channel.least_chunk().min(BUFFER_ENTRIES)),
            at: 0,
            base: BASE_UNSET,
            plain: false,
            chunk: Box::default(),
            filled: 0,
            dropped: 0,
            started: None,
            config,
            channel,
        }
    }

    /// Starts logging with the measurement. A measurement that starts anew does not start the log
    /// anew: the writer has entries of before, and all of them count from one time.
    pub(crate) fn begin(&mut self, now: Tick) {
        if self.started.is_some() {
            return;
        }
        self.started = Some(now);
        self.plain = self.config.ops && self.windows.is_empty() && self.histograms.is_none();
        for windows in &mut self.windows {
            windows.begin(now);
        }
        if let Some(histograms) = &mut self.histograms {
            histograms.begin(now);
        }
    }

    /// Logs an op that moved all its bytes.
    #[inline]
    pub(crate) fn completed(&mut self, direction: Direction, state: &SlotState, now: Tick) {
        if self.plain {
            self.log_op(direction, state, now);
        } else {
            self.completed_in_full(direction, state, now);
        }
    }

    #[inline(never)]
    fn completed_in_full(&mut self, direction: Direction, state: &SlotState, now: Tick) {
        let Some(started) = self.started else {
            return; // the ramp
        };
        if self.config.ops {
            self.log_op(direction, state, now);
        }
        if !self.windows.is_empty() || self.histograms.is_some() {
            self.gather(direction, state, now, started);
        }
    }

    #[inline]
    fn log_op(&mut self, direction: Direction, state: &SlotState, now: Tick) {
        let (clat, slat) = ((now - state.issue).get(), (state.issue - state.start).get());
        let time = now.get().wrapping_sub(self.base);
        let length = state.total_length();
        let is_odd = (clat | slat | time) >> 32 != 0
            || length > LogEntry::LENGTH_MAX
            || state.op.priority != 0
            || self.config.offsets
            || self.config.lags;
        // The base lies within the measurement, so an op issued after it is not early.
        let kind = if clat > time {
            kind(state, self.started)
        } else {
            EntryKind::Op
        };
        match self.entries.get_mut(self.at) {
            Some(place) if !is_odd => {
                *place = LogEntry::op(time, clat, slat, LogEntry::tag(kind, direction, length));
                self.at += 1;
            }
            _ => self.log_odd_op(direction, state, now),
        }
    }

    /// Logs an op that needs several entries, or for which the buffer is full.
    #[inline(never)]
    fn log_odd_op(&mut self, direction: Direction, state: &SlotState, now: Tick) {
        let (clat, slat) = ((now - state.issue).get(), (state.issue - state.start).get());
        let length = state.total_length();
        self.room(4 + usize::from(self.config.lags));
        let time = self.time(now);
        if self.config.offsets {
            // The offset has advanced over the pieces of a short transfer.
            let offset = state.op.offset - u64::from(state.op.buffer_offset);
            self.part(EntryKind::Offset, offset, 0);
        }
        if self.config.lags {
            self.part(EntryKind::Lag, (state.start - state.due).get(), 0);
        }
        let is_long = length > LogEntry::LENGTH_MAX;
        if is_long || state.op.priority != 0 {
            let long = if is_long { length } else { 0 };
            self.part(EntryKind::Shape, u64::from(state.op.priority), long);
        }
        if (clat | slat) >> 32 != 0 {
            self.part(EntryKind::High, (slat & !LOW_HALF) | (clat >> 32), 0);
        }
        let kind = kind(state, self.started);
        let tag = LogEntry::tag(kind, direction, if is_long { 0 } else { length });
        self.append(LogEntry::op(u64::from(time), clat, slat, tag));
    }

    /// Logs an item other than an op.
    fn push(&mut self, item: LogItem) {
        match item {
            LogItem::Op(_) => {}
            LogItem::Window {
                series,
                direction,
                time_ns,
                value,
                max,
            } => {
                self.room(2);
                let time = self.time(self.at(time_ns));
                self.part(EntryKind::High, max, 0);
                let tag = LogEntry::tag(EntryKind::Window, direction, series as u32);
                self.append(LogEntry::wide(tag, value, time));
            }
            LogItem::HistogramBegin => {
                self.room(1);
                self.part(EntryKind::HistogramBegin, 0, 0);
            }
            LogItem::HistogramBin { bucket, count } => {
                self.room(1);
                let tag = LogEntry::tag(EntryKind::HistogramBin, Direction::Read, bucket);
                self.append(LogEntry::wide(tag, count, 0));
            }
            LogItem::HistogramEnd {
                direction,
                time_ns,
                ops,
                length,
            } => {
                self.room(2);
                let time = self.time(self.at(time_ns));
                self.part(EntryKind::Shape, 0, length);
                let tag = LogEntry::tag(EntryKind::HistogramEnd, direction, 0);
                self.append(LogEntry::wide(tag, ops, time));
            }
        }
    }

    fn at(&self, time_ns: u64) -> Tick {
        self.started.unwrap_or_default() + Nanos::new(time_ns)
    }

    /// Makes space for this number of adjacent entries and their base of time.
    #[inline]
    fn room(&mut self, entries: usize) {
        if self.entries.len() - self.at < entries + 1 {
            self.empty();
        }
    }

    /// Returns the time as stored in entries.
    fn time(&mut self, now: Tick) -> u32 {
        if let Ok(time) = u32::try_from(now.get().wrapping_sub(self.base)) {
            return time;
        }
        self.base = now.get();
        let since = now - self.started.unwrap_or_default();
        self.part(EntryKind::Base, since.get(), 0);
        0
    }

    fn part(&mut self, kind: EntryKind, value: u64, beside: u32) {
        let tag = LogEntry::tag(kind, Direction::Read, 0);
        self.append(LogEntry::wide(tag, value, beside));
    }

    /// Stores an entry, for which there must be space.
    fn append(&mut self, entry: LogEntry) {
        self.entries[self.at] = entry;
        self.at += 1;
    }

    /// Copies the buffer into the chunk, or drops and counts its entries without one.
    #[inline(never)]
    fn empty(&mut self) {
        let laid = &self.entries[..self.at];
        if self.chunk.len() - self.filled < laid.len() {
            self.next_chunk();
        }
        let laid = &self.entries[..self.at];
        match self.chunk[self.filled..].get_mut(..laid.len()) {
            Some(room) => {
                room.copy_from_slice(laid);
                self.filled += laid.len();
            }
            None => self.dropped += lines(laid, self.config.lines),
        }
        self.at = 0;
        self.base = BASE_UNSET;
    }

    /// Passes the chunk on and takes an empty one, if there is any.
    #[cold]
    fn next_chunk(&mut self) {
        if matches!(self.config.when_full, WhenFull::Grow) {
            let mut entries = std::mem::take(&mut self.chunk).into_vec();
            entries.resize(
                (entries.len() * 2).max(GROWN_CHUNK_ENTRIES),
                LogEntry::TOUCHED,
            );
            self.chunk = entries.into_boxed_slice();
            return;
        }
        self.send_chunk(None);
        let found = match self.config.when_full {
            WhenFull::Wait(pause) => loop {
                match self.channel.empty() {
                    None => pause(),
                    found => break found,
                }
            },
            WhenFull::Drop | WhenFull::Grow => self.channel.empty(),
        };
        self.chunk = found.unwrap_or_default();
    }

    fn send_chunk(&mut self, end: Option<Dropped>) {
        let chunk = std::mem::take(&mut self.chunk);
        if self.filled > 0 || end.is_some() {
            self.channel.send(Batch {
                job: self.config.job,
                started: self.started.unwrap_or_default(),
                chunk: (chunk, self.filled),
                end,
            });
        }
        self.filled = 0;
    }

    /// Adds an op to its windows.
    fn gather(&mut self, direction: Direction, state: &SlotState, now: Tick, started: Tick) {
        self.roll(now, started);
        let op = windows::Op {
            bytes: u64::from(state.total_length()),
            clat: (now - state.issue).get(),
            slat: (state.issue >= started).then(|| (state.issue - state.start).get()),
            lat: (now - state.start).get(),
            resp: (now - state.due).get(),
        };
        for windows in &mut self.windows {
            windows.add(direction, op);
        }
        if let Some(histograms) = &mut self.histograms {
            histograms.add(direction, op.clat, state.total_length());
        }
    }

    /// Writes the windows that have ended by `now`.
    fn roll(&mut self, now: Tick, started: Tick) {
        if self.windows.iter().any(|windows| windows.ends() <= now) {
            // Taken out while it is written: an empty box does not allocate.
            let mut all = std::mem::take(&mut self.windows);
            for windows in &mut all {
                windows.roll(now, started, &mut |item| self.push(item));
            }
            self.windows = all;
        }
        if self.histograms.as_ref().is_some_and(|h| h.ends() <= now) {
            let taken = self.histograms.take();
            self.histograms = taken.map(|mut histograms| {
                histograms.roll(now, started, &mut |item| self.push(item));
                histograms
            });
        }
    }

    /// Writes the last windows of a job that ended at `ended`, and passes the last chunk on.
    pub(crate) fn finish(mut self, ended: Tick) {
        // From here on allocation is allowed: there is no job left to disturb.
        self.config.when_full = WhenFull::Grow;
        if let Some(started) = self.started {
            // No op completed past the end of the last histogram, so it is not written.
            self.histograms = None;
            self.roll(ended, started);
            for mut windows in std::mem::take(&mut self.windows) {
                windows.flush(ended, started, &mut |item| self.push(item));
            }
        }
        self.empty();
        let lines = self.dropped;
        self.send_chunk(Some(Dropped { lines }));
    }
}

/// Returns the kind of an op's entry: issued before or after measuring began.
#[cold]
fn kind(state: &SlotState, started: Option<Tick>) -> EntryKind {
    if started.is_some_and(|started| state.issue < started) {
        EntryKind::EarlyOp
    } else {
        EntryKind::Op
    }
}

/// Returns the number of lines of these entries, with `of_op` per op.
fn lines(entries: &[LogEntry], of_op: u64) -> u64 {
    let whole = entries.iter().filter(|entry| entry.is_whole());
    let lines = whole.map(|entry| match entry.kind() {
        EntryKind::Op | EntryKind::EarlyOp => of_op,
        _ => 1,
    });
    lines.sum()
}

/// Base that no time is near, so that the next entry sets a new one.
const BASE_UNSET: u64 = 1 << 63;

const LOW_HALF: u64 = u32::MAX as u64;

/// Entries of a job's buffer: 4 KiB stay in the L1 cache.
const BUFFER_ENTRIES: usize = 256;

/// Entries of a chunk allocated after the job has ended.
const GROWN_CHUNK_ENTRIES: usize = 4096;

#[cfg(test)]
mod tests;
