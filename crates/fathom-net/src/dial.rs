//! TCP connections to a named host.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use fathom_core::Nanos;

/// Failure to connect.
#[derive(Debug)]
pub(crate) enum DialError {
    /// The name of the host is not known.
    Unresolved(io::Error),
    /// The name of the host has no address that fits.
    NoAddress,
    /// None of the addresses answers; the error is that of the last.
    Connect(io::Error),
}

/// Connects to the first address of the host that fits and answers.
pub(crate) fn dial(
    host: &str,
    port: u16,
    fits: impl Fn(&SocketAddr) -> bool,
    timeout: Nanos,
) -> Result<TcpStream, DialError> {
    let found = (host, port).to_socket_addrs();
    let found = found.map_err(DialError::Unresolved)?;
    let timeout = Duration::from_nanos(timeout.get().max(1));
    let mut failed = DialError::NoAddress;
    for one in found.filter(fits) {
        match TcpStream::connect_timeout(&one, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = DialError::Connect(error),
        }
    }
    Err(failed)
}
