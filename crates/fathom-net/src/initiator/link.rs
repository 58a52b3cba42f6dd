//! A socket and the queue pair on it.

use std::io::{self, IoSlice, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use fathom_core::Nanos;
use fathom_nvme::{Command, CommandData, Completion, HostEvent, HostQueue, HostQueueConfig, Piece};

use crate::dial::dial;
use crate::initiator::address::{ControllerAddress, Family};
use crate::initiator::error::LinkError;
use crate::receive::receive;

/// Connection of one queue pair.
///
/// Each system call moves as much as there is: one gathered send for all commands of a batch, and
/// receives into a buffer that holds many PDUs. Data that are larger than what the buffer holds go
/// straight into their place.
#[derive(Debug)]
pub(crate) struct Link {
    stream: TcpStream,
    queue: HostQueue,
    buffer: Box<[u8]>,
    /// The controller sends no more: what is there ends with the end of the connection.
    is_closed: bool,
}

/// Owner of the commands on a link and of their data.
pub(crate) trait Owner {
    /// Returns the place of data to receive.
    fn place(&mut self, tag: u32, offset: u32, length: u32) -> &mut [u8];

    /// Returns data to send.
    fn data(&self, tag: u32, offset: u32, length: u32) -> &[u8];

    /// Notes the completion of a command.
    fn completed(&mut self, tag: u32, completion: &Completion);

    /// Notes that the connection is initialized.
    fn initialized(&mut self) {}
}

impl Link {
    /// Connects; the initialization of the connection is left to be sent. `buffer_bytes` is the
    /// size of the receive buffer.
    pub(crate) fn connect(
        address: &ControllerAddress,
        config: HostQueueConfig,
        buffer_bytes: usize,
        timeout: Nanos,
    ) -> Result<Self, LinkError> {
        let stream = connect(address, timeout)?;
        let failed = |call| move |error| LinkError::Socket(call, error);
        stream.set_nodelay(true).map_err(failed("setsockopt"))?;
        stream.set_nonblocking(true).map_err(failed("fcntl"))?;
        Ok(Self {
            stream,
            queue: HostQueue::new(config),
            buffer: vec![0; buffer_bytes].into_boxed_slice(),
            is_closed: false,
        })
    }

    /// Queues a command; false if too many are in flight.
    #[inline]
    pub(crate) fn submit(
        &mut self,
        command: Command,
        tag: u32,
        offset: u32,
        data: CommandData<'_>,
    ) -> bool {
        self.queue.submit(command, tag, offset, data)
    }

    /// Sends what is unsent, as far as the socket takes it.
    #[inline]
    pub(crate) fn flush<O: Owner>(&mut self, owner: &mut O) -> Result<(), LinkError> {
        while !self.queue.unsent().is_empty() {
            match self.send(owner) {
                Ok(sent) => self.queue.sent(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(LinkError::Socket("send", error)),
            }
        }
        if self.queue.has_held_back() {
            self.decode(0, owner)?;
        }
        Ok(())
    }

    /// Notes a change of the socket after which the controller sends no more, if `is_closed`.
    #[inline]
    pub(crate) const fn changed(&mut self, is_closed: bool) {
        self.is_closed |= is_closed;
    }

    /// Receives once, without waiting, and handles what has come; returns whether there may be
    /// more.
    #[inline]
    pub(crate) fn receive<O: Owner>(&mut self, owner: &mut O) -> Result<bool, LinkError> {
        let place = self.queue.receiving();
        let place = place.map(|(tag, offset, left)| owner.place(tag, offset, left));
        let received = match receive(&mut self.stream, place, &mut self.buffer) {
            Ok(Some(received)) => received,
            Ok(None) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(LinkError::Closed);
            }
            Err(error) => return Err(LinkError::Socket("receive", error)),
        };
        if received.in_place > 0
            && let Some((tag, offset, left)) = self.queue.receiving()
        {
            let place = owner.place(tag, offset, left);
            self.queue.received(&place[..received.in_place]);
        }
        self.decode(received.in_buffer, owner)?;
        // The end that follows the last bytes may have come with them, as one change.
        Ok(received.is_full || self.is_closed)
    }

    /// Handles the first bytes of the buffer.
    #[inline]
    fn decode<O: Owner>(&mut self, bytes: usize, owner: &mut O) -> Result<(), LinkError> {
        let mut input = &self.buffer[..bytes];
        loop {
            match self.queue.next(&mut input) {
                Ok(None) => return Ok(()),
                Ok(Some(HostEvent::Data { tag, offset, bytes })) => {
                    // Cannot truncate: a part of data whose length has 32 bits.
                    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                    owner.place(tag, offset, length).copy_from_slice(bytes);
                }
                Ok(Some(HostEvent::Completed { tag, completion })) => {
                    owner.completed(tag, &completion);
                }
                Ok(Some(HostEvent::Wanted(wanted))) => {
                    let data = owner.data(wanted.tag, wanted.offset, wanted.length);
                    self.queue.transfer(wanted, data);
                }
                Ok(Some(HostEvent::Initialized)) => owner.initialized(),
                Err(error) => {
                    // Tells the controller of its fault, if the socket takes it.
                    let _the_connection_ends_anyway = self.send(owner);
                    return Err(error.into());
                }
            }
        }
    }

    /// Sends as many pieces as one system call takes.
    #[inline]
    fn send<O: Owner>(&mut self, owner: &mut O) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); PIECES_MAX];
        let mut count = 0;
        for (slice, piece) in slices.iter_mut().zip(self.queue.unsent().pieces()) {
            *slice = IoSlice::new(match piece {
                Piece::Bytes(bytes) => bytes,
                Piece::Data {
                    tag,
                    offset,
                    length,
                } => owner.data(tag, offset, length),
            });
            count += 1;
        }
        self.stream.write_vectored(&slices[..count])
    }

    /// Returns whether something is left to send.
    #[inline]
    pub(crate) fn is_unsent(&self) -> bool {
        !self.queue.unsent().is_empty()
    }

    /// Returns how many more commands can be submitted.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.queue.room()
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Connects to the first address of the host that answers.
fn connect(address: &ControllerAddress, timeout: Nanos) -> Result<TcpStream, LinkError> {
    let fits = |found: &SocketAddr| match address.family {
        None => true,
        Some(Family::V4) => found.is_ipv4(),
        Some(Family::V6) => found.is_ipv6(),
    };
    Ok(dial(&address.host, address.port, fits, timeout)?)
}

/// Pieces per system call: a batch of 32 writes, each a header and its data.
const PIECES_MAX: usize = 64;
