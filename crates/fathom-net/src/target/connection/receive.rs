//! Input of a connection: from its socket to its queue, and to the places of data.

use std::io::{self, ErrorKind, IoSliceMut, Read};

use fathom_nvme::{Arrival, Side, Status};

use super::{Connection, Role, State, WINDOW_MIN};
use crate::target::flight::FlightState;
use crate::target::log::Ended;
use crate::target::work::Work;

impl Connection {
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
        // Room for the next headers, and no more: data after them have a place of their own.
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
            self.count_digest_error(slot, work);
        }
        let flight = self.flights.get(slot);
        let status = flight.status;
        match flight.state {
            FlightState::Dropping if flight.admin.is_some() => {
                self.fail_admin(slot, status, work);
            }
            FlightState::Dropping => self.fail_io(slot, status, work),
            _ if flight.admin.is_some() => match is_intact {
                true => self.run_admin(slot, work),
                false => self.fail_admin(slot, Status::TRANSIENT_TRANSPORT_ERROR, work),
            },
            _ => self.io_received(slot, is_intact, work),
        }
    }
}

/// Bytes that a connection receives in a turn before others have theirs.
const TURN_BYTES: usize = 512 << 10;
/// Data for which a receive of their own, in their place, costs less than a copy.
const PLACE_BYTES_MIN: usize = 4096;
/// Bytes received after data in their place: the next headers.
const BEHIND_PLACE_BYTES: usize = 512;
