//! Options of sockets that the standard library does not set.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Sets the size of a socket's send buffer (`SO_SNDBUF`), which the kernel doubles for its own use
/// and no longer adapts.
///
/// # Errors
/// The error of `setsockopt(2)`.
pub fn set_send_buffer(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    let value = i32::try_from(bytes).unwrap_or(i32::MAX);
    // Cannot truncate: four bytes.
    let length = libc::socklen_t::try_from(size_of_val(&value)).unwrap_or_default();
    // SAFETY: the descriptor is open, and the kernel reads four bytes of a live integer.
    let failed = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_SNDBUF,
            (&raw const value).cast(),
            length,
        )
    };
    match failed {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_small_buffer_takes_less() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = |bytes| {
            let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let _far = listener.accept().unwrap();
            near.set_nonblocking(true).unwrap();
            set_send_buffer(&near, bytes).unwrap();
            let mut taken = 0;
            loop {
                match near.write(&[0; 65_536]) {
                    Ok(count) => taken += count,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::WouldBlock);
                        return taken;
                    }
                }
            }
        };
        assert!(taken(16_384) < taken(2 << 20));
    }
}
