//! Transfer of long texts between ranks, such as records: in pieces, each asked for.

use std::io;

use crate::encoding::MESSAGE_BYTES_MAX;
use crate::error::{MessageError, MessageErrorKind};
use crate::{Link, LinkError, Rank};

/// Link that carries long texts beside its messages.
pub trait BulkLink: Link {
    /// Queues a message as [`Link::send`] does.
    ///
    /// # Errors
    /// The message can never be delivered.
    fn send_bulk(&mut self, to: Rank, message: &BulkMessage) -> Result<(), LinkError>;

    /// Takes the next message that has arrived, as [`Link::receive`] does.
    ///
    /// # Errors
    /// A rank is gone, or the carrier itself has failed.
    fn receive_bulk(&mut self) -> Result<Option<(Rank, BulkMessage)>, LinkError>;
}

/// Message about a long text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BulkMessage {
    /// Request for the piece from this byte on.
    Want {
        /// Text.
        item: Item,
        /// First byte.
        offset: u64,
    },
    /// Piece of a text.
    Piece {
        /// Text.
        item: Item,
        /// Length of the whole text.
        total: u64,
        /// First byte.
        offset: u64,
        /// The piece, of at most [`PIECE_BYTES_MAX`]; empty only at the end.
        bytes: Vec<u8>,
    },
}

/// Text that a rank has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// Task of the ranks, which rank 0 has.
    Task,
    /// Record of a rank; empty if it has none.
    Record,
    /// Name of a rank's host, which it sends by itself once it has the task.
    Host,
    /// List of the files that a rank has to give away, such as its logs.
    Files,
    /// File of this place in the list.
    File(u32),
}

impl BulkMessage {
    /// Returns the answer to a request for a piece of `text`.
    #[must_use]
    pub fn piece(item: Item, text: &[u8], offset: u64) -> Self {
        let total = text.len() as u64;
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = text.get(from..).unwrap_or_default();
        Self::Piece {
            item,
            total,
            offset: offset.min(total),
            bytes: rest[..rest.len().min(PIECE_BYTES_MAX)].to_vec(),
        }
    }

    /// Returns the answer to a request for a piece of a file of `total` bytes, read by `read`: it
    /// fills what it is given from this offset on, and returns the number of bytes.
    ///
    /// # Errors
    /// Those of `read`, and `UnexpectedEof` if the file has become shorter.
    pub fn piece_of_file(
        item: Item,
        total: u64,
        offset: u64,
        read: impl FnOnce(&mut [u8], u64) -> io::Result<usize>,
    ) -> io::Result<Self> {
        let left = usize::try_from(total.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; left.min(PIECE_BYTES_MAX)];
        if !bytes.is_empty() {
            let length = read(&mut bytes, offset)?;
            bytes.truncate(length);
            if bytes.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(Self::Piece {
            item,
            total,
            offset: offset.min(total),
            bytes,
        })
    }

    /// Returns the encoding, of at most [`MESSAGE_BYTES_MAX`].
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Want { item, offset } => {
                let mut out = head(WANT, *item);
                out.extend_from_slice(&offset.to_le_bytes());
                out
            }
            Self::Piece {
                item,
                total,
                offset,
                bytes,
            } => {
                let mut out = head(PIECE, *item);
                out.reserve(PIECE_HEAD_BYTES + bytes.len());
                out.extend_from_slice(&offset.to_le_bytes());
                out.extend_from_slice(&total.to_le_bytes());
                out.extend_from_slice(bytes);
                out
            }
        }
    }

    /// Decodes one message, which fills `bytes`.
    ///
    /// # Errors
    /// The field that is wrong, and why.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let refuse = |byte, field, kind| Err(MessageError { byte, field, kind });
        let cut = |field| MessageError {
            byte: bytes.len(),
            field,
            kind: MessageErrorKind::CutShort,
        };
        let (&[version, kind, item], rest) = bytes.split_first_chunk().ok_or(cut("head"))?;
        if version != VERSION {
            return refuse(0, "version", MessageErrorKind::Version(version));
        }
        let (item, rest) = match item {
            0 => (Item::Task, rest),
            1 => (Item::Record, rest),
            2 => (Item::Host, rest),
            3 => (Item::Files, rest),
            4 => {
                let (place, rest) = rest.split_first_chunk().ok_or(cut("place"))?;
                (Item::File(u32::from_le_bytes(*place)), rest)
            }
            other => return refuse(2, "item", MessageErrorKind::Unknown(other)),
        };
        let piece_at = bytes.len() - rest.len() + 8 + 8;
        let (offset, rest) = rest.split_first_chunk().ok_or(cut("offset"))?;
        let offset = u64::from_le_bytes(*offset);
        match kind {
            WANT if rest.is_empty() => Ok(Self::Want { item, offset }),
            WANT => refuse(bytes.len() - rest.len(), "end", MessageErrorKind::TooLong),
            PIECE => {
                let (total, piece) = rest.split_first_chunk().ok_or(cut("length"))?;
                let total = u64::from_le_bytes(*total);
                let left = total.checked_sub(offset);
                if left.is_none_or(|left| left < piece.len() as u64) {
                    return refuse(piece_at - 8, "length", MessageErrorKind::Order);
                }
                if piece.len() > PIECE_BYTES_MAX {
                    let limit = MessageErrorKind::TooLarge(PIECE_BYTES_MAX as u64);
                    return refuse(piece_at, "piece", limit);
                }
                // One that is empty before the end would be asked for without end.
                if piece.is_empty() && left != Some(0) {
                    return refuse(piece_at, "piece", MessageErrorKind::CutShort);
                }
                Ok(Self::Piece {
                    item,
                    total,
                    offset,
                    bytes: piece.to_vec(),
                })
            }
            other => refuse(1, "kind", MessageErrorKind::Unknown(other)),
        }
    }
}

/// Returns the first bytes of a message of this kind.
fn head(kind: u8, item: Item) -> Vec<u8> {
    let mut head = vec![VERSION, kind];
    match item {
        Item::Task => head.push(0),
        Item::Record => head.push(1),
        Item::Host => head.push(2),
        Item::Files => head.push(3),
        Item::File(place) => {
            head.push(4);
            head.extend_from_slice(&place.to_le_bytes());
        }
    }
    head
}

/// Longest piece.
pub const PIECE_BYTES_MAX: usize = MESSAGE_BYTES_MAX - PIECE_HEAD_BYTES;
/// Longest text; a record of 100 jobs has some 3 MiB.
pub const TEXT_LENGTH_MAX: u64 = 64 << 20;
/// Bytes before a piece, at most.
const PIECE_HEAD_BYTES: usize = 3 + 4 + 8 + 8;
const VERSION: u8 = crate::encoding::VERSION;
const WANT: u8 = b'W';
const PIECE: u8 = b'P';

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &BulkMessage, bytes: &[u8]) {
        assert_eq!(message.encode(), bytes);
        assert_eq!(BulkMessage::decode(bytes).as_ref(), Ok(message));
    }

    #[test]
    fn messages_are_these_bytes() {
        let item = Item::Record;
        let want = BulkMessage::Want { item, offset: 258 };
        check(&want, b"\x01W\x01\x02\x01\0\0\0\0\0\0");
        let piece = BulkMessage::piece(Item::Task, b"abc", 1);
        check(&piece, b"\x01P\0\x01\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0bc");
        // Beyond the end: the end.
        let piece = BulkMessage::piece(Item::Task, b"abc", u64::MAX);
        check(&piece, b"\x01P\0\x03\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0");
        let file = Item::File(3);
        let want = BulkMessage::Want {
            item: file,
            offset: 5,
        };
        check(&want, b"\x01W\x04\x03\0\0\0\x05\0\0\0\0\0\0\0");
        let read = |bytes: &mut [u8], offset| {
            assert_eq!((bytes.len(), offset), (2, 1));
            bytes[0] = b'b';
            Ok(1)
        };
        let piece = BulkMessage::piece_of_file(file, 3, 1, read).unwrap();
        let bytes = b"\x01P\x04\x03\0\0\0\x01\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0b";
        check(&piece, bytes);
        let nothing = BulkMessage::piece_of_file(file, 3, 1, |_, _| Ok(0));
        let error = nothing.unwrap_err().kind();
        assert_eq!(error, io::ErrorKind::UnexpectedEof);
        let long = vec![b'x'; MESSAGE_BYTES_MAX];
        let piece = BulkMessage::piece(file, &long, 0).encode();
        assert_eq!(piece.len(), MESSAGE_BYTES_MAX);
    }

    #[track_caller]
    fn refused(bytes: &[u8], want: &str) {
        let error = BulkMessage::decode(bytes).unwrap_err().to_string();
        assert_eq!(error, format!("message of a rank: byte {want}"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        refused(b"\x01W", "2: head: cut short");
        refused(b"\x01W\0\0", "4: offset: cut short");
        refused(
            b"\x01W\x05\0\0\0\0\0\0\0\0",
            "2: item: value 5 is not known",
        );
        refused(b"\x01W\x04\0\0", "5: place: cut short");
        refused(b"\x01V\0\0\0\0\0\0\0\0\0", "1: kind: value 86 is not known");
        let want = "11: end: the message goes on after its end";
        refused(b"\x01W\0\0\0\0\0\0\0\0\0x", want);
        let piece = b"\x01P\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0";
        refused(piece, "19: piece: cut short");
        refused(&piece[..12], "12: length: cut short");
        let long = [&piece[..], b"xy"].concat();
        refused(&long, "11: length: indexes do not rise");
    }
}
