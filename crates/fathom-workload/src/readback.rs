//! Verification inside the loop: stamping what is written, reading it back, checking what is read.
//!
//! A job that writes logs its writes and, when a pass has ended, reads them back in the order of
//! writing; the reads of a mix are not checked. A job that only reads checks every read.

use fathom_core::{Direction, NoMemory};

use crate::config::{
    Distribution, FileService, MapMode, PatternConfig, Sequencer, SizeChoice, VerifyConfig,
    WorkerConfig,
};
use crate::pattern::Target;
use crate::slots::SlotState;
use crate::verify::{IntervalTooSmall, Stamp, Verifier, Written, WrittenLog};

/// What a worker that verifies keeps for it.
#[derive(Debug)]
pub(crate) struct Readback {
    verifier: Verifier,
    /// The writes of this pass; `None` where nothing is read back.
    log: Option<WrittenLog>,
    /// While reading back: the number in the job of the first read.
    reading_from: Option<u64>,
    /// The job writes: only what is read back is checked.
    writes: bool,
    /// Two writes of a block are never in flight together, so the later one's number is on it.
    ordered: bool,
}

impl Readback {
    /// # Errors
    /// Blocks too small for a header, or no memory for the log.
    pub(crate) fn new(
        verify: &VerifyConfig,
        config: &WorkerConfig,
        writes: bool,
    ) -> Result<Self, ReadbackError> {
        let sizes = &config.pattern.sizes;
        let sizes = if writes { &sizes.write } else { &sizes.read };
        let verifier =
            Verifier::new(verify, sizes, config.pattern.seed).map_err(ReadbackError::Interval)?;
        // As in fio, a job that goes round until its time is up never comes to read back.
        let logs = writes && verify.read_back && !config.time_based;
        let log = if logs {
            let capacity = capacity(config, verifier.smallest());
            Some(WrittenLog::new(capacity).map_err(ReadbackError::Memory)?)
        } else {
            None
        };
        Ok(Self {
            verifier,
            log,
            reading_from: None,
            writes,
            ordered: config.depth == 1 || !may_repeat(&config.pattern),
        })
    }

    /// Whether the reads now are those of reading back.
    pub(crate) const fn is_reading(&self) -> bool {
        self.reading_from.is_some()
    }

    /// Whether there is something to read back.
    pub(crate) fn has_work(&self) -> bool {
        !self.is_reading() && self.log.as_ref().is_some_and(|log| !log.is_empty())
    }

    /// All is written; `sequence` is the number in the job of the first read.
    pub(crate) fn begin(&mut self, sequence: u64) {
        self.reading_from = Some(sequence);
        if let Some(log) = &mut self.log {
            log.seal();
        }
    }

    /// Forgets the pass.
    pub(crate) fn end(&mut self) {
        self.reading_from = None;
        if let Some(log) = &mut self.log {
            log.clear();
        }
    }

    /// The next read of reading back.
    pub(crate) fn next_target(&mut self) -> Option<Target> {
        let written = self.log.as_mut()?.next()?;
        Some(Target {
            direction: Direction::Read,
            file: written.file,
            offset: written.offset,
            length: written.length,
        })
    }

    /// Fills the buffer of a write; `sequence` is its number in the job.
    pub(crate) fn stamp(&self, buffer: &mut [u8], target: &Target, sequence: u64, now_ns: u64) {
        let stamp = Stamp {
            offset: target.offset,
            sequence,
            time_ns: now_ns,
        };
        self.verifier.stamp(buffer, &stamp);
    }

    /// A write has completed.
    pub(crate) fn written(&mut self, state: &SlotState) {
        if let Some(log) = &mut self.log {
            log.push(Written {
                file: state.op.file,
                offset: start_of(state),
                length: state.total_length(),
                sequence: state.op.sequence,
            });
        }
    }

    /// Whether a read that completes now is to be checked.
    pub(crate) const fn checks_reads(&self) -> bool {
        self.is_reading() || !self.writes
    }

    /// Checks the buffer of a completed read.
    ///
    /// # Errors
    /// What is wrong with it, in fio's words.
    pub(crate) fn check(&self, buffer: &[u8], state: &SlotState) -> Result<(), String> {
        // Reading back issues nothing but its reads, so the n-th is that of the n-th write.
        let write = self.reading_from.and_then(|first| {
            self.log
                .as_ref()?
                .get(state.op.sequence.checked_sub(first)?)
        });
        let sequence = write
            .filter(|_| self.ordered)
            .map(|written| written.sequence);
        let checked = self.verifier.check(buffer, start_of(state), sequence);
        checked.map_err(|error| error.to_string())
    }
}

/// Why a worker cannot verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadbackError {
    Interval(IntervalTooSmall),
    Memory(NoMemory),
}

/// The op's first byte in its file, however many pieces it took.
fn start_of(state: &SlotState) -> u64 {
    state.op.offset - u64::from(state.op.buffer_offset)
}

/// Whether a block may be written again while an earlier write of it is in flight. Passes are far
/// enough apart: a block comes again only after all others.
fn may_repeat(pattern: &PatternConfig) -> bool {
    let aligned = match &pattern.sizes.write {
        SizeChoice::Fixed(size) => pattern.align.write == u64::from(*size),
        SizeChoice::Range { .. } | SizeChoice::Unaligned { .. } | SizeChoice::Split(_) => false,
    };
    let each_once = pattern.map != MapMode::Off
        && pattern.distribution == Distribution::Uniform
        && pattern.shares.is_none()
        && pattern.sequence.is_none()
        && !pattern.sizes_by_order
        && pattern.sequencer == Sequencer::None
        && pattern.percentage_random.write == 100
        && aligned;
    let goes_back = pattern.zones.is_some() || matches!(pattern.service, FileService::Spread(_));
    pattern.random && !each_once || goes_back
}

/// How many writes a log must hold: those of a pass; or, where a pass goes over its files many
/// times, twice what they have room for, so that leaving out what was overwritten frees half.
fn capacity(config: &WorkerConfig, smallest: u32) -> usize {
    let smallest = u64::from(smallest.max(1));
    let room: u64 = config
        .pattern
        .files
        .iter()
        .map(|file| file.length / smallest)
        .sum();
    let most = (config.bytes_per_pass / smallest).min(room.saturating_mul(2));
    usize::try_from(
        most.saturating_add(u64::from(config.depth))
            .saturating_add(1),
    )
    .unwrap_or(usize::MAX)
}
