//! Errors that keep a target from starting.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use super::config::DeviceError;

/// Reason why a target does not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum NetError {
    /// The address cannot be listened on.
    Listen {
        /// Address.
        address: SocketAddr,
        /// Error of the socket.
        source: io::Error,
    },
    /// A namespace's device cannot be opened.
    Device {
        /// Subsystem.
        nqn: String,
        /// Namespace.
        nsid: u32,
        /// Error of the device.
        source: DeviceError,
    },
    /// A thread cannot be bound to its CPU.
    Cpu {
        /// Number of the thread.
        thread: u32,
        /// Its CPU.
        cpu: u32,
        /// Error of the system call.
        source: io::Error,
    },
    /// A thread cannot be started.
    Thread {
        /// Number of the thread.
        thread: u32,
        /// Error of the system call.
        source: io::Error,
    },
    /// The configuration contradicts itself.
    Config(ConfigFault),
}

/// Contradiction in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigFault {
    /// There are no threads, or not as many CPUs as threads.
    Threads,
    /// A limit is outside its range: its name.
    Limit(&'static str),
    /// The block size of a namespace does not fit its device.
    BlockSize {
        /// Subsystem.
        nqn: String,
        /// Namespace.
        nsid: u32,
    },
    /// Two namespaces of a subsystem have the same identifier, or one has none.
    Nsid {
        /// Subsystem.
        nqn: String,
        /// Namespace.
        nsid: u32,
    },
    /// Two subsystems have the same NQN.
    Nqn(String),
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen { address, source } => {
                write!(f, "cannot listen: {address}: {source}")
            }
            Self::Device { nqn, nsid, source } => {
                write!(f, "cannot open device: {nqn}: namespace {nsid}: {source}")
            }
            Self::Cpu {
                thread,
                cpu,
                source,
            } => {
                write!(f, "cannot bind thread {thread}: CPU {cpu}: {source}")
            }
            Self::Thread { thread, source } => {
                write!(f, "cannot start thread: {thread}: {source}")
            }
            Self::Config(fault) => fault.fmt(f),
        }
    }
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads => write!(f, "threads: at least one, and a CPU for each"),
            Self::Limit(name) => write!(f, "{name}: out of range"),
            Self::BlockSize { nqn, nsid } => {
                write!(
                    f,
                    "{nqn}: namespace {nsid}: block size does not fit the device"
                )
            }
            Self::Nsid { nqn, nsid } => {
                write!(f, "{nqn}: namespace {nsid}: identifier is 0 or in use")
            }
            Self::Nqn(nqn) => write!(f, "{nqn}: two subsystems of this name"),
        }
    }
}

impl std::error::Error for NetError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Listen { source, .. }
            | Self::Cpu { source, .. }
            | Self::Thread { source, .. } => Some(source),
            Self::Device { source, .. } => Some(source.as_ref()),
            Self::Config(_) => None,
        }
    }
}
