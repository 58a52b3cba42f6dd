//! Warnings about a plan, by kind, found before its first op.

use fathom_record::Warning;

/// Kind of a warning about a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanWarningKind {
    /// The steady-state window is longer than the run.
    SteadyWindowBeyondRun,
    /// `size` is larger than the device.
    SizeBeyondDevice,
    /// Some files are too small for an op.
    FilesTooSmall,
    /// Zones of `random_distribution=zoned_abs` reach past the end of a file.
    SharesBeyondFile,
    /// `ioscheduler` for files without a block device under them.
    SchedulerWithoutDevice,
    /// `ioscheduler` changes a device's scheduler, and does not restore it.
    SchedulerStays,
    /// More polling kernel threads than CPUs.
    OffloadPollers,
    /// Options that a replay ignores.
    IgnoredByReplay,
    /// An oddity of a log to replay.
    ReplayLog,
    /// Files that the job's ops are to create exist already.
    FilesExist,
    /// Jobs that write at the same time what one of them verifies.
    VerifyShared,
    /// All ranks write the same part of a file.
    RangeSharedByRanks,
    /// A range begins or ends within a zone.
    ZonesCut,
    /// A limit of open zones for a job that writes none.
    OpenZonesWithoutWrites,
    /// Resets at a share of written blocks, which `verify` keeps until it has read them back.
    ResetsWithVerify,
    /// Jobs that change zones by commands and write them through the block layer.
    ZonesByTwoNames,
}

impl PlanWarningKind {
    /// Returns the stable code of the kind, for diagnostics and records.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::SteadyWindowBeyondRun => "steady_window_beyond_run",
            Self::SizeBeyondDevice => "size_beyond_device",
            Self::FilesTooSmall => "files_too_small",
            Self::SharesBeyondFile => "shares_beyond_file",
            Self::SchedulerWithoutDevice => "ioscheduler_without_device",
            Self::SchedulerStays => "ioscheduler_stays",
            Self::OffloadPollers => "offload_pollers",
            Self::IgnoredByReplay => "ignored_by_replay",
            Self::ReplayLog => "replay_log",
            Self::FilesExist => "files_exist",
            Self::VerifyShared => "verify_shared",
            Self::RangeSharedByRanks => "range_shared_by_ranks",
            Self::ZonesCut => "zones_cut",
            Self::OpenZonesWithoutWrites => "open_zones_without_writes",
            Self::ResetsWithVerify => "resets_with_verify",
            Self::ZonesByTwoNames => "zones_by_two_names",
        }
    }

    /// Returns the option that causes it.
    #[must_use]
    pub const fn option(self) -> &'static str {
        match self {
            Self::SteadyWindowBeyondRun => "steadystate_duration",
            Self::SizeBeyondDevice => "size",
            Self::FilesTooSmall => "bs",
            Self::SharesBeyondFile => "random_distribution",
            Self::SchedulerWithoutDevice | Self::SchedulerStays => "ioscheduler",
            Self::OffloadPollers => "sqthread_poll",
            Self::IgnoredByReplay | Self::ReplayLog => "read_iolog",
            Self::FilesExist => "ioengine",
            Self::VerifyShared => "verify",
            Self::RangeSharedByRanks => "filename",
            Self::ZonesCut => "zonemode",
            Self::OpenZonesWithoutWrites => "job_max_open_zones",
            Self::ResetsWithVerify => "zone_reset_frequency",
            Self::ZonesByTwoNames => "ioengine",
        }
    }
}

/// Warning about a job of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanWarning {
    /// Kind: what callers match on.
    pub kind: PlanWarningKind,
    /// Name of the job.
    pub job: String,
    /// Message.
    pub message: String,
    /// Remedy, in the imperative.
    pub hint: String,
}

impl From<PlanWarning> for Warning {
    fn from(warning: PlanWarning) -> Self {
        Self {
            code: warning.kind.code().into(),
            job: warning.job,
            message: warning.message,
            hint: warning.hint,
        }
    }
}
