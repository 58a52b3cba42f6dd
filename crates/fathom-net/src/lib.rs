//! NVMe/TCP over sockets.
#![forbid(unsafe_code)]

mod initiator;
pub mod target;

// Public items, listed once.
pub use initiator::NVME_TCP;
