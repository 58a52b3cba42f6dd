//! NVMe/TCP target: subsystems with namespaces, served to hosts by one thread per core.
//!
//! ```text
//!  listener ─► thread 0 ─┬─ hands the socket over ─► mailbox of the least loaded thread
//!                        │
//!  poll group, per thread ── sockets ─► Connection ─► TargetQueue ─► requests
//!       ▲  epoll: sockets, devices, mailbox, timers                    │ buffer: Admission
//!       │                                                              ▼
//!       └── one gathered send per connection ◄── completions ◄── devices of the namespaces
//! ```
//!
//! A thread owns its connections, devices and buffers; threads meet where connections are handed
//! over, where queues connect to a controller (`registry.rs`), and in the pool.

mod admin;
mod config;
mod connection;
mod connections;
mod devices;
mod error;
mod flight;
mod io;
mod listener;
mod log;
mod mailbox;
mod poll_group;
mod registry;
mod running;
mod send_queue;
mod statistics;
mod subsystem;
mod timers;
mod work;

// Public items, listed once.
pub use config::{
    DeviceError, DeviceFactory, NamespaceConfig, SubsystemConfig, TargetConfig, TargetLimits,
};
pub use error::{ConfigFault, NetError};
pub use log::{Ended, NoLog, Refusal, TargetEvent, TargetLog};
pub use mailbox::Wakers;
pub use running::Target;
pub use statistics::{
    ConnectionStatistics, IoCounters, NamespaceStatistics, TargetStatistics, ThreadStatistics,
};
