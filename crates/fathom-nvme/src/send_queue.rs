//! Bytes that a queue pair has to send, in order: headers of its own, and data of its owner.

use std::collections::VecDeque;

/// Unsent bytes of a connection.
///
/// Headers are kept here, back to back, so that those of commands without data leave as one piece.
/// Data stay in their owner's buffers until they are sent. The owner gathers
/// [`pieces`](Self::pieces) into one system call and reports to its queue the bytes that the
/// socket took.
#[derive(Debug)]
pub struct SendQueue {
    /// Headers; those before `start` have been sent.
    headers: Vec<u8>,
    start: usize,
    pieces: VecDeque<Unsent>,
}

/// Part of the bytes to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// Data of the command with this tag, in its owner's buffer.
    Data {
        /// Tag of the command.
        tag: u32,
        /// Offset in the buffer.
        offset: u32,
        /// Bytes.
        length: u32,
    },
}

#[derive(Clone, Copy, Debug)]
enum Unsent {
    Headers(usize),
    Data {
        tag: u32,
        /// Identifier of the command.
        cid: u16,
        offset: u32,
        length: u32,
    },
}

impl SendQueue {
    /// Creates a queue with space for the headers of `commands` commands.
    pub(crate) fn new(commands: usize) -> Self {
        Self {
            headers: Vec::with_capacity(commands * HEADER_BYTES),
            start: 0,
            pieces: VecDeque::with_capacity(commands * 2),
        }
    }

    /// Returns whether everything has been sent.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns what is to be sent, in order.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let mut from = self.start;
        self.pieces.iter().map(move |unsent| match *unsent {
            Unsent::Headers(length) => {
                let bytes = &self.headers[from..from + length];
                from += length;
                Piece::Bytes(bytes)
            }
            Unsent::Data {
                tag,
                offset,
                length,
                ..
            } => Piece::Data {
                tag,
                offset,
                length,
            },
        })
    }

    /// Appends a header or a digest.
    #[inline]
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        if self.start >= COMPACT_BYTES && self.start > self.headers.len() / 2 {
            self.headers.drain(..self.start);
            self.start = 0;
        }
        self.headers.extend_from_slice(bytes);
        if let Some(Unsent::Headers(length)) = self.pieces.back_mut() {
            *length += bytes.len();
        } else {
            self.pieces.push_back(Unsent::Headers(bytes.len()));
        }
    }

    /// Appends data of a command.
    pub(crate) fn push_data(&mut self, tag: u32, cid: u16, offset: u32, length: u32) {
        self.pieces.push_back(Unsent::Data {
            tag,
            cid,
            offset,
            length,
        });
    }

    /// Takes off bytes that have been sent; `done` gets the command of each piece of data that
    /// has left wholly.
    ///
    /// # Panics
    /// More bytes than there are.
    pub(crate) fn sent(&mut self, bytes: usize, mut done: impl FnMut(u16)) {
        let mut left = bytes;
        while left > 0 {
            match self.pieces.front_mut() {
                Some(Unsent::Headers(length)) => {
                    let taken = left.min(*length);
                    left -= taken;
                    *length -= taken;
                    self.start += taken;
                    if *length == 0 {
                        self.pieces.pop_front();
                    }
                }
                Some(Unsent::Data {
                    cid,
                    offset,
                    length,
                    ..
                }) => {
                    // Cannot truncate: at most `length`.
                    let taken = u32::try_from(left).unwrap_or(u32::MAX).min(*length);
                    left -= taken as usize;
                    *offset += taken;
                    *length -= taken;
                    if *length == 0 {
                        done(*cid);
                        self.pieces.pop_front();
                    }
                }
                None => panic!("{left} more bytes were sent than there are"),
            }
        }
        if self.pieces.is_empty() {
            self.headers.clear();
            self.start = 0;
        }
    }
}

/// A command and both digests.
const HEADER_BYTES: usize = 80;
/// Sent headers worth moving the rest for.
const COMPACT_BYTES: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> SendQueue {
        let mut queue = SendQueue::new(4);
        queue.push_bytes(b"ab");
        queue.push_bytes(b"cd");
        queue.push_data(7, 70, 100, 3);
        queue.push_bytes(b"ef");
        queue
    }

    #[test]
    fn adjacent_headers_are_one_piece() {
        let queue = queue();
        let data = Piece::Data {
            tag: 7,
            offset: 100,
            length: 3,
        };
        let pieces: Vec<Piece<'_>> = queue.pieces().collect();
        assert_eq!(pieces, [Piece::Bytes(b"abcd"), data, Piece::Bytes(b"ef")]);
    }

    /// Sends in two parts, split anywhere.
    #[test]
    fn the_rest_of_a_partial_send_is_kept() {
        for split in 0..=9 {
            let mut queue = queue();
            let mut done = Vec::new();
            queue.sent(split, |cid| done.push(cid));
            assert_eq!(done.is_empty(), split < 7, "{split}");
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
            assert_eq!(left, 9 - split);
            queue.sent(left, |cid| done.push(cid));
            assert_eq!(done, [70]);
            assert!(queue.is_empty());
        }
    }
}
