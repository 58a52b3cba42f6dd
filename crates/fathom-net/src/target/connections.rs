//! Connections of a thread.

use std::io;
use std::net::{SocketAddr, TcpStream};

use fathom_nvme::TargetQueueConfig;
use fathom_sys::epoll::{Epoll, Interest, Readiness};

use super::connection::Connection;
use super::mailbox::ConnectionId;
use super::work::Work;

/// Connections by index.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    pub(crate) list: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    serial: u64,
    /// Connections and those that are over but for commands of devices.
    pub(crate) count: usize,
}

impl Connections {
    pub(crate) fn add(
        &mut self,
        (stream, peer): (TcpStream, SocketAddr),
        epoll: &Epoll,
        work: &mut Work,
    ) -> io::Result<()> {
        let index = match self.free.last() {
            Some(&index) => index,
            None => u32::try_from(self.list.len()).unwrap_or(u32::MAX),
        };
        epoll.add(&stream, u64::from(index), Interest::Changes)?;
        if self.free.pop().is_none() {
            self.list.push(None);
        }
        self.serial += 1;
        self.count += 1;
        let id = ConnectionId {
            thread: work.thread,
            index,
            serial: self.serial,
        };
        let config = &work.shared.config;
        let queue = TargetQueueConfig {
            in_capsule_bytes: config.limits.in_capsule_bytes,
            h2c_data_bytes_max: config.limits.io_bytes_max,
            digests: config.digests,
        };
        let mut connection = Box::new(Connection::new(id, (stream, peer), queue, work.now));
        work.activate(&mut connection);
        self.list[index as usize] = Some(connection);
        Ok(())
    }

    pub(crate) fn remove(&mut self, index: u32) -> SocketAddr {
        let removed = self.list[index as usize].take();
        self.free.push(index);
        self.count -= 1;
        removed.map_or_else(|| panic!("removed once"), |connection| connection.peer)
    }

    #[inline]
    pub(crate) fn get(&mut self, index: u32) -> Option<&mut Connection> {
        self.list.get_mut(index as usize)?.as_deref_mut()
    }

    pub(crate) fn find(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.get(id.index).filter(|connection| connection.id == id)
    }

    #[inline]
    pub(crate) fn set_ready(&mut self, event: Readiness, work: &mut Work) {
        let index = u32::try_from(event.token).unwrap_or(u32::MAX);
        // An event may outlive its connection by a turn.
        let Some(connection) = self.get(index) else {
            return;
        };
        connection.set_ready(event.is_readable, event.is_writable, event.is_closed);
        if connection.has_input() {
            work.activate(connection);
        }
        if event.is_writable && !connection.out.is_empty() {
            connection.mark_dirty(work);
        }
    }
}
