//! NVMe/TCP and NBD over sockets.
#![forbid(unsafe_code)]

mod dial;
mod initiator;
mod nbd;
mod receive;
pub mod target;

// Public items, listed once.
pub use initiator::NVME_TCP;
pub use nbd::NBD;
