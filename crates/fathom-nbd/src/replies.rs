//! Heads of replies, and the ways in which a server breaks the rules.

use std::fmt;

use crate::coverage::RANGES_MAX;
use crate::wire::{self, be16, be32, be64};

/// Begin of a reply or of a chunk, without data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) cookie: u64,
    pub(crate) kind: Kind,
}

/// Kind of a reply or chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Simple reply; the data of a read without an error follow.
    Simple { error: u32 },
    /// Chunk of a structured reply.
    Chunk { is_last: bool, chunk: Chunk },
}

/// Content of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chunk {
    /// Nothing.
    None,
    /// Data at an offset of the export follow.
    Data { offset: u64, length: u32 },
    /// Zeroes at an offset of the export.
    Hole { offset: u64, length: u32 },
    /// Error; a text follows, and bytes that are skipped.
    Error { error: u32, text: u16, rest: u32 },
}

/// Violation of the protocol by a server, which ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyError {
    /// A reply does not begin as one.
    Magic(u32),
    /// A chunk of a kind that no request asks for.
    ChunkKind(u16),
    /// A chunk has a length that its kind cannot have.
    ChunkLength {
        /// Kind of the chunk.
        kind: u16,
        /// Its length.
        length: u32,
    },
    /// A reply to a request that was not made.
    UnknownCookie(u64),
    /// A second reply to a request.
    AnsweredTwice(u64),
    /// A reply to a request that was not yet sent.
    AnsweredEarly(u64),
    /// A simple reply to a read, after structured replies were agreed on.
    SimpleReplyToRead,
    /// Structured replies, which were not agreed on.
    Unnegotiated,
    /// Data for a request that is not a read.
    UnwantedData,
    /// Data beyond the request.
    BeyondRequest {
        /// Offset of the chunk in the export.
        offset: u64,
        /// Its bytes.
        length: u32,
    },
    /// Data for bytes that have been there already.
    DataTwice {
        /// Offset of the chunk in the export.
        offset: u64,
        /// Its bytes.
        length: u32,
    },
    /// Chunks out of order in too many places.
    Scattered,
    /// The last chunk of a read has come, but not all of its data.
    MissingData,
    /// A chunk without content is not the last one.
    EmptyChunk,
    /// An error without a number.
    NoError,
    /// Errors of one request without an end.
    TooManyErrors,
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Magic(word) => write!(f, "reply begins with {word:#010x}"),
            Self::ChunkKind(kind) => write!(f, "unexpected chunk of type {kind}"),
            Self::ChunkLength { kind, length } => {
                write!(f, "chunk of type {kind} with a length of {length} B")
            }
            Self::UnknownCookie(cookie) => {
                write!(f, "reply to an unknown request (cookie {cookie:#x})")
            }
            Self::AnsweredTwice(cookie) => {
                write!(f, "second reply to a request (cookie {cookie:#x})")
            }
            Self::AnsweredEarly(cookie) => {
                write!(f, "reply to a request not yet sent (cookie {cookie:#x})")
            }
            Self::SimpleReplyToRead => f.write_str("simple reply to a read"),
            Self::Unnegotiated => f.write_str("structured reply without negotiation"),
            Self::UnwantedData => f.write_str("data in the reply to a request that reads none"),
            Self::BeyondRequest { offset, length } => {
                write!(f, "data outside the request: {length} B at offset {offset}")
            }
            Self::DataTwice { offset, length } => {
                write!(f, "data received twice: {length} B at offset {offset}")
            }
            Self::Scattered => {
                write!(
                    f,
                    "data of a read in more than {RANGES_MAX} pieces out of order"
                )
            }
            Self::MissingData => f.write_str("reply to a read lacks data"),
            Self::EmptyChunk => f.write_str("empty chunk that is not the last of its reply"),
            Self::NoError => f.write_str("error reply without an error"),
            Self::TooManyErrors => f.write_str("error replies to a request without an end"),
        }
    }
}

impl std::error::Error for ReplyError {}

/// Returns the bytes of a head of which the first bytes are known: more than those, or the whole.
#[inline]
pub(crate) fn head_bytes(known: &[u8]) -> usize {
    if known.len() < 4 {
        return 4;
    }
    match be32(known, 0) {
        wire::SIMPLE_REPLY => SIMPLE_BYTES,
        wire::STRUCTURED_REPLY if known.len() < CHUNK_BYTES => CHUNK_BYTES,
        wire::STRUCTURED_REPLY => {
            // A chunk that is too short for its kind is refused without waiting for more.
            let fixed = match be16(known, 6) {
                DATA => 8,
                HOLE => HOLE_BYTES,
                kind if kind & ERROR != 0 => ERROR_BYTES,
                _ => 0,
            };
            match be32(known, 16) >= fixed {
                true => CHUNK_BYTES + fixed as usize,
                false => CHUNK_BYTES,
            }
        }
        _ => 4,
    }
}

/// Reads a whole head.
#[inline]
pub(crate) fn parse(head: &[u8]) -> Result<Head, ReplyError> {
    match be32(head, 0) {
        wire::SIMPLE_REPLY => Ok(Head {
            cookie: be64(head, 8),
            kind: Kind::Simple {
                error: be32(head, 4),
            },
        }),
        wire::STRUCTURED_REPLY => Ok(Head {
            cookie: be64(head, 8),
            kind: Kind::Chunk {
                is_last: be16(head, 4) & LAST != 0,
                chunk: chunk(head)?,
            },
        }),
        word => Err(ReplyError::Magic(word)),
    }
}

#[inline]
fn chunk(head: &[u8]) -> Result<Chunk, ReplyError> {
    let (kind, length) = (be16(head, 6), be32(head, 16));
    let wrong = Err(ReplyError::ChunkLength { kind, length });
    match kind {
        NONE if length == 0 => Ok(Chunk::None),
        DATA if length > 8 => Ok(Chunk::Data {
            offset: be64(head, 20),
            length: length - 8,
        }),
        HOLE if length == HOLE_BYTES => match be32(head, 28) {
            0 => wrong,
            length => Ok(Chunk::Hole {
                offset: be64(head, 20),
                length,
            }),
        },
        NONE | DATA | HOLE => wrong,
        kind if kind & ERROR == 0 => Err(ReplyError::ChunkKind(kind)),
        _ if !(ERROR_BYTES..=ERROR_BYTES_MAX).contains(&length) => wrong,
        _ => {
            let text = be16(head, 24);
            match (length - ERROR_BYTES).checked_sub(text.into()) {
                Some(rest) => Ok(Chunk::Error {
                    error: be32(head, 20),
                    text,
                    rest,
                }),
                None => wrong,
            }
        }
    }
}

/// Bytes of the longest head: a hole.
pub(crate) const HEAD_BYTES_MAX: usize = CHUNK_BYTES + HOLE_BYTES as usize;
const SIMPLE_BYTES: usize = 16;
const CHUNK_BYTES: usize = 20;
/// Payload of a hole: offset and length.
const HOLE_BYTES: u32 = 12;
/// Fixed payload of an error: its number and the length of its text.
const ERROR_BYTES: u32 = 6;
/// Payload of an error at most: a text of 4096 bytes, the longest of the protocol, and as much for
/// what later versions add.
const ERROR_BYTES_MAX: u32 = 8192;
/// Flag of the last chunk of a reply.
const LAST: u16 = 1;
/// Types of chunks.
const NONE: u16 = 0;
const DATA: u16 = 1;
const HOLE: u16 = 2;
/// Bit of the types that are errors.
const ERROR: u16 = 1 << 15;
