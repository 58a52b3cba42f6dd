//! The engine `http`: blocks as objects of a WebDAV, S3 or Swift server.
//!
//! ```text
//!  Http ──► Client ──► ureq ──► one connection, kept alive
//!   │          ├─ target.rs   names of objects
//!   │          ├─ sign.rs     signature version 4
//!   │          └─ fault.rs    answers and their meaning
//!   └─ buffers
//! ```
//!
//! The job's thread does everything; an op is a request and its answer. Without the feature `http`
//! the crate knows the engine's options and refuses to start it, so that a default build needs
//! neither an HTTP client nor TLS.
//!
//! Cost: a request allocates, for its headers and its signature, in contrast to those of other
//! engines. The hashes of a written block are made before its issue time is taken, and that of a
//! block read is checked after its completion time.
#![forbid(unsafe_code)]

#[cfg(feature = "http")]
mod client;
#[cfg(feature = "http")]
mod credentials;
#[cfg(feature = "http")]
mod engine;
#[cfg(feature = "http")]
mod fault;
mod options;
mod registration;
#[cfg(feature = "http")]
mod sign;
#[cfg(feature = "http")]
mod small_file;
#[cfg(feature = "http")]
mod target;
#[cfg(feature = "http")]
mod trust;

// Public items, listed once.
pub use registration::HTTP;
