//! Verification within the loop: stamping writes, reading them back, checking reads.
//!
//! A job that writes keeps a log of its writes and reads them back after each pass, and before in
//! batches if it has a backlog. Every read is judged by the generation map of its file, those of a
//! mix too; a job that reads what earlier runs wrote checks that each block is valid by itself.

use std::sync::Arc;

use fathom_core::{FileIndex, NoMemory, Slot};

use crate::compared::Comparison;
use crate::config::{MapMode, Sequencer, VerifyBacklog, VerifyConfig, WorkerConfig};
use crate::pattern::OpTarget;
use crate::slots::SlotState;
use crate::tracking::Tracking;
use crate::trims::TrimBacklog;
use crate::verify::{
    Check, Expected, Generation, HeaderUnfit, LoggedWrite, Mismatch, Mismatches, ReadOrder, Stamp,
    Verifier, VerifyError, WrittenLog,
};

/// Verification state of a worker.
#[derive(Debug)]
pub(crate) struct Readback {
    pub(crate) verifier: Arc<Verifier>,
    /// Writes to read back; `None` without readback.
    log: Option<WrittenLog>,
    backlog: Option<Backlog>,
    /// Each pass is followed by readback.
    after_pass: bool,
    /// The readback after a pass is in progress.
    is_reading: bool,
    /// The job writes, or knows what an earlier run wrote: other blocks are not expected to be
    /// valid.
    writes: bool,
    /// The right content depends on where a write began, which only reading back knows.
    lacks_starts: bool,
    mismatches: Mismatches,
    /// Keep the blocks of mismatches.
    dumps: bool,
    /// Write that the read in each slot reads back.
    reading: Box<[Option<LoggedWrite>]>,
    /// Comparison in each slot; empty if the device compares nothing.
    pub(crate) comparisons: Box<[Comparison]>,
    /// Trimmed blocks read as zeros.
    zeros_after_trim: bool,
    /// Written blocks to trim.
    trims: Option<TrimBacklog>,
}

/// Readback while the job runs.
#[derive(Clone, Copy, Debug)]
struct Backlog {
    rule: VerifyBacklog,
    /// Writes logged since the last batch.
    writes: u64,
    /// Reads left to issue in this batch.
    reads: u64,
}

impl Readback {
    /// # Errors
    /// Blocks too small for a header, or no memory for the log.
    pub(crate) fn new(
        verify: &VerifyConfig,
        config: &WorkerConfig,
        depth: u32,
    ) -> Result<Self, ReadbackError> {
        // A dry run reads back as a job that writes, but does not know all content of its files.
        let does = config.used_directions().write;
        let writes = does || config.is_dry_run;
        let verifier = Verifier::new(verify, config.verified_sizes(), config.pattern.seed)
            .map_err(ReadbackError::Interval)?;
        let backlog = verify.backlog.filter(|_| does && verify.read_back);
        // As in fio, a time-based job is not read back but for its backlog.
        let logs = writes && verify.read_back && (!config.time_based || backlog.is_some());
        let log = if logs {
            let capacity = capacity(config, verifier.smallest());
            let log = WrittenLog::new(capacity, read_order(config));
            Some(log.map_err(ReadbackError::Memory)?)
        } else {
            None
        };
        let trims = verify
            .trims
            .filter(|rule| log.is_some() && rule.percent > 0);
        let trims = trims.map(|rule| {
            let capacity = capacity(config, verifier.smallest());
            TrimBacklog::new(rule, capacity, config.pattern.seed)
        });
        let trims = trims.transpose().map_err(ReadbackError::Memory)?;
        // A job that reads an earlier one's blocks has their size, or could not know the pattern.
        let lacks_starts = verifier.depends_on_start() && (does || !verify.has_state);
        Ok(Self {
            verifier: Arc::new(verifier),
            lacks_starts,
            log,
            backlog: backlog.map(|rule| Backlog {
                rule,
                writes: 0,
                reads: 0,
            }),
            after_pass: !config.time_based,
            is_reading: false,
            writes: does || verify.has_state,
            mismatches: Mismatches::default(),
            dumps: verify.dumps,
            reading: vec![None; depth as usize].into_boxed_slice(),
            comparisons: match verify.on_device {
                true => vec![Comparison::None; depth as usize].into_boxed_slice(),
                false => Box::default(),
            },
            zeros_after_trim: verify.zeros_after_trim,
            trims,
        })
    }

    /// Returns the mismatches so far.
    pub(crate) const fn mismatches(&self) -> &Mismatches {
        &self.mismatches
    }

    /// Ends verification and returns all mismatches.
    pub(crate) fn into_mismatches(self) -> Mismatches {
        self.mismatches
    }

    /// Returns whether the readback after a pass is in progress.
    pub(crate) const fn is_reading(&self) -> bool {
        self.is_reading
    }

    /// Returns whether there are writes to read back after the pass.
    pub(crate) fn has_work(&self) -> bool {
        let has_log = self.log.as_ref().is_some_and(|log| !log.is_empty());
        self.after_pass && !self.is_reading && has_log
    }

    /// Begins the readback after a pass.
    pub(crate) fn begin(&mut self) {
        self.is_reading = true;
        if let Some(log) = &mut self.log {
            log.sort();
        }
    }

    /// Forgets the writes of the pass, which are read back.
    pub(crate) fn end(&mut self) {
        if std::mem::take(&mut self.is_reading)
            && let Some(log) = &mut self.log
        {
            log.clear();
        }
        if let Some(backlog) = &mut self.backlog {
            (backlog.writes, backlog.reads) = (0, 0);
        }
        if let Some(trims) = &mut self.trims {
            trims.clear();
        }
    }

    /// Takes the next write to read back now: after a pass, or in a batch of the backlog.
    pub(crate) fn next_write(&mut self, tracking: &Tracking) -> Option<LoggedWrite> {
        let log = self.log.as_mut()?;
        if !self.is_reading {
            let backlog = self.backlog.as_mut()?;
            if backlog.reads == 0 {
                if backlog.writes < backlog.rule.writes {
                    return None;
                }
                (backlog.writes, backlog.reads) = (0, backlog.rule.reads);
                log.gather();
            }
        }
        let interval = self.verifier.interval();
        let next = log.next(|written| is_live(written, interval, tracking));
        if let Some(backlog) = self.backlog.as_mut().filter(|_| !self.is_reading) {
            backlog.reads = if next.is_some() { backlog.reads - 1 } else { 0 };
        }
        next
    }

    /// Takes back a write that cannot be read back yet.
    pub(crate) fn put_back(&mut self, written: LoggedWrite) {
        if let Some(log) = &mut self.log {
            log.put_back(written);
        }
        if let Some(backlog) = self.backlog.as_mut().filter(|_| !self.is_reading) {
            backlog.reads += 1;
        }
    }

    /// Notes that the read in this slot reads a write back.
    pub(crate) fn read_issued(&mut self, slot: Slot, written: LoggedWrite) {
        self.reading[slot.index()] = Some(written);
    }

    /// Forgets the op in this slot.
    pub(crate) fn release(&mut self, slot: Slot) {
        self.reading[slot.index()] = None;
        self.end_comparison(slot);
    }

    /// Fills a buffer with what a write without headers has written.
    pub(crate) fn put_content(&self, buffer: &mut [u8], written: &LoggedWrite) {
        let stamp = Stamp {
            offset: written.offset,
            sequence: written.sequence,
            // There is no header that would contain it.
            time_ns: 0,
        };
        self.verifier.stamp(buffer, &stamp);
    }

    /// Returns whether it fills the buffers of writes; otherwise they keep what they have.
    pub(crate) fn fills(&self) -> bool {
        self.verifier.fills()
    }

    /// Stamps the buffer of a write; `sequence` is its number in the job.
    pub(crate) fn stamp(&self, buffer: &mut [u8], target: &OpTarget, sequence: u64, now_ns: u64) {
        let stamp = Stamp {
            offset: target.offset,
            sequence,
            time_ns: now_ns,
        };
        self.verifier.stamp(buffer, &stamp);
    }

    /// Returns the generation and the interval of the blocks of a stamped write.
    pub(crate) fn stamped(&self, state: &SlotState) -> (Generation, u32) {
        let stamp = Stamp {
            offset: state.op.offset,
            sequence: state.op.sequence,
            time_ns: state.start.get(),
        };
        (self.verifier.generation(&stamp), self.verifier.interval())
    }

    /// Logs a completed write, of this generation in the map.
    pub(crate) fn written(
        &mut self,
        state: &SlotState,
        generation: Option<Generation>,
        tracking: Option<&Tracking>,
    ) {
        let written = self.logged(state, generation, false);
        let Some(tracking) = tracking.filter(|_| self.log.is_some()) else {
            return;
        };
        self.log_write(written, tracking);
        if let Some(backlog) = &mut self.backlog {
            backlog.writes += 1;
        }
        if let Some(trims) = &mut self.trims {
            trims.written(written);
        }
    }

    /// Logs a write that is done, or counts as done.
    pub(crate) fn log_write(&mut self, written: LoggedWrite, tracking: &Tracking) {
        let interval = self.verifier.interval();
        if let Some(log) = &mut self.log {
            log.push(written, |written| is_live(written, interval, tracking));
        }
    }

    /// Forgets all logged writes.
    pub(crate) fn clear_log(&mut self) {
        self.log.iter_mut().for_each(WrittenLog::clear);
    }

    /// Logs a completed trim of written blocks, which are to be read back as zeros.
    pub(crate) fn trimmed(
        &mut self,
        state: &SlotState,
        generation: Option<Generation>,
        tracking: Option<&Tracking>,
    ) {
        let trimmed = self.logged(state, generation, true);
        let own = self.trims.is_some() && self.zeros_after_trim;
        if let (Some(log), Some(tracking)) = (self.log.as_mut().filter(|_| own), tracking) {
            let interval = self.verifier.interval();
            log.push(trimmed, |written| is_live(written, interval, tracking));
        }
    }

    /// Returns the log's entry of a completed op. Its generation is the map's: the start of the
    /// op, of which it is made, may have been moved since, to an issue before it.
    fn logged(
        &self,
        state: &SlotState,
        generation: Option<Generation>,
        trimmed: bool,
    ) -> LoggedWrite {
        let stamp = Stamp {
            offset: state.start_offset(),
            sequence: state.op.sequence,
            time_ns: state.start.get(),
        };
        LoggedWrite {
            file: state.op.file,
            offset: stamp.offset,
            length: state.total_length(),
            sequence: stamp.sequence,
            generation: generation.unwrap_or_else(|| self.verifier.generation(&stamp)),
            trimmed,
        }
    }

    /// Returns whether the job trims blocks that it has written.
    pub(crate) const fn trims_written(&self) -> bool {
        self.trims.is_some()
    }

    /// Takes the next write to trim, if it is the turn of trims; `rest`: the pass has no other op.
    pub(crate) fn next_to_trim(&mut self, rest: bool, tracking: &Tracking) -> Option<LoggedWrite> {
        let interval = self.verifier.interval();
        let trims = self.trims.as_mut().filter(|_| !self.is_reading)?;
        // What other writes have replaced, if only in part, is not to be lost.
        trims.next(rest, |written| is_whole(written, interval, tracking))
    }

    /// Takes back a write that cannot be trimmed yet.
    pub(crate) fn put_back_to_trim(&mut self, written: LoggedWrite) {
        if let Some(trims) = &mut self.trims {
            trims.put_back(written);
        }
    }

    /// Checks the buffer of a completed read.
    ///
    /// # Errors
    /// The mismatch, worded as by fio.
    pub(crate) fn check(
        &mut self,
        buffer: &mut [u8],
        state: &SlotState,
        tracking: Option<&Tracking>,
    ) -> Result<(), String> {
        let own = self.reading[state.op.slot.index()].take();
        let mut blocks = self.mismatches.checked;
        let checked = self
            .verifier
            .check(buffer, state.start_offset(), |offset, length| {
                let expected = self.expected(state, (offset, length), own.as_ref(), tracking);
                blocks.add(&expected);
                expected
            });
        self.mismatches.checked = blocks;
        checked.map_err(|error| self.note(state.op.file, &error, buffer))
    }

    /// Notes a read whose data the device has compared, and found to be right.
    pub(crate) fn accept(&mut self, state: &SlotState) {
        let length = state.total_length() as usize;
        let blocks = self.verifier.intervals(state.start_offset(), length);
        self.mismatches.checked.compared += blocks.count() as u64;
        self.release(state.op.slot);
    }

    /// Checks the buffer of a read whose data the device has rejected in a comparison.
    ///
    /// # Errors
    /// The mismatch; also if the data are right after all.
    pub(crate) fn check_rejected(
        &mut self,
        buffer: &mut [u8],
        state: &SlotState,
        tracking: Option<&Tracking>,
    ) -> Result<(), String> {
        let own = self.reading[state.op.slot.index()].take();
        let offset = state.start_offset();
        let mut is_certain = true;
        let mut blocks = self.mismatches.checked;
        let checked = self.verifier.check(buffer, offset, |offset, length| {
            let expected = self.expected(state, (offset, length), own.as_ref(), tracking);
            blocks.add(&expected);
            is_certain &= !matches!(expected, Expected::Anything | Expected::OneOf(_));
            expected
        });
        self.mismatches.checked = blocks;
        let length = u64::from(state.total_length());
        let checked = checked.and(match is_certain {
            // Another write may have come in between.
            false => Ok(()),
            true => Err(VerifyError {
                mismatch: Mismatch::Comparison,
                offset,
                length,
                request_offset: offset,
                request_length: length,
                found: None,
            }),
        });
        checked.map_err(|error| self.note(state.op.file, &error, buffer))
    }

    /// Copies a completed read into a check that is run elsewhere.
    pub(crate) fn fill(
        &mut self,
        check: &mut Check,
        buffer: &[u8],
        state: &SlotState,
        tracking: Option<&Tracking>,
    ) {
        let own = self.reading[state.op.slot.index()].take();
        let intervals = self.verifier.intervals(state.start_offset(), buffer.len());
        let mut blocks = self.mismatches.checked;
        check.expected.extend(intervals.map(|block| {
            let expected = self.expected(state, block, own.as_ref(), tracking);
            blocks.add(&expected);
            expected
        }));
        self.mismatches.checked = blocks;
        check.data.extend_from_slice(buffer);
    }

    /// Counts a mismatch in the data of a read, and returns its text.
    pub(crate) fn note(&mut self, file: FileIndex, error: &VerifyError, data: &mut [u8]) -> String {
        self.mismatches.add(file, error);
        if self.dumps {
            self.mismatches.dump(&self.verifier, file, error, data);
        }
        error.to_string()
    }

    /// Returns what can be checked of a block; `own` is the write that is read back.
    fn expected(
        &self,
        state: &SlotState,
        (offset, length): (u64, u32),
        own: Option<&LoggedWrite>,
        tracking: Option<&Tracking>,
    ) -> Expected {
        let Some(tracking) = tracking else {
            return Expected::Valid;
        };
        if length < self.verifier.interval() && own.is_none() {
            // The end of a read, in the middle of a block.
            return Expected::Anything;
        }
        if let Some(expected) = self.expected_of_dry_run(state, (offset, length), own, tracking) {
            return expected;
        }
        let is_own = |generation| own.filter(|own| own.generation == generation);
        let is_uniform = tracking.is_uniform(state.op.file);
        let knows_all = is_uniform && !self.lacks_starts;
        match tracking.expected(state, offset, length) {
            // Blocks of before the run or of jobs that do not verify, in a job that writes.
            Expected::Valid if self.writes => Expected::Anything,
            Expected::Zeros if !self.zeros_after_trim => Expected::Anything,
            Expected::Latest { generation, .. } => match is_own(generation) {
                // In a format that this job does not know, or a part of a larger block, whose
                // pattern began at an unknown offset.
                None if !knows_all => Expected::Anything,
                own => Expected::Latest {
                    generation,
                    sequence: own.map(|own| own.sequence),
                },
            },
            Expected::OneOf(_) if !knows_all => Expected::Anything,
            expected => expected,
        }
    }

    /// Returns the content that a block must have if `own`, a write of the dry run, left it; `None`
    /// for a block that is written in this run, and in a job that is not a dry run.
    fn expected_of_dry_run(
        &self,
        state: &SlotState,
        (offset, length): (u64, u32),
        own: Option<&LoggedWrite>,
        tracking: &Tracking,
    ) -> Option<Expected> {
        let map = tracking.dry_run(state.op.file)?;
        // A loaded state knows more than the dry run.
        if self.writes || tracking.expected(state, offset, length) != Expected::Valid {
            return None;
        }
        Some(match own {
            // When it was written is not known.
            Some(own) if map.has(own.offset, offset, length) => Expected::Valid,
            _ => Expected::Anything,
        })
    }
}

/// Error that prevents verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadbackError {
    Interval(HeaderUnfit),
    Memory(NoMemory),
}

/// Returns whether a block of a write is still in the file.
fn is_live(written: &LoggedWrite, interval: u32, tracking: &Tracking) -> bool {
    blocks_of(written, interval).any(|block| holds(written, block, tracking))
}

/// Returns whether all blocks of a write are, or may be, still in the file.
pub(crate) fn is_whole(written: &LoggedWrite, interval: u32, tracking: &Tracking) -> bool {
    blocks_of(written, interval).all(|block| holds(written, block, tracking))
}

/// Returns the offsets and lengths of a write's blocks.
fn blocks_of(written: &LoggedWrite, interval: u32) -> impl Iterator<Item = (u64, u32)> + use<> {
    let end = written.offset + u64::from(written.length);
    let starts = (written.offset..end).step_by(interval as usize);
    let length = move |left: u64| u32::try_from(left).map_or(interval, |left| left.min(interval));
    starts.map(move |offset| (offset, length(end - offset)))
}

/// Returns whether a block still holds, or may hold, what this write or trim left there.
fn holds(written: &LoggedWrite, (offset, length): (u64, u32), tracking: &Tracking) -> bool {
    if let Some(map) = tracking.dry_run(written.file) {
        return map.holds(written.sequence, offset, length);
    }
    let Some(map) = tracking.map(written.file) else {
        return true;
    };
    match written.trimmed {
        true => map.holds_zeros(offset, length, written.generation),
        false => map.holds(offset, length, written.generation),
    }
}

/// Returns the order of reading back: as in fio, by offset if a pass may write a block twice.
fn read_order(config: &WorkerConfig) -> ReadOrder {
    let pattern = &config.pattern;
    let held: u64 = pattern.files.iter().map(|file| file.length).sum();
    let beyond =
        config.bytes_per_pass != WorkerConfig::WHOLE_PATTERN && config.bytes_per_pass > held;
    let passes = config.loops > 1 || config.bytes_in_all.is_some();
    let repeats = beyond || config.is_dry_run && passes;
    match pattern.map != MapMode::On || pattern.sequencer != Sequencer::None || repeats {
        true => ReadOrder::Offset,
        false => ReadOrder::Written,
    }
}

/// Returns the capacity of the log: the writes that are read back together, those of a pass or of
/// all; where they repeat their blocks, twice the blocks of the files, so that compaction frees
/// half.
fn capacity(config: &WorkerConfig, smallest: u32) -> usize {
    let smallest = u64::from(smallest.max(1));
    let room: u64 = config
        .pattern
        .files
        .iter()
        .map(|file| file.length / smallest)
        .sum();
    let bytes = match config.is_dry_run {
        true => (config.bytes_per_pass).saturating_mul(config.loops.into()),
        false => config.bytes_per_pass,
    };
    let most = (bytes / smallest).min(room.saturating_mul(2));
    usize::try_from(
        most.saturating_add(u64::from(config.depth))
            .saturating_add(1),
    )
    .unwrap_or(usize::MAX)
}
