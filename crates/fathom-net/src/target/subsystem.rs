//! Subsystems as a target serves them.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use fathom_nvme::{
    ControllerLimits, DISCOVERY_NQN, Discovery, DiscoveryEntry, IoNamespace, NamespaceIdentity,
    OptionalCommands, Subsystem,
};

use super::config::{NamespaceConfig, SubsystemConfig, TargetConfig, TargetLimits};
use super::error::{ConfigFault, NetError};

/// Subsystem with what its I/O queues look up.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) subsystem: Arc<Subsystem>,
    pub(crate) limits: ControllerLimits,
    /// Largest transfer.
    pub(crate) transfer_bytes_max: u32,
    /// Namespaces, ascending by identifier.
    pub(crate) namespaces: Vec<ServedNamespace>,
}

/// Namespace with its device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedNamespace {
    pub(crate) nsid: u32,
    pub(crate) io: IoNamespace,
    /// Index of the device among those of all subsystems.
    pub(crate) device: u32,
    /// The device fills and reads buffers.
    pub(crate) moves_data: bool,
}

impl Served {
    /// Checks the configuration of all subsystems, and numbers their devices.
    pub(crate) fn all(config: &TargetConfig) -> Result<Vec<Arc<Self>>, NetError> {
        let mut nqns = BTreeSet::new();
        let mut devices = 0;
        let mut all = Vec::with_capacity(config.subsystems.len());
        for subsystem in &config.subsystems {
            if !nqns.insert(&subsystem.nqn) || subsystem.nqn == DISCOVERY_NQN {
                return Err(NetError::Config(ConfigFault::Nqn(subsystem.nqn.clone())));
            }
            all.push(Arc::new(Self::new(
                subsystem,
                &config.limits,
                &mut devices,
            )?));
        }
        Ok(all)
    }

    fn new(
        config: &SubsystemConfig,
        limits: &TargetLimits,
        devices: &mut u32,
    ) -> Result<Self, NetError> {
        let mut sorted: Vec<(u32, &NamespaceConfig)> =
            (*devices..).zip(config.namespaces.iter()).collect();
        *devices += u32::try_from(sorted.len()).unwrap_or(u32::MAX);
        sorted.sort_by_key(|(_, namespace)| namespace.nsid);
        let mut namespaces: Vec<ServedNamespace> = Vec::with_capacity(sorted.len());
        let mut identities = Vec::with_capacity(sorted.len());
        let mut transfer_bytes_max = limits.io_bytes_max;
        for (device, namespace) in sorted {
            let fault = |nsid| ConfigFault::Nsid {
                nqn: config.nqn.clone(),
                nsid,
            };
            let is_repeated = (namespaces.last()).is_some_and(|last| last.nsid == namespace.nsid);
            if matches!(namespace.nsid, 0 | u32::MAX) || is_repeated {
                return Err(NetError::Config(fault(namespace.nsid)));
            }
            let geometry = namespace.device.geometry();
            transfer_bytes_max = transfer_bytes_max.min(geometry.transfer_bytes_max);
            let (served, identity) = serve(namespace, device).ok_or_else(|| {
                NetError::Config(ConfigFault::BlockSize {
                    nqn: config.nqn.clone(),
                    nsid: namespace.nsid,
                })
            })?;
            namespaces.push(served);
            identities.push((served.nsid, identity));
        }
        if transfer_bytes_max < TRANSFER_BYTES_MIN {
            let fault = ConfigFault::Limit("largest transfer of a device");
            return Err(NetError::Config(fault));
        }
        let mdts = (transfer_bytes_max / PAGE_BYTES).ilog2();
        Ok(Self {
            subsystem: Arc::new(Subsystem {
                nqn: config.nqn.clone(),
                serial: config.serial.clone(),
                model: config.model.clone(),
                firmware: env!("CARGO_PKG_VERSION").to_owned(),
                allowed_hosts: config.allowed_hosts.clone(),
                namespaces: identities,
                discovery: None,
            }),
            limits: controller_limits(limits, mdts),
            transfer_bytes_max: PAGE_BYTES << mdts,
            namespaces,
        })
    }

    /// Builds the discovery subsystem as a host sees it that has connected to `local`: the
    /// subsystems that admit it, at the addresses it can reach.
    pub(crate) fn discovery(
        all: &[Arc<Self>],
        (listening, local): (&[SocketAddr], SocketAddr),
        host_nqn: &str,
        limits: &TargetLimits,
    ) -> Self {
        let admitted = all.iter().filter(|one| one.subsystem.allows(host_nqn));
        let entries = admitted.flat_map(|one| {
            let ports = (1_u16..).zip(listening);
            ports.filter_map(|(port_id, &at)| {
                Some(entry(port_id, reachable(at, local)?, &one.subsystem.nqn))
            })
        });
        Self {
            subsystem: Arc::new(Subsystem {
                nqn: DISCOVERY_NQN.to_owned(),
                serial: String::new(),
                model: "Fathom".to_owned(),
                firmware: env!("CARGO_PKG_VERSION").to_owned(),
                allowed_hosts: None,
                namespaces: Vec::new(),
                discovery: Some(Discovery {
                    generation: 1,
                    entries: entries.collect(),
                }),
            }),
            limits: controller_limits(limits, 0),
            transfer_bytes_max: PAGE_BYTES,
            namespaces: Vec::new(),
        }
    }

    /// Returns the place of a namespace.
    #[inline]
    pub(crate) fn place(&self, nsid: u32) -> Option<u32> {
        let place = (self.namespaces).binary_search_by_key(&nsid, |namespace| namespace.nsid);
        u32::try_from(place.ok()?).ok()
    }
}

/// Returns a namespace and its identity; `None` if its blocks do not fit the device.
fn serve(config: &NamespaceConfig, device: u32) -> Option<(ServedNamespace, NamespaceIdentity)> {
    let geometry = config.device.geometry();
    let block = config.block_bytes;
    let fits = block.is_power_of_two()
        && (BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&block)
        && block.is_multiple_of(geometry.block_bytes.max(1));
    let blocks = geometry.bytes / u64::from(block.max(1));
    if !fits || blocks == 0 {
        return None;
    }
    let block_shift = u8::try_from(block.ilog2()).ok()?;
    let served = ServedNamespace {
        nsid: config.nsid,
        io: IoNamespace {
            blocks,
            block_shift,
            is_read_only: geometry.read_only,
        },
        device,
        moves_data: geometry.moves_data,
    };
    let identity = NamespaceIdentity {
        blocks,
        block_shift,
        nguid: config.nguid,
        is_write_protected: geometry.read_only,
    };
    Some((served, identity))
}

fn controller_limits(limits: &TargetLimits, mdts: u32) -> ControllerLimits {
    ControllerLimits {
        queues: limits.queues,
        queue_entries: limits.queue_entries,
        mdts: u8::try_from(mdts).unwrap_or(u8::MAX),
        in_capsule_bytes: limits.in_capsule_bytes,
        optional: OptionalCommands {
            compare: true,
            dataset_management: true,
            write_zeroes: true,
            ..OptionalCommands::default()
        },
    }
}

/// Returns the address at which a host reaches a listener that has connected to `local`.
fn reachable(listener: SocketAddr, local: SocketAddr) -> Option<SocketAddr> {
    if !listener.ip().is_unspecified() {
        return Some(listener);
    }
    // A listener on all IPv6 addresses takes IPv4 connections, too.
    let reaches = listener.is_ipv6() || local.is_ipv4();
    reaches.then(|| SocketAddr::new(local.ip().to_canonical(), listener.port()))
}

fn entry(port_id: u16, at: SocketAddr, nqn: &str) -> DiscoveryEntry {
    DiscoveryEntry {
        port_id,
        address: at.ip().to_string(),
        is_ipv6: matches!(at.ip(), IpAddr::V6(_)),
        service: at.port().to_string(),
        subsystem_nqn: nqn.to_owned(),
    }
}

/// Unit of MDTS.
const PAGE_BYTES: u32 = 4096;
/// Least limit of transfers: MDTS is a power of two of pages, and 0 of it stands for no limit, so
/// that a host could not be told one of 4 KiB.
pub(crate) const TRANSFER_BYTES_MIN: u32 = 2 * PAGE_BYTES;
const BLOCK_BYTES_MIN: u32 = 512;
const BLOCK_BYTES_MAX: u32 = 65_536;
