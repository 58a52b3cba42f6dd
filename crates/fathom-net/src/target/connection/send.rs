//! Output of a connection: responses, and the release of what they held.

use std::io::{ErrorKind, IoSlice, Write};

use fathom_nvme::{Completion, Pdu, Status};

use super::{Connection, Role};
use crate::target::flight::{FlightState, Payload};
use crate::target::log::Ended;
use crate::target::send_queue::SLICES;
use crate::target::work::Work;

impl Connection {
    /// Completes a command without success.
    pub(crate) fn fail(&mut self, slot: u16, status: Status, work: &mut Work) {
        let cid = self.queue.cid(slot);
        let completion = Completion {
            cid,
            status,
            ..Completion::default()
        };
        self.complete(slot, completion, work);
    }

    /// Sends the response of a command and releases its slot then.
    pub(crate) fn complete(&mut self, slot: u16, completion: Completion, work: &mut Work) {
        self.flights.get(slot).state = FlightState::Sending;
        let response = self.queue.response(completion);
        self.push(&response, Some(slot), work);
    }

    /// Queues a PDU without data.
    pub(crate) fn push(&mut self, pdu: &Pdu, releases: Option<u16>, work: &mut Work) {
        let encoded = self.queue.encode(pdu, 0);
        self.out.push(encoded.as_bytes(), releases);
        self.mark_dirty(work);
    }

    /// Notes that there is something to send.
    #[inline]
    pub(crate) fn mark_dirty(&mut self, work: &mut Work) {
        if !self.is_dirty {
            self.is_dirty = true;
            work.dirty.push(self.id.index);
        }
    }

    /// Sends what is queued, as far as the socket takes it.
    pub(crate) fn flush(&mut self, work: &mut Work) {
        self.is_dirty = false;
        while self.is_writable && !self.out.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let (count, length) = self.out.gather(&self.flights, &work.zeros, &mut slices);
            work.counters.sends += 1;
            match (&self.stream).write_vectored(&slices[..count]) {
                Ok(bytes) => {
                    self.is_writable = bytes == length;
                    self.sent_at = work.now;
                    self.counters.sent_bytes += bytes as u64;
                    work.counters.sent_bytes += bytes as u64;
                    self.out.advance(bytes);
                    while let Some(sent) = self.out.pop_sent() {
                        if let Some(slot) = sent {
                            self.release(slot, work);
                        }
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return self.close(Ended::Broken(error.kind()), work),
            }
        }
    }

    /// Frees a slot whose response has been sent.
    fn release(&mut self, slot: u16, work: &mut Work) {
        self.release_payload(slot, work);
        self.flights.get(slot).state = FlightState::Free;
        self.queue.release(slot);
    }

    /// Returns the buffer of a request.
    #[inline]
    pub(crate) fn release_payload(&mut self, slot: u16, work: &mut Work) {
        let flight = self.flights.get(slot);
        match std::mem::take(&mut flight.payload) {
            Payload::None => {}
            Payload::Buffer(buffer) => {
                let (bytes, namespace) = (flight.granted_bytes, flight.namespace);
                let device = self.device(namespace);
                work.admission.release(buffer, device, bytes, work.now);
            }
            // Of an I/O command: in-capsule data that waited without a buffer.
            Payload::Page(page) if matches!(self.role, Role::Io(_)) => {
                work.aside_bytes -= page.len() as u64;
            }
            Payload::Page(page) => self.remove_page(page.len(), work),
        }
    }
}
