//! A connection to a peer, whose calls wait for 100 ms at most.
//!
//! Streams carry the bytes of the ops and nothing around them. As in fio, a side that has finished
//! says so by eight bytes; without them, a connection that ends has been cut off. A UDP writer
//! announces itself by eight other bytes.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Message of a side that has finished: fio's, as it appears on the wire.
pub(super) const CLOSE: [u8; 8] = *b"knil\x89\0\0\0";
/// Message of a UDP writer before its first datagram: fio's, as it appears on the wire.
pub(super) const OPEN: [u8; 8] = *b"link\0\0\0\x98";

/// Connection to a peer.
#[derive(Debug)]
pub(super) enum Link {
    Tcp(TcpStream),
    Unix(UnixStream),
    Udp(Datagrams),
}

/// UDP socket, and its peer.
#[derive(Debug)]
pub(super) struct Datagrams {
    pub(super) socket: UdpSocket,
    /// Destination: a group, or the source of a reader's last datagram; `None` if the socket is
    /// connected.
    pub(super) peer: Option<SocketAddr>,
    /// The socket is a writer's: its destination is fixed.
    pub(super) writes: bool,
}

impl Datagrams {
    /// Sends a datagram.
    pub(super) fn send(&self, data: &[u8]) -> io::Result<usize> {
        match self.peer {
            Some(peer) => self.socket.send_to(data, peer),
            None => self.socket.send(data),
        }
    }
}

impl Link {
    /// Receives some bytes of a stream, or a datagram; 0 at the end of a stream.
    pub(super) fn receive(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(out),
            Self::Unix(stream) => stream.read(out),
            Self::Udp(datagrams) => {
                let (count, from) = datagrams.socket.recv_from(out)?;
                if !datagrams.writes {
                    datagrams.peer = Some(from);
                }
                Ok(count)
            }
        }
    }

    /// Sends some bytes of a stream, or a datagram.
    pub(super) fn send(&mut self, data: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(data),
            Self::Unix(stream) => stream.write(data),
            Self::Udp(datagrams) => datagrams.send(data),
        }
    }

    /// Tells the peer that this side has finished. A peer that has left need not be told.
    pub(super) fn finish(&mut self) {
        // fio sends none over Unix sockets: there, the end of the stream is the message.
        if !matches!(self, Self::Unix(_)) {
            let _has_left = self.send(&CLOSE);
        }
    }

    /// Returns whether each transfer is a datagram.
    pub(super) const fn is_datagram(&self) -> bool {
        matches!(self, Self::Udp(_))
    }

    /// Returns whether the peer has finished, given the last bytes before the end of the stream,
    /// rather than been cut off.
    pub(super) fn has_finished(&self, last: &[u8]) -> bool {
        match self {
            Self::Unix(_) => last.is_empty(),
            Self::Tcp(_) | Self::Udp(_) => last.ends_with(&CLOSE),
        }
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
            Self::Udp(datagrams) => datagrams.socket.as_fd(),
        }
    }
}
