//! Device commands of a request, one after the other.

use fathom_core::{CommandData, DataBuffer, Direction, Errno, Finished, OpKind, SyncKind};
use fathom_nvme::{IoAction, IoCommand, Range, Status, ranges};

use crate::target::connection::{Connection, Role, State};
use crate::target::devices::{DeviceOp, Owner};
use crate::target::flight::{Flight, FlightState, Payload};
use crate::target::subsystem::ServedNamespace;
use crate::target::work::Work;

impl Connection {
    /// Starts the first device command of a request.
    #[inline]
    pub(super) fn execute(&mut self, slot: u16, work: &mut Work) {
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
                self.fail_io(slot, status, work);
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
                    count_part(work);
                    return self.issue(slot, work);
                }
                match is_durable {
                    true => self.sync(slot, work),
                    false => self.succeed(slot, work),
                }
            }
            IoAction::Deallocate(_) => {
                count_part(work);
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
            Err(status) => return self.fail_io(slot, status, work),
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
            false => self.fail_io(slot, Status::COMPARE_FAILURE.do_not_retry(), work),
        }
    }

    pub(super) fn namespace(&mut self, slot: u16) -> ServedNamespace {
        let place = self.flights.get(slot).namespace as usize;
        match &self.role {
            Role::Io(role) => role.served.namespaces[place],
            Role::Connecting | Role::Admin(_) => panic!("I/O on an admin queue"),
        }
    }
}

impl Flight {
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

/// Takes a part of a large request into account: a device that completes each at once would keep
/// the thread, and none of these is bounded by what a host sends.
const fn count_part(work: &mut Work) {
    work.reaps_left = work.reaps_left.saturating_sub(PART_REAPS);
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
        // A file may not grow further: a limit of its file system or of the process (`ulimit -f`).
        (Some(Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG), _) => Status::CAPACITY_EXCEEDED,
        (Some(Errno::EROFS | Errno::EPERM), _) => Status::NAMESPACE_WRITE_PROTECTED.do_not_retry(),
        (Some(Errno::EINVAL), _) => Status::INVALID_FIELD.do_not_retry(),
        // Linux reports a medium that cannot be read or written by ENODATA.
        (Some(Errno::EIO | Errno::ENODATA) | None, OpKind::Data(Direction::Read)) => {
            Status::UNRECOVERED_READ
        }
        (Some(Errno::EIO | Errno::ENODATA) | None, OpKind::Data(Direction::Write)) => {
            Status::WRITE_FAULT
        }
        _ => Status::INTERNAL_ERROR,
    }
}

/// Completions that one of a part of a large request counts as: a round has a few, each of which
/// may fill a buffer's worth of memory.
const PART_REAPS: u32 = 63;
/// Largest trim of a device command.
const TRIM_BYTES_MAX: u32 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_devices_have_their_status() {
        let [read, write] = [Direction::Read, Direction::Write].map(OpKind::Data);
        for (errno, kind, want) in [
            (Some(Errno::ENODATA), read, Status::UNRECOVERED_READ),
            (Some(Errno::EIO), read, Status::UNRECOVERED_READ),
            (Some(Errno::EIO), write, Status::WRITE_FAULT),
            // Less than was asked for.
            (None, read, Status::UNRECOVERED_READ),
            (Some(Errno::ENOSPC), write, Status::CAPACITY_EXCEEDED),
            (Some(Errno::EDQUOT), write, Status::CAPACITY_EXCEEDED),
            (Some(Errno::EFBIG), write, Status::CAPACITY_EXCEEDED),
            (
                Some(Errno::EROFS),
                write,
                Status::NAMESPACE_WRITE_PROTECTED.do_not_retry(),
            ),
            (
                Some(Errno::EIO),
                OpKind::Sync(SyncKind::Data),
                Status::INTERNAL_ERROR,
            ),
        ] {
            assert_eq!(status_of(errno, kind), want, "{errno:?} {kind:?}");
        }
    }
}
