//! A connection to a server, and the requests on it.

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use fathom_core::{Nanos, Tick};
use fathom_nbd::{
    Event, Export, ExportAddress, Handshake, Piece, ReplyForm, Request, RequestQueue, ServerError,
};
use fathom_sys::clock::Clock;

use crate::nbd::error::LinkError;
use crate::nbd::slots::Slots;
use crate::nbd::stream::Stream;
use crate::receive::receive;

/// Connection in its transmission phase.
///
/// Each system call moves as much as there is: one gathered send for all requests of a batch, and
/// receives into a buffer that holds many replies. Data that are larger than what the buffer holds
/// go straight into their place.
#[derive(Debug)]
pub(crate) struct Link {
    stream: Stream,
    queue: RequestQueue,
    buffer: Box<[u8]>,
    /// There may be something to receive.
    is_readable: bool,
    /// The server sends no more: what is there ends with the end of the connection.
    is_closed: bool,
    /// Begin of the wait in which nothing has come yet.
    quiet_since: Option<Tick>,
}

/// Terms of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkConfig {
    /// Ops in flight at most.
    pub(crate) depth: u32,
    /// Bytes of the largest op.
    pub(crate) op_bytes: u32,
    pub(crate) replies: ReplyForm,
    /// Limit on the time until the handshake is done.
    pub(crate) timeout: Nanos,
    pub(crate) clock: Clock,
}

impl Link {
    /// Connects, and asks for the export.
    pub(crate) fn connect(
        address: &ExportAddress,
        config: LinkConfig,
    ) -> Result<(Self, Export), LinkError> {
        let mut stream = Stream::connect(&address.endpoint, config.timeout)?;
        let mut input = [0; HANDSHAKE_BYTES];
        let (export, left) = shake_hands(&mut stream, &address.name, config, &mut input)?;
        let set = stream.set_nonblocking();
        set.map_err(|error| LinkError::Socket("fcntl", error))?;
        let mut queue = RequestQueue::new(config.depth, export.has_structured_replies);
        // Nothing was asked yet: what is left answers a request that does not exist.
        queue.next(&mut &*left)?;
        let link = Self {
            stream,
            queue,
            buffer: vec![0; buffer_bytes(config)].into_boxed_slice(),
            is_readable: true,
            is_closed: false,
            quiet_since: None,
        };
        Ok((link, export))
    }

    /// Queues a request.
    #[inline]
    pub(crate) fn submit(&mut self, tag: u32, request: Request, buffer_offset: u32) {
        self.queue.submit(tag, request, buffer_offset);
    }

    /// Sends what is unsent, as far as the socket takes it.
    #[inline]
    pub(crate) fn flush(&mut self, slots: &Slots) -> Result<(), LinkError> {
        while !self.queue.unsent().is_empty() {
            match self.send(slots) {
                Ok(sent) => self.queue.sent(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(LinkError::Socket("send", error)),
            }
        }
        Ok(())
    }

    /// Notes that the socket has changed, and whether the server sends no more.
    #[inline]
    pub(crate) const fn changed(&mut self, is_closed: bool) {
        self.is_readable = true;
        self.is_closed |= is_closed;
    }

    /// Receives what is there; looks even without a change if `is_forced`.
    #[inline]
    pub(crate) fn receive(&mut self, slots: &mut Slots, is_forced: bool) -> Result<(), LinkError> {
        let mut is_first = is_forced;
        while self.is_readable || is_first {
            is_first = false;
            self.is_readable = self.receive_once(slots)?;
        }
        self.flush(slots)
    }

    /// Returns the time until which an answer may take, if one is awaited; the wait begins `now`,
    /// unless it has begun.
    pub(crate) fn quiet_until(&mut self, now: Tick, timeout: Nanos) -> Option<Tick> {
        if self.queue.in_flight() == 0 {
            self.quiet_since = None;
            return None;
        }
        Some(*self.quiet_since.get_or_insert(now) + timeout)
    }

    /// Tells the server that the connection ends, if the socket takes it.
    pub(crate) fn disconnect(mut self) {
        if self.queue.unsent().is_empty() {
            self.queue.disconnect();
            for piece in self.queue.unsent().pieces() {
                if let Piece::Bytes(bytes) = piece {
                    let _it_is_closed_anyway = self.stream.write(bytes);
                }
            }
        }
    }

    /// Receives once, without waiting, and handles what has come; returns whether there may be
    /// more.
    #[inline]
    fn receive_once(&mut self, slots: &mut Slots) -> Result<bool, LinkError> {
        let place = self.queue.receiving();
        let place = place.map(|(tag, offset, left)| slots.place(tag, offset, left));
        let received = match receive(&mut self.stream, place, &mut self.buffer) {
            Ok(Some(received)) => received,
            Ok(None) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(LinkError::Closed);
            }
            Err(error) => return Err(LinkError::Socket("receive", error)),
        };
        self.quiet_since = None;
        // Cannot truncate: a part of data whose length has 32 bits.
        let in_place = u32::try_from(received.in_place).unwrap_or(u32::MAX);
        self.queue.received(in_place);
        self.decode(received.in_buffer, slots)?;
        // The end that follows the last bytes may have come with them, as one change.
        Ok(received.is_full || self.is_closed)
    }

    /// Handles the first bytes of the buffer.
    #[inline]
    fn decode(&mut self, bytes: usize, slots: &mut Slots) -> Result<(), LinkError> {
        let mut input = &self.buffer[..bytes];
        while let Some(event) = self.queue.next(&mut input)? {
            match event {
                Event::Data { tag, offset, bytes } => {
                    // Cannot truncate: a part of data whose length has 32 bits.
                    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                    slots.place(tag, offset, length).copy_from_slice(bytes);
                }
                Event::Hole {
                    tag,
                    offset,
                    length,
                } => slots.place(tag, offset, length).fill(0),
                Event::Completed { tag, failure } => {
                    if let Some(error) = failure {
                        explain(error, tag, &self.queue, slots);
                    }
                    if let Some((request, buffer_offset)) = slots.completed(tag, failure) {
                        self.queue.submit(tag, request, buffer_offset);
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends as many pieces as one system call takes.
    #[inline]
    fn send(&mut self, slots: &Slots) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); PIECES_MAX];
        let mut count = 0;
        for (slice, piece) in slices.iter_mut().zip(self.queue.unsent().pieces()) {
            *slice = IoSlice::new(match piece {
                Piece::Bytes(bytes) => bytes,
                Piece::Data {
                    tag,
                    offset,
                    length,
                } => slots.data(tag, offset, length),
            });
            count += 1;
        }
        self.stream.write_vectored(&slices[..count])
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Keeps the words of a server that fails a request.
#[cold]
fn explain(error: ServerError, tag: u32, queue: &RequestQueue, slots: &mut Slots) {
    let text = queue.error_text(tag);
    if !text.is_empty() {
        slots.explain(error.errno(), format!("the server says {error}: {text}"));
    }
}

/// Performs the handshake, and returns the export with what has come after it.
fn shake_hands<'a>(
    stream: &mut Stream,
    name: &str,
    config: LinkConfig,
    buffer: &'a mut [u8],
) -> Result<(Export, &'a [u8]), LinkError> {
    let mut handshake = Handshake::new(name, config.replies);
    let deadline = config.clock.now() + config.timeout;
    loop {
        let now = config.clock.now();
        if now >= deadline {
            return Err(LinkError::Silent(config.timeout));
        }
        let set = stream.set_timeout(deadline - now);
        set.map_err(|error| LinkError::Socket("setsockopt", error))?;
        let failed = |call| {
            move |error: io::Error| match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    LinkError::Silent(config.timeout)
                }
                _ => LinkError::Socket(call, error),
            }
        };
        if !handshake.unsent().is_empty() {
            let sent = stream.write(handshake.unsent()).map_err(failed("send"))?;
            handshake.sent(sent);
            continue;
        }
        let received = match stream.read(buffer) {
            Ok(0) => return Err(LinkError::Closed),
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed("receive")(error)),
        };
        let mut input = &buffer[..received];
        if let Some(export) = handshake.receive(&mut input)? {
            let left = input.len();
            return Ok((export, &buffer[received - left..received]));
        }
    }
}

/// Returns the bytes of the receive buffer: all that can be in flight, within limits.
fn buffer_bytes(config: LinkConfig) -> usize {
    let replies = u64::from(config.depth) * (u64::from(config.op_bytes) + REPLY_BYTES);
    usize::try_from(replies.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX)).unwrap_or(HANDSHAKE_BYTES)
}

/// Pieces per system call: a batch of 32 writes, each a request and its data.
const PIECES_MAX: usize = 64;
/// Bytes received at a time during the handshake.
const HANDSHAKE_BYTES: usize = 4096;
/// A chunk with its offset.
const REPLY_BYTES: u64 = 28;
const BUFFER_BYTES_MIN: u64 = 4096;
/// As that of `nvme_tcp`: more than a processor's first cache, less than its second.
const BUFFER_BYTES_MAX: u64 = 256 << 10;
