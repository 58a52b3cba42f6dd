//! End of a connection.

use std::net::Shutdown;

use fathom_nvme::{Framing, Side, TermReq};

use super::{Connection, State};
use crate::target::flight::FlightState;
use crate::target::log::{Ended, TargetEvent};
use crate::target::send_queue::SendQueue;
use crate::target::work::Work;

impl Connection {
    /// Reports a fatal error to the host, whose input is discarded from now on.
    pub(super) fn terminate(&mut self, reason: TermReq, work: &mut Work) {
        let (pdu, header) = self.queue.terminate(reason);
        let length = u32::try_from(header.len()).unwrap_or_default();
        let mut bytes = pdu.encode(Framing::PLAIN, length).as_bytes().to_vec();
        bytes.extend_from_slice(header);
        self.out.push(&bytes, None);
        self.mark_dirty(work);
        self.state = State::Terminating(work.now, reason);
    }

    /// Closes the connection: its buffers go back, but for those that a device has.
    pub(crate) fn close(&mut self, reason: Ended, work: &mut Work) {
        let reason = match self.state {
            State::Closed => return,
            State::Terminating(_, why) => Ended::Terminated(Side::Controller, why),
            State::Open => reason,
        };
        self.state = State::Closed;
        // Fails where the peer was first.
        let _closed = self.stream.shutdown(Shutdown::Both);
        self.out = SendQueue::default();
        self.leftover = Vec::new();
        self.blocked_by = None;
        for slot in self.flights.slots() {
            match self.flights.get(slot).state {
                FlightState::NeedsBuffer | FlightState::CapsuleAside => {
                    work.admission.withdraw(self.ticket(slot), work.now);
                }
                FlightState::Device => continue,
                _ => {}
            }
            self.release_payload(slot, work);
            self.flights.get(slot).state = FlightState::Free;
        }
        let waiting = work.devices.withdraw(self.id.index);
        for slot in waiting {
            self.in_device -= 1;
            self.leave_device(slot, work);
        }
        work.shared.log.event(&TargetEvent::Ended {
            peer: self.peer,
            queue: self.queue_name(),
            reason,
        });
        self.leave_controller(work);
        work.ended.push(self.id.index);
    }

    /// Returns whether the connection may be dropped.
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Closed && self.in_device == 0
    }
}
