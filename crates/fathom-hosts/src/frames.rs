//! Messages in small frames, a limited number of which are on their way to a rank.

use std::collections::{BTreeMap, VecDeque};

use crate::Rank;
use crate::encoding::MESSAGE_BYTES_MAX;
use crate::error::{MessageError, MessageErrorKind};

/// Cuts messages into frames, and puts them together again: for carriers that deliver frames of a
/// rank in order, but wait for the receiver if a frame is large, or keep what they send until it
/// has arrived.
///
/// [`queue`](Self::queue) messages and send what [`next_frame`](Self::next_frame) returns; hand
/// over what arrives by [`handle_frame`](Self::handle_frame) and take messages with
/// [`next_message`](Self::next_message).
///
/// A frame has at most [`FRAME_BYTES_MAX`] bytes, and at most [`WINDOW`] of them are on their way
/// to a rank: each frame acknowledges those that have arrived in the other direction. So a carrier
/// needs [`frames_max`](Self::frames_max) places and no more, even if a rank takes nothing. What
/// waits here for a rank is bounded too.
///
/// ```text
/// byte 0     bit 0: begins a message   bit 1: ends it   bit 2: bulk   bit 3: arrivals only
/// bytes 1-4  frames that have arrived from the receiver, bit 3 aside, modulo 2³²
/// bytes 5-   part of the message
/// ```
#[derive(Debug, Default)]
pub struct Frames {
    peers: BTreeMap<Rank, Peer>,
    /// Ranks for which there may be something to send; a rank may be in here twice.
    ready: VecDeque<Rank>,
    arrived: [VecDeque<(Rank, Vec<u8>)>; 2],
}

/// Kind of messages, each with an order of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Messages of a [`Link`](crate::Link).
    Control,
    /// Long texts in pieces.
    Bulk,
}

/// State of the exchange with one rank.
#[derive(Debug, Default)]
struct Peer {
    /// Messages to send; the first one from `offset` on.
    queue: VecDeque<(Channel, Vec<u8>)>,
    offset: usize,
    queued_bytes: usize,
    /// Frames sent, and those of them that have arrived.
    sent: u32,
    confirmed: u32,
    /// Frames that have arrived here, and the number last acknowledged.
    arrived: u32,
    acknowledged: u32,
    /// Beginning of a message of which more frames follow.
    partial: Option<(Channel, Vec<u8>)>,
}

impl Frames {
    /// Creates an exchange in which nothing was sent yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the largest number of frames that are on their way from one of `ranks` ranks.
    #[must_use]
    pub const fn frames_max(ranks: u32) -> usize {
        // Two more in each direction: a rank acknowledges arrivals after half a window, and at most
        // one window of them before it hears that its own frames have arrived.
        (WINDOW as usize + 2) * ranks as usize
    }

    /// Queues a message, and returns whether there was room. A message that is longer than
    /// [`MESSAGE_BYTES_MAX`] has none.
    pub fn queue(&mut self, channel: Channel, to: Rank, message: &[u8]) -> bool {
        let peer = self.peers.entry(to).or_default();
        let bytes = peer.queued_bytes + message.len();
        if message.len() > MESSAGE_BYTES_MAX || bytes > QUEUED_BYTES_MAX {
            return false;
        }
        peer.queued_bytes = bytes;
        peer.queue.push_back((channel, message.to_vec()));
        self.ready.push_back(to);
        true
    }

    /// Takes the next frame that may be sent, with its receiver.
    pub fn next_frame(&mut self) -> Option<(Rank, Vec<u8>)> {
        while let Some(&to) = self.ready.front() {
            // It stays in front while it has frames: a message is sent as a whole where it can.
            if let Some(frame) = self.peers.get_mut(&to).and_then(Peer::next_frame) {
                return Some((to, frame));
            }
            self.ready.pop_front();
        }
        None
    }

    /// Handles a frame that has arrived.
    ///
    /// # Errors
    /// It is none of this format, or does not follow the one before.
    pub fn handle_frame(&mut self, from: Rank, frame: &[u8]) -> Result<(), MessageError> {
        let peer = self.peers.entry(from).or_default();
        let whole = peer.handle_frame(frame)?;
        self.ready.push_back(from);
        if let Some((channel, message)) = whole {
            self.arrived[channel.index()].push_back((from, message));
        }
        Ok(())
    }

    /// Takes the next message of a channel that has arrived whole, with its sender.
    pub fn next_message(&mut self, channel: Channel) -> Option<(Rank, Vec<u8>)> {
        self.arrived[channel.index()].pop_front()
    }

    /// Returns whether all that was queued is sent.
    #[must_use]
    pub fn is_sent(&self) -> bool {
        self.peers.values().all(|peer| peer.queue.is_empty())
    }
}

impl Peer {
    fn next_frame(&mut self) -> Option<Vec<u8>> {
        let on_their_way = self.sent.wrapping_sub(self.confirmed);
        let Some((channel, message)) = self.queue.front().filter(|_| on_their_way < WINDOW) else {
            return self.arrivals();
        };
        let rest = &message[self.offset..];
        let (part, later) = rest.split_at(rest.len().min(FRAME_BYTES_MAX - HEAD_BYTES));
        let mut flags = channel.index_bit();
        flags |= if self.offset == 0 { BEGINS } else { 0 };
        flags |= if later.is_empty() { ENDS } else { 0 };
        let frame = frame(flags, self.arrived, part);
        self.offset += part.len();
        self.sent = self.sent.wrapping_add(1);
        self.acknowledged = self.arrived;
        if later.is_empty() {
            self.queued_bytes -= self.offset;
            self.offset = 0;
            self.queue.pop_front();
        }
        Some(frame)
    }

    /// Returns a frame that only acknowledges arrivals, once there were many and no other frame has
    /// done so.
    fn arrivals(&mut self) -> Option<Vec<u8>> {
        if self.arrived.wrapping_sub(self.acknowledged) < WINDOW / 2 {
            return None;
        }
        self.acknowledged = self.arrived;
        Some(frame(ARRIVALS, self.arrived, &[]))
    }

    /// Returns the message that the frame completes, if it does.
    fn handle_frame(&mut self, frame: &[u8]) -> Result<Option<(Channel, Vec<u8>)>, MessageError> {
        let refuse = |byte, field, kind| MessageError { byte, field, kind };
        let Some((head, part)) = frame.split_first_chunk::<HEAD_BYTES>() else {
            return Err(refuse(frame.len(), "frame", MessageErrorKind::CutShort));
        };
        if frame.len() > FRAME_BYTES_MAX {
            let limit = MessageErrorKind::TooLarge(FRAME_BYTES_MAX as u64);
            return Err(refuse(0, "frame", limit));
        }
        let [flags, confirmed @ ..] = *head;
        let confirmed = u32::from_le_bytes(confirmed);
        let more = confirmed.wrapping_sub(self.confirmed);
        if more > self.sent.wrapping_sub(self.confirmed) {
            return Err(refuse(1, "arrivals", MessageErrorKind::Order));
        }
        self.confirmed = confirmed;
        if flags == ARRIVALS && part.is_empty() {
            return Ok(None);
        }
        if flags & !(BEGINS | ENDS | BULK) != 0 {
            return Err(refuse(0, "frame", MessageErrorKind::Unknown(flags)));
        }
        self.arrived = self.arrived.wrapping_add(1);
        let channel = match flags & BULK {
            0 => Channel::Control,
            _ => Channel::Bulk,
        };
        let begun = match (self.partial.take(), flags & BEGINS != 0) {
            (None, true) => Vec::new(),
            (Some((same, begun)), false) if same == channel => begun,
            _ => return Err(refuse(0, "frame", MessageErrorKind::Order)),
        };
        let mut message = begun;
        if message.len() + part.len() > MESSAGE_BYTES_MAX {
            let limit = MessageErrorKind::TooLarge(MESSAGE_BYTES_MAX as u64);
            return Err(refuse(0, "length", limit));
        }
        message.extend_from_slice(part);
        if flags & ENDS != 0 {
            return Ok(Some((channel, message)));
        }
        self.partial = Some((channel, message));
        Ok(None)
    }
}

impl Channel {
    const fn index(self) -> usize {
        self as usize
    }

    const fn index_bit(self) -> u8 {
        match self {
            Self::Control => 0,
            Self::Bulk => BULK,
        }
    }
}

fn frame(flags: u8, arrived: u32, part: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEAD_BYTES + part.len());
    frame.push(flags);
    frame.extend_from_slice(&arrived.to_le_bytes());
    frame.extend_from_slice(part);
    frame
}

const BEGINS: u8 = 1;
const ENDS: u8 = 2;
const BULK: u8 = 4;
const ARRIVALS: u8 = 8;
const HEAD_BYTES: usize = 5;

/// Longest frame: below the smallest limit, 4 KiB in Open MPI's shared memory with its own head,
/// from which on an MPI sends only once the receiver asks for it, and a receiver waits.
pub const FRAME_BYTES_MAX: usize = 3_584;
/// Most frames on their way to a rank. A guess: a piece of a record takes 18.
pub const WINDOW: u32 = 24;
/// Most bytes that wait for a rank: four messages of the largest size. Beyond, it takes nothing,
/// and hears the rest when it asks again.
const QUEUED_BYTES_MAX: usize = 4 * MESSAGE_BYTES_MAX;

#[cfg(test)]
mod tests {
    use super::*;

    fn deliver(from: Rank, sender: &mut Frames, to: Rank, receiver: &mut Frames) -> usize {
        let mut count = 0;
        while let Some((for_whom, frame)) = sender.next_frame() {
            assert_eq!(for_whom, to);
            assert!(frame.len() <= FRAME_BYTES_MAX);
            receiver.handle_frame(from, &frame).unwrap();
            count += 1;
        }
        count
    }

    const A: Rank = Rank::new(0);
    const B: Rank = Rank::new(7);

    #[test]
    fn messages_of_all_lengths_arrive_whole_and_in_order() {
        let (mut a, mut b) = (Frames::new(), Frames::new());
        let part = FRAME_BYTES_MAX - HEAD_BYTES;
        for length in [0, 1, part - 1, part, part + 1, 2 * part, MESSAGE_BYTES_MAX] {
            let message = vec![7; length];
            for channel in [Channel::Bulk, Channel::Control] {
                assert!(a.queue(channel, B, &message));
                while !a.is_sent() {
                    deliver(A, &mut a, B, &mut b);
                    deliver(B, &mut b, A, &mut a);
                }
                assert_eq!(b.next_message(channel), Some((A, message.clone())));
                assert_eq!(b.next_message(channel), None);
            }
        }
        assert!(!a.queue(Channel::Bulk, B, &vec![0; MESSAGE_BYTES_MAX + 1]));
    }

    #[test]
    fn a_rank_that_takes_nothing_costs_no_more_than_a_window() {
        let mut a = Frames::new();
        let mut queued = 0;
        while a.queue(Channel::Control, B, &[1; 1024]) {
            queued += 1024;
        }
        assert_eq!(queued, QUEUED_BYTES_MAX);
        let sent = std::iter::from_fn(|| a.next_frame()).count();
        assert_eq!(sent, WINDOW as usize);
        // Room again: what was sent no longer waits.
        assert!(a.queue(Channel::Control, B, &[1; 1024]));
        assert_eq!(a.next_frame(), None);
        // Another rank is not held up.
        assert!(a.queue(Channel::Control, A, b"x"));
        assert_eq!(a.next_frame(), Some((A, b"\x03\0\0\0\0x".to_vec())));
    }

    #[test]
    fn one_sided_traffic_goes_on() {
        let (mut a, mut b) = (Frames::new(), Frames::new());
        let (mut there, mut back) = (0, 0);
        for number in 0..1000_u32 {
            assert!(a.queue(Channel::Control, B, &number.to_le_bytes()));
            there += deliver(A, &mut a, B, &mut b);
            let answers = deliver(B, &mut b, A, &mut a);
            assert!(answers <= 1);
            back += answers;
            let message = b.next_message(Channel::Control);
            assert_eq!(message, Some((A, number.to_le_bytes().to_vec())));
        }
        assert_eq!((there, back), (1000, 1000 / (WINDOW as usize / 2)));
    }

    #[track_caller]
    fn refused(frames: &[&[u8]], want: &str) {
        let mut receiver = Frames::new();
        let (last, before) = frames.split_last().unwrap();
        for frame in before {
            receiver.handle_frame(A, frame).unwrap();
        }
        let error = receiver.handle_frame(A, last).unwrap_err();
        assert_eq!(error.to_string(), format!("message of a rank: byte {want}"));
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        refused(&[b"\x03\0\0"], "3: frame: cut short");
        refused(&[b"\x13\0\0\0\0"], "0: frame: value 19 is not known");
        refused(&[b"\x0a\0\0\0\0"], "0: frame: value 10 is not known");
        refused(&[b"\x03\x01\0\0\0"], "1: arrivals: indexes do not rise");
        refused(&[b"\x02\0\0\0\0"], "0: frame: indexes do not rise");
        let begins: &[u8] = b"\x01\0\0\0\0x";
        refused(&[begins, begins], "0: frame: indexes do not rise");
        refused(&[begins, b"\x06\0\0\0\0"], "0: frame: indexes do not rise");
        refused(&[&[0; FRAME_BYTES_MAX + 1]], "0: frame: over 3584");
        let mut long = vec![0; FRAME_BYTES_MAX];
        long[0] = BEGINS;
        let mut more = long.clone();
        more[0] = 0;
        let mut frames = vec![&more[..]; 19];
        frames[0] = &long;
        refused(&frames, "0: length: over 65536");
    }
}
