//! Bytes that a connection has to send, in order: requests, and data of their owner.

use std::collections::VecDeque;

use crate::request::REQUEST_BYTES;

/// Unsent bytes of a connection.
///
/// Requests are kept here, back to back, so that those without data leave as one piece. Data stay
/// in their owner's buffers until they are sent. The owner gathers [`pieces`](Self::pieces) into
/// one system call and reports to its queue the bytes that the socket took.
///
/// Not the queue of `fathom-nvme`: that one reports when data have left, this one when a whole
/// request has, before which a reply to it breaks the protocol.
#[derive(Debug)]
pub struct SendQueue {
    /// Requests on the wire; the bytes before `start` have been sent.
    bytes: Vec<u8>,
    start: usize,
    order: VecDeque<Unsent>,
}

/// Part of the bytes to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// Data of the request with this tag, in its owner's buffer.
    Data {
        /// Tag of the request.
        tag: u32,
        /// Offset in the buffer.
        offset: u32,
        /// Bytes.
        length: u32,
    },
}

/// Rest of a request.
#[derive(Clone, Copy, Debug)]
struct Unsent {
    tag: u32,
    /// Bytes left of the request itself.
    header: usize,
    /// Offset of the rest of its data, and their bytes.
    offset: u32,
    length: u32,
}

impl SendQueue {
    /// Creates a queue with space for `requests` requests.
    pub(crate) fn new(requests: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(requests * REQUEST_BYTES),
            start: 0,
            order: VecDeque::with_capacity(requests),
        }
    }

    /// Returns whether everything has been sent.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns what is to be sent, in order. Neighbouring requests without data are one piece.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let (mut from, mut requests, mut data) = (self.start, self.order.iter(), None);
        std::iter::from_fn(move || {
            if data.is_some() {
                return data.take();
            }
            let begin = from;
            for unsent in requests.by_ref() {
                from += unsent.header;
                if unsent.length > 0 {
                    data = Some(Piece::Data {
                        tag: unsent.tag,
                        offset: unsent.offset,
                        length: unsent.length,
                    });
                    break;
                }
            }
            match from > begin {
                true => Some(Piece::Bytes(&self.bytes[begin..from])),
                false => data.take(),
            }
        })
    }

    /// Appends a request with data at this offset.
    #[inline]
    pub(crate) fn push(
        &mut self,
        tag: u32,
        request: &[u8; REQUEST_BYTES],
        (offset, length): (u32, u32),
    ) {
        if self.bytes.len() + REQUEST_BYTES > self.bytes.capacity() && self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(request);
        self.order.push_back(Unsent {
            tag,
            header: REQUEST_BYTES,
            offset,
            length,
        });
    }

    /// Takes off bytes that have been sent; `done` gets the tag of each request that has left
    /// wholly.
    ///
    /// # Panics
    /// More bytes than there are.
    #[inline]
    pub(crate) fn sent(&mut self, bytes: usize, mut done: impl FnMut(u32)) {
        let mut left = bytes;
        while left > 0 {
            let Some(unsent) = self.order.front_mut() else {
                panic!("{left} more bytes were sent than there are");
            };
            let header = left.min(unsent.header);
            unsent.header -= header;
            self.start += header;
            left -= header;
            // Cannot truncate: at most `length`.
            let data = u32::try_from(left).unwrap_or(u32::MAX).min(unsent.length);
            unsent.offset += data;
            unsent.length -= data;
            left -= data as usize;
            if unsent.header == 0 && unsent.length == 0 {
                done(unsent.tag);
                self.order.pop_front();
            }
        }
        if self.order.is_empty() {
            self.bytes.clear();
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> SendQueue {
        let mut queue = SendQueue::new(4);
        queue.push(1, &[1; REQUEST_BYTES], (0, 0));
        queue.push(2, &[2; REQUEST_BYTES], (100, 3));
        queue.push(3, &[3; REQUEST_BYTES], (0, 0));
        queue
    }

    #[test]
    fn neighbours_are_one_piece() {
        let queue = queue();
        let lengths: Vec<_> = queue
            .pieces()
            .map(|piece| match piece {
                Piece::Bytes(bytes) => (0, bytes.len()),
                Piece::Data {
                    tag,
                    offset,
                    length,
                } => {
                    assert_eq!(offset, 100);
                    (tag, length as usize)
                }
            })
            .collect();
        assert_eq!(lengths, [(0, 56), (2, 3), (0, 28)]);
    }

    /// Sends in two parts, split anywhere, and twice over, so that sent bytes make room.
    #[test]
    fn the_rest_of_a_partial_send_is_kept() {
        for split in 0..=87 {
            let mut queue = queue();
            let mut done = Vec::new();
            queue.sent(split, |tag| done.push(tag));
            let want = [(28, 1), (59, 2), (87, 3)];
            let whole = want.iter().filter(|(end, _)| *end <= split);
            assert_eq!(done, whole.map(|&(_, tag)| tag).collect::<Vec<_>>());
            let left: usize = queue
                .pieces()
                .map(|piece| match piece {
                    Piece::Bytes(bytes) => bytes.len(),
                    Piece::Data { offset, length, .. } => {
                        assert_eq!(offset + length, 103);
                        length as usize
                    }
                })
                .sum();
            assert_eq!(left, 87 - split);
            queue.push(4, &[4; REQUEST_BYTES], (0, 0));
            queue.sent(left + REQUEST_BYTES, |tag| done.push(tag));
            assert_eq!(done, [1, 2, 3, 4]);
            assert!(queue.is_empty());
        }
    }
}
