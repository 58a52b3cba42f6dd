//! Questions of a job to the table of zones, and the answers.

use std::ops::Range;

use fathom_core::{Direction, Tick, Zone, ZoneAction};

use crate::pattern::OpTarget;

use super::access::ResetRule;

/// Rules of a job on a device.
#[derive(Clone, Debug)]
pub(crate) struct ZoneRules {
    /// Number of the job in the run.
    pub(crate) job: u32,
    /// Zones of its range.
    pub(crate) range: Range<usize>,
    /// Offsets are random: another zone may take the place of the drawn one.
    pub(crate) random: bool,
    /// Each write follows the trim of its zone (`trimwrite`): trims stay where they are drawn.
    pub(crate) pairs: bool,
    /// Smallest read and smallest write, bytes, ≥ 1.
    pub(crate) smallest_read: u32,
    pub(crate) smallest_write: u32,
    pub(crate) open_max: Option<u32>,
    pub(crate) job_open_max: Option<u32>,
    pub(crate) reads_beyond: bool,
    pub(crate) writes_remainder: bool,
    pub(crate) keeps_data: bool,
    pub(crate) reset: Option<ResetRule>,
    /// It opens zones with random write areas.
    pub(crate) areas: bool,
    /// The device places its writes within their zones.
    pub(crate) appends: bool,
}

/// State of a job on a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct ZoneUser {
    /// Writes beyond the threshold since the last reset by it.
    pub(super) writes: u32,
    /// Time since which the limit of open zones holds it up.
    pub(super) waits_since: Option<Tick>,
    /// Offset of the last write that was issued or skipped, as it was drawn.
    pub(super) last_write: Option<u64>,
    /// Targets skipped in a row, and their bytes.
    pub(super) skipped: u64,
    pub(super) skipped_bytes: u64,
    /// Count of its range.
    pub(super) count: Option<usize>,
}

/// Answer to the question for a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ZoneAnswer {
    /// Issue this op; it holds its zone until `ZoneTable::end`.
    Issue(OpTarget, ZoneHold),
    /// Carry this out, tell `ZoneTable::settle`, and ask again.
    Do(ZoneStep),
    /// Ask again when something has completed.
    Wait,
    /// Draw another target.
    Skip,
    /// No zone of the range takes such an op.
    Exhausted {
        /// None ever will: no zone can be written, or for a trim be reset.
        for_good: bool,
    },
}

/// Use of a zone by an op in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZoneHold {
    pub(crate) zone: u32,
    pub(crate) direction: Direction,
    pub(super) offset: u64,
    pub(super) length: u32,
    /// Mark of its group among several writes of the zone.
    pub(super) mark: Option<bool>,
}

/// Command to the device that must come first; the zone is held meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZoneStep {
    pub(crate) number: u32,
    pub(crate) zone: Zone,
    pub(crate) kind: StepKind,
}

/// Kind of a command, and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepKind {
    /// The zone is reset.
    Reset(ResetReason),
    /// The zone is finished.
    Finish(FinishReason),
    /// The zone is opened with a random write area.
    OpenWithArea,
    /// The write pointer moves over what is written in the zone's random write area.
    Commit,
    /// The device is asked for the zone's state, after a failed write.
    Report,
}

impl StepKind {
    /// Returns the device's command; `None` for a report.
    pub(crate) const fn action(self) -> Option<ZoneAction> {
        match self {
            Self::Reset(_) => Some(ZoneAction::Reset),
            Self::Finish(_) => Some(ZoneAction::Finish),
            Self::OpenWithArea => Some(ZoneAction::OpenWithArea),
            Self::Commit => Some(ZoneAction::Commit),
            Self::Report => None,
        }
    }
}

/// Reason of a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResetReason {
    /// The zone is full and is to be written again.
    Full,
    /// The threshold of written bytes is exceeded.
    Threshold,
    /// Its data are of an earlier pass or run, and this pass is read back.
    OldData,
}

/// Reason of a finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinishReason {
    /// The rest of the zone is shorter than a block.
    Remainder,
    /// All of the zone is written, a part of it in its random write area.
    WrittenWhole,
    /// The zone has a random write area, and Zone Append fails there.
    Area,
    /// Zones outside the range of a job use up the limit of open ones.
    OpenLimit,
}
