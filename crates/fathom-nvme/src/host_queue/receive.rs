//! PDUs of the controller, checked against the commands in flight.

use super::{HostEvent, HostQueue, INDEX_MASK, Kind, QueueError, State, Wanted, length_of};
use crate::completion::{Completion, Status};
use crate::pdu::{DataPdu, FatalStatus, Framing, IcResp, Pdu, ReadyToTransfer, Side, TermReq};

impl HostQueue {
    /// Handles the header of a PDU.
    #[inline]
    pub(super) fn on_pdu<'a>(
        &mut self,
        pdu: &Pdu,
        data: u32,
    ) -> Result<Option<HostEvent<'a>>, QueueError> {
        let handled = match *pdu {
            Pdu::IcResp(response) => return self.on_initialized(response),
            Pdu::TermReq(_, request) => {
                let error = QueueError::Terminated(request);
                self.state = State::Ended(error);
                return Err(error);
            }
            Pdu::Response(completion) => self.on_response(completion),
            Pdu::C2hData(header) => self.on_read_data(header),
            Pdu::R2t(request) => self.on_request(request),
            // The decoder refuses what a controller does not send.
            Pdu::IcReq(_) | Pdu::Command(_) | Pdu::H2cData(_) => Err(fault(SEQUENCE, 0)),
        };
        handled.map_err(|fault| {
            let header = pdu.encode(self.framing, data);
            let length = header.as_bytes().len().min(HEADER_BYTES);
            self.refuse(fault, &header.as_bytes()[..length])
        })
    }

    fn on_initialized<'a>(
        &mut self,
        response: IcResp,
    ) -> Result<Option<HostEvent<'a>>, QueueError> {
        let header = Pdu::IcResp(response).encode(Framing::PLAIN, 0);
        let mut refuse = |at| Err(self.refuse(fault(INVALID, at), header.as_bytes()));
        if response.version != 0 {
            return refuse(8);
        }
        let Some(framing) = Framing::new(response.digests, response.cpda) else {
            return refuse(10);
        };
        let bytes_max = response.h2c_data_bytes_max;
        if bytes_max < H2C_DATA_BYTES_MIN || !bytes_max.is_multiple_of(4) {
            return refuse(12);
        }
        if response.digests != self.config.digests {
            let error = QueueError::Digests {
                wanted: self.config.digests,
                granted: response.digests,
            };
            self.state = State::Ended(error);
            return Err(error);
        }
        self.framing = framing;
        self.h2c_data_bytes_max = bytes_max;
        // The alignment that this side requests, of 4 bytes, is none beyond that of the headers.
        let received = Framing::new(response.digests, 0).unwrap_or(Framing::PLAIN);
        self.decoder.establish(received);
        self.state = State::Established;
        Ok(Some(HostEvent::Initialized))
    }

    fn on_response<'a>(
        &mut self,
        completion: Completion,
    ) -> Result<Option<HostEvent<'a>>, TermReq> {
        let index = self
            .index_of(completion.cid)
            .ok_or(fault(INVALID, CID_AT + 12))?;
        let entry = &mut self.entries[usize::from(index)];
        let is_moved = matches!(entry.kind, Kind::Plain) || entry.moved == entry.length;
        if completion.status.is_success() && !is_moved || entry.held_back.is_some() {
            return Err(fault(SEQUENCE, 0));
        }
        if entry.unsent > 0 {
            entry.held_back = Some(completion);
            return Ok(None);
        }
        Ok(Some(self.complete(index, completion)))
    }

    fn on_read_data<'a>(&mut self, header: DataPdu) -> Result<Option<HostEvent<'a>>, TermReq> {
        let index = self.index_of(header.cid).ok_or(fault(INVALID, CID_AT))?;
        let entry = &mut self.entries[usize::from(index)];
        let left = entry.length - entry.moved;
        if entry.kind != Kind::Read || header.offset != entry.moved || header.length > left {
            return Err(fault(FatalStatus::OUT_OF_RANGE, OFFSET_AT));
        }
        let at = entry.moved;
        entry.moved += header.length;
        if header.is_success && !(header.is_last && entry.moved == entry.length) {
            return Err(fault(INVALID, FLAGS_AT));
        }
        self.state = State::Receiving {
            index,
            at,
            is_success: header.is_success,
        };
        Ok(None)
    }

    fn on_request<'a>(
        &mut self,
        request: ReadyToTransfer,
    ) -> Result<Option<HostEvent<'a>>, TermReq> {
        let index = self.index_of(request.cid).ok_or(fault(INVALID, CID_AT))?;
        let entry = &mut self.entries[usize::from(index)];
        let left = entry.length - entry.moved;
        let is_next = entry.kind == Kind::Write && request.offset == entry.moved;
        if !is_next || request.length > left || request.length == 0 {
            return Err(fault(FatalStatus::OUT_OF_RANGE, OFFSET_AT));
        }
        if entry.held_back.is_some() {
            return Err(fault(SEQUENCE, 0));
        }
        entry.moved += request.length;
        Ok(Some(HostEvent::Wanted(Wanted {
            tag: entry.tag,
            offset: entry.offset + request.offset,
            length: request.length,
            request,
        })))
    }

    #[inline]
    pub(super) fn on_data<'a>(&mut self, bytes: &'a [u8]) -> Option<HostEvent<'a>> {
        // Data of a termination request have ended the connection before.
        let State::Receiving { index, at, .. } = &mut self.state else {
            return None;
        };
        let entry = &self.entries[usize::from(*index)];
        let offset = entry.offset + *at;
        *at += length_of(bytes);
        Some(HostEvent::Data {
            tag: entry.tag,
            offset,
            bytes,
        })
    }

    #[inline]
    pub(super) fn on_end<'a>(&mut self, is_intact: bool) -> Option<HostEvent<'a>> {
        let State::Receiving {
            index, is_success, ..
        } = self.state
        else {
            return None;
        };
        self.state = State::Established;
        let entry = &mut self.entries[usize::from(index)];
        entry.is_corrupt |= !is_intact;
        let completion = Completion {
            cid: entry.cid,
            ..Completion::default()
        };
        is_success.then(|| self.complete(index, completion))
    }

    #[inline]
    pub(super) fn complete<'a>(&mut self, index: u16, mut completion: Completion) -> HostEvent<'a> {
        let entry = &mut self.entries[usize::from(index)];
        if entry.is_corrupt && completion.status.is_success() {
            completion.status = Status::TRANSIENT_TRANSPORT_ERROR;
        }
        entry.kind = Kind::Free;
        entry.held_back = None;
        let tag = entry.tag;
        self.free.push(index);
        HostEvent::Completed { tag, completion }
    }

    /// Returns the entry of a command in flight.
    #[inline]
    fn index_of(&self, cid: u16) -> Option<u16> {
        let index = cid & INDEX_MASK;
        let entry = self.entries.get(usize::from(index))?;
        (entry.cid == cid && entry.kind != Kind::Free).then_some(index)
    }

    /// Ends the connection because of a fault of the controller, and reports the fault to it.
    #[cold]
    pub(super) fn refuse(&mut self, fault: TermReq, header: &[u8]) -> QueueError {
        let request = Pdu::TermReq(Side::Host, fault);
        let encoded = request.encode(Framing::PLAIN, length_of(header));
        self.sends.push_bytes(encoded.as_bytes());
        self.sends.push_bytes(header);
        let error = QueueError::Violation(fault);
        self.state = State::Ended(error);
        error
    }
}

pub(super) const fn fault(status: FatalStatus, at: u32) -> TermReq {
    TermReq {
        status,
        information: at,
    }
}

const INVALID: FatalStatus = FatalStatus::INVALID_HEADER;
const SEQUENCE: FatalStatus = FatalStatus::SEQUENCE;

/// Least MAXH2CDATA.
const H2C_DATA_BYTES_MIN: u32 = 4096;
/// Header in a termination request, at most.
const HEADER_BYTES: usize = 128;

// Offsets of fields in a header.
const FLAGS_AT: u32 = 1;
const CID_AT: u32 = 8;
const OFFSET_AT: u32 = 12;
