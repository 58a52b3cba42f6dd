//! The engine `nvme_tcp`: namespaces of NVMe/TCP targets as the files of a job.
//!
//! ```text
//!  job's thread                                        │ a thread for each controller
//!  Initiator ─► Session ─► Path ─► Link ─► I/O socket  │ Keeper ─► Admin ─► Link ─► admin socket
//!      ▲            ▲                                  │   │
//!      └ Epoll ◄────┴────────── links, news ◄──────────┴───┘
//! ```
//!
//! The job's thread moves data and does nothing else: connecting, Keep Alive and reconnecting are
//! the keeper's, so that neither a pause of the job nor a slow controller disturbs the other.
//! While a controller is away its ops stay in their slots; they are sent again once it is back.

mod address;
mod admin;
mod engine;
mod error;
mod keeper;
mod link;
mod options;
mod path;
mod session;
mod slots;

pub use engine::NVME_TCP;
