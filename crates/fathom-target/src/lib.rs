//! Targets as users describe them: files, devices, names.
#![forbid(unsafe_code)]

mod crowd;
mod devices;
mod error;
mod file;
mod host;
mod http;
mod log;
mod metrics;
mod names;
mod pacing;
mod plan;
mod problem;
mod running;
mod service;
mod sizes;
mod snapshot;
mod stats_socket;
mod subsystems;

// Public items, listed once.
pub use crowd::{Crowd, turn_away};
pub use devices::{
    DEVICES, Device, DeviceInfo, FileDevice, FileWishes, MemoryDevice, NullDevice, Storage,
    Threads, check_size,
};
pub use error::DeviceError;
pub use file::{read_address, read_cpus, read_metrics_address};
pub use host::{Host, Obstacle, ThisHost};
pub use http::{Hosts, REQUEST_BYTES_MAX, Refusal, Reply, Request, is_whole};
pub use log::{EventLog, LogFormat};
pub use metrics::Metrics;
pub use names::{check_nqn, default_nguid, default_serial, read_identifier};
pub use pacing::{POLICIES, PolicyInfo, policy_name, read_buffer_size};
pub use plan::{
    AllowedHosts, DEFAULT_BUFFERS, DEFAULT_LISTEN, DEFAULT_MODEL, LimitsPlan, NamespacePlan, PORT,
    SubsystemPlan, TargetPlan, is_loopback,
};
pub use problem::TargetFileError;
pub use running::{RunningTarget, StartError};
pub use service::{Accept, Client, Service, Snapshot};
pub use sizes::{read_size, show_size};
pub use stats_socket::{StatsError, StatsSocket, find_target, read_stats};
