//! The engine `nbd`: an export of an NBD server as the file of a job.
//!
//! ```text
//!  job's thread
//!  Nbd ─► Session ─► Link ─► socket
//!   ▲                          │
//!   └────────── Epoll ◄────────┘
//! ```
//!
//! The job's thread does everything. A connection that is lost is not made again: a server keeps
//! no record of what it was asked, so that the ops in flight fail, as do later ones.

mod engine;
mod error;
mod link;
mod options;
mod session;
mod slots;
mod stream;

pub use engine::NBD;
