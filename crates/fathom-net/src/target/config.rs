//! Configuration of a target, fully resolved.

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use fathom_block::{BufferConfig, PacingConfig};
use fathom_core::{BlockDevice, Geometry, Nanos, Tick};
use fathom_nvme::Digests;

use super::mailbox::Wakers;

/// Configuration of a target: no defaults left to apply.
#[derive(Clone, Debug)]
pub struct TargetConfig {
    /// Addresses to listen on; port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Threads, each with its own connections and devices.
    pub threads: u32,
    /// Wakers of the threads, as many as there are threads.
    pub wakers: Arc<Wakers>,
    /// CPU of each thread; `None` leaves them to the scheduler.
    pub cpus: Option<Vec<u32>>,
    /// Threads look for work without ever sleeping.
    pub busy_poll: bool,
    /// Subsystems.
    pub subsystems: Vec<SubsystemConfig>,
    /// Limits.
    pub limits: TargetLimits,
    /// Data buffers.
    pub buffers: BufferConfig,
    /// Pacing of requests.
    pub pacing: PacingConfig,
    /// Digests that hosts may use.
    pub digests: Digests,
    /// The data of a successful read stand for its response as well.
    pub success_in_data: bool,
}

/// Subsystem of a target.
#[derive(Clone, Debug)]
pub struct SubsystemConfig {
    /// NQN.
    pub nqn: String,
    /// Serial number, up to 20 ASCII characters; a different one for each subsystem.
    pub serial: String,
    /// Model number, up to 40 ASCII characters.
    pub model: String,
    /// Host NQNs that may connect; `None`: any.
    pub allowed_hosts: Option<Vec<String>>,
    /// Namespaces.
    pub namespaces: Vec<NamespaceConfig>,
}

/// Namespace of a subsystem.
#[derive(Clone, Debug)]
pub struct NamespaceConfig {
    /// Identifier, at least 1.
    pub nsid: u32,
    /// Globally unique identifier; stable over restarts.
    pub nguid: [u8; 16],
    /// Logical block, a power of two from 512 to 65536 and a multiple of the device's.
    pub block_bytes: u32,
    /// Opens the device on each thread.
    pub device: Arc<dyn DeviceFactory>,
}

/// Source of a namespace's devices, one per thread of the target.
///
/// A factory of devices that share storage opens it again on each thread; one of a device whose
/// state cannot be in two places hands out handles to it.
pub trait DeviceFactory: fmt::Debug + Send + Sync {
    /// Opens the device on a thread of the target, which is the one that calls.
    ///
    /// # Errors
    /// The reason, for the user.
    fn open(&self, thread: u32, now: Tick) -> Result<Box<dyn BlockDevice>, DeviceError>;

    /// Returns the geometry, the same on each thread.
    fn geometry(&self) -> Geometry;
}

/// Reason why a device cannot be opened: the error of its kind.
pub type DeviceError = Box<dyn Error + Send + Sync>;

/// Limits of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetLimits {
    /// Entries of an I/O queue, 2 to 1024.
    pub queue_entries: u16,
    /// I/O queues of a controller, 1 to 128.
    pub queues: u16,
    /// Bytes of data in the capsule of an I/O command, 4096 to 16384.
    pub in_capsule_bytes: u32,
    /// Largest transfer: a power of two from 8 KiB, at most a buffer. That of a device is not below
    /// 8 KiB either.
    pub io_bytes_max: u32,
    /// Connections in all.
    pub connections_max: u32,
    /// Connections of one host address.
    pub connections_per_address_max: u32,
    /// Time from the accept to the Connect.
    pub initialization_timeout: Nanos,
    /// Longest silence of a host within a PDU, before data that were requested, or with its receive
    /// buffer full.
    pub transfer_timeout: Nanos,
    /// Longest wait for the host to close a connection that the target has terminated.
    pub termination_timeout: Nanos,
}

impl TargetLimits {
    /// Limits of a target that says nothing else.
    pub const DEFAULT: Self = Self {
        queue_entries: 128,
        queues: 128,
        in_capsule_bytes: 4096,
        io_bytes_max: 131_072,
        connections_max: 4096,
        connections_per_address_max: 2048,
        initialization_timeout: Nanos::from_secs(10),
        transfer_timeout: Nanos::from_secs(30),
        termination_timeout: Nanos::from_secs(30),
    };
}

impl Default for TargetLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
