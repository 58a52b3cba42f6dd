//! Commands and data on their way to the controller.

use super::{
    ADMIN_IN_CAPSULE_BYTES, CommandData, Entry, HostQueue, INDEX_BITS, INDEX_MASK, Kind, State,
    Wanted, length_of,
};
use crate::command::{Command, DataPointer, Opcode};
use crate::digest::Digest;
use crate::pdu::{DataPdu, Pdu, ReadyToTransfer};

impl HostQueue {
    /// Sends a command; the data pointer and the identifier of `command` are replaced. `offset` is
    /// where its data begin in the owner's buffer. Returns false if too many are in flight.
    ///
    /// # Panics
    /// The connection is not initialized, or more data than the queue's configuration permits.
    #[inline]
    pub fn submit(
        &mut self,
        command: Command,
        tag: u32,
        offset: u32,
        data: CommandData<'_>,
    ) -> bool {
        assert!(
            self.state != State::Initializing,
            "before the connection is initialized"
        );
        let Some(index) = self.free.pop() else {
            return false;
        };
        let entry = &mut self.entries[usize::from(index)];
        let (kind, length) = match data {
            CommandData::None => (Kind::Plain, 0),
            CommandData::Read(length) => (Kind::Read, length),
            CommandData::Write(data) => (Kind::Write, length_of(data)),
            CommandData::Inline(data) => (Kind::Plain, length_of(data)),
        };
        assert!(length <= self.config.data_bytes_max, "too much data");
        let cid = entry.cid.wrapping_add(1 << INDEX_BITS);
        *entry = Entry {
            tag,
            cid,
            kind,
            is_corrupt: false,
            offset,
            length,
            moved: 0,
            unsent: 0,
            held_back: None,
        };
        let pointer = DataPointer::Transport { length };
        let command = command.with_cid(cid);
        match data {
            CommandData::None | CommandData::Read(_) => {
                self.push(Pdu::Command(command.with_data(pointer)), 0);
            }
            CommandData::Inline(data) => self.send_in_capsule(command, data, true),
            CommandData::Write(data) if length <= self.in_capsule_bytes(command.opcode()) => {
                self.entries[usize::from(index)].kind = Kind::Plain;
                self.send_in_capsule(command, data, false);
            }
            CommandData::Write(_) => self.push(Pdu::Command(command.with_data(pointer)), 0),
        }
        true
    }

    /// Sends the data that the controller asked for: `length` bytes from `offset` of the buffer.
    ///
    /// # Panics
    /// Data of another length.
    pub fn transfer(&mut self, wanted: Wanted, data: &[u8]) {
        assert_eq!(length_of(data), wanted.length, "data of another length");
        let ReadyToTransfer { cid, ttag, .. } = wanted.request;
        let mut done = 0;
        while done < wanted.length {
            let length = (wanted.length - done).min(self.h2c_data_bytes_max);
            let header = Pdu::H2cData(DataPdu {
                cid,
                ttag,
                offset: wanted.request.offset + done,
                length,
                is_last: done + length == wanted.length,
                is_success: false,
            });
            self.push(header, length);
            let part = &data[done as usize..][..length as usize];
            self.push_data(wanted.tag, cid, wanted.offset + done, part);
            done += length;
        }
    }

    fn in_capsule_bytes(&self, opcode: Opcode) -> u32 {
        match opcode {
            Opcode::FABRICS => ADMIN_IN_CAPSULE_BYTES,
            _ => self.config.in_capsule_bytes,
        }
    }

    fn send_in_capsule(&mut self, command: Command, data: &[u8], is_copied: bool) {
        let length = length_of(data);
        let pointer = DataPointer::InCapsule { offset: 0, length };
        self.push(Pdu::Command(command.with_data(pointer)), length);
        let cid = command.cid();
        if is_copied {
            self.sends.push_bytes(data);
            self.push_digest(data);
        } else {
            let entry = self.entries[usize::from(cid & INDEX_MASK)];
            self.push_data(entry.tag, cid, entry.offset, data);
        }
    }

    #[inline]
    fn push(&mut self, pdu: Pdu, data: u32) {
        self.sends
            .push_bytes(pdu.encode(self.framing, data).as_bytes());
    }

    fn push_data(&mut self, tag: u32, cid: u16, offset: u32, data: &[u8]) {
        self.entries[usize::from(cid & INDEX_MASK)].unsent += 1;
        self.sends.push_data(tag, cid, offset, length_of(data));
        self.push_digest(data);
    }

    fn push_digest(&mut self, data: &[u8]) {
        if self.config.digests.data {
            self.sends.push_bytes(&Digest::of(data).to_bytes());
        }
    }
}
