//! A socket to a server, TCP or Unix-domain.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use fathom_core::Nanos;
use fathom_nbd::Endpoint;
use fathom_sys::sockets;

use crate::dial::dial;
use crate::nbd::error::LinkError;

/// Connected socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Connects.
    pub(crate) fn connect(endpoint: &Endpoint, timeout: Nanos) -> Result<Self, LinkError> {
        match endpoint {
            Endpoint::Tcp { host, port } => {
                let stream = dial(host, *port, |_any| true, timeout)?;
                let set = stream.set_nodelay(true);
                set.map_err(|error| LinkError::Socket("setsockopt", error))?;
                Ok(Self::Tcp(stream))
            }
            Endpoint::Unix { path } => {
                let timeout = Duration::from_nanos(timeout.get().max(1));
                let stream = sockets::connect_unix(path.as_ref(), timeout);
                let stream = stream.map_err(|error| LinkError::Socket("connect", error))?;
                Ok(Self::Unix(stream))
            }
        }
    }

    /// Limits the wait of each receive and send.
    pub(crate) fn set_timeout(&self, timeout: Nanos) -> io::Result<()> {
        let timeout = Some(Duration::from_nanos(timeout.get().max(1)));
        match self {
            Self::Tcp(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
            Self::Unix(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
        }
    }

    /// Never waits from now on.
    pub(crate) fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(true),
            Self::Unix(stream) => stream.set_nonblocking(true),
        }
    }
}

impl Read for Stream {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }

    #[inline]
    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read_vectored(buffers),
            Self::Unix(stream) => stream.read_vectored(buffers),
        }
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    #[inline]
    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write_vectored(pieces),
            Self::Unix(stream) => stream.write_vectored(pieces),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}
