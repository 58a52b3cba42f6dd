//! Incremental decoder of a stream of PDUs, which may be split anywhere.

use crate::digest::{DIGEST_BYTES, Digest};
use crate::pdu::{
    FLAG_DATA_DIGEST, FLAG_HEADER_DIGEST, FatalStatus, Framing, Pdu, PduType, Side, TermReq,
};
use crate::wire::u32_at;

/// Decoder of the PDUs that one side of a connection receives.
///
/// # Protocol
/// Call [`next`](Self::next) with the bytes received until it returns `None`; it takes them off
/// the slice. A PDU with data gives [`Event::Pdu`], then [`Event::Data`] as often as its data
/// arrive in parts, then [`Event::End`]. One without data gives `Event::Pdu` alone. After the
/// PDU that initializes the connection, call [`establish`](Self::establish) before the next one.
///
/// Large data need not pass through a receive buffer: [`data_left`](Self::data_left) bytes may be
/// received straight into their place and reported to [`received`](Self::received).
///
/// # Limits
/// Lengths are checked as soon as the common header of 8 bytes is there, before anything is
/// allocated for them, against [`Limits`]. The decoder itself keeps one header of at most 132
/// bytes. It checks the form of a PDU; checks against commands in flight are the state machine's.
///
/// # Errors
/// A [`TermReq`] is final: report it to the peer with the [header at fault](Self::header), and the
/// connection ends. A wrong data digest is no such error, as it concerns one command only.
#[derive(Debug)]
pub struct Decoder {
    receiver: Side,
    limits: Limits,
    framing: Framing,
    is_established: bool,
    header: [u8; HEADER_BYTES_MAX],
    filled: usize,
    /// Length of the last header that was complete; it stays there until the next one begins.
    complete: usize,
    /// Offset of the data in a PDU that has some.
    data_offset: usize,
    state: State,
}

/// Most data that a PDU may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in the capsule of a command.
    pub in_capsule_bytes: u32,
    /// Bytes of a data PDU.
    pub data_bytes: u32,
}

/// Part of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A header, and the number of bytes of data that follow it.
    Pdu(Pdu, u32),
    /// The next bytes of its data.
    Data(&'a [u8]),
    /// End of the data.
    End {
        /// The data digest agrees, or there is none.
        is_intact: bool,
    },
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Collecting the header up to this length.
    Header(usize),
    /// Skipping padding before data.
    Padding { left: usize, data: u32 },
    /// Passing on data.
    Data { left: u32, digest: Digest },
    /// Collecting the digest of the data.
    Digest {
        digest: Digest,
        received: [u8; DIGEST_BYTES],
        filled: usize,
    },
    /// Reporting the end of data whose digest is not checked.
    End,
    /// Waiting for `establish`.
    Initializing,
    /// A PDU was refused.
    Refused,
}

impl Decoder {
    /// Creates the decoder of a new connection.
    #[must_use]
    pub const fn new(receiver: Side, limits: Limits) -> Self {
        Self {
            receiver,
            limits,
            framing: Framing::PLAIN,
            is_established: false,
            header: [0; HEADER_BYTES_MAX],
            filled: 0,
            complete: 0,
            data_offset: 0,
            state: State::Header(COMMON_BYTES),
        }
    }

    /// Sets the framing of the PDUs that follow the initialization of the connection.
    pub const fn establish(&mut self, framing: Framing) {
        self.framing = framing;
        self.is_established = true;
        self.expect_header();
    }

    /// Decodes the next part of a PDU; `None` if more bytes are needed.
    ///
    /// # Errors
    /// The reason to end the connection; the decoder then returns no more.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, TermReq> {
        loop {
            match self.state {
                State::Header(wanted) => {
                    if !fill(&mut self.header[..wanted], &mut self.filled, input) {
                        return Ok(None);
                    }
                    if let Some(event) = self.on_header(wanted)? {
                        return Ok(Some(event));
                    }
                }
                State::Padding { left, data } => {
                    let skipped = left.min(input.len());
                    *input = &input[skipped..];
                    if skipped < left {
                        let left = left - skipped;
                        self.state = State::Padding { left, data };
                        return Ok(None);
                    }
                    self.state = State::data(data);
                }
                State::Data { left, .. } => {
                    let length = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    if length == 0 {
                        return Ok(None);
                    }
                    let (data, rest) = input.split_at(length);
                    *input = rest;
                    self.received(data);
                    return Ok(Some(Event::Data(data)));
                }
                State::Digest {
                    digest,
                    mut received,
                    mut filled,
                } => {
                    let is_complete = fill(&mut received, &mut filled, input);
                    if !is_complete {
                        self.state = State::Digest {
                            digest,
                            received,
                            filled,
                        };
                        return Ok(None);
                    }
                    self.expect_header();
                    let is_intact = received == digest.to_bytes();
                    return Ok(Some(Event::End { is_intact }));
                }
                State::End => {
                    self.expect_header();
                    return Ok(Some(Event::End { is_intact: true }));
                }
                State::Initializing | State::Refused => return Ok(None),
            }
        }
    }

    /// Returns the part of the current PDU's header that has arrived, or that of the last PDU
    /// between two, at most 128 bytes: after an error the data of the termination request.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        let arrived = match self.filled {
            0 => self.complete,
            filled => filled,
        };
        &self.header[..arrived.min(TERM_DATA_BYTES_MAX as usize)]
    }

    /// Returns the number of bytes of data that are still to come; 0 outside data.
    #[must_use]
    pub const fn data_left(&self) -> u32 {
        match self.state {
            State::Data { left, .. } => left,
            _ => 0,
        }
    }

    /// Returns whether a PDU has begun and not ended.
    #[must_use]
    pub const fn is_within_pdu(&self) -> bool {
        match self.state {
            State::Header(_) => self.filled > 0,
            State::Padding { .. } | State::Data { .. } | State::Digest { .. } | State::End => true,
            State::Initializing | State::Refused => false,
        }
    }

    /// Notes data that were received into their place, at most [`data_left`](Self::data_left)
    /// bytes; any excess is ignored.
    pub fn received(&mut self, data: &[u8]) {
        let State::Data { left, mut digest } = self.state else {
            return;
        };
        let length = data.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if self.has_data_digest() {
            digest.add(&data[..length]);
        }
        // Cannot truncate: `length` is at most `left`.
        let left = left - u32::try_from(length).unwrap_or(left);
        self.state = match left {
            0 if self.has_data_digest() => State::Digest {
                digest,
                received: [0; DIGEST_BYTES],
                filled: 0,
            },
            0 => State::End,
            left => State::Data { left, digest },
        };
    }

    /// Goes on from a header of which `wanted` bytes have arrived.
    fn on_header<'a>(&mut self, wanted: usize) -> Result<Option<Event<'a>>, TermReq> {
        let kind = self.kind();
        if wanted == COMMON_BYTES {
            self.check_common()?;
            let digest = self.framing.header_digest_bytes(kind);
            self.state = State::Header(kind.header_bytes() + digest);
            return Ok(None);
        }
        self.check_digest()?;
        let Some(pdu) = Pdu::decode(kind, &self.header) else {
            return Err(self.refuse(FatalStatus::INVALID_HEADER, TYPE));
        };
        let data = self.data_bytes();
        self.check_lengths(&pdu, data)?;
        self.complete = wanted;
        if matches!(pdu, Pdu::IcReq(_) | Pdu::IcResp(_)) {
            self.state = State::Initializing;
        } else if data == 0 {
            self.expect_header();
        } else {
            let left = self.data_offset - wanted;
            self.state = match left {
                0 => State::data(data),
                left => State::Padding { left, data },
            };
        }
        Ok(Some(Event::Pdu(pdu, data)))
    }

    /// Checks the common header.
    fn check_common(&mut self) -> Result<(), TermReq> {
        let kind = self.kind();
        let invalid = FatalStatus::INVALID_HEADER;
        let sender = match self.receiver {
            Side::Host => Side::Controller,
            Side::Controller => Side::Host,
        };
        if kind.sender() != Some(sender) {
            return Err(self.refuse(invalid, TYPE));
        }
        let initializes = matches!(kind, PduType::IC_REQ | PduType::IC_RESP);
        // A controller may refuse the request to initialize the connection.
        let terminates = kind == PduType::C2H_TERM_REQ;
        if initializes == self.is_established && !terminates {
            return Err(self.refuse(FatalStatus::SEQUENCE, TYPE));
        }
        if usize::from(self.header[HEADER_LENGTH]) != kind.header_bytes() {
            return Err(self.refuse(invalid, HEADER_LENGTH));
        }
        let flags = self.header[FLAGS];
        let has_header_digest = self.framing.header_digest_bytes(kind) > 0;
        if (flags & FLAG_HEADER_DIGEST != 0) != has_header_digest {
            return Err(self.refuse(invalid, FLAGS));
        }
        let before_data = kind.header_bytes() + self.framing.header_digest_bytes(kind);
        let length = usize::try_from(self.length()).unwrap_or(usize::MAX);
        if length < before_data {
            return Err(self.refuse(invalid, LENGTH));
        }
        if length > before_data {
            self.check_data(kind, length, before_data)
        } else {
            Ok(())
        }
    }

    /// Checks the common header of a PDU with data.
    fn check_data(
        &mut self,
        kind: PduType,
        length: usize,
        before_data: usize,
    ) -> Result<(), TermReq> {
        let invalid = FatalStatus::INVALID_HEADER;
        let Some(most) = self.data_bytes_max(kind) else {
            return Err(self.refuse(invalid, LENGTH));
        };
        let mut offset = before_data;
        // A termination request reserves the field: its data follow the header.
        if kind.has_digests() {
            offset = usize::from(self.header[DATA_OFFSET]);
            let alignment = usize::from(self.framing.alignment());
            if offset < before_data || !offset.is_multiple_of(alignment) {
                return Err(self.refuse(invalid, DATA_OFFSET));
            }
        }
        self.data_offset = offset;
        let digest = self.framing.data_digest_bytes(kind);
        if (self.header[FLAGS] & FLAG_DATA_DIGEST != 0) != (digest > 0) {
            return Err(self.refuse(invalid, FLAGS));
        }
        match length.checked_sub(offset + digest) {
            None | Some(0) => Err(self.refuse(invalid, LENGTH)),
            Some(data) if data > most => Err(self.refuse(FatalStatus::LIMIT_EXCEEDED, LENGTH)),
            Some(_) => Ok(()),
        }
    }

    /// Checks the digest of a complete header.
    fn check_digest(&mut self) -> Result<(), TermReq> {
        let kind = self.kind();
        let length = kind.header_bytes();
        if self.framing.header_digest_bytes(kind) == 0 {
            return Ok(());
        }
        let received = u32_at(&self.header, length);
        if received.to_le_bytes() == Digest::of(&self.header[..length]).to_bytes() {
            return Ok(());
        }
        let information = received as usize;
        Err(self.refuse(FatalStatus::HEADER_DIGEST, information))
    }

    /// Checks that a header and the PDU's length speak of the same number of bytes.
    fn check_lengths(&mut self, pdu: &Pdu, data: u32) -> Result<(), TermReq> {
        if let Pdu::H2cData(header) | Pdu::C2hData(header) = pdu
            && (header.length != data || data == 0)
        {
            return Err(self.refuse(FatalStatus::INVALID_HEADER, TRANSFER_LENGTH));
        }
        Ok(())
    }

    /// Returns the number of bytes of data after the header.
    fn data_bytes(&self) -> u32 {
        let kind = self.kind();
        let before_data = kind.header_bytes() + self.framing.header_digest_bytes(kind);
        let length = usize::try_from(self.length()).unwrap_or(usize::MAX);
        if length == before_data {
            return 0;
        }
        let around = self.data_offset + self.framing.data_digest_bytes(kind);
        u32::try_from(length.saturating_sub(around)).unwrap_or(u32::MAX)
    }

    /// Returns the limit of a type's data; `None` for a type without data.
    fn data_bytes_max(&self, kind: PduType) -> Option<usize> {
        let bytes = match kind {
            PduType::CAPSULE_CMD => self.limits.in_capsule_bytes,
            PduType::H2C_DATA | PduType::C2H_DATA => self.limits.data_bytes,
            PduType::H2C_TERM_REQ | PduType::C2H_TERM_REQ => TERM_DATA_BYTES_MAX,
            _ => return None,
        };
        Some(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    const fn has_data_digest(&self) -> bool {
        self.framing.data_digest_bytes(self.kind()) > 0
    }

    const fn expect_header(&mut self) {
        self.filled = 0;
        self.state = State::Header(COMMON_BYTES);
    }

    const fn kind(&self) -> PduType {
        PduType(self.header[TYPE])
    }

    fn length(&self) -> u32 {
        u32_at(&self.header, LENGTH)
    }

    fn refuse(&mut self, status: FatalStatus, information: usize) -> TermReq {
        self.state = State::Refused;
        TermReq {
            status,
            information: u32::try_from(information).unwrap_or(u32::MAX),
        }
    }
}

impl State {
    fn data(left: u32) -> Self {
        Self::Data {
            left,
            digest: Digest::default(),
        }
    }
}

/// Moves bytes from `input` to `place`, of which `filled` are there; returns whether it is full.
#[inline]
fn fill(place: &mut [u8], filled: &mut usize, input: &mut &[u8]) -> bool {
    let length = input.len().min(place.len() - *filled);
    let (taken, rest) = input.split_at(length);
    place[*filled..*filled + length].copy_from_slice(taken);
    *filled += length;
    *input = rest;
    *filled == place.len()
}

/// Offsets in the common header.
const TYPE: usize = 0;
const FLAGS: usize = 1;
const HEADER_LENGTH: usize = 2;
const DATA_OFFSET: usize = 3;
const LENGTH: usize = 4;
/// Offset of the length in the header of a data PDU.
const TRANSFER_LENGTH: usize = 16;

const COMMON_BYTES: usize = 8;
/// The longest header, and a digest.
const HEADER_BYTES_MAX: usize = 128 + DIGEST_BYTES;
/// A termination request repeats a header, without its digest.
const TERM_DATA_BYTES_MAX: u32 = 128;

#[cfg(test)]
mod tests;
