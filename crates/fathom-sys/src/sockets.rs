//! Sockets with options that the standard library does not set, or sets too late.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Kind of an internet socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketKind {
    /// TCP.
    Stream,
    /// UDP.
    Datagram,
}

/// Creates an internet socket of the family of `address`, neither bound nor connected, so that
/// options that only count before can be set.
///
/// # Errors
/// The error of `socket(2)`.
pub fn create(address: &SocketAddr, kind: SocketKind) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => libc::AF_INET,
        SocketAddr::V6(_) => libc::AF_INET6,
    };
    let kind = match kind {
        SocketKind::Stream => libc::SOCK_STREAM,
        SocketKind::Datagram => libc::SOCK_DGRAM,
    };
    socket(family, kind)
}

fn socket(family: libc::c_int, kind: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: plain integers.
    let socket = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Binds a socket to an address.
///
/// # Errors
/// The error of `bind(2)`.
pub fn bind(socket: impl AsFd, address: &SocketAddr) -> io::Result<()> {
    let socket = socket.as_fd().as_raw_fd();
    with_raw(address, |raw, length| {
        // SAFETY: the descriptor is open, and the address alive and of this length.
        check(unsafe { libc::bind(socket, raw, length) })
    })
}

/// Makes a bound TCP socket listen.
///
/// # Errors
/// The error of `listen(2)`.
pub fn listen(socket: impl AsFd) -> io::Result<()> {
    // SAFETY: the descriptor is open; plain integers.
    check(unsafe { libc::listen(socket.as_fd().as_raw_fd(), BACKLOG) })
}

/// Connects a socket, within its send time-out if it has one.
///
/// # Errors
/// The error of `connect(2)`; [`TimedOut`](io::ErrorKind::TimedOut) after the time-out.
pub fn connect(socket: impl AsFd, address: &SocketAddr) -> io::Result<()> {
    let socket = socket.as_fd().as_raw_fd();
    let connected = with_raw(address, |raw, length| {
        // SAFETY: the descriptor is open, and the address alive and of this length.
        check(unsafe { libc::connect(socket, raw, length) })
    });
    connected.map_err(timed_out)
}

/// Connects to a Unix-domain socket. A listener whose backlog is full lets others wait, which the
/// standard library does without an end.
///
/// # Errors
/// The error of a system call; [`TimedOut`](io::ErrorKind::TimedOut) after the time-out, and
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for a path that no socket can have.
pub fn connect_unix(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    let (raw, length) = unix_address(path)?;
    let stream = UnixStream::from(socket(libc::AF_UNIX, libc::SOCK_STREAM)?);
    stream.set_write_timeout(Some(timeout))?;
    let (socket, raw) = (stream.as_raw_fd(), (&raw const raw).cast());
    // SAFETY: the descriptor is open, and the address alive and not shorter than this length.
    let connected = check(unsafe { libc::connect(socket, raw, length) });
    connected.map_err(timed_out)?;
    stream.set_write_timeout(None)?;
    Ok(stream)
}

/// Returns the error of a connect whose time-out may have ended it.
fn timed_out(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::EINPROGRESS | libc::EAGAIN) => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

/// Returns the address of a path, and its length in bytes.
fn unix_address(path: &Path) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    let bytes = path.as_os_str().as_bytes();
    let mut raw = libc::sockaddr_un {
        sun_family: family(libc::AF_UNIX),
        sun_path: [0; UNIX_PATH_BYTES],
    };
    // One zero is left behind the path.
    if bytes.is_empty() || bytes.len() >= UNIX_PATH_BYTES || bytes.contains(&0) {
        let why = format!(
            "the path of a socket has 1 to {} bytes",
            UNIX_PATH_BYTES - 1
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    for (place, &byte) in raw.sun_path.iter_mut().zip(bytes) {
        *place = libc::c_char::from_ne_bytes([byte]);
    }
    Ok((raw, length_of(&raw)))
}

/// Calls `call` with an address in the kernel's form.
fn with_raw<T>(
    address: &SocketAddr,
    call: impl FnOnce(*const libc::sockaddr, libc::socklen_t) -> T,
) -> T {
    match address {
        SocketAddr::V4(address) => {
            let raw = libc::sockaddr_in {
                sin_family: family(libc::AF_INET),
                sin_port: address.port().to_be(),
                sin_addr: in_addr(*address.ip()),
                sin_zero: [0; 8],
            };
            call((&raw const raw).cast(), length_of(&raw))
        }
        SocketAddr::V6(address) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: family(libc::AF_INET6),
                sin6_port: address.port().to_be(),
                sin6_flowinfo: address.flowinfo(),
                sin6_addr: libc::in6_addr {
                    s6_addr: address.ip().octets(),
                },
                sin6_scope_id: address.scope_id(),
            };
            call((&raw const raw).cast(), length_of(&raw))
        }
    }
}

fn family(family: libc::c_int) -> libc::sa_family_t {
    // Cannot truncate: 1, 2 and 10.
    libc::sa_family_t::try_from(family).unwrap_or_default()
}

const fn in_addr(address: Ipv4Addr) -> libc::in_addr {
    libc::in_addr {
        s_addr: u32::from_ne_bytes(address.octets()),
    }
}

fn length_of<T>(value: &T) -> libc::socklen_t {
    // Cannot truncate: some tens of bytes.
    libc::socklen_t::try_from(size_of_val(value)).unwrap_or_default()
}

/// Sets the size of a socket's send buffer (`SO_SNDBUF`), which the kernel doubles for its own use
/// and no longer adapts.
///
/// # Errors
/// The error of `setsockopt(2)`.
pub fn set_send_buffer(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set_number(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes)
}

/// Sets the size of a socket's receive buffer (`SO_RCVBUF`), as [`set_send_buffer`] that of the
/// other. It bounds the TCP window if it is set before the connection.
///
/// # Errors
/// The error of `setsockopt(2)`.
pub fn set_receive_buffer(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set_number(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes)
}

/// Limits the size of a TCP connection's segments (`TCP_MAXSEG`), before it is made.
///
/// # Errors
/// The error of `setsockopt(2)`.
pub fn set_segment_size(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set_number(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes)
}

/// Lets a socket bind to an address that connections just ended still hold, and to that of other
/// multicast receivers (`SO_REUSEADDR`).
///
/// # Errors
/// The error of `setsockopt(2)`.
pub fn reuse_address(socket: impl AsFd) -> io::Result<()> {
    set_number(socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)
}

/// Sends the multicast datagrams of a socket through the interface with this address
/// (`IP_MULTICAST_IF`).
///
/// # Errors
/// The error of `setsockopt(2)`.
pub fn set_multicast_interface(socket: impl AsFd, address: Ipv4Addr) -> io::Result<()> {
    let value = in_addr(address);
    set(socket, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &value)
}

/// Limits the hops of the multicast datagrams of an IPv6 socket (`IPV6_MULTICAST_HOPS`).
///
/// # Errors
/// The error of `setsockopt(2)`.
pub fn set_multicast_hops(socket: impl AsFd, hops: u32) -> io::Result<()> {
    set_number(socket, libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_HOPS, hops)
}

fn set_number(
    socket: impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: u32,
) -> io::Result<()> {
    let value = libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
    set(socket, level, name, &value)
}

/// Sets an option whose value is a `T`, a C type without padding.
fn set<T>(socket: impl AsFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    let (value, length) = ((&raw const *value).cast(), length_of(value));
    // SAFETY: the descriptor is open, and the kernel reads the bytes of a live value.
    check(unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, name, value, length) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Bytes of the path in an address.
const UNIX_PATH_BYTES: usize = 108;
/// Connections that may wait to be accepted. A job accepts one; the rest is for peers that connect
/// again.
const BACKLOG: libc::c_int = 10;

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixListener;

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

    #[test]
    fn a_full_backlog_is_waited_for_up_to_the_time_out() {
        let path = std::env::temp_dir().join(format!("fathom-full-{}.sock", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let connect = |millis| connect_unix(&path, Duration::from_millis(millis));
        let mut near = connect(10_000).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(b"x").unwrap();
        far.read_exact(&mut [0]).unwrap();
        let mut waiting = Vec::new();
        let full = loop {
            match connect(1) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), ErrorKind::TimedOut);
        drop(listener);
        assert_eq!(connect(1).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(connect(1).unwrap_err().kind(), ErrorKind::NotFound);
        for wrong in ["", &"x".repeat(108), "a\0b"] {
            let error = connect_unix(Path::new(wrong), Duration::from_millis(1)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{wrong:?}");
        }
    }

    #[test]
    fn sockets_connect_within_both_families() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let address: SocketAddr = host.parse().unwrap();
            let socket = create(&address, SocketKind::Stream).unwrap();
            reuse_address(&socket).unwrap();
            set_receive_buffer(&socket, 65_536).unwrap();
            if let Err(error) = bind(&socket, &address) {
                println!("skipped: {host}: {error}");
                continue;
            }
            listen(&socket).unwrap();
            let listener = TcpListener::from(socket);
            let address = listener.local_addr().unwrap();
            let socket = create(&address, SocketKind::Stream).unwrap();
            set_segment_size(&socket, 1_000).unwrap();
            connect(&socket, &address).unwrap();
            let near = TcpStream::from(socket);
            let (_far, from) = listener.accept().unwrap();
            assert_eq!(near.local_addr().unwrap(), from);
            drop(listener);
            let late = create(&address, SocketKind::Stream).unwrap();
            let refused = connect(&late, &address).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        }
    }
}
