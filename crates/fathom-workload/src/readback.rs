//! Verification within the loop: stamping writes, reading them back, checking reads.
//!
//! A job that writes keeps a log of its writes and reads them back in order after each pass; the
//! reads of a mix are not checked. A job that only reads checks every read.

use fathom_core::{Direction, NoMemory};

use crate::config::{
    Distribution, FileService, MapMode, PatternConfig, Sequencer, SizeChoice, VerifyConfig,
    WorkerConfig,
};
use crate::pattern::OpTarget;
use crate::slots::SlotState;
use crate::verify::{Expected, HeaderUnfit, LoggedWrite, Stamp, Verifier, WrittenLog};

/// Verification state of a worker.
#[derive(Debug)]
pub(crate) struct Readback {
    verifier: Verifier,
    /// Writes of this pass; `None` without readback.
    log: Option<WrittenLog>,
    /// During readback: the sequence number of its first read.
    reading_from: Option<u64>,
    /// The job writes, so only readback is checked.
    writes: bool,
    /// Two writes of a block are never in flight together, so the later one determines its
    /// contents.
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
        // As in fio, a time-based job is never read back.
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

    /// Returns whether readback is in progress.
    pub(crate) const fn is_reading(&self) -> bool {
        self.reading_from.is_some()
    }

    /// Returns whether there are writes to read back.
    pub(crate) fn has_work(&self) -> bool {
        !self.is_reading() && self.log.as_ref().is_some_and(|log| !log.is_empty())
    }

    /// Begins readback; `sequence` is the number of its first read.
    pub(crate) fn begin(&mut self, sequence: u64) {
        self.reading_from = Some(sequence);
        if let Some(log) = &mut self.log {
            log.seal();
        }
    }

    /// Forgets the writes of the pass.
    pub(crate) fn end(&mut self) {
        self.reading_from = None;
        if let Some(log) = &mut self.log {
            log.clear();
        }
    }

    /// Returns the next read of the readback.
    pub(crate) fn next_target(&mut self) -> Option<OpTarget> {
        let written = self.log.as_mut()?.next()?;
        Some(OpTarget {
            direction: Direction::Read,
            file: written.file,
            offset: written.offset,
            length: written.length,
        })
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

    /// Logs a completed write.
    pub(crate) fn written(&mut self, state: &SlotState) {
        if let Some(log) = &mut self.log {
            log.push(LoggedWrite {
                file: state.op.file,
                offset: start_of(state),
                length: state.total_length(),
                sequence: state.op.sequence,
            });
        }
    }

    /// Returns whether reads are checked at present.
    pub(crate) const fn checks_reads(&self) -> bool {
        self.is_reading() || !self.writes
    }

    /// Checks the buffer of a completed read.
    ///
    /// # Errors
    /// The mismatch, worded as by fio.
    pub(crate) fn check(&self, buffer: &mut [u8], state: &SlotState) -> Result<(), String> {
        // Readback issues only its own reads, so read n belongs to write n.
        let write = self.reading_from.and_then(|first| {
            self.log
                .as_ref()?
                .get(state.op.sequence.checked_sub(first)?)
        });
        let expected = match write {
            Some(written) if self.ordered => Expected::Write(written.sequence),
            _ => Expected::Valid,
        };
        let checked = self
            .verifier
            .check(buffer, start_of(state), |_, _| expected);
        checked.map_err(|error| error.to_string())
    }
}

/// Error that prevents verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadbackError {
    Interval(HeaderUnfit),
    Memory(NoMemory),
}

/// Returns the op's original offset in its file, before any short transfers.
fn start_of(state: &SlotState) -> u64 {
    state.op.offset - u64::from(state.op.buffer_offset)
}

/// Returns whether a block may be written again while an earlier write of it is in flight. Passes
/// do not count: a block is repeated only after all others.
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

/// Returns the capacity of the log: the writes of a pass; for passes that repeat their files, twice
/// the blocks of the files, so that compaction frees half.
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
