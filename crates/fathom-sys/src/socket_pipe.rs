//! Transfers between a stream socket and a buffer through a pipe, by `splice(2)`.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd};

/// A pipe between a socket and a buffer.
///
/// Data are copied between buffer and pipe, and spliced between pipe and socket. `vmsplice(2)`
/// would save the copy of a write, but the kernel would go on reading a buffer that the caller
/// takes for sent.
#[derive(Debug)]
pub struct SocketPipe {
    reader: PipeReader,
    writer: PipeWriter,
    /// Bytes in the pipe: received and not yet copied out, or copied in and not yet sent.
    held: usize,
}

impl SocketPipe {
    /// Creates an empty pipe.
    ///
    /// # Errors
    /// The error of `pipe2(2)`.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self {
            reader,
            writer,
            held: 0,
        })
    }

    /// Receives some bytes; 0 at the end of the stream. The time-out of the socket applies.
    ///
    /// # Errors
    /// The error of `splice(2)` or `read(2)`.
    pub fn receive(&mut self, socket: impl AsFd, out: &mut [u8]) -> io::Result<usize> {
        if self.held == 0 {
            self.held = splice(socket, &self.writer, out.len().min(CAPACITY))?;
            if self.held == 0 {
                return Ok(0);
            }
        }
        let count = self.held.min(out.len());
        let count = self.reader.read(&mut out[..count])?;
        self.held -= count;
        Ok(count)
    }

    /// Sends some bytes. After an error, or for the rest of a partial transfer, the caller
    /// continues with the bytes not reported as sent, which may be in the pipe already.
    ///
    /// # Errors
    /// The error of `splice(2)` or `write(2)`.
    pub fn send(&mut self, socket: impl AsFd, data: &[u8]) -> io::Result<usize> {
        if self.held == 0 {
            self.held = self.writer.write(&data[..data.len().min(CAPACITY)])?;
        }
        let count = splice(&self.reader, socket, self.held)?;
        self.held -= count;
        Ok(count)
    }
}

fn splice(from: impl AsFd, to: impl AsFd, bytes: usize) -> io::Result<usize> {
    let (from, to) = (from.as_fd().as_raw_fd(), to.as_fd().as_raw_fd());
    let none = std::ptr::null_mut();
    // SAFETY: both descriptors are open; neither has an offset.
    let moved = unsafe { libc::splice(from, none, to, none, bytes, libc::SPLICE_F_MOVE) };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

/// Bytes of a pipe as the kernel makes it.
const CAPACITY: usize = 65_536;

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;

    #[test]
    fn bytes_arrive_in_order_and_a_time_out_loses_none() {
        let (near, far) = UnixStream::pair().unwrap();
        near.set_write_timeout(Some(Duration::from_millis(1)))
            .unwrap();
        let data: Vec<u8> = (0..2_000_000_u32)
            .map(|n| n.to_le_bytes()[0] ^ 0x5a)
            .collect();
        let (mut out, mut into) = (SocketPipe::new().unwrap(), SocketPipe::new().unwrap());
        let (mut sent, mut received) = (0, Vec::new());
        let mut buffer = vec![0; 100_000];
        while received.len() < data.len() {
            while sent < data.len() {
                match out.send(&near, &data[sent..]) {
                    Ok(count) => sent += count,
                    Err(error) => {
                        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                        break;
                    }
                }
            }
            let count = into.receive(&far, &mut buffer).unwrap();
            received.extend_from_slice(&buffer[..count]);
        }
        assert!(received == data);
        drop(near);
        assert_eq!(into.receive(&far, &mut buffer).unwrap(), 0);
    }
}
