//! A job's I/O log: what is logged is laid down in chunks that were reserved before the start, and
//! full chunks are handed over whole. No allocation, no lock and, unless asked for, no pause.
//!
//! ```text
//!            ┌─────────── empty ◄───────────┐
//!            ▼                              │
//!  job: [entry entry entry … ] ──► full ──► writer (of all jobs) ──► files
//! ```
//!
//! Where there is no empty chunk, entries are dropped and counted.
//!
//! # What this costs
//! 32 bytes an op, whichever of the five per-op logs are written: lat is the sum of slat and clat,
//! bandwidth follows from length and clat. One exchange with a queue for each full chunk.

mod entry;
mod histogram;
mod windows;

use std::sync::Arc;

use crossbeam_queue::ArrayQueue;
use fathom_core::{Direction, Nanos, PerDirection, Tick};

use crate::slots::SlotState;

pub use self::entry::{Entry, EntryKind, Series};
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
    /// Averages over windows of this length, by series.
    pub windows: Vec<(Series, Nanos)>,
    /// Histograms of clat over windows of this length.
    pub histograms: Option<Nanos>,
    /// The priority (`ioprio`) of ops that have none of their own.
    pub priority: u16,
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

/// What a job hands over.
#[derive(Debug)]
pub struct Batch {
    /// The job's number.
    pub job: u32,
    /// When its measuring began; entries count from then.
    pub started: Tick,
    /// In the order of completion.
    pub entries: Vec<Entry>,
    /// The job's last batch, and how many entries it had to drop.
    pub end: Option<Dropped>,
}

/// Entries for which there was no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// How many.
    pub entries: u64,
}

/// All chunks of a run: the empty ones and the full ones.
#[derive(Debug)]
pub struct LogChannel {
    /// The few that go round while the writer keeps up: they stay in the processor's cache.
    warm: ArrayQueue<Vec<Entry>>,
    /// All others.
    empty: ArrayQueue<Vec<Entry>>,
    full: ArrayQueue<Batch>,
    chunk: usize,
}

impl LogChannel {
    /// Reserves (and touches) `chunks` chunks of `chunk` entries, for so many jobs.
    #[must_use]
    pub fn new(chunks: usize, chunk: usize, jobs: usize) -> Self {
        let empty = ArrayQueue::new(chunks.max(1));
        for _ in 0..chunks {
            let mut entries = vec![Entry::default(); chunk];
            entries.clear();
            // Cannot be refused: it was made for so many.
            let _fits = empty.push(entries);
        }
        Self {
            warm: ArrayQueue::new((WARM_ENTRIES / chunk.max(1)).max(1)),
            empty,
            // Each job hands over one batch of its own making when it ends.
            full: ArrayQueue::new(chunks + jobs.max(1)),
            chunk,
        }
    }

    /// The batch that was handed over first.
    #[must_use]
    pub fn take(&self) -> Option<Batch> {
        self.full.pop()
    }

    /// Gives a batch's memory back to the jobs.
    pub fn give_back(&self, mut entries: Vec<Entry>) {
        if entries.capacity() >= self.chunk {
            entries.clear();
            if let Err(entries) = self.warm.push(entries) {
                // A chunk too many is one that a job made when it ended.
                let _one_too_many = self.empty.push(entries);
            }
        }
    }

    fn empty(&self) -> Option<Vec<Entry>> {
        self.warm.pop().or_else(|| self.empty.pop())
    }
}

/// One job's log.
#[derive(Debug)]
pub struct JobLog {
    config: LogConfig,
    channel: Arc<LogChannel>,
    /// The chunk that is being filled.
    entries: Vec<Entry>,
    /// It is full at this length; 0 when there is none.
    limit: usize,
    windows: Box<[Windows]>,
    histograms: Option<Box<Histograms>>,
    started: Option<Tick>,
    dropped: u64,
    /// Entries to drop before an empty chunk is looked for again.
    blind: u32,
}

impl JobLog {
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
            limit: if matches!(config.when_full, WhenFull::Grow) {
                usize::MAX
            } else {
                0
            },
            entries: Vec::new(),
            started: None,
            dropped: 0,
            blind: 0,
            config,
            channel,
        }
    }

    /// Measuring begins; nothing that came before is logged.
    pub(crate) fn begin(&mut self, now: Tick) {
        self.started = Some(now);
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
        let Some(started) = self.started else {
            return; // the ramp
        };
        if self.config.ops {
            self.log_op(direction, state, now, started);
        }
        if !self.windows.is_empty() || self.histograms.is_some() {
            self.gather(direction, state, now, started);
        }
    }

    #[inline]
    fn log_op(&mut self, direction: Direction, state: &SlotState, now: Tick, started: Tick) {
        let (clat, slat) = ((now - state.issue).get(), (state.issue - state.start).get());
        let entry = Entry {
            time_ns: (now - started).get(),
            // A short transfer has moved on since.
            value: state.op.offset - u64::from(state.op.buffer_offset),
            clat: low(clat),
            slat: low(slat),
            length: state.total_length(),
            priority: if state.op.priority == 0 {
                self.config.priority
            } else {
                state.op.priority
            },
            direction,
            kind: if state.issue < started {
                EntryKind::EarlyOp
            } else {
                EntryKind::Op
            },
        };
        let is_long = (clat | slat) >> 32 != 0;
        if is_long {
            self.push_long(entry, clat, slat);
        } else {
            self.push(entry);
        }
    }

    /// Latencies of more than four seconds take two entries, side by side in one chunk.
    #[cold]
    fn push_long(&mut self, entry: Entry, clat: u64, slat: u64) {
        if self.limit - self.entries.len() < 2 && !self.next_chunk() {
            return;
        }
        let high = Entry {
            kind: EntryKind::High,
            clat: low(clat >> 32),
            slat: low(slat >> 32),
            ..entry
        };
        self.entries.push(high);
        self.entries.push(entry);
    }

    #[inline]
    fn push(&mut self, entry: Entry) {
        if self.entries.len() < self.limit || self.next_chunk() {
            self.entries.push(entry);
        }
    }

    /// Hands the chunk over and takes an empty one; where there is none, one entry is dropped.
    #[cold]
    fn next_chunk(&mut self) -> bool {
        if self.blind > 0 {
            self.blind -= 1;
            self.dropped += 1;
            return false;
        }
        self.hand_over(None);
        let found = match self.config.when_full {
            WhenFull::Drop | WhenFull::Grow => self.channel.empty(),
            WhenFull::Wait(pause) => loop {
                match self.channel.empty() {
                    None => pause(),
                    found => break found,
                }
            },
        };
        match found {
            Some(entries) => {
                self.entries = entries;
                self.limit = self.channel.chunk;
                true
            }
            None => {
                self.limit = 0;
                self.dropped += 1;
                self.blind = BLIND;
                false
            }
        }
    }

    fn hand_over(&mut self, end: Option<Dropped>) {
        let entries = std::mem::take(&mut self.entries);
        if entries.is_empty() && end.is_none() {
            return;
        }
        let batch = Batch {
            job: self.config.job,
            started: self.started.unwrap_or_default(),
            entries,
            end,
        };
        let refused = self.channel.full.push(batch).is_err();
        debug_assert!(
            !refused,
            "there is room for every chunk and every job's end"
        );
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
                windows.roll(now, started, &mut |entry| self.push(entry));
            }
            self.windows = all;
        }
        if self.histograms.as_ref().is_some_and(|h| h.ends() <= now) {
            let taken = self.histograms.take();
            self.histograms = taken.map(|mut histograms| {
                histograms.roll(now, started, &mut |entry| self.push(entry));
                histograms
            });
        }
    }

    /// The job has ended at `ended`: writes what is left of the last windows, and hands over.
    pub(crate) fn finish(mut self, ended: Tick) {
        // From here on memory may be asked for: there is no job any more that it could disturb.
        self.limit = usize::MAX;
        if let Some(started) = self.started {
            self.roll(ended, started);
            for mut windows in std::mem::take(&mut self.windows) {
                windows.flush(ended, started, &mut |entry| self.push(entry));
            }
            if let Some(mut histograms) = self.histograms.take() {
                histograms.flush(ended, started, &mut |entry| self.push(entry));
            }
        }
        let dropped = Dropped {
            entries: self.dropped,
        };
        self.hand_over(Some(dropped));
    }
}

/// The low half.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the other half goes elsewhere"
)]
const fn low(value: u64) -> u32 {
    value as u32
}

/// 2 MiB of entries: what 6 million ops a second fill between two looks of the writer.
const WARM_ENTRIES: usize = 64 * 1024;

/// Entries dropped between two looks for an empty chunk: a look at an empty queue costs about as
/// much as an op of the null engine, so it is not taken for each.
const BLIND: u32 = 127;

#[cfg(test)]
mod tests;
