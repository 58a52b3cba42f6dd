//! Connection of a host: bytes between its socket and its queue.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;

use fathom_core::Tick;
use fathom_nvme::{
    Arrival, Completion, Controller, Pdu, Side, Status, TargetQueue, TargetQueueConfig, TermReq,
};

use super::flight::{FlightState, Flights, Payload};
use super::log::{Ended, TargetEvent};
use super::mailbox::ConnectionId;
use super::poll_group::Work;
use super::send_queue::{SLICES, SendQueue};
use super::statistics::{ConnectionStatistics, IoCounters};
use super::subsystem::Served;

/// Connection of a host, served by one thread.
///
/// An idle connection has neither buffers nor bytes of its own: what a socket delivers is decoded
/// in the thread's receive buffer, and kept only while the connection waits for a data buffer.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) queue: TargetQueue,
    pub(crate) role: Role,
    pub(crate) flights: Flights,
    pub(crate) out: SendQueue,
    pub(crate) state: State,
    /// Bytes received and not decoded, while the connection waits for a buffer.
    leftover: Vec<u8>,
    /// Slot whose in-capsule data come next and have no buffer.
    pub(crate) blocked_by: Option<u16>,
    is_readable: bool,
    pub(crate) is_writable: bool,
    /// The peer has closed its end: only a read of nothing says that all has been read.
    is_closing: bool,
    /// In the list of connections with input.
    pub(crate) is_active: bool,
    /// In the list of connections with output.
    is_dirty: bool,
    /// Bytes of a receive without a place of their own.
    window: usize,
    /// Commands that a device has, or that wait for one.
    pub(crate) in_device: u32,
    pub(crate) opened_at: Tick,
    pub(crate) heard_at: Tick,
    pub(crate) sent_at: Tick,
    pub(crate) counters: Counters,
}

/// Counters of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) io: IoCounters,
    pub(crate) admin_commands: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
}

/// Use of a connection.
#[derive(Debug)]
pub(crate) enum Role {
    /// No Connect has succeeded.
    Connecting,
    /// Admin queue, which holds its controller.
    Admin(Box<AdminRole>),
    /// I/O queue.
    Io(Box<IoRole>),
}

/// Controller and what other threads know of it.
#[derive(Debug)]
pub(crate) struct AdminRole {
    pub(crate) controller: Controller,
    pub(crate) served: Arc<Served>,
    pub(crate) host_nqn: String,
    /// Number of I/O queues that the registry has.
    pub(crate) queues_published: u16,
}

/// I/O queue of a controller.
#[derive(Debug)]
pub(crate) struct IoRole {
    pub(crate) cntlid: u16,
    pub(crate) qid: u16,
    pub(crate) host_nqn: String,
    pub(crate) served: Arc<Served>,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// In use.
    Open,
    /// A fatal error was reported at this time; the host is to close the connection.
    Terminating(Tick, TermReq),
    /// Closed; devices may still have commands.
    Closed,
}

impl Connection {
    pub(crate) fn new(
        id: ConnectionId,
        (stream, peer): (TcpStream, SocketAddr),
        config: TargetQueueConfig,
        now: Tick,
    ) -> Self {
        Self {
            id,
            stream,
            peer,
            queue: TargetQueue::new(config),
            role: Role::Connecting,
            flights: Flights::default(),
            out: SendQueue::default(),
            state: State::Open,
            leftover: Vec::new(),
            blocked_by: None,
            is_readable: true,
            is_writable: true,
            is_closing: false,
            is_active: false,
            is_dirty: false,
            window: WINDOW_MIN,
            in_device: 0,
            opened_at: now,
            heard_at: now,
            sent_at: now,
            counters: Counters::default(),
        }
    }

    /// Notes that the socket is ready for something.
    pub(crate) fn set_ready(&mut self, is_readable: bool, is_writable: bool, is_closing: bool) {
        self.is_readable |= is_readable | is_closing;
        self.is_writable |= is_writable | is_closing;
        self.is_closing |= is_closing;
    }

    /// Returns whether the socket may have input that the connection can take.
    pub(crate) fn has_input(&self) -> bool {
        let can_take = self.blocked_by.is_none() && self.state != State::Closed;
        can_take && (self.is_readable || !self.leftover.is_empty())
    }

    /// Receives and handles what the socket has, up to a limit that leaves other connections their
    /// turn.
    pub(crate) fn receive(&mut self, work: &mut Work) {
        let mut budget = TURN_BYTES;
        while budget > 0 && self.has_input() {
            if !self.leftover.is_empty() {
                let leftover = std::mem::take(&mut self.leftover);
                self.decode(&leftover, work);
                continue;
            }
            match self.receive_once(work) {
                Ok(0) => {
                    self.close(Ended::Closed, work);
                }
                Ok(bytes) => {
                    budget = budget.saturating_sub(bytes);
                    self.heard_at = work.now;
                    self.counters.received_bytes += bytes as u64;
                    work.counters.received_bytes += bytes as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The host closed without reading the rest.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    self.close(Ended::Closed, work);
                }
                Err(error) => self.close(Ended::Broken(error.kind()), work),
            }
        }
        if self.has_input() {
            work.activate(self);
        }
    }

    /// Receives once, data into their place and the rest into the thread's buffer, and decodes
    /// that.
    fn receive_once(&mut self, work: &mut Work) -> io::Result<usize> {
        work.counters.receives += 1;
        let mut scratch = std::mem::take(&mut work.scratch);
        let received = self.receive_into(&mut scratch);
        let received = received.map(|(bytes, room, in_scratch)| {
            // A short read empties the socket; epoll reports what comes later.
            if bytes < room && !self.is_closing {
                self.is_readable = false;
            }
            if bytes > 0 {
                self.decode(&scratch[..in_scratch], work);
            }
            bytes
        });
        work.scratch = scratch;
        received
    }

    /// Receives once; returns the number of bytes, that of bytes which there was room for, and that
    /// of bytes in `scratch`.
    fn receive_into(&mut self, scratch: &mut [u8]) -> io::Result<(usize, usize, usize)> {
        let place = match self.state {
            State::Open => self.queue.place(),
            State::Terminating(..) | State::Closed => None,
        };
        let place = place.and_then(|place| {
            let flight = self.flights.get(place.slot);
            let is_kept = match flight.state {
                FlightState::Transfer | FlightState::Capsule => !flight.is_dropped(),
                _ => false,
            };
            let from = place.offset as usize;
            let end = from + place.length as usize;
            is_kept
                .then(|| flight.payload.bytes_mut().get_mut(from..end))
                .flatten()
        });
        let Some(place) = place.filter(|place| place.len() >= PLACE_BYTES_MIN) else {
            let window = self.window.min(scratch.len());
            let bytes = (&self.stream).read(&mut scratch[..window])?;
            if bytes == window {
                self.window = (window * 2).min(scratch.len());
            }
            return Ok((bytes, window, bytes));
        };
        // Room for the next headers, and no more: data behind them have a place of their own.
        self.window = WINDOW_MIN;
        let room = place.len() + BEHIND_PLACE_BYTES;
        let (place_bytes, behind) = (place.len(), &mut scratch[..BEHIND_PLACE_BYTES]);
        let bytes = {
            let mut slices = [IoSliceMut::new(place), IoSliceMut::new(behind)];
            (&self.stream).read_vectored(&mut slices)?
        };
        self.queue.received(&place[..bytes.min(place_bytes)]);
        Ok((bytes, room, bytes.saturating_sub(place_bytes)))
    }

    /// Decodes and handles bytes.
    fn decode(&mut self, bytes: &[u8], work: &mut Work) {
        let mut input = bytes;
        while self.state == State::Open {
            if self.blocked_by.is_some() {
                self.leftover = input.to_vec();
                return;
            }
            match self.queue.next(&mut input) {
                Ok(Some(arrival)) => self.handle(arrival, work),
                Ok(None) => return,
                Err(reason) => self.terminate(reason, work),
            }
        }
    }

    #[inline]
    fn handle(&mut self, arrival: Arrival<'_>, work: &mut Work) {
        match arrival {
            Arrival::Command {
                slot,
                command,
                in_capsule,
            } => match &self.role {
                Role::Io(_) => self.start_io(slot, &command, in_capsule, work),
                Role::Connecting | Role::Admin(_) => {
                    self.start_admin(slot, &command, in_capsule, work);
                }
            },
            Arrival::Data {
                slot,
                offset,
                bytes,
            } => self.store(slot, offset, bytes),
            Arrival::Received { slot, is_intact } => self.received(slot, is_intact, work),
            Arrival::Initialized(response) => self.push(&response, None, work),
            Arrival::Terminated(reason) => {
                self.close(Ended::Terminated(Side::Host, reason), work);
            }
        }
    }

    /// Stores data that came through the receive buffer.
    fn store(&mut self, slot: u16, offset: u32, bytes: &[u8]) {
        let flight = self.flights.get(slot);
        if flight.is_dropped() {
            return;
        }
        let place = flight.payload.bytes_mut();
        // Lies within: the queue checks data against the length that was requested or announced.
        place[offset as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Handles the end of a command's data.
    fn received(&mut self, slot: u16, is_intact: bool, work: &mut Work) {
        if !is_intact {
            self.counters.io.digest_errors += 1;
        }
        let flight = self.flights.get(slot);
        match flight.state {
            FlightState::Dropping => {
                let status = flight.status;
                self.fail(slot, status, work);
            }
            _ if flight.admin.is_some() => match is_intact {
                true => self.run_admin(slot, work),
                false => self.fail(slot, Status::TRANSIENT_TRANSPORT_ERROR, work),
            },
            _ => self.io_received(slot, is_intact, work),
        }
    }

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
            Payload::Page(page) => work.page_bytes -= page.len() as u64,
        }
    }

    /// Reports a fatal error to the host, whose input is discarded from now on.
    fn terminate(&mut self, reason: TermReq, work: &mut Work) {
        let (pdu, header) = self.queue.terminate(reason);
        let length = u32::try_from(header.len()).unwrap_or_default();
        let mut bytes = pdu
            .encode(fathom_nvme::Framing::PLAIN, length)
            .as_bytes()
            .to_vec();
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

    /// Returns the number that identifies a request to the admission.
    pub(crate) fn ticket(&self, slot: u16) -> u64 {
        u64::from(self.id.index) << 16 | u64::from(slot)
    }

    /// Returns the controller and the queue, once connected.
    pub(crate) fn queue_name(&self) -> Option<(u16, u16)> {
        match &self.role {
            Role::Connecting => None,
            Role::Admin(admin) => Some((admin.controller.cntlid(), 0)),
            Role::Io(io) => Some((io.cntlid, io.qid)),
        }
    }

    /// Returns whether the connection may be dropped.
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Closed && self.in_device == 0
    }

    pub(crate) fn statistics(&self) -> ConnectionStatistics {
        let (host_nqn, subsystem_nqn) = match &self.role {
            Role::Connecting => (String::new(), String::new()),
            Role::Admin(admin) => (
                admin.host_nqn.clone(),
                admin.controller.subsystem().nqn.clone(),
            ),
            Role::Io(io) => (io.host_nqn.clone(), io.served.subsystem.nqn.clone()),
        };
        ConnectionStatistics {
            peer: self.peer,
            host_nqn,
            subsystem_nqn,
            queue: self.queue_name(),
            in_flight: u32::try_from(self.queue.in_use()).unwrap_or(u32::MAX),
            io: self.counters.io,
            admin_commands: self.counters.admin_commands,
            received_bytes: self.counters.received_bytes,
            sent_bytes: self.counters.sent_bytes,
        }
    }
}

/// Bytes that a connection receives in a turn before others have theirs.
const TURN_BYTES: usize = 512 << 10;
/// Receive window of a connection that has received little, or data in their place: some hundred
/// commands.
const WINDOW_MIN: usize = 16 << 10;
/// Data for which a receive of their own, in their place, costs less than a copy.
const PLACE_BYTES_MIN: usize = 4096;
/// Bytes received behind data in their place: the next headers.
const BEHIND_PLACE_BYTES: usize = 512;
