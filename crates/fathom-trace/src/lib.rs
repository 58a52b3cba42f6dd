//! `fathom trace`: a block device's requests, or io_uring's task work, from the kernel's events.
//!
//! ```text
//! tracing (rings, one per CPU) ─► page (records) ─► follow (one order) ─► requests · uring
//!                                   format (fields)
//! ```
//!
//! Rings are read in binary pages, which the kernel merely copies. Reading text (`trace_pipe`) was
//! rejected: the kernel would spend over two thousand instructions formatting each record, on the
//! machine under measurement.
#![forbid(unsafe_code)]

mod config;
mod device;
mod error;
mod follow;
mod format;
mod page;
mod recorded;
mod requests;
mod target;
mod tracing;
mod uring;

// Public items, listed once.
pub use config::TraceConfig;
pub use device::trace_device;
pub use error::TraceError;
pub use follow::Traced;
pub use recorded::recorded_requests;
pub use uring::trace_uring;
