//! Configuration of a job on zones.

use std::sync::Arc;

use super::set::ZoneSet;

/// Access of a job to the zones of its files.
#[derive(Clone, Debug)]
pub struct ZoneAccess {
    /// Zones of each file, in the order of the files.
    pub sets: Vec<Arc<ZoneSet>>,
    /// Number of the job in the run; distinguishes the zones that it opened from those of others.
    pub job: u32,
    /// Largest number of open zones of a device, those of all jobs together; `None` without a
    /// limit. The job opens none beyond it.
    pub open_max: Option<u32>,
    /// Largest number of open zones that this job has opened; `None` without a limit.
    pub job_open_max: Option<u32>,
    /// Reads may go beyond the write pointer.
    pub reads_beyond: bool,
    /// The rest of a zone that is shorter than a block is written, too; otherwise such a zone is
    /// finished.
    pub writes_remainder: bool,
    /// Data of a pass stay until the pass ends: the job reads them back. A zone with older
    /// data is reset before the pass first writes to it.
    pub keeps_data: bool,
    /// Resets of zones before they are full.
    pub reset: Option<ResetRule>,
    /// Zones are opened with random write areas, in which several writes are in flight.
    pub areas: bool,
    /// Writes are appended to zones: the device places them, and several of a zone are in flight.
    pub appends: bool,
}

/// Resets of zones while much of a job's range is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetRule {
    /// Share of the range's bytes from which on zones are reset while so much is written, in
    /// millionths.
    pub threshold_ppm: u32,
    /// Number of writes between two resets, ≥ 1: those meanwhile.
    pub every: u32,
}
