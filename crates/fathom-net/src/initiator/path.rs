//! An I/O queue, and the ops that wait for room in it.

use std::collections::VecDeque;

use fathom_core::Slot;

use crate::initiator::error::LinkError;
use crate::initiator::link::Link;
use crate::initiator::slots::Slots;

/// I/O queue of a session.
#[derive(Debug)]
pub(crate) struct Path {
    /// Number of the session.
    session: u32,
    link: Link,
    /// Ops of which not all commands found room, oldest first.
    backlog: VecDeque<Slot>,
    /// There may be something to receive.
    is_readable: bool,
}

impl Path {
    /// Takes a connected queue; at most `ops` are ever on it.
    pub(crate) fn new(session: u32, link: Link, ops: usize) -> Self {
        Self {
            session,
            link,
            backlog: VecDeque::with_capacity(ops),
            is_readable: true,
        }
    }

    /// Queues the commands of a slot's op.
    #[inline]
    pub(crate) fn begin(&mut self, slot: Slot, slots: &mut Slots) {
        if !self.backlog.is_empty() || !slots.begin(slot, self.session, &mut self.link) {
            self.backlog.push_back(slot);
        }
    }

    /// Sends what is queued.
    #[inline]
    pub(crate) fn flush(&mut self, slots: &mut Slots) -> Result<(), LinkError> {
        match self.link.is_unsent() {
            true => self.link.flush(slots),
            false => Ok(()),
        }
    }

    /// Notes that the socket has changed, and whether the controller sends no more.
    #[inline]
    pub(crate) const fn changed(&mut self, is_closed: bool) {
        self.is_readable = true;
        self.link.changed(is_closed);
    }

    /// Receives what is there; looks even without a change if `is_forced`.
    #[inline]
    pub(crate) fn receive(&mut self, slots: &mut Slots, is_forced: bool) -> Result<(), LinkError> {
        let mut is_first = is_forced;
        while self.is_readable || is_first {
            is_first = false;
            self.is_readable = self.link.receive(slots)?;
        }
        while let Some(&slot) = self.backlog.front() {
            if self.link.room() == 0 || !slots.begin(slot, self.session, &mut self.link) {
                break;
            }
            self.backlog.pop_front();
        }
        self.flush(slots)
    }
}

impl std::os::fd::AsFd for Path {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.link.as_fd()
    }
}
