//! Controllers of all hosts, which queues on any thread connect to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fathom_nvme::{Completion, Connect, ConnectField, Status};

use super::mailbox::ConnectionId;
use super::subsystem::Served;

/// Table of controllers, by identifier. Locked when a queue connects or ends, and when a host
/// enables or resets a controller; never for I/O.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    controllers: Mutex<Controllers>,
}

#[derive(Debug, Default)]
struct Controllers {
    entries: BTreeMap<u16, Entry>,
    /// Identifier given last.
    last: u16,
}

#[derive(Debug)]
struct Entry {
    served: Arc<Served>,
    host_nqn: String,
    /// I/O queues that may connect; 0 while the controller is not enabled.
    qid_max: u16,
    /// I/O queues that have connected.
    queues: BTreeMap<u16, ConnectionId>,
}

impl Registry {
    /// Adds a controller and returns its identifier; `None` if there are none left.
    pub(crate) fn add(&self, served: &Arc<Served>, host_nqn: &str) -> Option<u16> {
        let controllers = &mut *self.lock();
        // Not the lowest free one: a host that still uses an old controller must not find itself on
        // a new one.
        let after = controllers.last.wrapping_add(1)..=CNTLID_MAX;
        let before = 1..=controllers.last.min(CNTLID_MAX);
        let mut candidates = after.chain(before).filter(|&cntlid| cntlid > 0);
        let cntlid = candidates.find(|cntlid| !controllers.entries.contains_key(cntlid))?;
        controllers.last = cntlid;
        let entry = Entry {
            served: Arc::clone(served),
            host_nqn: host_nqn.to_owned(),
            qid_max: 0,
            queues: BTreeMap::new(),
        };
        controllers.entries.insert(cntlid, entry);
        Some(cntlid)
    }

    /// Connects an I/O queue to its controller.
    ///
    /// # Errors
    /// The completion that refuses it.
    pub(crate) fn connect(
        &self,
        connect: &Connect,
        cid: u16,
        connection: ConnectionId,
    ) -> Result<Arc<Served>, Completion> {
        let controllers = &mut *self.lock();
        let Some(entry) = controllers.entries.get_mut(&connect.cntlid) else {
            return Err(ConnectField::Cntlid.refusal(cid));
        };
        if entry.served.subsystem.nqn != connect.subsystem_nqn {
            return Err(ConnectField::SubsystemNqn.refusal(cid));
        }
        if entry.host_nqn != connect.host_nqn {
            return Err(ConnectField::HostNqn.refusal(cid));
        }
        if entry.qid_max == 0 {
            return Err(ConnectField::Qid.refusal(cid));
        }
        if connect.qid > entry.qid_max || entry.queues.contains_key(&connect.qid) {
            return Err(Completion {
                cid,
                status: Status::INVALID_QUEUE_ID.do_not_retry(),
                ..Completion::default()
            });
        }
        entry.queues.insert(connect.qid, connection);
        Ok(Arc::clone(&entry.served))
    }

    /// Sets the number of I/O queues that may connect; if there are to be none, removes those that
    /// have, and returns them to be closed.
    pub(crate) fn set_queues(&self, cntlid: u16, qid_max: u16) -> Vec<ConnectionId> {
        let controllers = &mut *self.lock();
        let Some(entry) = controllers.entries.get_mut(&cntlid) else {
            return Vec::new();
        };
        entry.qid_max = qid_max;
        match qid_max {
            // Their identifiers are free at once: the host need not wait for other threads.
            0 => std::mem::take(&mut entry.queues).into_values().collect(),
            _ => Vec::new(),
        }
    }

    /// Removes an I/O queue, unless another connection has taken its place after a reset.
    pub(crate) fn disconnect(&self, cntlid: u16, qid: u16, connection: ConnectionId) {
        if let Some(entry) = self.lock().entries.get_mut(&cntlid)
            && entry.queues.get(&qid) == Some(&connection)
        {
            entry.queues.remove(&qid);
        }
    }

    /// Removes a controller and returns its I/O queues, which are to be closed.
    pub(crate) fn remove(&self, cntlid: u16) -> Vec<ConnectionId> {
        let removed = self.lock().entries.remove(&cntlid);
        removed.map_or_else(Vec::new, |entry| entry.queues.into_values().collect())
    }

    fn lock(&self) -> MutexGuard<'_, Controllers> {
        (self.controllers.lock()).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Largest identifier of a controller; those above are reserved.
const CNTLID_MAX: u16 = 0xffef;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::config::TargetLimits;

    #[test]
    fn a_reset_frees_the_identifiers_of_queues() {
        let local = ([127, 0, 0, 1], 4420).into();
        let served = Served::discovery(&[], (&[], local), "", &TargetLimits::DEFAULT);
        let (served, registry) = (Arc::new(served), Registry::default());
        let cntlid = registry.add(&served, "nqn.host").expect("an identifier");
        let connect = Connect {
            record_format: 0,
            qid: 1,
            sq_size: 31,
            attributes: 0,
            keep_alive_ms: 0,
            host_id: [1; 16],
            cntlid,
            subsystem_nqn: served.subsystem.nqn.clone(),
            host_nqn: "nqn.host".to_owned(),
        };
        let connection = |serial| ConnectionId {
            thread: 1,
            index: 0,
            serial,
        };
        let connects = |serial| registry.connect(&connect, 0, connection(serial)).is_ok();
        assert!(registry.set_queues(cntlid, 4).is_empty() && connects(1));
        assert!(!connects(2), "in use");
        assert_eq!(registry.set_queues(cntlid, 0), [connection(1)]);
        assert!(registry.set_queues(cntlid, 4).is_empty() && connects(3));
        // The first connection ends later, on its thread.
        registry.disconnect(cntlid, 1, connection(1));
        assert!(!connects(4), "in use");
        registry.disconnect(cntlid, 1, connection(3));
        assert!(connects(5));
    }
}
