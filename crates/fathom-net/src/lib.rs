//! NVMe/TCP over sockets.
#![forbid(unsafe_code)]

pub mod target;
