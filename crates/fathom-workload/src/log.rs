//! A job's I/O log: what is logged is laid down in chunks that were reserved before the start, and
//! full chunks are handed over whole. No allocation, no lock and, unless asked for, no pause.
//!
//! ```text
//!                          ┌─────────── empty ◄───────────┐
//!                          ▼                              │
//!  job: [entry … ] ──► [chunk      ] ──────► full ──► writer (of all jobs) ──► files
//! ```
//!
//! Entries are laid down in a small place of the job's own, which is copied into the chunk when it
//! is full. A chunk has just been read by the writer, on another processor: to store into it entry
//! by entry is to wait for its memory to come over again and again, while a copy fetches it all at
//! once. Where there is no empty chunk nothing is copied, and the entries are counted as dropped.
//!
//! # What this costs
//! 16 bytes an op, whichever of the five per-op logs are written: lat is the sum of slat and clat,
//! bandwidth follows from length and clat. One copy for each 256 ops, and one exchange with a queue
//! for each full chunk.

mod channel;
mod entry;
mod histogram;
mod windows;

use std::sync::Arc;

use fathom_core::{Direction, Nanos, PerDirection, Tick};

use crate::slots::SlotState;

pub use self::channel::{Batch, Dropped, LogChannel};
use self::entry::Kind;
pub use self::entry::{Entry, Item, LoggedOp, Series};
use self::histogram::Histograms;
use self::windows::Windows;

/// What a job logs.
#[derive(Clone, Debug, Default)]
pub struct LogConfig {
    /// The job's number in the batches it hands over.
    pub job: u32,
    /// The directions that the job may take; they get windows.
    pub used: PerDirection<bool>,
    /// An entry for each op.
    pub ops: bool,
    /// Lines that an op's entry becomes.
    pub lines: u64,
    /// Offsets are kept.
    pub offsets: bool,
    /// Averages over windows of this length, by series.
    pub windows: Vec<(Series, Nanos)>,
    /// Histograms of clat over windows of this length.
    pub histograms: Option<Nanos>,
    /// What happens when there is no empty chunk.
    pub when_full: WhenFull,
}

/// What happens when there is no empty chunk.
#[derive(Clone, Copy, Debug, Default)]
pub enum WhenFull {
    /// Entries are dropped and counted.
    #[default]
    Drop,
    /// The job waits for the writer: so many pauses as it takes of the caller's making.
    Wait(fn()),
    /// The chunk grows. For virtual time, where nobody writes meanwhile.
    Grow,
}

/// One job's log.
#[derive(Debug)]
pub struct JobLog {
    /// Where entries are laid down.
    entries: Box<[Entry]>,
    /// As far as this.
    at: usize,
    /// Times count from here: the run's clock, ns.
    base: u64,
    /// Single ops and nothing else are logged, and it has begun.
    plain: bool,
    /// The chunk that is being filled, as far as this; without room where there is none.
    chunk: Box<[Entry]>,
    filled: usize,
    dropped: u64,
    windows: Box<[Windows]>,
    histograms: Option<Box<Histograms>>,
    started: Option<Tick>,
    config: LogConfig,
    channel: Arc<LogChannel>,
}

impl JobLog {
    /// Memory that each log has of its own, beside the chunks.
    pub const OWN_BYTES: usize = OWN * size_of::<Entry>();

    /// A log that hands its chunks to `channel`.
    #[must_use]
    pub fn new(config: LogConfig, channel: Arc<LogChannel>) -> Self {
        let windows = config.windows.iter();
        let windows = windows.map(|(series, every)| Windows::new(*series, *every, config.used));
        Self {
            windows: windows.collect(),
            histograms: config
                .histograms
                .map(|every| Box::new(Histograms::new(every, config.used))),
            entries: channel::made(channel.least_chunk().min(OWN)),
            at: 0,
            base: NO_BASE,
            plain: false,
            chunk: Box::default(),
            filled: 0,
            dropped: 0,
            started: None,
            config,
            channel,
        }
    }

    /// Measuring begins; nothing that came before is logged.
    pub(crate) fn begin(&mut self, now: Tick) {
        self.started = Some(now);
        self.plain = self.config.ops && self.windows.is_empty() && self.histograms.is_none();
        for windows in &mut self.windows {
            windows.begin(now);
        }
        if let Some(histograms) = &mut self.histograms {
            histograms.begin(now);
        }
    }

    /// An op has moved all its bytes.
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
            || length > Entry::LONGEST
            || state.op.priority != 0
            || self.config.offsets;
        // The base lies within the measurement: an op that was issued after it is not early.
        let kind = if clat > time {
            kind(state, self.started)
        } else {
            Kind::Op
        };
        match self.entries.get_mut(self.at) {
            Some(place) if !is_odd => {
                *place = Entry::op(time, clat, slat, Entry::tag(kind, direction, length));
                self.at += 1;
            }
            _ => self.log_odd_op(direction, state, now),
        }
    }

    /// An op that needs more than one entry, or for which there is no room.
    #[inline(never)]
    fn log_odd_op(&mut self, direction: Direction, state: &SlotState, now: Tick) {
        let (clat, slat) = ((now - state.issue).get(), (state.issue - state.start).get());
        let length = state.total_length();
        self.room(4);
        let time = self.time(now);
        if self.config.offsets {
            // A short transfer has moved on since.
            let offset = state.op.offset - u64::from(state.op.buffer_offset);
            self.part(Kind::Offset, offset, 0);
        }
        let is_long = length > Entry::LONGEST;
        if is_long || state.op.priority != 0 {
            let long = if is_long { length } else { 0 };
            self.part(Kind::Shape, u64::from(state.op.priority), long);
        }
        if (clat | slat) >> 32 != 0 {
            self.part(Kind::High, (slat & !LOW) | (clat >> 32), 0);
        }
        let kind = kind(state, self.started);
        let tag = Entry::tag(kind, direction, if is_long { 0 } else { length });
        self.append(Entry::op(u64::from(time), clat, slat, tag));
    }

    /// Logs what is not an op.
    fn push(&mut self, item: Item) {
        match item {
            Item::Op(_) => {}
            Item::Window {
                series,
                direction,
                time_ns,
                value,
                max,
            } => {
                self.room(2);
                let time = self.time(self.at(time_ns));
                self.part(Kind::High, max, 0);
                let tag = Entry::tag(Kind::Window, direction, series as u32);
                self.append(Entry::wide(tag, value, time));
            }
            Item::HistogramBegin => {
                self.room(1);
                self.part(Kind::HistogramBegin, 0, 0);
            }
            Item::HistogramBin { bucket, count } => {
                self.room(1);
                let tag = Entry::tag(Kind::HistogramBin, Direction::Read, bucket);
                self.append(Entry::wide(tag, count, 0));
            }
            Item::HistogramEnd {
                direction,
                time_ns,
                ops,
                length,
            } => {
                self.room(2);
                let time = self.time(self.at(time_ns));
                self.part(Kind::Shape, 0, length);
                let tag = Entry::tag(Kind::HistogramEnd, direction, 0);
                self.append(Entry::wide(tag, ops, time));
            }
        }
    }

    fn at(&self, time_ns: u64) -> Tick {
        self.started.unwrap_or_default() + Nanos::new(time_ns)
    }

    /// Makes room for so many entries side by side, and what their time counts from.
    #[inline]
    fn room(&mut self, entries: usize) {
        if self.entries.len() - self.at < entries + 1 {
            self.empty();
        }
    }

    /// The time as entries hold it.
    fn time(&mut self, now: Tick) -> u32 {
        if let Ok(time) = u32::try_from(now.get().wrapping_sub(self.base)) {
            return time;
        }
        self.base = now.get();
        let since = now - self.started.unwrap_or_default();
        self.part(Kind::Base, since.get(), 0);
        0
    }

    fn part(&mut self, kind: Kind, value: u64, beside: u32) {
        let tag = Entry::tag(kind, Direction::Read, 0);
        self.append(Entry::wide(tag, value, beside));
    }

    /// Lays down an entry that there is room for.
    fn append(&mut self, entry: Entry) {
        self.entries[self.at] = entry;
        self.at += 1;
    }

    /// Copies what was laid down into the chunk, or drops and counts it where there is none.
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
        self.base = NO_BASE;
    }

    /// Hands the chunk over and takes an empty one, if there is any.
    #[cold]
    fn next_chunk(&mut self) {
        if matches!(self.config.when_full, WhenFull::Grow) {
            let mut entries = std::mem::take(&mut self.chunk).into_vec();
            entries.resize((entries.len() * 2).max(GROWN), Entry::TOUCHED);
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

    /// Adds an op to the windows it falls into.
    fn gather(&mut self, direction: Direction, state: &SlotState, now: Tick, started: Tick) {
        self.roll(now, started);
        let op = windows::Op {
            bytes: u64::from(state.total_length()),
            clat: (now - state.issue).get(),
            slat: (state.issue >= started).then(|| (state.issue - state.start).get()),
            lat: (now - state.start).get(),
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
            // Taken out while it is written; an empty box allocates nothing.
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

    /// The job has ended at `ended`: writes what is left of the last windows, and hands over.
    pub(crate) fn finish(mut self, ended: Tick) {
        // From here on memory may be asked for: there is no job any more that it could disturb.
        self.config.when_full = WhenFull::Grow;
        if let Some(started) = self.started {
            // No op has completed past the end of the last histogram: it is not written.
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

/// Whether an op was issued before measuring began.
#[cold]
fn kind(state: &SlotState, started: Option<Tick>) -> Kind {
    if started.is_some_and(|started| state.issue < started) {
        Kind::EarlyOp
    } else {
        Kind::Op
    }
}

/// Lines that so many entries would have become, if an op's is so many.
fn lines(entries: &[Entry], of_op: u64) -> u64 {
    let whole = entries.iter().filter(|entry| entry.is_whole());
    let lines = whole.map(|entry| match entry.kind() {
        Kind::Op | Kind::EarlyOp => of_op,
        _ => 1,
    });
    lines.sum()
}

/// No time is near it: the next entry has to say what times count from.
const NO_BASE: u64 = 1 << 63;

const LOW: u64 = u32::MAX as u64;

/// Entries of a job's own place: 4 KiB stay in the processor's first cache, and are copied with its
/// fastest instruction.
const OWN: usize = 256;

/// Entries of a chunk that is made where nothing is disturbed by it.
const GROWN: usize = 4096;

#[cfg(test)]
mod tests;
