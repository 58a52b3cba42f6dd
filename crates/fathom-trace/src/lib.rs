//! `fathom trace`: a block device's requests, or io_uring's task work, from the kernel's events.
//!
//! ```text
//! tracing (rings, one per CPU) ─► page (records) ─► follow (one order) ─► requests · uring
//!                                   format (fields)
//! ```
//!
//! The rings are read as the kernel keeps them, in binary pages. As text (`trace_pipe`) the kernel
//! would format each record, two thousand instructions and more, on the machine that is being
//! measured; a page is copied.
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
pub use recorded::recorded_requests;
pub use uring::trace_uring;
