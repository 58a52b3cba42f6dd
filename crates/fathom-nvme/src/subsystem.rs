//! Subsystems: what a controller of one shows to its host.

use crate::identify::{ControllerKind, NamespaceIdentity};
use crate::log_pages::DiscoveryEntry;

/// Subsystem of a target, constant while controllers exist.
#[derive(Clone, Debug)]
pub struct Subsystem {
    /// NQN.
    pub nqn: String,
    /// Serial number; subsystems of one target have different ones.
    pub serial: String,
    /// Model number.
    pub model: String,
    /// Firmware revision.
    pub firmware: String,
    /// Hosts that may connect; `None`: any.
    pub allowed_hosts: Option<Vec<String>>,
    /// Namespaces, ascending by identifier, which is at least 1.
    pub namespaces: Vec<(u32, NamespaceIdentity)>,
    /// Contents, for the discovery subsystem.
    pub discovery: Option<Discovery>,
}

/// Contents of the discovery log.
#[derive(Clone, Debug)]
pub struct Discovery {
    /// Changes with the entries.
    pub generation: u64,
    /// Subsystems with their addresses.
    pub entries: Vec<DiscoveryEntry>,
}

impl Subsystem {
    /// Returns whether a host may connect.
    #[must_use]
    pub fn allows(&self, host_nqn: &str) -> bool {
        match &self.allowed_hosts {
            Some(hosts) => hosts.iter().any(|allowed| allowed == host_nqn),
            None => true,
        }
    }

    /// Returns a namespace.
    #[must_use]
    pub fn namespace(&self, nsid: u32) -> Option<&NamespaceIdentity> {
        let place = self
            .namespaces
            .binary_search_by_key(&nsid, |&(nsid, _)| nsid);
        place.ok().map(|place| &self.namespaces[place].1)
    }

    /// Returns the largest namespace identifier; 0 if there are none.
    #[must_use]
    pub fn nsid_max(&self) -> u32 {
        self.namespaces.last().map_or(0, |&(nsid, _)| nsid)
    }

    pub(crate) const fn kind(&self) -> ControllerKind {
        match self.discovery {
            Some(_) => ControllerKind::Discovery,
            None => ControllerKind::Io,
        }
    }
}
