//! Queue pair as its host sees it: commands in, completions out.

use crate::completion::Completion;
use crate::decoder::{Decoder, Event, Limits};
use crate::pdu::{Digests, Framing, IcReq, Pdu, Side};
use crate::send_queue::SendQueue;

mod event;
mod receive;
mod send;

pub use event::{CommandData, HostEvent, QueueError, Wanted};

/// Host's end of a connection: one queue pair, admin or I/O.
///
/// # Protocol
/// A new queue has a request to initialize the connection to send. Feed [`next`](Self::next) with
/// what arrives until it returns [`HostEvent::Initialized`], then [`submit`](Self::submit) a
/// Connect, and commands after its completion. Send what [`unsent`](Self::unsent) has, and report
/// it to [`sent`](Self::sent). Each command completes exactly once, unless the connection ends.
///
/// The queue sees no buffer: the owner knows a command by its tag, and copies data to and from the
/// offsets that events name. A command's data belong to the queue until its completion: one that
/// arrives while data are still unsent is held back until they are sent.
///
/// # Cost
/// No allocation, lock or map per command: a command identifier is the index of an entry and the
/// number of times it was used, so that a late PDU of an earlier command does not pass for this
/// one's.
///
/// # Errors
/// A [`QueueError`] is final: close the connection after an attempt to send what is unsent, which
/// reports the fault to the controller. Commands in flight have no completion then.
#[derive(Debug)]
pub struct HostQueue {
    config: HostQueueConfig,
    decoder: Decoder,
    state: State,
    /// Form of what is sent.
    framing: Framing,
    h2c_data_bytes_max: u32,
    entries: Box<[Entry]>,
    /// Entries without a command, used last first.
    free: Vec<u16>,
    /// Commands whose completions were held back, and whose data have been sent since.
    held_back: Vec<u16>,
    sends: SendQueue,
}

/// Configuration of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostQueueConfig {
    /// Commands in flight at most, 1 to [`HostQueue::COMMANDS_MAX`].
    pub commands: u16,
    /// Digests to request. A controller that does not agree is refused.
    pub digests: Digests,
    /// Bytes of data that the capsule of a command may carry (IOCCSZ); 8192 on the admin queue.
    pub in_capsule_bytes: u32,
    /// Bytes of data that a command may have.
    pub data_bytes_max: u32,
}

/// State of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Initializing,
    /// Between PDUs, or within a header.
    Established,
    /// Within the data of a read.
    Receiving {
        index: u16,
        /// Offset in the command's data of the next byte.
        at: u32,
        is_success: bool,
    },
    Ended(QueueError),
}

/// Command, or a place for one.
#[derive(Clone, Copy, Debug)]
struct Entry {
    tag: u32,
    /// Identifier of the command: the index, and the number of uses above it.
    cid: u16,
    kind: Kind,
    /// A digest of its data was wrong.
    is_corrupt: bool,
    /// Offset of its data in the owner's buffer.
    offset: u32,
    /// Bytes of its data.
    length: u32,
    /// Bytes of them received, or requested by the controller.
    moved: u32,
    /// Pieces of its data that are unsent.
    unsent: u32,
    /// Completion held back until they are sent.
    held_back: Option<Completion>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Free,
    /// No data, or all of them are in the capsule.
    Plain,
    Read,
    /// Data on request.
    Write,
}

impl HostQueue {
    /// Most commands in flight.
    pub const COMMANDS_MAX: u16 = 1 << INDEX_BITS;

    /// Creates the queue of a new connection.
    ///
    /// # Panics
    /// `commands` is 0 or above [`Self::COMMANDS_MAX`].
    #[must_use]
    pub fn new(config: HostQueueConfig) -> Self {
        let commands = config.commands;
        assert!((1..=Self::COMMANDS_MAX).contains(&commands));
        let limits = Limits {
            in_capsule_bytes: 0,
            data_bytes: config.data_bytes_max,
        };
        let mut sends = SendQueue::new(commands.into());
        let request = Pdu::IcReq(IcReq {
            digests: config.digests,
            ..IcReq::default()
        });
        sends.push_bytes(request.encode(Framing::PLAIN, 0).as_bytes());
        Self {
            config,
            decoder: Decoder::new(Side::Host, limits),
            state: State::Initializing,
            framing: Framing::PLAIN,
            h2c_data_bytes_max: 0,
            entries: (0..commands).map(Entry::free).collect(),
            free: (0..commands).rev().collect(),
            held_back: Vec::with_capacity(commands.into()),
            sends,
        }
    }

    /// Takes the next event from bytes received; `None` if more are needed.
    ///
    /// # Errors
    /// The reason for which the connection ends; the same for every later call.
    #[inline]
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<HostEvent<'a>>, QueueError> {
        if let Some(index) = self.held_back.pop() {
            let completion = self.entries[usize::from(index)].held_back;
            return Ok(Some(self.complete(index, completion.unwrap_or_default())));
        }
        loop {
            if let State::Ended(error) = self.state {
                return Err(error);
            }
            let event = match self.decoder.next(input) {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(None),
                Err(fault) => {
                    let mut header = [0; 128];
                    let seen = self.decoder.header();
                    let length = seen.len();
                    header[..length].copy_from_slice(seen);
                    return Err(self.refuse(fault, &header[..length]));
                }
            };
            let event = match event {
                Event::Pdu(pdu, data) => self.on_pdu(&pdu, data)?,
                Event::Data(bytes) => self.on_data(bytes),
                Event::End { is_intact } => self.on_end(is_intact),
            };
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    /// Returns where the next data of a read belong, if the queue is within such: tag, offset and
    /// the most bytes. They may be received straight into their place and be reported to
    /// [`received`](Self::received).
    #[must_use]
    #[inline]
    pub fn receiving(&self) -> Option<(u32, u32, u32)> {
        let State::Receiving { index, at, .. } = self.state else {
            return None;
        };
        let entry = &self.entries[usize::from(index)];
        let left = self.decoder.data_left();
        (left > 0).then_some((entry.tag, entry.offset + at, left))
    }

    /// Notes data that were received into their place, at most as many as
    /// [`receiving`](Self::receiving) returned.
    pub fn received(&mut self, data: &[u8]) {
        let before = self.decoder.data_left();
        self.decoder.received(data);
        let taken = before - self.decoder.data_left();
        if let State::Receiving { at, .. } = &mut self.state {
            *at += taken;
        }
    }

    /// Returns what is to be sent.
    #[must_use]
    #[inline]
    pub const fn unsent(&self) -> &SendQueue {
        &self.sends
    }

    /// Takes off bytes that the socket took. Ask [`next`](Self::next) for completions that waited
    /// for this.
    ///
    /// # Panics
    /// More bytes than are unsent.
    #[inline]
    pub fn sent(&mut self, bytes: usize) {
        let (entries, held_back) = (&mut self.entries, &mut self.held_back);
        self.sends.sent(bytes, |cid| {
            let index = cid & INDEX_MASK;
            let entry = &mut entries[usize::from(index)];
            if entry.cid == cid {
                entry.unsent -= 1;
                if entry.unsent == 0 && entry.held_back.is_some() {
                    held_back.push(index);
                }
            }
        });
    }

    /// Returns whether completions wait that need no more bytes: see [`sent`](Self::sent).
    #[must_use]
    pub fn has_held_back(&self) -> bool {
        !self.held_back.is_empty()
    }

    /// Returns how many more commands can be submitted.
    #[must_use]
    #[inline]
    pub fn room(&self) -> usize {
        self.free.len()
    }

    /// Returns the number of commands in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Returns the tags of the commands in flight: those without a completion when a connection
    /// ends.
    pub fn tags(&self) -> impl Iterator<Item = u32> {
        let used = self.entries.iter().filter(|entry| entry.kind != Kind::Free);
        used.map(|entry| entry.tag)
    }

    /// Sets the bytes of data that a capsule may carry, once the controller's are known.
    pub const fn set_in_capsule_bytes(&mut self, bytes: u32) {
        self.config.in_capsule_bytes = bytes;
    }
}

impl Entry {
    const fn free(index: u16) -> Self {
        Self {
            tag: 0,
            cid: index,
            kind: Kind::Free,
            is_corrupt: false,
            offset: 0,
            length: 0,
            moved: 0,
            unsent: 0,
            held_back: None,
        }
    }
}

/// Returns a length that is below 4 GiB, as all data of a command are.
#[inline]
fn length_of(data: &[u8]) -> u32 {
    u32::try_from(data.len()).unwrap_or(u32::MAX)
}

/// Bits of a command identifier that are an index; those above count uses.
const INDEX_BITS: u32 = 10;
const INDEX_MASK: u16 = (1 << INDEX_BITS) - 1;

/// Data in a capsule of the admin queue, and of Connect on any queue, independent of IOCCSZ.
pub(crate) const ADMIN_IN_CAPSULE_BYTES: u32 = 8192;
#[cfg(test)]
mod tests;
