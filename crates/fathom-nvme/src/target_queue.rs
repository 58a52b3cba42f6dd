//! Controller side of a queue pair: PDUs in, requests out; completions in, PDUs out.

use crate::command::{Command, DataPointer};
use crate::completion::Completion;
use crate::decoder::{Decoder, Event, Limits};
use crate::pdu::{
    DataPdu, Digests, Encoded, FatalStatus, Framing, IcReq, IcResp, Pdu, ReadyToTransfer, Side,
    TermReq,
};

/// State machine of one connection on the controller side: initialization, commands in request
/// slots, and the data that belong to them.
///
/// # Protocol
/// ```text
///  next(bytes) ─► Initialized                    send the response
///              ─► Command(slot) ─┬─ no data: carry it out
///                                ├─ in-capsule data: Data… then Received(slot)
///                                └─ data elsewhere: request_data, then Data… and Received(slot)
///  response(…) or data(…), sent ─► release(slot)
/// ```
/// The owner keeps the data: events say slot and offset, never a buffer. Before it calls
/// [`next`](Self::next) again, it must have a place for the in-capsule data of the command
/// returned last, or have decided to drop them. Large data need not pass through a receive buffer:
/// [`place`](Self::place) says what comes next, and [`received`](Self::received) that it came.
///
/// The first command must be a Connect; the owner handles it and calls
/// [`connected`](Self::connected). Until then a connection has [`UNCONNECTED_ENTRIES`] slots.
///
/// # Errors
/// A [`TermReq`] is final: send [`terminate`](Self::terminate), discard all input, and close the
/// connection when the peer does or after a while.
///
/// # Limits
/// Slots are allocated as they are first used, up to the entries of the queue. Nothing else grows.
#[derive(Debug)]
pub struct TargetQueue {
    config: TargetQueueConfig,
    decoder: Decoder,
    /// Form of the PDUs sent.
    framing: Framing,
    /// Destination of the data that the decoder passes on.
    incoming: Incoming,
    requests: Vec<Request>,
    /// Free slots, the one used last on top: a queue of low depth touches few.
    free: Vec<u16>,
    /// Queue identifier; `None` before Connect.
    qid: Option<u16>,
    entries: u16,
    sq_head: u16,
}

/// Limits and choices of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetQueueConfig {
    /// Bytes of data in the capsule of an I/O command.
    pub in_capsule_bytes: u32,
    /// Bytes of data in a PDU from the host: a multiple of 4, at least 4096.
    pub h2c_data_bytes_max: u32,
    /// Digests that a host may use. A digest that is not permitted is refused by leaving it out of
    /// the response, upon which hosts give up.
    pub digests: Digests,
}

/// Event of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival<'a> {
    /// The connection is initialized: send this response before anything else.
    Initialized(Pdu),
    /// A command has a slot; this many bytes of data follow in its capsule.
    Command {
        /// Slot, in use until it is released.
        slot: u16,
        /// Command.
        command: Command,
        /// Bytes of data in the capsule.
        in_capsule: u32,
    },
    /// The next bytes of a command's data.
    Data {
        /// Slot of the command.
        slot: u16,
        /// Offset of the bytes in the command's data.
        offset: u32,
        /// Bytes.
        bytes: &'a [u8],
    },
    /// All data of a command have arrived.
    Received {
        /// Slot of the command.
        slot: u16,
        /// All data digests agree.
        is_intact: bool,
    },
    /// The host terminates the connection.
    Terminated(TermReq),
}

/// Place of data that are still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Slot of the command.
    pub slot: u16,
    /// Offset in the command's data.
    pub offset: u32,
    /// Bytes up to the end of the PDU's data.
    pub length: u32,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    cid: u16,
    /// Counts the uses of the slot: part of the transfer tag.
    generation: u16,
    state: RequestState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestState {
    Free,
    /// The owner has everything that it waits for from the host.
    Owned,
    /// In-capsule data are arriving.
    Capsule,
    /// Data that were requested are arriving.
    Transfer {
        length: u32,
        received: u32,
        is_intact: bool,
    },
}

/// Data that the decoder is passing on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Incoming {
    /// Of no command: the header that a termination request repeats.
    Unowned,
    Capsule {
        slot: u16,
        offset: u32,
    },
    Transfer {
        slot: u16,
        offset: u32,
    },
}

impl TargetQueue {
    /// Creates the state of a connection that has just been accepted.
    #[must_use]
    pub fn new(config: TargetQueueConfig) -> Self {
        let limits = Limits {
            in_capsule_bytes: config.in_capsule_bytes.max(ADMIN_CAPSULE_BYTES),
            data_bytes: config.h2c_data_bytes_max,
        };
        Self {
            config,
            decoder: Decoder::new(Side::Controller, limits),
            framing: Framing::PLAIN,
            incoming: Incoming::Unowned,
            requests: Vec::new(),
            free: Vec::new(),
            qid: None,
            entries: UNCONNECTED_ENTRIES,
            sq_head: 0,
        }
    }

    /// Notes that a Connect has succeeded, of the queue `qid` with `entries` entries.
    pub const fn connected(&mut self, qid: u16, entries: u16) {
        self.qid = Some(qid);
        self.entries = entries;
    }

    /// Requests `length` bytes of data of a command that has them outside its capsule.
    ///
    /// # Panics
    /// The slot is not in use, or `length` is 0.
    pub fn request_data(&mut self, slot: u16, length: u32) -> Pdu {
        assert!(length > 0, "an R2T without data");
        let request = &mut self.requests[usize::from(slot)];
        assert_eq!(request.state, RequestState::Owned, "data come once");
        request.state = RequestState::Transfer {
            length,
            received: 0,
            is_intact: true,
        };
        Pdu::R2t(ReadyToTransfer {
            cid: request.cid,
            ttag: ttag(slot, request.generation),
            offset: 0,
            length,
        })
    }

    /// Frees a slot whose completion has been sent.
    ///
    /// # Panics
    /// The slot is not in use.
    pub fn release(&mut self, slot: u16) {
        let request = &mut self.requests[usize::from(slot)];
        assert_ne!(request.state, RequestState::Free, "released once");
        request.state = RequestState::Free;
        request.generation = request.generation.wrapping_add(1);
        self.free.push(slot);
    }

    /// Notes data that were received into their [`place`](Self::place).
    pub fn received(&mut self, bytes: &[u8]) {
        let left = self.decoder.data_left();
        self.decoder.received(bytes);
        self.advance(left - self.decoder.data_left());
    }

    /// Decodes the next event; `None` if more bytes are needed.
    ///
    /// # Errors
    /// The reason to end the connection.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Arrival<'a>>, TermReq> {
        while let Some(event) = self.decoder.next(input)? {
            let arrival = match event {
                Event::Pdu(pdu, data) => self.handle_pdu(pdu, data)?,
                Event::Data(bytes) => self.handle_data(bytes),
                Event::End { is_intact } => self.handle_end(is_intact),
            };
            if arrival.is_some() {
                return Ok(arrival);
            }
        }
        Ok(None)
    }

    /// Returns the PDU that reports a fatal error to the host, and the header at fault, its data.
    #[must_use]
    pub fn terminate(&self, reason: TermReq) -> (Pdu, &[u8]) {
        (
            Pdu::TermReq(Side::Controller, reason),
            self.decoder.header(),
        )
    }

    /// Returns the response capsule of a completion.
    #[must_use]
    #[inline]
    pub fn response(&mut self, completion: Completion) -> Pdu {
        self.advance_head();
        Pdu::Response(Completion {
            sq_head: self.sq_head,
            sq_id: self.qid.unwrap_or_default(),
            ..completion
        })
    }

    /// Returns the header of all data of a read. With `is_success` it stands for the response, too.
    #[must_use]
    #[inline]
    pub fn data(&mut self, slot: u16, length: u32, is_success: bool) -> Pdu {
        if is_success {
            self.advance_head();
        }
        Pdu::C2hData(DataPdu {
            cid: self.cid(slot),
            length,
            is_last: true,
            is_success,
            ..DataPdu::default()
        })
    }

    /// Encodes a PDU to the host up to its data.
    #[must_use]
    #[inline]
    pub fn encode(&self, pdu: &Pdu, data: u32) -> Encoded {
        pdu.encode(self.framing, data)
    }

    /// Returns the place of the data that come next, of a command; `None` if a header or a digest
    /// comes next.
    #[must_use]
    #[inline]
    pub fn place(&self) -> Option<Place> {
        let length = self.decoder.data_left();
        let (Incoming::Capsule { slot, offset } | Incoming::Transfer { slot, offset }) =
            self.incoming
        else {
            return None;
        };
        (length > 0).then_some(Place {
            slot,
            offset,
            length,
        })
    }

    /// Returns the identifier of the command in a slot.
    #[must_use]
    #[inline]
    pub fn cid(&self, slot: u16) -> u16 {
        self.requests[usize::from(slot)].cid
    }

    /// Returns the identifier of the queue, once connected.
    #[must_use]
    pub const fn qid(&self) -> Option<u16> {
        self.qid
    }

    /// Returns whether data to the host carry a digest, which the owner appends.
    #[must_use]
    pub const fn has_data_digest(&self) -> bool {
        self.framing.digests().data
    }

    /// Returns the digests in use.
    #[must_use]
    pub const fn digests(&self) -> Digests {
        self.framing.digests()
    }

    /// Returns the number of slots in use.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.requests.len() - self.free.len()
    }

    /// Returns whether the host owes bytes: the rest of a PDU, or data that were requested.
    #[must_use]
    pub fn is_owed(&self) -> bool {
        self.decoder.is_within_pdu()
            || (self.requests.iter())
                .any(|request| matches!(request.state, RequestState::Transfer { .. }))
    }

    #[inline]
    fn handle_pdu<'a>(&mut self, pdu: Pdu, data: u32) -> Result<Option<Arrival<'a>>, TermReq> {
        self.incoming = Incoming::Unowned;
        match pdu {
            Pdu::Command(command) => self.handle_command(command, data).map(Some),
            Pdu::H2cData(header) => self.handle_transfer(header).map(|()| None),
            Pdu::IcReq(request) => self.initialize(request).map(Some),
            Pdu::TermReq(_, reason) => Ok(Some(Arrival::Terminated(reason))),
            // The decoder refuses the PDUs of a controller.
            Pdu::IcResp(_) | Pdu::Response(_) | Pdu::C2hData(_) | Pdu::R2t(_) => {
                Err(refusal(FatalStatus::SEQUENCE, 0))
            }
        }
    }

    fn initialize<'a>(&mut self, request: IcReq) -> Result<Arrival<'a>, TermReq> {
        if request.version != 0 {
            return Err(refusal(FatalStatus::INVALID_HEADER, VERSION));
        }
        let allowed = self.config.digests;
        let digests = Digests {
            header: request.digests.header && allowed.header,
            data: request.digests.data && allowed.data,
        };
        let (Some(framing), Some(plain)) = (
            Framing::new(digests, request.hpda),
            Framing::new(digests, 0),
        ) else {
            return Err(refusal(FatalStatus::INVALID_HEADER, HPDA));
        };
        self.framing = framing;
        // Linux requires a CPDA of 0.
        self.decoder.establish(plain);
        Ok(Arrival::Initialized(Pdu::IcResp(IcResp {
            version: 0,
            cpda: 0,
            digests,
            h2c_data_bytes_max: self.config.h2c_data_bytes_max,
        })))
    }

    fn handle_command<'a>(&mut self, command: Command, data: u32) -> Result<Arrival<'a>, TermReq> {
        let most = match self.qid {
            Some(1..) => self.config.in_capsule_bytes,
            _ => ADMIN_CAPSULE_BYTES,
        };
        if data > most {
            return Err(refusal(FatalStatus::LIMIT_EXCEEDED, PDU_LENGTH));
        }
        match command.data_pointer() {
            DataPointer::InCapsule { offset, .. } if offset != 0 => {
                return Err(refusal(FatalStatus::INVALID_HEADER, SGL));
            }
            DataPointer::InCapsule { length, .. } if length == data => {}
            DataPointer::Transport { .. } | DataPointer::Other(_) if data == 0 => {}
            _ => return Err(refusal(FatalStatus::INVALID_HEADER, SGL_LENGTH)),
        }
        // The host may not have more commands in flight than the queue has entries. A slot is free
        // before the host can see its completion, since sends copy.
        let Some(slot) = self.take(command.cid()) else {
            return Err(refusal(FatalStatus::SEQUENCE, 0));
        };
        if data > 0 {
            self.requests[usize::from(slot)].state = RequestState::Capsule;
            self.incoming = Incoming::Capsule { slot, offset: 0 };
        }
        Ok(Arrival::Command {
            slot,
            command,
            in_capsule: data,
        })
    }

    /// Takes a free slot.
    fn take(&mut self, cid: u16) -> Option<u16> {
        let used = u16::try_from(self.requests.len()).unwrap_or(u16::MAX);
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if used < self.entries => {
                self.requests.push(Request {
                    cid,
                    generation: 0,
                    state: RequestState::Free,
                });
                used
            }
            None => return None,
        };
        let request = &mut self.requests[usize::from(slot)];
        request.cid = cid;
        request.state = RequestState::Owned;
        Some(slot)
    }

    /// Checks the header of data against the request that it names.
    fn handle_transfer(&mut self, header: DataPdu) -> Result<(), TermReq> {
        let unknown = refusal(FatalStatus::INVALID_HEADER, TTAG);
        let slot = slot_of(header.ttag).ok_or(unknown)?;
        let request = self.requests.get(usize::from(slot)).ok_or(unknown)?;
        let RequestState::Transfer {
            length, received, ..
        } = request.state
        else {
            return Err(unknown);
        };
        if ttag(slot, request.generation) != header.ttag {
            return Err(unknown);
        }
        if request.cid != header.cid {
            return Err(refusal(FatalStatus::INVALID_HEADER, CCCID));
        }
        if header.offset != received {
            return Err(refusal(FatalStatus::SEQUENCE, DATA_OFFSET));
        }
        let end = u64::from(received) + u64::from(header.length);
        if end > u64::from(length) {
            return Err(refusal(FatalStatus::OUT_OF_RANGE, DATA_LENGTH));
        }
        // The rest could not come any more. A missing mark at the end is harmless.
        if header.is_last && end < u64::from(length) {
            return Err(refusal(FatalStatus::INVALID_HEADER, FLAGS));
        }
        let offset = header.offset;
        self.incoming = Incoming::Transfer { slot, offset };
        Ok(())
    }

    fn handle_data<'a>(&mut self, bytes: &'a [u8]) -> Option<Arrival<'a>> {
        let (Incoming::Capsule { slot, offset } | Incoming::Transfer { slot, offset }) =
            self.incoming
        else {
            return None;
        };
        // Cannot truncate: the decoder passes on no more than the PDU's length.
        self.advance(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        Some(Arrival::Data {
            slot,
            offset,
            bytes,
        })
    }

    /// Counts a completion: entries are free for the host once their commands have completed. Else
    /// the host would have more commands in flight than there are slots.
    #[inline]
    const fn advance_head(&mut self) {
        self.sq_head = match self.sq_head + 1 {
            head if head >= self.entries => 0,
            head => head,
        };
    }

    /// Notes the arrival of `bytes` bytes.
    const fn advance(&mut self, bytes: u32) {
        if let Incoming::Capsule { offset, .. } | Incoming::Transfer { offset, .. } =
            &mut self.incoming
        {
            // Cannot overflow: data lie within the length that was requested.
            *offset += bytes;
        }
    }

    fn handle_end<'a>(&mut self, is_intact: bool) -> Option<Arrival<'a>> {
        match std::mem::replace(&mut self.incoming, Incoming::Unowned) {
            Incoming::Unowned => None,
            Incoming::Capsule { slot, .. } => {
                self.requests[usize::from(slot)].state = RequestState::Owned;
                Some(Arrival::Received { slot, is_intact })
            }
            Incoming::Transfer { slot, offset } => self.end_transfer(slot, offset, is_intact),
        }
    }

    /// Notes the end of a data PDU, whose data end at `offset`.
    fn end_transfer<'a>(&mut self, slot: u16, offset: u32, is_intact: bool) -> Option<Arrival<'a>> {
        let request = &mut self.requests[usize::from(slot)];
        let RequestState::Transfer {
            length,
            received,
            is_intact: so_far,
        } = &mut request.state
        else {
            return None;
        };
        *received = offset;
        *so_far &= is_intact;
        if offset < *length {
            return None;
        }
        let is_intact = *so_far;
        request.state = RequestState::Owned;
        Some(Arrival::Received { slot, is_intact })
    }
}

impl TargetQueueConfig {
    /// Limits of a target that says nothing else: 4 KiB in capsules, 128 KiB per PDU, any digest.
    pub const DEFAULT: Self = Self {
        in_capsule_bytes: 4096,
        h2c_data_bytes_max: 131_072,
        digests: Digests {
            header: true,
            data: true,
        },
    };
}

/// Returns the transfer tag of a slot: never 0, and different at the next uses of the slot, so that
/// late data of an earlier command are not taken for those of a new one.
///
/// ```text
/// bit 15        11 10            0
///    | generation |   slot + 1    |
/// ```
const fn ttag(slot: u16, generation: u16) -> u16 {
    generation << SLOT_BITS | (slot + 1)
}

/// Returns the slot that a transfer tag names.
const fn slot_of(ttag: u16) -> Option<u16> {
    (ttag & ((1 << SLOT_BITS) - 1)).checked_sub(1)
}

const fn refusal(status: FatalStatus, information: u32) -> TermReq {
    TermReq {
        status,
        information,
    }
}

/// Slots of a connection before its Connect: hosts send nothing else meanwhile.
pub const UNCONNECTED_ENTRIES: u16 = 2;
/// Entries of a queue at most.
pub const QUEUE_ENTRIES_MAX: u16 = 1024;
/// Bytes of data in the capsule of an admin or fabrics command, fixed by the specification.
pub const ADMIN_CAPSULE_BYTES: u32 = 8192;

/// Bits of a transfer tag for the slot.
const SLOT_BITS: u32 = 11;
const _: () = assert!(QUEUE_ENTRIES_MAX < 1 << SLOT_BITS);

// Offsets in headers, as a termination request reports them.
const FLAGS: u32 = 1;
const PDU_LENGTH: u32 = 4;
const VERSION: u32 = 8;
const HPDA: u32 = 10;
const CCCID: u32 = 8;
const TTAG: u32 = 10;
const DATA_OFFSET: u32 = 12;
const DATA_LENGTH: u32 = 16;
/// Of a command capsule: the SGL descriptor's address and length.
const SGL: u32 = 8 + 24;
const SGL_LENGTH: u32 = SGL + 8;

#[cfg(test)]
mod tests;
