//! What a run leaves behind: counters, histograms, machine, warnings.
#![forbid(unsafe_code)]

mod context;
mod record;
mod stored;

// Public items, listed once.
pub use context::{Machine, Storage, Validity, Warning};
pub use record::{
    CpuRecord, DirectionRecord, DiskRecord, Display, JobRecord, PerDirectionRecord, RECORD_VERSION,
    Record, SyncRecord, Tolerated,
};
pub use stored::RecordError;
