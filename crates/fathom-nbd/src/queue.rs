//! A connection in its transmission phase: requests in, replies out.

use crate::coverage::{Coverage, CoverageError};
use crate::replies::{self, Chunk, HEAD_BYTES_MAX, Head, Kind, ReplyError};
use crate::request::{self, Command, Request};
use crate::send_queue::SendQueue;
use crate::server_error::ServerError;
use crate::text;

#[cfg(test)]
mod tests;

/// Requests of a connection, each known by the tag of its owner, a small number.
///
/// # Protocol
/// Once the handshake is done, [`submit`](Self::submit) requests, send what
/// [`unsent`](Self::unsent) has and report it to [`sent`](Self::sent), and feed
/// [`next`](Self::next) with what arrives. Each request completes exactly once, unless the
/// connection ends.
///
/// The queue sees no buffer: the owner copies data to and from the offsets that events name. Data
/// of a request belong to the queue until its completion.
///
/// # Cost
/// No allocation, lock or map per request that succeeds: the cookie is the tag and the number of
/// times it was used, so that a late reply to an earlier request does not pass for one to this.
///
/// # Errors
/// A [`ReplyError`] is final: close the connection. Requests in flight have no completion then.
#[derive(Debug)]
pub struct RequestQueue {
    has_structured_replies: bool,
    entries: Box<[Entry]>,
    in_flight: usize,
    sends: SendQueue,
    state: State,
    /// First bytes of a head that arrives in parts.
    head: [u8; HEAD_BYTES_MAX],
    head_bytes: usize,
    /// Errors of requests, by tag.
    notes: Box<[ErrorNote]>,
}

/// Event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Data of a read.
    Data {
        /// Tag of the request.
        tag: u32,
        /// Offset in the owner's buffer.
        offset: u32,
        /// The data.
        bytes: &'a [u8],
    },
    /// Zeroes of a read.
    Hole {
        /// Tag of the request.
        tag: u32,
        /// Offset in the owner's buffer.
        offset: u32,
        /// Bytes.
        length: u32,
    },
    /// A request has completed.
    Completed {
        /// Tag of the request.
        tag: u32,
        /// Error of the server.
        failure: Option<ServerError>,
    },
}

/// State of what arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Between replies, or within a head.
    Head,
    /// Within data.
    Data {
        tag: u32,
        /// Offset in the owner's buffer of the next byte.
        offset: u32,
        left: u32,
        is_last: bool,
    },
    /// Within the text of an error, and the bytes after it.
    Text {
        tag: u32,
        text: u16,
        rest: u32,
        is_last: bool,
    },
    /// The last chunk of a request has been seen.
    Finished {
        tag: u32,
    },
    Ended(ReplyError),
}

/// Request, or a place for one.
#[derive(Clone, Debug)]
struct Entry {
    request: Request,
    /// Offset of its data in the owner's buffer.
    buffer_offset: u32,
    /// Times that the tag was used.
    uses: u32,
    stage: Stage,
    failure: Option<ServerError>,
    /// Bytes of a read that have arrived by chunks.
    coverage: Coverage,
}

/// Errors of a request that has failed, apart from the others' memory.
#[derive(Clone, Debug, Default)]
struct ErrorNote {
    /// Text of the first one, as far as it is kept.
    text: Vec<u8>,
    /// Number of them.
    chunks: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Free,
    /// Not wholly sent.
    Unsent,
    Sent,
    /// A simple reply has come, with all its data.
    Answered,
}

impl RequestQueue {
    /// Creates the queue of a connection with requests of tags below `tags`.
    #[must_use]
    pub fn new(tags: u32, has_structured_replies: bool) -> Self {
        let free = Entry {
            request: Request {
                command: Command::Flush,
                offset: 0,
                length: 0,
                is_fua: false,
            },
            buffer_offset: 0,
            uses: 0,
            stage: Stage::Free,
            failure: None,
            coverage: Coverage::new(),
        };
        Self {
            has_structured_replies,
            entries: vec![free; tags as usize].into_boxed_slice(),
            in_flight: 0,
            // One more for the request that ends the connection.
            sends: SendQueue::new(tags as usize + 1),
            state: State::Head,
            head: [0; HEAD_BYTES_MAX],
            head_bytes: 0,
            notes: vec![ErrorNote::default(); tags as usize].into_boxed_slice(),
        }
    }

    /// Queues a request whose data are at an offset of the owner's buffer.
    ///
    /// # Panics
    /// A request of this tag is in flight, or the tag is too large.
    #[inline]
    pub fn submit(&mut self, tag: u32, request: Request, buffer_offset: u32) {
        let entry = &mut self.entries[tag as usize];
        assert!(
            entry.stage == Stage::Free,
            "a request of this tag is in flight"
        );
        entry.request = request;
        entry.buffer_offset = buffer_offset;
        entry.uses = entry.uses.wrapping_add(1);
        entry.stage = Stage::Unsent;
        entry.failure = None;
        entry.coverage.clear();
        let cookie = u64::from(entry.uses) << 32 | u64::from(tag);
        let data = (buffer_offset, request.payload());
        self.sends.push(tag, &request.encode(cookie), data);
        self.in_flight += 1;
    }

    /// Queues the request that ends the connection.
    pub fn disconnect(&mut self) {
        self.sends.push(u32::MAX, &request::disconnect(), (0, 0));
    }

    /// Returns what is to be sent.
    #[must_use]
    #[inline]
    pub const fn unsent(&self) -> &SendQueue {
        &self.sends
    }

    /// Takes off bytes that have been sent.
    ///
    /// # Panics
    /// More bytes than there are.
    #[inline]
    pub fn sent(&mut self, bytes: usize) {
        let entries = &mut self.entries;
        self.sends.sent(bytes, |tag| {
            if let Some(entry) = entries.get_mut(tag as usize) {
                entry.stage = Stage::Sent;
            }
        });
    }

    /// Takes bytes that have arrived, up to the next event; `None` once all of them are taken.
    ///
    /// # Errors
    /// The rule that the server broke, again on every later call.
    #[inline]
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, ReplyError> {
        let event = self.step(input);
        if let Err(error) = event {
            self.state = State::Ended(error);
        }
        event
    }

    /// Returns the request whose data arrive next, with their place in the owner's buffer: tag,
    /// offset and length. They may be received there, past [`next`](Self::next).
    #[must_use]
    #[inline]
    pub const fn receiving(&self) -> Option<(u32, u32, u32)> {
        match self.state {
            State::Data {
                tag, offset, left, ..
            } => Some((tag, offset, left)),
            _ => None,
        }
    }

    /// Notes that bytes of the data named by [`receiving`](Self::receiving) are in their place.
    ///
    /// # Panics
    /// More bytes than those.
    #[inline]
    pub fn received(&mut self, bytes: u32) {
        if bytes == 0 {
            return;
        }
        match &mut self.state {
            State::Data {
                tag,
                offset,
                left,
                is_last,
            } if *left >= bytes => {
                *offset += bytes;
                *left -= bytes;
                if *left == 0 {
                    self.state = match *is_last {
                        true => State::Finished { tag: *tag },
                        false => State::Head,
                    };
                }
            }
            _ => panic!("{bytes} B were received that no reply has"),
        }
    }

    /// Returns the number of requests in flight.
    #[must_use]
    #[inline]
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns the text that the server gave with the error of a request, fit for a message; empty
    /// if it gave none. Ask when the request has completed with a failure.
    #[must_use]
    pub fn error_text(&self, tag: u32) -> String {
        text::printable(&self.notes[tag as usize].text)
    }

    #[inline]
    fn step<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, ReplyError> {
        loop {
            match self.state {
                State::Head => {
                    let Some(head) = self.take_head(input)? else {
                        return Ok(None);
                    };
                    if let Some(hole) = self.begin(head)? {
                        return Ok(Some(hole));
                    }
                }
                State::Data {
                    tag, offset, left, ..
                } => {
                    // Cannot truncate: at most `left`.
                    let length = left.min(u32::try_from(input.len()).unwrap_or(u32::MAX));
                    if length == 0 {
                        return Ok(None);
                    }
                    let (bytes, rest) = input.split_at(length as usize);
                    *input = rest;
                    self.received(length);
                    return Ok(Some(Event::Data { tag, offset, bytes }));
                }
                State::Text {
                    tag,
                    text,
                    rest,
                    is_last,
                } => {
                    if !self.skip_text(input, tag, (text, rest)) {
                        return Ok(None);
                    }
                    self.state = match is_last {
                        true => State::Finished { tag },
                        false => State::Head,
                    };
                }
                State::Finished { tag } => {
                    self.state = State::Head;
                    return self.complete(tag).map(Some);
                }
                State::Ended(error) => return Err(error),
            }
        }
    }

    /// Takes a head off the input, once all of it is there.
    #[inline]
    fn take_head(&mut self, input: &mut &[u8]) -> Result<Option<Head>, ReplyError> {
        if self.head_bytes == 0 {
            let bytes = replies::head_bytes(input);
            if let Some((head, rest)) = input.split_at_checked(bytes) {
                *input = rest;
                return replies::parse(head).map(Some);
            }
        }
        loop {
            let wanted = replies::head_bytes(&self.head[..self.head_bytes]);
            if self.head_bytes >= wanted {
                let head = replies::parse(&self.head[..wanted]);
                self.head_bytes = 0;
                return head.map(Some);
            }
            let length = (wanted - self.head_bytes).min(input.len());
            if length == 0 {
                return Ok(None);
            }
            let (bytes, rest) = input.split_at(length);
            self.head[self.head_bytes..][..length].copy_from_slice(bytes);
            self.head_bytes += length;
            *input = rest;
        }
    }

    /// Handles the head of a reply.
    #[inline]
    fn begin<'a>(&mut self, head: Head) -> Result<Option<Event<'a>>, ReplyError> {
        let tag = self.find(head.cookie)?;
        let entry = &mut self.entries[tag as usize];
        match head.kind {
            Kind::Simple { error } => {
                let is_read = entry.request.command == Command::Read;
                if is_read && self.has_structured_replies {
                    return Err(ReplyError::SimpleReplyToRead);
                }
                entry.stage = Stage::Answered;
                if error != 0 {
                    entry.failure.get_or_insert(ServerError(error));
                    self.notes[tag as usize].text.clear();
                }
                self.state = match is_read && error == 0 {
                    true => State::Data {
                        tag,
                        offset: entry.buffer_offset,
                        left: entry.request.length,
                        is_last: true,
                    },
                    false => State::Finished { tag },
                };
                Ok(None)
            }
            Kind::Chunk { .. } if !self.has_structured_replies => Err(ReplyError::Unnegotiated),
            Kind::Chunk { is_last, chunk } => self.begin_chunk(tag, is_last, chunk),
        }
    }

    #[inline]
    fn begin_chunk<'a>(
        &mut self,
        tag: u32,
        is_last: bool,
        chunk: Chunk,
    ) -> Result<Option<Event<'a>>, ReplyError> {
        let entry = &mut self.entries[tag as usize];
        let behind = match is_last {
            true => State::Finished { tag },
            false => State::Head,
        };
        match chunk {
            Chunk::None if !is_last => return Err(ReplyError::EmptyChunk),
            Chunk::None => self.state = behind,
            Chunk::Data { offset, length } => {
                let left = length;
                let offset = entry.place(offset, length)?;
                self.state = State::Data {
                    tag,
                    offset,
                    left,
                    is_last,
                };
            }
            Chunk::Hole { offset, length } => {
                let offset = entry.place(offset, length)?;
                self.state = behind;
                return Ok(Some(Event::Hole {
                    tag,
                    offset,
                    length,
                }));
            }
            Chunk::Error { error: 0, .. } => return Err(ReplyError::NoError),
            Chunk::Error { error, text, rest } => {
                let note = &mut self.notes[tag as usize];
                let (mut text, mut rest) = (text, rest);
                if entry.failure.is_none() {
                    entry.failure = Some(ServerError(error));
                    *note = ErrorNote::default();
                } else {
                    // The failure is the first error, and so are its words.
                    rest += u32::from(std::mem::take(&mut text));
                }
                note.chunks += 1;
                if note.chunks > ERROR_CHUNKS_MAX {
                    return Err(ReplyError::TooManyErrors);
                }
                self.state = State::Text {
                    tag,
                    text,
                    rest,
                    is_last,
                };
            }
        }
        Ok(None)
    }

    /// Returns the tag of the request in flight with this cookie.
    #[inline]
    fn find(&self, cookie: u64) -> Result<u32, ReplyError> {
        let half = |bits| u32::try_from(bits).unwrap_or(u32::MAX);
        let (tag, uses) = (half(cookie & u64::from(u32::MAX)), half(cookie >> 32));
        match self.entries.get(tag as usize) {
            Some(entry) if entry.uses == uses => match entry.stage {
                Stage::Sent => Ok(tag),
                Stage::Unsent => Err(ReplyError::AnsweredEarly(cookie)),
                Stage::Free if uses == 0 => Err(ReplyError::UnknownCookie(cookie)),
                Stage::Free | Stage::Answered => Err(ReplyError::AnsweredTwice(cookie)),
            },
            _ => Err(ReplyError::UnknownCookie(cookie)),
        }
    }

    #[inline]
    fn complete<'a>(&mut self, tag: u32) -> Result<Event<'a>, ReplyError> {
        let entry = &mut self.entries[tag as usize];
        let by_chunks = entry.stage != Stage::Answered;
        let is_read = entry.request.command == Command::Read && entry.failure.is_none();
        if is_read && by_chunks && !entry.coverage.is_whole(entry.request.length) {
            return Err(ReplyError::MissingData);
        }
        entry.stage = Stage::Free;
        self.in_flight -= 1;
        Ok(Event::Completed {
            tag,
            failure: entry.failure,
        })
    }

    /// Takes the rest of an error off the input, and returns whether all of it was there.
    #[cold]
    fn skip_text(&mut self, input: &mut &[u8], tag: u32, (mut text, mut rest): (u16, u32)) -> bool {
        let taken = usize::from(text).min(input.len());
        let (bytes, behind) = input.split_at(taken);
        let words = &mut self.notes[tag as usize].text;
        let kept = taken.min(text::LETTERS_MAX - words.len());
        words.extend_from_slice(&bytes[..kept]);
        // Cannot truncate: at most `text`, and at most `rest`.
        text -= u16::try_from(taken).unwrap_or(text);
        let skipped = rest.min(u32::try_from(behind.len()).unwrap_or(rest));
        rest -= skipped;
        *input = &behind[skipped as usize..];
        if let State::Text {
            text: text_left,
            rest: rest_left,
            ..
        } = &mut self.state
        {
            (*text_left, *rest_left) = (text, rest);
        }
        text == 0 && rest == 0
    }
}

impl Entry {
    /// Notes data at an offset of the export, and returns their place in the owner's buffer.
    #[inline]
    fn place(&mut self, offset: u64, length: u32) -> Result<u32, ReplyError> {
        if self.request.command != Command::Read {
            return Err(ReplyError::UnwantedData);
        }
        let from = offset.checked_sub(self.request.offset);
        let from = from.and_then(|from| u32::try_from(from).ok());
        let upto = from.and_then(|from| from.checked_add(length));
        let (Some(from), Some(upto)) = (from, upto.filter(|&upto| upto <= self.request.length))
        else {
            return Err(ReplyError::BeyondRequest { offset, length });
        };
        match self.coverage.add(from, upto) {
            Ok(()) => Ok(self.buffer_offset + from),
            Err(CoverageError::Twice) => Err(ReplyError::DataTwice { offset, length }),
            Err(CoverageError::Scattered) => Err(ReplyError::Scattered),
        }
    }
}

/// Errors of one request, beyond which the server may send more for ever. Servers send one.
const ERROR_CHUNKS_MAX: u32 = 1024;
