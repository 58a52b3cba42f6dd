//! `fathom trace`: a block device's requests, or io_uring's task work, from the kernel's events.
//! Also the device time of single requests, for a caller that joins them with its own ops.
//!
//! ```text
//! tracing (rings, one per CPU) ─► page (records) ─► follow (one order) ─► requests · uring · spans
//!                                   format (fields)
//! ```
//!
//! Rings are read in binary pages, which the kernel merely copies. Reading text (`trace_pipe`) was
//! rejected: the kernel would spend over two thousand instructions formatting each record, on the
//! machine under measurement.
#![forbid(unsafe_code)]

mod background;
mod config;
mod device;
mod disk_map;
mod error;
mod follow;
mod format;
mod join;
mod page;
mod recorded;
mod requests;
mod spans;
mod submissions;
mod target;
mod trace_spans;
mod tracing;
mod uring;
mod waking;

// Public items, listed once.
pub use background::BackgroundTrace;
pub use config::TraceConfig;
pub use device::trace_device;
pub use disk_map::{DiskMap, SectorRange};
pub use error::TraceError;
pub use follow::Traced;
pub use join::{DeviceSpans, DeviceTime, Joined};
pub use recorded::recorded_requests;
pub use spans::DeviceSpan;
pub use submissions::{Submissions, trace_submissions};
pub use trace_spans::{TracedSpans, trace_spans};
pub use tracing::check_permission;
pub use uring::trace_uring;
