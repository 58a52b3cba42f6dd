//! Responses of I/O commands, and their count.

use fathom_core::Direction;
use fathom_nvme::{Completion, Digest, IoAction, Status};

use crate::target::connection::{Connection, Role};
use crate::target::flight::FlightState;
use crate::target::send_queue::Source;
use crate::target::statistics::IoCounters;
use crate::target::work::Work;

impl Connection {
    /// Sends the data of a read, which stand for its response where that is allowed.
    #[inline]
    pub(super) fn send_data(&mut self, slot: u16, work: &mut Work) {
        let moves_data = self.namespace(slot).moves_data;
        let length = self.flights.get(slot).op.length;
        self.count(slot, work);
        self.flights.get(slot).state = FlightState::Sending;
        let digest = match (self.queue.has_data_digest(), moves_data) {
            (false, _) => None,
            (true, true) => {
                let data = &self.flights.payload(slot)[..length as usize];
                Some(Digest::of(data).to_bytes())
            }
            (true, false) => Some(work.zeros_digest(length)),
        };
        let source = match moves_data {
            true => Source::Payload(slot),
            // Never the buffer: it may hold another host's data.
            false => Source::Zeros,
        };
        let is_success = work.shared.config.success_in_data;
        let header = self.queue.data(slot, length, is_success);
        let encoded = self.queue.encode(&header, length);
        let releases = is_success.then_some(slot);
        (self.out).push_data(encoded.as_bytes(), (source, length), digest, releases);
        match is_success {
            true => self.mark_dirty(work),
            false => self.respond(slot, work),
        }
    }

    /// Completes a command without data for the host.
    #[inline]
    pub(super) fn succeed(&mut self, slot: u16, work: &mut Work) {
        self.count(slot, work);
        self.respond(slot, work);
    }

    #[inline]
    fn respond(&mut self, slot: u16, work: &mut Work) {
        let completion = Completion {
            cid: self.queue.cid(slot),
            ..Completion::default()
        };
        self.complete(slot, completion, work);
    }

    /// Counts a command that succeeded.
    #[inline]
    fn count(&mut self, slot: u16, work: &mut Work) {
        let flight = self.flights.get(slot);
        let (bytes, namespace) = (flight.op.length, flight.namespace);
        let direction = match flight.command.action {
            IoAction::Read => Direction::Read,
            IoAction::Write { .. } => Direction::Write,
            _ => Direction::Trim,
        };
        // A durable write ends with a sync, which has no length.
        let bytes = match direction {
            Direction::Write => u32::try_from(flight.command.length).unwrap_or(u32::MAX),
            _ => bytes,
        };
        self.counters.io.add(direction, bytes);
        let device = self.device(namespace) as usize;
        work.namespaces[device].add(direction, bytes);
    }

    /// Completes a command without success, and counts it.
    pub(crate) fn fail_io(&mut self, slot: u16, status: Status, work: &mut Work) {
        self.counters.io.add_error();
        self.namespace_counters(slot, work).add_error();
        self.fail(slot, status, work);
    }

    /// Counts data whose digest was wrong.
    pub(crate) fn count_digest_error(&mut self, slot: u16, work: &mut Work) {
        self.counters.io.digest_errors += 1;
        if matches!(self.role, Role::Io(_)) {
            self.namespace_counters(slot, work).digest_errors += 1;
        }
    }

    /// Returns the counters of a command's namespace, or those of the commands that name none.
    fn namespace_counters<'a>(&self, slot: u16, work: &'a mut Work) -> &'a mut IoCounters {
        let Role::Io(role) = &self.role else {
            return &mut work.unnamed;
        };
        let place = self.flights.namespace(slot);
        match role.served.namespaces.get(place as usize) {
            Some(namespace) => &mut work.namespaces[namespace.device as usize],
            None => &mut work.unnamed,
        }
    }
}
