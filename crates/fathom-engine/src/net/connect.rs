//! Connecting to a peer, or waiting for one, in steps of 100 ms at most.

use std::fs;
use std::io;
use std::net::UdpSocket;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use fathom_core::{EngineError, EngineStep, Errno, Nanos, Tick};
use fathom_sys::clock::{self, Clock};
use fathom_sys::sockets::{self, SocketKind};

use super::link::{Datagrams, Link, OPEN};
use super::options::{Options, Protocol};

/// Way to a connection.
///
/// A listener binds when it is first asked, and a connection that is refused is tried again for two
/// seconds, so that two jobs of a run may start in any order.
#[derive(Debug)]
pub(super) struct Connector {
    options: Options,
    clock: Clock,
    door: Option<Door>,
    /// Time at which a refused connection is given up.
    give_up: Option<Tick>,
}

/// Socket that waits for a peer.
#[derive(Debug)]
enum Door {
    Tcp(TcpListener),
    Unix(
        UnixListener,
        #[expect(dead_code, reason = "removes the file on drop")] SocketFile,
    ),
    Udp(UdpSocket),
}

/// File of a Unix socket, removed on drop.
#[derive(Debug)]
struct SocketFile(String);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _already_gone = fs::remove_file(&self.0);
    }
}

impl Connector {
    pub(super) const fn new(options: Options, clock: Clock) -> Self {
        Self {
            options,
            clock,
            door: None,
            give_up: None,
        }
    }

    /// Waits for a connection for 100 ms at most.
    pub(super) fn step(&mut self) -> Result<Option<Link>, EngineError> {
        let (stepped, call) = match self.options.listens {
            true => (self.listen(), "listen"),
            false => (self.reach(), "connect"),
        };
        match stepped {
            Ok(None) => Ok(None),
            Ok(Some(link)) => self.set_up(link).map(Some),
            Err(error) if self.may_retry(&error) => {
                clock::sleep(RETRY_EVERY);
                Ok(None)
            }
            Err(error) => Err(self.failure(call, &error)),
        }
    }

    /// Returns whether the peer may be about to listen.
    fn may_retry(&mut self, error: &io::Error) -> bool {
        let kinds = [io::ErrorKind::ConnectionRefused, io::ErrorKind::NotFound];
        let now = self.clock.now();
        let limit = *self.give_up.get_or_insert(now + GIVE_UP);
        !self.options.listens && kinds.contains(&error.kind()) && now < limit
    }

    fn set_up(&self, link: Link) -> Result<Link, EngineError> {
        let set = || {
            if let (Link::Tcp(stream), true) = (&link, self.options.nodelay) {
                stream.set_nodelay(true)?;
            }
            match &link {
                Link::Tcp(stream) => {
                    stream.set_nonblocking(false)?;
                    stream.set_read_timeout(Some(STEP))?;
                    stream.set_write_timeout(Some(STEP))
                }
                Link::Unix(stream) => {
                    stream.set_nonblocking(false)?;
                    stream.set_read_timeout(Some(STEP))?;
                    stream.set_write_timeout(Some(STEP))
                }
                Link::Udp(datagrams) => {
                    datagrams.socket.set_read_timeout(Some(STEP))?;
                    datagrams.socket.set_write_timeout(Some(STEP))
                }
            }
        };
        let set: io::Result<()> = set();
        set.map_err(|error| self.failure("setsockopt", &error))?;
        Ok(link)
    }

    fn failure(&self, call: &'static str, error: &io::Error) -> EngineError {
        let hint = match (error.kind(), self.options.protocol) {
            (io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound, _) => {
                "start the job of the peer first"
            }
            (io::ErrorKind::TimedOut, _) => "check the address, and the network in between",
            (io::ErrorKind::AddrInUse, Protocol::Unix) => "remove the file, or name another",
            (io::ErrorKind::AddrInUse, _) => "choose another `port`",
            (io::ErrorKind::AddrNotAvailable, _) => "give an address of this host",
            _ => "",
        };
        EngineError {
            step: EngineStep::Call(call),
            target: match Errno::of(error) {
                Some(_) => self.options.to_string(),
                None => format!("{}: {error}", self.options),
            },
            errno: Errno::of(error),
            hint: hint.into(),
        }
    }

    /// Waits for a peer to connect.
    fn listen(&mut self) -> io::Result<Option<Link>> {
        if self.door.is_none() {
            self.door = Some(open_door(&self.options)?);
        }
        let until = self.clock.now() + Nanos::from_millis(100);
        let accepted = loop {
            let accepted = match &self.door {
                Some(Door::Tcp(listener)) => listener.accept().map(|(stream, _)| Link::Tcp(stream)),
                Some(Door::Unix(listener, _)) => {
                    listener.accept().map(|(stream, _)| Link::Unix(stream))
                }
                Some(Door::Udp(socket)) => await_writer(socket),
                None => unreachable!("opened above"),
            };
            match accepted {
                Err(error) if is_not_yet(&error) => {}
                other => break other?,
            }
            if self.clock.now() >= until {
                return Ok(None);
            }
            clock::sleep(LOOK_EVERY);
        };
        // One peer for each job: no other may wait in vain.
        self.door = None;
        Ok(Some(accepted))
    }

    /// Connects to a peer.
    fn reach(&self) -> io::Result<Option<Link>> {
        let options = &self.options;
        let host = options.host.as_deref().unwrap_or_default();
        if options.protocol == Protocol::Unix {
            return UnixStream::connect(host).map(|stream| Some(Link::Unix(stream)));
        }
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in resolve(options, host)? {
            let made = match options.protocol {
                Protocol::Tcp => dial(options, &address).map(Link::Tcp),
                Protocol::Udp | Protocol::Unix => announce(options, &address).map(Link::Udp),
            };
            match made {
                Ok(link) => return Ok(Some(link)),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// Returns the addresses of a host, of the job's family.
fn resolve(options: &Options, host: &str) -> io::Result<Vec<SocketAddr>> {
    let all = (host, options.port).to_socket_addrs()?;
    let fitting: Vec<_> = all
        .filter(|address| address.is_ipv6() == options.is_v6)
        .collect();
    if fitting.is_empty() {
        let version = if options.is_v6 { 6 } else { 4 };
        return Err(io::Error::other(format!(
            "{host} has no IPv{version} address"
        )));
    }
    Ok(fitting)
}

/// Opens the socket on which a listener waits.
fn open_door(options: &Options) -> io::Result<Door> {
    if options.protocol == Protocol::Unix {
        let path = options.host.clone().unwrap_or_default();
        remove_stale(Path::new(&path))?;
        let listener = UnixListener::bind(&path)?;
        let file = SocketFile(path);
        listener.set_nonblocking(true)?;
        return Ok(Door::Unix(listener, file));
    }
    let address = match (&options.host, options.interface, options.is_v6) {
        (Some(host), ..) => resolve(options, host)?[0],
        (None, Some(address), false) => SocketAddr::new(address.into(), options.port),
        (None, _, true) => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), options.port),
        (None, None, false) => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), options.port),
    };
    if options.protocol == Protocol::Tcp {
        let socket = new_socket(options, &address, SocketKind::Stream)?;
        sockets::bind(&socket, &address)?;
        sockets::listen(&socket)?;
        let listener = TcpListener::from(socket);
        listener.set_nonblocking(true)?;
        return Ok(Door::Tcp(listener));
    }
    let socket = new_socket(options, &address, SocketKind::Datagram)?;
    sockets::bind(&socket, &address)?;
    let socket = UdpSocket::from(socket);
    match address.ip() {
        IpAddr::V4(group) if group.is_multicast() => {
            let interface = options.interface.unwrap_or(Ipv4Addr::UNSPECIFIED);
            socket.join_multicast_v4(&group, &interface)?;
        }
        IpAddr::V6(group) if group.is_multicast() => socket.join_multicast_v6(&group, 0)?,
        _ => {}
    }
    socket.set_read_timeout(Some(STEP / 10))?;
    Ok(Door::Udp(socket))
}

/// Creates a socket with the options that count from its start.
fn new_socket(options: &Options, address: &SocketAddr, kind: SocketKind) -> io::Result<OwnedFd> {
    let socket = sockets::create(address, kind)?;
    if options.listens {
        sockets::reuse_address(&socket)?;
    }
    if let Some(bytes) = options.window {
        sockets::set_send_buffer(&socket, bytes)?;
        sockets::set_receive_buffer(&socket, bytes)?;
    }
    if let (SocketKind::Stream, Some(bytes)) = (kind, options.segment) {
        sockets::set_segment_size(&socket, bytes)?;
    }
    Ok(socket)
}

/// Removes the file of a Unix socket without a listener.
fn remove_stale(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path);
    if !found.is_ok_and(|found| found.file_type().is_socket()) {
        return Ok(());
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        // In use: `bind` reports it.
        _ => Ok(()),
    }
}

/// Waits for the message by which a UDP writer announces itself; any other datagram stays for the
/// first op.
fn await_writer(socket: &UdpSocket) -> io::Result<Link> {
    let mut message = [0; OPEN.len() + 1];
    let (count, peer) = socket.peek_from(&mut message)?;
    if message[..count] == OPEN {
        socket.recv_from(&mut message)?;
    }
    Ok(Link::Udp(Datagrams {
        socket: socket.try_clone()?,
        peer: Some(peer),
        writes: false,
    }))
}

/// Connects to a listener.
fn dial(options: &Options, address: &SocketAddr) -> io::Result<TcpStream> {
    let socket = new_socket(options, address, SocketKind::Stream)?;
    let stream = TcpStream::from(socket);
    stream.set_write_timeout(Some(DIAL))?;
    sockets::connect(&stream, address)?;
    Ok(stream)
}

/// Announces a UDP writer to its reader. A socket that is connected learns that there is none.
fn announce(options: &Options, address: &SocketAddr) -> io::Result<Datagrams> {
    let socket = new_socket(options, address, SocketKind::Datagram)?;
    let is_group = address.ip().is_multicast();
    if is_group && options.is_v6 {
        sockets::set_multicast_hops(&socket, options.ttl)?;
    }
    if let (true, Some(interface)) = (is_group, options.interface) {
        sockets::set_multicast_interface(&socket, interface)?;
    }
    let socket = UdpSocket::from(socket);
    if is_group && !options.is_v6 {
        socket.set_multicast_ttl_v4(options.ttl)?;
    }
    if !is_group {
        // Unconnected, the socket would keep sending without a receiver.
        sockets::connect(&socket, address)?;
    }
    let datagrams = Datagrams {
        socket,
        peer: is_group.then_some(*address),
        writes: true,
    };
    datagrams.send(&OPEN)?;
    if !is_group {
        clock::sleep(ANSWER);
        if let Some(error) = datagrams.socket.take_error()? {
            return Err(error);
        }
    }
    Ok(datagrams)
}

fn is_not_yet(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

/// Longest wait of a call on a connected socket: the driver then sees a stop request.
const STEP: Duration = Duration::from_millis(100);
/// Longest wait for an answer to a connection request.
const DIAL: Duration = Duration::from_millis(2_500);
/// Time for which a refused connection is tried again: that of another job to get to its `listen`.
const GIVE_UP: Nanos = Nanos::from_secs(2);
const RETRY_EVERY: Nanos = Nanos::from_millis(20);
/// Interval between looks for a peer.
const LOOK_EVERY: Nanos = Nanos::from_millis(2);
/// Time for a host to report that a UDP port has no reader: on the same machine no time at all, and
/// from another it may come later and fail an op.
const ANSWER: Nanos = Nanos::from_millis(10);
