//! Plan of a target: what a file or a command line asks for, checked.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use fathom_block::{BufferConfig, PacingConfig};
use fathom_job::Origin;
use fathom_toml::{TomlProblem, TomlProblemKind};

use crate::devices::Device;
use crate::problem::TargetFileError;

/// Target to be started.
#[derive(Clone, Debug)]
pub struct TargetPlan {
    /// Addresses to listen on.
    pub listen: Vec<SocketAddr>,
    /// Threads, each with its own connections; `None`: one per CPU of the process.
    pub threads: Option<u32>,
    /// CPU of each thread; empty: wherever the kernel likes.
    pub cpus: Vec<u32>,
    /// Poll instead of sleeping.
    pub busy_poll: bool,
    /// Data buffers. Their size is the largest transfer, too.
    pub buffers: BufferConfig,
    /// Policy for requests that wait for buffers.
    pub pacing: PacingConfig,
    /// Limits for hosts.
    pub limits: LimitsPlan,
    /// Address of the Prometheus endpoint.
    pub metrics: Option<SocketAddr>,
    /// Path of the statistics socket; `None`: the default one.
    pub socket: Option<PathBuf>,
    /// Subsystems; at least one.
    pub subsystems: Vec<SubsystemPlan>,
}

/// Limits for hosts; `None`: that of the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitsPlan {
    /// Entries of an I/O queue.
    pub queue_entries: Option<u16>,
    /// I/O queues of a controller.
    pub queues: Option<u16>,
    /// Bytes of data in a capsule.
    pub in_capsule_bytes: Option<u32>,
    /// Connections at once.
    pub connections: Option<u32>,
    /// Connections at once from one address.
    pub connections_per_address: Option<u32>,
    /// Seconds that a peer may take from connecting to its Connect command.
    pub initialization_timeout_s: Option<u32>,
    /// Seconds of silence that a peer may keep in the middle of a transfer.
    pub transfer_timeout_s: Option<u32>,
}

/// Subsystem with its namespaces.
#[derive(Clone, Debug)]
pub struct SubsystemPlan {
    /// NQN.
    pub nqn: String,
    /// Serial number, at most 20 bytes.
    pub serial: String,
    /// Model number, at most 40 bytes.
    pub model: String,
    /// Hosts that may connect.
    pub hosts: AllowedHosts,
    /// Namespaces, ascending by identifier.
    pub namespaces: Vec<NamespacePlan>,
    /// Place in the file.
    pub origin: Origin,
}

/// Hosts that may connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedHosts {
    /// Any that reaches the loopback address; more was not asked for.
    Local,
    /// Any.
    Any,
    /// Those of these NQNs.
    Listed(Vec<String>),
}

/// Namespace.
#[derive(Clone, Debug)]
pub struct NamespacePlan {
    /// Identifier, from 1.
    pub nsid: u32,
    /// Globally unique identifier.
    pub nguid: [u8; 16],
    /// Device with its layers.
    pub device: Device,
}

impl TargetPlan {
    /// Creates a plan of one subsystem on the loopback address, with defaults for all else.
    #[must_use]
    pub fn new(subsystems: Vec<SubsystemPlan>) -> Self {
        Self {
            listen: vec![DEFAULT_LISTEN],
            threads: None,
            cpus: Vec::new(),
            busy_poll: false,
            buffers: DEFAULT_BUFFERS,
            pacing: PacingConfig::None,
            limits: LimitsPlan::default(),
            metrics: None,
            socket: None,
            subsystems,
        }
    }

    /// Checks that other machines reach a subsystem only if the plan says so: that the target
    /// listens on the loopback address alone, or the subsystem names hosts or `any`.
    ///
    /// # Errors
    /// The subsystems that would be open, with their places if they are of a file.
    pub fn check_exposure(&self) -> Result<(), TargetFileError> {
        let mut open = self
            .listen
            .iter()
            .filter(|address| !is_loopback(address.ip()));
        let Some(address) = open.next() else {
            return Ok(());
        };
        let subsystems = self.subsystems.iter();
        let local = subsystems.filter(|subsystem| subsystem.hosts == AllowedHosts::Local);
        let problems: Vec<TomlProblem> = local
            .map(|subsystem| TomlProblem {
                kind: TomlProblemKind::MakesNoSense,
                origin: subsystem.origin.clone(),
                message: format!(
                    "`{}` would be open to every host that reaches {address}",
                    subsystem.nqn
                ),
                hint: match subsystem.origin.file.as_str() {
                    "" => "name hosts with `--host NQN`, or add `--allow-any-host`".to_owned(),
                    _ => "write `allowed_hosts = […]`, or `allow_any_host = true`".to_owned(),
                },
            })
            .collect();
        match problems.is_empty() {
            true => Ok(()),
            false => Err(TargetFileError { problems }),
        }
    }
}

/// Returns whether only this machine reaches the address.
#[must_use]
pub fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => {
            address.is_loopback()
                || address
                    .to_ipv4_mapped()
                    .is_some_and(|four| four.is_loopback())
        }
    }
}

/// Buffers of a target that was given none: as many as are asked for, of 128 KiB.
pub const DEFAULT_BUFFERS: BufferConfig = BufferConfig {
    count: None,
    bytes: 128 << 10,
    cache: 32,
};
/// The port assigned to NVMe/TCP, on this machine alone.
pub const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), PORT);
/// The port assigned to NVMe/TCP.
pub const PORT: u16 = 4420;
/// Model number of a subsystem that was given none.
pub const DEFAULT_MODEL: &str = "Fathom";
