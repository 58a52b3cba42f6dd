//! Requests in flight on a connection, beside their slots.

use fathom_core::{CommandData, DataBuffer, OpKind, SyncKind};
use fathom_nvme::{Command, IoAction, IoCommand, IoData, Status};

use super::devices::DeviceOp;

/// Requests of a connection, by slot. Grows with the slots that are in use at once.
#[derive(Debug, Default)]
pub(crate) struct Flights(Vec<Flight>);

/// Request in flight.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) state: FlightState,
    /// Command, of an I/O queue.
    pub(crate) command: IoCommand,
    /// Index of its namespace in the subsystem; beyond all for a command that names none.
    pub(crate) namespace: u32,
    /// Command, of an admin queue.
    pub(crate) admin: Option<Box<Command>>,
    pub(crate) payload: Payload,
    /// Data of the namespace that a Compare compares with.
    pub(crate) compared: CommandData,
    /// Bytes that the buffer was requested for.
    pub(crate) granted_bytes: u32,
    /// Command of the device that is due or in flight.
    pub(crate) op: DeviceOp,
    /// Bytes, or ranges, that earlier commands of the device have dealt with.
    pub(crate) progress: u64,
    /// Arriving data are dropped.
    pub(crate) drops_data: bool,
    /// Status to complete with once data that are dropped have arrived.
    pub(crate) status: Status,
}

/// State of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlightState {
    /// The slot is free.
    Free,
    /// In-capsule data are arriving and are dropped: the command has failed.
    Dropping,
    /// In-capsule data are arriving.
    Capsule,
    /// In-capsule data are arriving in memory of their own, as no buffer was free and the
    /// connection must not stop.
    CapsuleAside,
    /// Waits for a buffer.
    NeedsBuffer,
    /// Data that were requested are arriving.
    Transfer,
    /// Waits for a tag of the device, or for the device.
    Device,
    /// Its response waits to be sent.
    Sending,
}

/// Data of a request.
#[derive(Debug, Default)]
pub(crate) enum Payload {
    #[default]
    None,
    /// In a buffer of the pool.
    Buffer(Box<DataBuffer>),
    /// In memory of their own: of an admin command.
    Page(Vec<u8>),
}

impl Flights {
    #[inline]
    pub(crate) fn get(&mut self, slot: u16) -> &mut Flight {
        &mut self.0[usize::from(slot)]
    }

    /// Returns the request of a slot that has just been taken.
    #[inline]
    pub(crate) fn open(&mut self, slot: u16) -> &mut Flight {
        let place = usize::from(slot);
        if place >= self.0.len() {
            self.0.resize_with(place + 1, Flight::default);
        }
        &mut self.0[place]
    }

    /// Returns the place of a request's namespace in its subsystem.
    pub(crate) fn namespace(&self, slot: u16) -> u32 {
        self.0[usize::from(slot)].namespace
    }

    /// Returns the data of a request.
    #[inline]
    pub(crate) fn payload(&self, slot: u16) -> &[u8] {
        self.0[usize::from(slot)].payload.bytes()
    }

    /// Returns the slots in a state.
    pub(crate) fn in_state(&self, state: FlightState) -> impl Iterator<Item = u16> + '_ {
        let flights = (0_u16..).zip(&self.0);
        flights.filter_map(move |(slot, flight)| (flight.state == state).then_some(slot))
    }

    /// Returns the slots.
    pub(crate) fn slots(&self) -> std::ops::Range<u16> {
        0..u16::try_from(self.0.len()).unwrap_or(u16::MAX)
    }

    #[cfg(test)]
    pub(crate) fn set_page(&mut self, slot: u16, page: Vec<u8>) {
        self.open(slot).payload = Payload::Page(page);
    }
}

impl Payload {
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::None => &[],
            Self::Buffer(buffer) => buffer.bytes(),
            Self::Page(page) => page,
        }
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::None => &mut [],
            Self::Buffer(buffer) => buffer.bytes_mut(),
            Self::Page(page) => page,
        }
    }

    /// Takes the buffer out.
    #[inline]
    pub(crate) fn take_buffer(&mut self) -> CommandData {
        match std::mem::take(self) {
            Self::Buffer(buffer) => Some(buffer),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Puts a buffer back, if there is one.
    #[inline]
    pub(crate) fn put_back(&mut self, data: CommandData) {
        if let Some(buffer) = data {
            *self = Self::Buffer(buffer);
        }
    }
}

impl Default for Flight {
    fn default() -> Self {
        Self {
            state: FlightState::Free,
            command: IoCommand {
                action: IoAction::Hint,
                data: IoData::None,
                offset: 0,
                length: 0,
            },
            namespace: 0,
            admin: None,
            payload: Payload::None,
            compared: None,
            granted_bytes: 0,
            op: DeviceOp {
                kind: OpKind::Sync(SyncKind::Full),
                offset: 0,
                length: 0,
            },
            progress: 0,
            drops_data: false,
            status: Status::SUCCESS,
        }
    }
}
