//! Contract between a block device and its driver, in virtual and in real time.

use std::fmt;
use std::os::fd::BorrowedFd;

use crate::{Completion, DataBuffer, Direction, Errno, OpKind, Tick, Zone, ZoneAction};

/// Block device: a model, a layer over another device, or an engine on a file or a network.
///
/// Jobs of a simulation, the request queue of `fathom-block` and a target's namespaces all reach
/// their storage through this trait, so that a disk model, a fault or a delay is written once and
/// stacks over any other device.
///
/// # Protocol
/// ```text
///  loop  start(command, data, now)…           any number, up to `Geometry::in_flight_max`
///        completed(now) → Finished …          until it returns `None`
///        sleep until next(), or until one of `descriptors` is readable
/// ```
/// * Each command completes exactly once, under its own tag. The tag differs from those of all
///   commands in flight and is free again once its [`Finished`] has been returned.
/// * `now` never goes back from call to call. A device reads no clock.
/// * A device acts inside its calls only. It may hold started commands back until the next
///   `completed`, to submit them together.
/// * In virtual time the driver calls at [`next`](Self::next) exactly. In real time a call may be
///   late: a modelled device catches up, and [`Finished::at`] is the time of a punctual call.
/// * The driver keeps to the [`Geometry`]: [`Geometry::check`] is for what comes from outside. A
///   device may treat a violation as a programming error.
/// * One thread owns a device. Threads that share storage open it once each; a model, whose state
///   cannot be in two places, stays with one of them.
/// * Dropping a device with commands in flight waits for them, or leaks their buffers.
///
/// # Data
/// The first `length` bytes of `data` belong to the command. A device that needs them beyond the
/// call takes the buffer out and returns it in [`Finished::data`]; one that has no data, or copies
/// it in the call, leaves the buffer alone, and the driver keeps it beside the command. So modelled
/// devices pay nothing for data in virtual time, and a kernel never writes to memory that another
/// party holds: ownership decides which code may touch a buffer. A command that needs several
/// buffers is issued as several commands.
///
/// # Cost
/// Calls go through a pointer, a few per command; there is no allocation, lock or clock reading per
/// command in steady state. The loop of a job does not use this trait: it calls its engine
/// directly, and reaches devices only in a simulation.
///
/// # Rejected
/// * *Lending the buffer to `start` and to `completed`*: nothing would keep the driver from it
///   while a kernel writes.
/// * *Offsets into memory given at open*: the buffers of a pool move between threads and devices;
///   sharing the memory would take a lock, or `unsafe` in every device.
/// * *A type parameter for the buffer*: the table of layers could not hold one constructor each.
/// * *Callbacks and futures*: they allocate per command, and a completion could re-enter a layer.
/// * *A `wait` method*: a target's thread waits for sockets and several devices at once.
/// * *The trait [`Engine`](crate::Engine)*: its slots own their buffers, and it knows files.
pub trait BlockDevice: fmt::Debug {
    /// Returns the size and the limits, constant over the device's lifetime.
    fn geometry(&self) -> Geometry;

    /// Accepts a command.
    fn start(&mut self, command: &Command, data: &mut CommandData, now: Tick);

    /// Returns the latest time of the next call of `completed`: a completion, an internal step, or
    /// commands that are held back. A time that has passed asks for a call at once. `None` if
    /// nothing happens before the next command, or before a descriptor is readable.
    fn next(&self) -> Option<Tick>;

    /// Returns the next command that has completed by `now`, in order of completion. Call it until
    /// it returns `None`.
    fn completed(&mut self, now: Tick) -> Option<Finished>;

    /// Changes the state of the zone that begins at `start`, at once; none of its commands may be
    /// in flight. A layer that keeps addresses passes it on.
    ///
    /// # Errors
    /// `EOPNOTSUPP` from a device without zones; `EIO` if the zone is offline, read-only or
    /// conventional.
    fn manage_zone(&mut self, action: ZoneAction, start: u64) -> Result<(), Errno> {
        let _unsupported = (action, start);
        Err(Errno::EOPNOTSUPP)
    }

    /// Returns the state of the zone that contains the byte `offset`; `None` without zones.
    fn zone(&self, offset: u64) -> Option<Zone> {
        let _no_zones = offset;
        None
    }

    /// Passes `add` the descriptors that become readable when `completed` should be called, the
    /// same ones over the device's lifetime. None for a device that says all by `next`. A layer
    /// passes on those of the device below.
    fn descriptors(&self, add: &mut dyn FnMut(BorrowedFd<'_>)) {
        let _all_in_next = add;
    }
}

impl<D: BlockDevice + ?Sized> BlockDevice for Box<D> {
    fn geometry(&self) -> Geometry {
        (**self).geometry()
    }

    fn start(&mut self, command: &Command, data: &mut CommandData, now: Tick) {
        (**self).start(command, data, now);
    }

    fn next(&self) -> Option<Tick> {
        (**self).next()
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        (**self).completed(now)
    }

    fn manage_zone(&mut self, action: ZoneAction, start: u64) -> Result<(), Errno> {
        (**self).manage_zone(action, start)
    }

    fn zone(&self, offset: u64) -> Option<Zone> {
        (**self).zone(offset)
    }

    fn descriptors(&self, add: &mut dyn FnMut(BorrowedFd<'_>)) {
        (**self).descriptors(add);
    }
}

/// Buffer of a command's data; none for a command without data, and in virtual time.
pub type CommandData = Option<Box<DataBuffer>>;

/// Command to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Identifies the command among those in flight; a small number, devices index tables by it.
    pub tag: u32,
    /// Reads, writes, discards, or makes durable.
    pub kind: OpKind,
    /// Byte offset on the device; 0 for a sync.
    pub offset: u64,
    /// Bytes; 0 for a sync.
    pub length: u32,
}

impl Command {
    /// Returns the result of a command that completed in full, at most [`Completion::BYTES_MAX`].
    #[must_use]
    #[inline]
    pub const fn whole(&self) -> i32 {
        match self.kind {
            OpKind::Data(_) if self.length > Completion::BYTES_MAX => i32::MAX,
            OpKind::Data(_) => self.length.cast_signed(),
            OpKind::Sync(_) => 0,
        }
    }

    /// Returns the offset after the last byte.
    #[must_use]
    #[inline]
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.length as u64)
    }
}

/// Completion of a command.
#[derive(Debug, PartialEq, Eq)]
pub struct Finished {
    /// Tag of the command, free for reuse.
    pub tag: u32,
    /// Time of completion, at most the caller's `now`.
    pub at: Tick,
    /// Bytes moved, or a negated errno, as in [`Completion`].
    pub result: i32,
    /// Buffer of the command, if `start` took it.
    pub data: CommandData,
}

impl Finished {
    /// Creates the completion of a command whose buffer stayed with the driver.
    #[must_use]
    #[inline]
    pub const fn new(tag: u32, at: Tick, result: i32) -> Self {
        Self {
            tag,
            at,
            result,
            data: None,
        }
    }

    /// Returns the decoded result: bytes moved, or the errno.
    ///
    /// # Errors
    /// The errno of a command that failed; `EIO` for a number that is none.
    pub fn moved(&self) -> Result<u32, Errno> {
        match u32::try_from(self.result) {
            Ok(bytes) => Ok(bytes),
            Err(_negative) => Err(Errno::try_from(-self.result).unwrap_or(Errno::EIO)),
        }
    }
}

/// Size and limits of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Size in bytes; no command goes beyond it.
    pub bytes: u64,
    /// Logical block in bytes, ≥ 1: offsets and lengths are multiples of it.
    pub block_bytes: u32,
    /// Largest read or write, in bytes.
    pub transfer_bytes_max: u32,
    /// Largest number of commands in flight, ≥ 1.
    pub in_flight_max: u32,
    /// Writes and trims fail.
    pub read_only: bool,
    /// Buffers are filled and read. Where not, the driver decides what a read returns: a target
    /// clears the buffer, or a host would see another one's data.
    pub moves_data: bool,
}

impl Geometry {
    /// Geometry of a model that has none: any size, any number of commands, no data.
    pub const UNBOUNDED: Self = Self {
        bytes: u64::MAX,
        block_bytes: 1,
        transfer_bytes_max: i32::MAX.unsigned_abs(),
        in_flight_max: u32::MAX,
        read_only: false,
        moves_data: false,
    };

    /// Checks a command that comes from outside against size, alignment and access.
    ///
    /// # Errors
    /// As the block layer of Linux: `EIO` beyond the end, `EINVAL` if misaligned or too long,
    /// `EROFS` for a write or trim of a device that is only read.
    pub fn check(&self, command: &Command) -> Result<(), Errno> {
        let OpKind::Data(direction) = command.kind else {
            return Ok(());
        };
        if direction != Direction::Read && self.read_only {
            return Err(Errno::EROFS);
        }
        let block = u64::from(self.block_bytes.max(1));
        let is_aligned =
            command.offset.is_multiple_of(block) && u64::from(command.length).is_multiple_of(block);
        let transfers = direction != Direction::Trim;
        if !is_aligned || (transfers && command.length > self.transfer_bytes_max) {
            return Err(Errno::EINVAL);
        }
        let length = u64::from(command.length);
        match command.offset.checked_add(length) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(Errno::EIO),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::SyncKind;

    use super::*;

    const SMALL: Geometry = Geometry {
        bytes: 1 << 20,
        block_bytes: 512,
        transfer_bytes_max: 65_536,
        ..Geometry::UNBOUNDED
    };

    #[track_caller]
    fn check(geometry: Geometry, kind: OpKind, offset: u64, length: u32, want: Result<(), Errno>) {
        let command = Command {
            tag: 0,
            kind,
            offset,
            length,
        };
        assert_eq!(geometry.check(&command), want);
    }

    #[test]
    fn commands_outside_the_geometry_are_refused() {
        let [read, write, trim] = Direction::ALL.map(OpKind::Data);
        check(SMALL, read, 0, 512, Ok(()));
        check(SMALL, read, (1 << 20) - 512, 512, Ok(()));
        check(SMALL, read, (1 << 20) - 512, 1024, Err(Errno::EIO));
        check(SMALL, read, u64::MAX - 511, 512, Err(Errno::EIO));
        check(SMALL, write, 256, 512, Err(Errno::EINVAL));
        check(SMALL, write, 512, 100, Err(Errno::EINVAL));
        check(SMALL, write, 0, 65_536 + 512, Err(Errno::EINVAL));
        check(SMALL, trim, 0, 1 << 20, Ok(()));
        let read_only = Geometry {
            read_only: true,
            ..SMALL
        };
        check(read_only, read, 0, 512, Ok(()));
        check(read_only, write, 0, 512, Err(Errno::EROFS));
        check(read_only, trim, 0, 512, Err(Errno::EROFS));
        check(read_only, OpKind::Sync(SyncKind::Full), 0, 0, Ok(()));
    }

    #[test]
    fn a_result_is_bytes_or_an_errno() {
        let moved = |result| Finished::new(0, Tick::ZERO, result).moved();
        assert_eq!(moved(4096), Ok(4096));
        assert_eq!(moved(-28), Err(Errno::ENOSPC));
        assert_eq!(moved(-5000), Err(Errno::EIO));
    }
}
