//! I/O commands: from the capsule over a buffer and the device to the response.
//!
//! ```text
//!  start_io ─► buffer ─► (R2T ─► data) ─► device ─► … ─► response, release
//!     │          ▲ granted                  ▲ completed │
//!     └ refused  └ NeedsBuffer              └───────────┘ next part: ranges, zeros, a sync
//! ```

use fathom_block::{AdmissionClass, Wanted};
use fathom_core::{CommandData, DataBuffer, Direction, Errno, Finished, OpKind, SyncKind};
use fathom_nvme::{
    Command, Completion, Digest, IoAction, IoCommand, IoData, Opcode, Range, Status, ranges,
};

use super::connection::{Connection, Role, State};
use super::devices::{DeviceOp, Owner};
use super::flight::{Flight, FlightState, Payload};
use super::poll_group::Work;
use super::send_queue::Source;
use super::subsystem::ServedNamespace;

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
            Err(status) if in_capsule > 0 => {
                flight.state = FlightState::Dropping;
                flight.drops_data = true;
                flight.status = status;
                return;
            }
            Err(status) => return self.fail(slot, status, work),
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

    /// Decodes a command; returns its namespace's place and whether that moves data.
    #[inline]
    fn decode_io(&self, command: &Command) -> Result<(u32, IoCommand, bool), Status> {
        let Role::Io(role) = &self.role else {
            return Err(Status::INTERNAL_ERROR);
        };
        if command.opcode() == Opcode::FABRICS {
            return Err(Status::INVALID_OPCODE.do_not_retry());
        }
        let served = &role.served;
        let place = served.place(command.nsid());
        let place = place.ok_or(Status::INVALID_NAMESPACE.do_not_retry())?;
        let namespace = &served.namespaces[place as usize];
        let decoded = IoCommand::decode(command, &namespace.io, served.transfer_bytes_max)?;
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
    /// that it has requested are behind them, for which other requests keep buffers.
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
            false => self.fail(slot, Status::TRANSIENT_TRANSPORT_ERROR, work),
        }
    }

    /// Starts the first device command of a request.
    #[inline]
    fn execute(&mut self, slot: u16, work: &mut Work) {
        let flight = self.flights.get(slot);
        let IoCommand {
            action,
            offset,
            length,
            ..
        } = flight.command;
        // Cannot truncate: a transfer fits a buffer.
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let (kind, length) = match action {
            IoAction::Read => (OpKind::Data(Direction::Read), length),
            IoAction::Write { .. } => (OpKind::Data(Direction::Write), length),
            IoAction::Compare => {
                flight.compared = Some(Box::new(DataBuffer::new(length)));
                (OpKind::Data(Direction::Read), length)
            }
            IoAction::Flush => (OpKind::Sync(SyncKind::Data), 0),
            IoAction::WriteZeroes { .. } => {
                let length = match &flight.payload {
                    Payload::Buffer(_) => flight.granted_bytes,
                    _ => length,
                };
                (OpKind::Data(Direction::Write), length)
            }
            IoAction::Deallocate(_) => return self.deallocate(slot, work),
            IoAction::Hint => return self.succeed(slot, work),
        };
        flight.op = DeviceOp {
            kind,
            offset,
            length,
        };
        self.issue(slot, work);
    }

    /// Issues the device command that is due.
    #[inline]
    fn issue(&mut self, slot: u16, work: &mut Work) {
        self.flights.get(slot).state = FlightState::Device;
        self.in_device += 1;
        self.issue_again(slot, work);
    }

    /// Issues the device command that is due, of a request that counts as with the device.
    pub(crate) fn issue_again(&mut self, slot: u16, work: &mut Work) {
        let owner = Owner {
            connection: self.id.index,
            slot,
        };
        let namespace = self.flights.get(slot).namespace;
        let device = self.device(namespace);
        let flight = self.flights.get(slot);
        let mut data = flight.take_data();
        let op = flight.op;
        // If the device is full it says when to try again.
        let _started = work.devices.start(device, owner, &op, &mut data, work.now);
        flight.put_data(data);
    }

    /// Handles the completion of a device command.
    #[inline]
    pub(crate) fn handle_finished(&mut self, slot: u16, finished: Finished, work: &mut Work) {
        let moved = finished.moved();
        let flight = self.flights.get(slot);
        flight.put_data(finished.data);
        self.in_device -= 1;
        if self.state == State::Closed {
            return self.leave_device(slot, work);
        }
        let op = flight.op;
        let is_whole = match op.kind {
            OpKind::Data(Direction::Read | Direction::Write) => moved == Ok(op.length),
            OpKind::Data(Direction::Trim) | OpKind::Sync(_) => moved.is_ok(),
        };
        match (is_whole, moved, op.kind) {
            (true, ..) => self.advance(slot, work),
            // Deallocation is a hint.
            (_, Err(Errno::EOPNOTSUPP), OpKind::Data(Direction::Trim)) => {
                self.succeed(slot, work);
            }
            (_, moved, kind) => {
                let status = status_of(moved.err(), kind);
                self.count_error(slot, work);
                self.fail(slot, status, work);
            }
        }
    }

    /// Takes the buffer of a request back whose connection has closed.
    pub(crate) fn leave_device(&mut self, slot: u16, work: &mut Work) {
        self.release_payload(slot, work);
        let flight = self.flights.get(slot);
        flight.compared = None;
        flight.state = FlightState::Free;
        if self.is_over() {
            work.ended.push(self.id.index);
        }
    }

    /// Goes on after a device command that succeeded.
    #[inline]
    fn advance(&mut self, slot: u16, work: &mut Work) {
        let flight = self.flights.get(slot);
        let done = flight.op;
        match flight.command.action {
            IoAction::Read => self.send_data(slot, work),
            IoAction::Write { is_durable: true } if done.is_data() => self.sync(slot, work),
            IoAction::WriteZeroes { is_durable } if done.is_data() => {
                flight.progress += u64::from(done.length);
                let left = flight.command.length - flight.progress;
                if left > 0 {
                    flight.op.offset += u64::from(done.length);
                    flight.op.length = u32::try_from(left).unwrap_or(u32::MAX).min(done.length);
                    return self.issue(slot, work);
                }
                match is_durable {
                    true => self.sync(slot, work),
                    false => self.succeed(slot, work),
                }
            }
            IoAction::Deallocate(_) => {
                self.deallocate(slot, work);
            }
            IoAction::Compare => self.compare(slot, work),
            IoAction::Write { .. }
            | IoAction::WriteZeroes { .. }
            | IoAction::Flush
            | IoAction::Hint => self.succeed(slot, work),
        }
    }

    /// Makes what a command has written durable.
    fn sync(&mut self, slot: u16, work: &mut Work) {
        self.flights.get(slot).op = DeviceOp {
            kind: OpKind::Sync(SyncKind::Data),
            offset: 0,
            length: 0,
        };
        self.issue(slot, work);
    }

    /// Deallocates the next part of the ranges that the host sent.
    fn deallocate(&mut self, slot: u16, work: &mut Work) {
        let namespace = self.namespace(slot).io;
        let flight = self.flights.get(slot);
        let IoAction::Deallocate(count) = flight.command.action else {
            return;
        };
        let left = ranges(flight.payload.bytes(), count, namespace);
        let next = match part_at(left, flight.progress) {
            Ok(next) => next,
            Err(status) => return self.fail(slot, status, work),
        };
        let Some(Range {
            offset,
            length: left,
        }) = next
        else {
            return self.succeed(slot, work);
        };
        let length = u32::try_from(left).unwrap_or(u32::MAX).min(TRIM_BYTES_MAX);
        flight.progress += u64::from(length);
        flight.op = DeviceOp {
            kind: OpKind::Data(Direction::Trim),
            offset,
            length,
        };
        self.issue(slot, work);
    }

    /// Compares the host's data with the namespace's.
    fn compare(&mut self, slot: u16, work: &mut Work) {
        let moves_data = self.namespace(slot).moves_data;
        let flight = self.flights.get(slot);
        let length = flight.op.length as usize;
        let compared = flight.compared.take();
        let theirs = &flight.payload.bytes()[..length];
        let is_equal = match compared {
            Some(ours) if moves_data => &ours.bytes()[..length] == theirs,
            _ => theirs.iter().all(|&byte| byte == 0),
        };
        match is_equal {
            true => self.succeed(slot, work),
            false => self.fail(slot, Status::COMPARE_FAILURE.do_not_retry(), work),
        }
    }

    /// Sends the data of a read, which stand for its response where that is allowed.
    #[inline]
    fn send_data(&mut self, slot: u16, work: &mut Work) {
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
    fn succeed(&mut self, slot: u16, work: &mut Work) {
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

    fn count_error(&mut self, slot: u16, work: &mut Work) {
        let namespace = self.flights.get(slot).namespace;
        self.counters.io.errors += 1;
        self.counters.io.others += 1;
        let device = self.device(namespace) as usize;
        work.namespaces[device].errors += 1;
        work.namespaces[device].others += 1;
    }

    fn namespace(&mut self, slot: u16) -> ServedNamespace {
        let place = self.flights.get(slot).namespace as usize;
        match &self.role {
            Role::Io(role) => role.served.namespaces[place],
            Role::Connecting | Role::Admin(_) => panic!("I/O on an admin queue"),
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

    /// Takes the buffer that the device command needs.
    #[inline]
    fn take_data(&mut self) -> CommandData {
        match (self.op.kind, self.command.action) {
            (OpKind::Data(Direction::Trim) | OpKind::Sync(_), _) => None,
            (_, IoAction::Compare) => self.compared.take(),
            _ => self.payload.take_buffer(),
        }
    }

    /// Puts the buffer of the device command back.
    #[inline]
    fn put_data(&mut self, data: CommandData) {
        match (data, self.command.action) {
            (None, _) => {}
            (data, IoAction::Compare) => self.compared = data,
            (data, _) => self.payload.put_back(data),
        }
    }
}

impl DeviceOp {
    const fn is_data(&self) -> bool {
        matches!(self.kind, OpKind::Data(_))
    }
}

/// Returns what is left of the first range that `done` bytes over all ranges do not cover; all
/// ranges must be valid.
fn part_at(
    ranges: impl Iterator<Item = Result<Range, Status>>,
    done: u64,
) -> Result<Option<Range>, Status> {
    let mut skip = done;
    let mut next = None;
    for range in ranges {
        let Range { offset, length } = range?;
        if next.is_none() && length > skip {
            next = Some(Range {
                offset: offset + skip,
                length: length - skip,
            });
        }
        skip = skip.saturating_sub(length);
    }
    Ok(next)
}

/// Returns the status of a device command that failed, or moved less than it should.
fn status_of(errno: Option<Errno>, kind: OpKind) -> Status {
    match (errno, kind) {
        (Some(Errno::ENOSPC | Errno::EDQUOT), _) => Status::CAPACITY_EXCEEDED,
        (Some(Errno::EROFS | Errno::EPERM), _) => Status::NAMESPACE_WRITE_PROTECTED.do_not_retry(),
        (Some(Errno::EINVAL), _) => Status::INVALID_FIELD.do_not_retry(),
        (Some(Errno::EIO) | None, OpKind::Data(Direction::Read)) => Status::UNRECOVERED_READ,
        (Some(Errno::EIO) | None, OpKind::Data(Direction::Write)) => Status::WRITE_FAULT,
        _ => Status::INTERNAL_ERROR,
    }
}

/// In-capsule data of a thread that wait without a buffer, beyond which their connections stop.
const ASIDE_BYTES_MAX: u64 = 64 << 20;
/// Largest trim of a device command.
const TRIM_BYTES_MAX: u32 = 1 << 30;
