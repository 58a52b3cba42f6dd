//! Incoming PDUs, of which only the first 24 bytes are looked at.

use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;

use crate::shape::SHORT_BYTES;

/// Receive buffer and position in the stream of PDUs.
///
/// Data are received and forgotten. Every PDU is at least 24 bytes long once the connection is
/// initialized, and its first 24 bytes hold all that the loops need.
#[derive(Debug)]
pub(crate) struct Intake {
    buffer: Box<[u8]>,
    /// Next byte to look at, and end of what was received.
    at: usize,
    end: usize,
    header: [u8; SHORT_BYTES],
    /// Bytes of the current PDU after its header that are still to come; `None` between PDUs.
    left: Option<usize>,
}

impl Intake {
    pub(crate) fn new() -> Self {
        Self {
            buffer: vec![0; RECEIVE_BYTES].into_boxed_slice(),
            at: 0,
            end: 0,
            header: [0; SHORT_BYTES],
            left: None,
        }
    }

    /// Receives what is there; `Ok(false)` if nothing is and the socket does not block.
    pub(crate) fn receive(&mut self, mut stream: &TcpStream) -> io::Result<bool> {
        // Less than a header is left over.
        self.buffer.copy_within(self.at..self.end, 0);
        self.end -= self.at;
        self.at = 0;
        loop {
            return match stream.read(&mut self.buffer[self.end..]) {
                Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
                Ok(received) => {
                    self.end += received;
                    Ok(true)
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
                Err(error) => Err(error),
            };
        }
    }

    /// Returns the header of the next PDU that has arrived whole.
    pub(crate) fn next(&mut self) -> io::Result<Option<[u8; SHORT_BYTES]>> {
        let left = match self.left {
            Some(left) => left,
            None => {
                let Some(header) = self.buffer[self.at..self.end].first_chunk() else {
                    return Ok(None);
                };
                self.header = *header;
                self.at += SHORT_BYTES;
                let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
                // Cannot fail: the program runs on machines of 64 bits.
                let length = usize::try_from(length).unwrap_or(0);
                length
                    .checked_sub(SHORT_BYTES)
                    .ok_or(ErrorKind::InvalidData)?
            }
        };
        let here = left.min(self.end - self.at);
        self.at += here;
        if here < left {
            self.left = Some(left - here);
            return Ok(None);
        }
        self.left = None;
        Ok(Some(self.header))
    }
}

/// Bytes received at once. A larger buffer leaves the fast part of the cache, a smaller one needs
/// more system calls.
const RECEIVE_BYTES: usize = 256 << 10;
