//! NVMe/TCP and NBD over sockets.
#![forbid(unsafe_code)]

mod device_end;
mod dial;
mod initiator;
mod nbd;
mod receive;
pub mod target;
mod waiter;

// Public items, listed once.
pub use initiator::NVME_TCP;
pub use nbd::NBD;
