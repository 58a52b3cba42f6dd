//! The engine `nbd`: an export of an NBD server as the file of a job.
//!
//! ```text
//!  job's thread
//!  Nbd ─► Session ─► Link ─► socket
//!   ▲                          │
//!   └────────── Epoll ◄────────┘
//! ```
//!
//! The job's thread does everything. A lost connection is not restored: it is unknown which of the
//! ops in flight the server has carried out, so they fail, as do all later ones.

mod engine;
mod error;
mod link;
mod options;
mod session;
mod slots;
mod stream;

pub use engine::NBD;
