//! I/O commands: from the capsule over a buffer and the device to the response.
//!
//! ```text
//!  start_io ─► buffer ─► (R2T ─► data) ─► device ─► … ─► response, release
//!     │          ▲ granted                  ▲ completed │
//!     └ refused  └ NeedsBuffer              └───────────┘ next part: ranges, zeros, a sync
//! ```

mod execute;
mod respond;

use fathom_block::{AdmissionClass, Wanted};
use fathom_core::DataBuffer;
use fathom_nvme::{Command, IoAction, IoCommand, IoData, Opcode, Status};

use super::connection::{Connection, Role};
use super::flight::{Flight, FlightState, Payload};
use super::work::Work;

impl Connection {
    /// Starts a command of an I/O queue.
    #[inline]
    pub(crate) fn start_io(
        &mut self,
        slot: u16,
        command: &Command,
        in_capsule: u32,
        work: &mut Work,
    ) {
        let decoded = self.decode_io(command);
        let flight = self.flights.open(slot);
        flight.drops_data = false;
        flight.progress = 0;
        let (namespace, command, moves_data) = match decoded {
            Ok(decoded) => decoded,
            Err((namespace, status)) => {
                flight.namespace = namespace;
                if in_capsule == 0 {
                    return self.fail_io(slot, status, work);
                }
                flight.state = FlightState::Dropping;
                flight.drops_data = true;
                flight.status = status;
                return;
            }
        };
        flight.command = command;
        flight.namespace = namespace;
        flight.state = FlightState::NeedsBuffer;
        match (command.data, command.action) {
            (IoData::ToHost(length), _) => self.request_buffer(slot, length, work),
            (IoData::FromHost { length, .. }, action) => {
                flight.drops_data = !moves_data && matches!(action, IoAction::Write { .. });
                self.request_buffer(slot, length, work);
            }
            (IoData::None, IoAction::WriteZeroes { .. }) if moves_data => {
                let most = work.buffer_bytes;
                let length = u32::try_from(command.length).unwrap_or(most);
                self.request_buffer(slot, length.min(most), work);
            }
            (IoData::None, _) => self.execute(slot, work),
        }
    }

    /// Decodes a command; returns its namespace's place and whether that moves data. The error is
    /// the place, or [`NO_NAMESPACE`], and the status.
    #[inline]
    fn decode_io(&self, command: &Command) -> Result<(u32, IoCommand, bool), (u32, Status)> {
        let Role::Io(role) = &self.role else {
            return Err((NO_NAMESPACE, Status::INTERNAL_ERROR));
        };
        if command.opcode() == Opcode::FABRICS {
            return Err((NO_NAMESPACE, Status::INVALID_OPCODE.do_not_retry()));
        }
        let served = &role.served;
        let place = served.place(command.nsid());
        let place = place.ok_or((NO_NAMESPACE, Status::INVALID_NAMESPACE.do_not_retry()))?;
        let namespace = &served.namespaces[place as usize];
        let decoded = IoCommand::decode(command, &namespace.io, served.transfer_bytes_max);
        let decoded = decoded.map_err(|status| (place, status))?;
        Ok((place, decoded, namespace.moves_data))
    }

    /// Asks for the buffer of a request.
    #[inline]
    fn request_buffer(&mut self, slot: u16, bytes: u32, work: &mut Work) {
        let flight = self.flights.get(slot);
        flight.granted_bytes = bytes;
        let is_in_capsule = flight.is_in_capsule();
        let namespace = flight.namespace;
        let wanted = Wanted {
            id: self.ticket(slot),
            device: self.device(namespace),
            bytes,
            class: match is_in_capsule {
                true => AdmissionClass::Unpaced,
                false => AdmissionClass::Paced,
            },
        };
        match work.admission.request(wanted, work.now) {
            Some(buffer) => self.granted(slot, buffer, work),
            None if is_in_capsule => self.wait_in_capsule(slot, bytes, work),
            None => {}
        }
    }

    /// Waits for the buffer of data that come next in the stream: the connection stops, unless data
    /// that it has requested are after them, for which other requests keep buffers.
    fn wait_in_capsule(&mut self, slot: u16, bytes: u32, work: &mut Work) {
        let mut transfers = self.flights.in_state(FlightState::Transfer);
        let may_not_stop = transfers.next().is_some();
        drop(transfers);
        if !may_not_stop || work.aside_bytes + u64::from(bytes) > ASIDE_BYTES_MAX {
            self.blocked_by = Some(slot);
            return;
        }
        work.aside_bytes += u64::from(bytes);
        let flight = self.flights.get(slot);
        flight.state = FlightState::CapsuleAside;
        flight.payload = Payload::Page(vec![0; bytes as usize]);
    }

    /// Goes on with a request that has its buffer.
    #[inline]
    pub(crate) fn granted(&mut self, slot: u16, buffer: Box<DataBuffer>, work: &mut Work) {
        let flight = self.flights.get(slot);
        let aside = std::mem::replace(&mut flight.payload, Payload::Buffer(buffer));
        let arrived = match aside {
            Payload::Page(page) => {
                work.aside_bytes -= page.len() as u64;
                flight.payload.bytes_mut()[..page.len()].copy_from_slice(&page);
                flight.state == FlightState::NeedsBuffer
            }
            _ => false,
        };
        match flight.command.data {
            IoData::ToHost(_) => self.execute(slot, work),
            IoData::None => {
                flight.payload.bytes_mut().fill(0);
                self.execute(slot, work);
            }
            IoData::FromHost { .. } if arrived => self.execute(slot, work),
            IoData::FromHost {
                is_in_capsule: true,
                ..
            } => {
                flight.state = FlightState::Capsule;
                if self.blocked_by == Some(slot) {
                    self.blocked_by = None;
                    // The host could not be heard meanwhile.
                    self.heard_at = work.now;
                    work.activate(self);
                }
            }
            IoData::FromHost { length, .. } => {
                flight.state = FlightState::Transfer;
                // The host owes nothing while it waits for the request.
                self.heard_at = work.now;
                let request = self.queue.request_data(slot, length);
                self.push(&request, None, work);
            }
        }
    }

    /// Goes on with a command whose data have arrived.
    #[inline]
    pub(crate) fn io_received(&mut self, slot: u16, is_intact: bool, work: &mut Work) {
        let flight = self.flights.get(slot);
        if flight.state == FlightState::CapsuleAside {
            // Goes on when its buffer comes; a wrong digest does not need one.
            flight.state = FlightState::NeedsBuffer;
            if is_intact {
                return;
            }
            work.aside_bytes -= flight.payload.bytes().len() as u64;
            flight.payload = Payload::None;
            work.admission.withdraw(self.ticket(slot), work.now);
        }
        match is_intact {
            true => self.execute(slot, work),
            false => self.fail_io(slot, Status::TRANSIENT_TRANSPORT_ERROR, work),
        }
    }

    /// Returns the device of a namespace.
    #[inline]
    pub(crate) fn device(&self, namespace: u32) -> u32 {
        match &self.role {
            Role::Io(role) => role.served.namespaces[namespace as usize].device,
            Role::Connecting | Role::Admin(_) => panic!("I/O on an admin queue"),
        }
    }
}

impl Flight {
    /// Returns whether arriving data are dropped.
    #[inline]
    pub(crate) const fn is_dropped(&self) -> bool {
        self.drops_data
    }

    const fn is_in_capsule(&self) -> bool {
        matches!(
            self.command.data,
            IoData::FromHost {
                is_in_capsule: true,
                ..
            }
        )
    }
}

/// Place of the namespace of a command that names none.
const NO_NAMESPACE: u32 = u32::MAX;
/// In-capsule data of a thread that wait without a buffer, beyond which their connections stop.
const ASIDE_BYTES_MAX: u64 = 64 << 20;
