//! A small NBD server that keeps to the rules, or breaks one of them.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use fathom_conformance::{BLOCK, BLOCKS, content};

/// Server on the loopback address, whose threads end with its connections.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Clone, Copy)]
pub(crate) struct ServerConfig {
    /// Transmission flags.
    pub(crate) flags: u16,
    /// Knows structured replies.
    pub(crate) structured: bool,
    /// Knows `NBD_OPT_GO`.
    pub(crate) go: bool,
    /// Minimum and maximum block size to name.
    pub(crate) block: Option<(u32, u32)>,
    pub(crate) fault: Fault,
}

/// Misbehaviour, from the first read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Closes the connection instead of a greeting.
    Deaf,
    /// Greets as something else.
    Stranger,
    /// Reads fail with an error and a text.
    Error(u32),
    /// Half of the data come, then the connection is closed.
    Closes,
    /// No answer.
    Silence,
    /// The cookie is of no request.
    WrongCookie,
    /// Each reply comes twice.
    Twice,
    /// More data than asked for.
    Oversize,
    /// The last chunk comes too early.
    Missing,
    /// A simple reply, after structured ones were agreed on.
    Simple,
    /// No reply, but noise.
    Noise,
}

struct Shared {
    config: ServerConfig,
    content: Mutex<Vec<u8>>,
    requests: Mutex<Vec<(u16, u16, u32)>>,
    connections: AtomicU32,
}

impl ServerConfig {
    pub(crate) const PLAIN: Self = Self {
        flags: 0b1_0110_1101,
        structured: true,
        go: true,
        block: None,
        fault: Fault::None,
    };

    pub(crate) const fn with(fault: Fault) -> Self {
        Self {
            fault,
            ..Self::PLAIN
        }
    }
}

impl Server {
    pub(crate) fn start(config: ServerConfig) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            config,
            content: Mutex::new((0..BLOCKS).flat_map(content).collect()),
            requests: Mutex::default(),
            connections: AtomicU32::new(0),
        });
        let accepting = Arc::downgrade(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Some(shared) = accepting.upgrade() else {
                    return;
                };
                thread::spawn(move || {
                    let _the_client_left = serve(&shared, &mut stream.unwrap());
                });
            }
        });
        Self { address, shared }
    }

    pub(crate) fn uri(&self) -> String {
        format!("nbd://{}/disk", self.address)
    }

    pub(crate) fn block(&self, block: u32) -> Vec<u8> {
        let from = block as usize * BLOCK as usize;
        self.shared.content.lock().unwrap()[from..][..BLOCK as usize].to_vec()
    }

    /// Returns the requests so far: flags, command, length.
    pub(crate) fn requests(&self) -> Vec<(u16, u16, u32)> {
        self.shared.requests.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> u32 {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Wakes the listener, which finds that the server has gone.
        self.shared = Arc::new(Shared {
            config: ServerConfig::PLAIN,
            content: Mutex::default(),
            requests: Mutex::default(),
            connections: AtomicU32::new(0),
        });
        let _woken = TcpStream::connect(self.address);
    }
}

fn serve(shared: &Shared, stream: &mut TcpStream) -> io::Result<()> {
    shared.connections.fetch_add(1, Ordering::SeqCst);
    stream.set_nodelay(true)?;
    match shared.config.fault {
        Fault::Deaf => return Ok(()),
        Fault::Stranger => return stream.write_all(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"),
        _ => {}
    }
    let structured = greet(shared, stream)?;
    loop {
        let head = read::<28>(stream)?;
        let number = |from: usize, bytes: usize| {
            head[from..from + bytes]
                .iter()
                .fold(0_u64, |sum, &byte| sum << 8 | u64::from(byte))
        };
        let (flags, command) = (number(4, 2) as u16, number(6, 2) as u16);
        let (cookie, offset, length) = (number(8, 8), number(16, 8), number(24, 4) as u32);
        let known = &shared.requests;
        known.lock().unwrap().push((flags, command, length));
        let range = offset as usize..offset as usize + length as usize;
        match command {
            0 => answer_read(shared, stream, structured, cookie, offset, range)?,
            1 => {
                let mut data = vec![0; length as usize];
                stream.read_exact(&mut data)?;
                shared.content.lock().unwrap()[range].copy_from_slice(&data);
                simple(stream, 0, cookie, &[])?;
            }
            2 => return Ok(()),
            4 | 6 => {
                shared.content.lock().unwrap()[range].fill(0);
                simple(stream, 0, cookie, &[])?;
            }
            _ if structured => chunk(stream, 1, 0, cookie, &[])?,
            _ => simple(stream, 0, cookie, &[])?,
        }
    }
}

/// Performs the handshake; returns whether structured replies were agreed on.
fn greet(shared: &Shared, stream: &mut TcpStream) -> io::Result<bool> {
    let config = shared.config;
    let bytes = u64::from(BLOCK * BLOCKS);
    stream.write_all(b"NBDMAGICIHAVEOPT\0\x03")?;
    read::<4>(stream)?;
    let mut structured = false;
    loop {
        let head = read::<16>(stream)?;
        let (option, length) = (head[11], head[15]);
        let mut data = vec![0; length.into()];
        stream.read_exact(&mut data)?;
        let reply = |kind: u32, data: &[u8]| {
            let mut bytes = 0x3_e889_0455_65a9_u64.to_be_bytes().to_vec();
            bytes.extend(u32::from(option).to_be_bytes());
            bytes.extend(kind.to_be_bytes());
            bytes.extend((data.len() as u32).to_be_bytes());
            bytes.extend(data);
            bytes
        };
        match option {
            8 if config.structured => {
                structured = true;
                stream.write_all(&reply(1, &[]))?;
            }
            7 if config.go && data[4..8] != *b"disk" => {
                stream.write_all(&reply(1 << 31 | 6, b"not served here"))?;
            }
            7 if config.go => {
                let mut info = vec![0, 0];
                info.extend(bytes.to_be_bytes());
                info.extend(config.flags.to_be_bytes());
                stream.write_all(&reply(3, &info))?;
                if let Some((min, max)) = config.block {
                    let mut info = vec![0, 3];
                    for size in [min, BLOCK, max] {
                        info.extend(size.to_be_bytes());
                    }
                    stream.write_all(&reply(3, &info))?;
                }
                stream.write_all(&reply(1, &[]))?;
                return Ok(structured);
            }
            1 => {
                stream.write_all(&bytes.to_be_bytes())?;
                stream.write_all(&config.flags.to_be_bytes())?;
                return Ok(structured);
            }
            _ => stream.write_all(&reply(1 << 31 | 1, b"what?"))?,
        }
    }
}

fn answer_read(
    shared: &Shared,
    stream: &mut TcpStream,
    structured: bool,
    cookie: u64,
    offset: u64,
    range: std::ops::Range<usize>,
) -> io::Result<()> {
    let data = shared.content.lock().unwrap()[range].to_vec();
    let at = |from: usize, data: &[u8]| [&(offset + from as u64).to_be_bytes()[..], data].concat();
    match shared.config.fault {
        Fault::Silence => return Ok(()),
        Fault::Noise => return stream.write_all(&[0xaa; 64]),
        Fault::Error(error) if structured => {
            let mut payload = error.to_be_bytes().to_vec();
            payload.extend(b"\0\x0acold\nspare");
            return chunk(stream, 1, 1 << 15 | 1, cookie, &payload);
        }
        Fault::Error(error) => return simple(stream, error, cookie, &[]),
        Fault::Simple => return simple(stream, 0, cookie, &data),
        Fault::WrongCookie => return chunk(stream, 1, 1, cookie ^ 1 << 40, &at(0, &data)),
        Fault::Oversize => return chunk(stream, 1, 1, cookie, &at(1, &data)),
        Fault::Missing => return chunk(stream, 1, 1, cookie, &at(1, &data[1..])),
        Fault::Closes => {
            simple_or_chunk(stream, structured, cookie, offset, &data, data.len() / 2)?;
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        _ => {}
    }
    if !structured || data.len() < BLOCK as usize {
        return simple_or_chunk(stream, structured, cookie, offset, &data, data.len());
    }
    // Backwards, and with a hole where the data are zeroes.
    let half = data.len() / 2;
    match data[half..].iter().all(|&byte| byte == 0) {
        true => chunk(
            stream,
            0,
            2,
            cookie,
            &at(half, &((data.len() - half) as u32).to_be_bytes()),
        )?,
        false => chunk(stream, 0, 1, cookie, &at(half, &data[half..]))?,
    }
    chunk(stream, 1, 1, cookie, &at(0, &data[..half]))?;
    match shared.config.fault {
        Fault::Twice => chunk(stream, 1, 0, cookie, &[]),
        _ => Ok(()),
    }
}

/// Answers a read, but sends only `bytes` bytes of the data.
fn simple_or_chunk(
    stream: &mut TcpStream,
    structured: bool,
    cookie: u64,
    offset: u64,
    data: &[u8],
    bytes: usize,
) -> io::Result<()> {
    let mut reply = Vec::new();
    match structured {
        true => chunk(
            &mut reply,
            1,
            1,
            cookie,
            &[&offset.to_be_bytes()[..], data].concat(),
        )?,
        false => simple(&mut reply, 0, cookie, data)?,
    }
    stream.write_all(&reply[..reply.len() - data.len() + bytes])
}

fn simple(to: &mut impl Write, error: u32, cookie: u64, data: &[u8]) -> io::Result<()> {
    let mut bytes = 0x6744_6698_u32.to_be_bytes().to_vec();
    bytes.extend(error.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(data);
    to.write_all(&bytes)
}

fn chunk(to: &mut impl Write, flags: u16, kind: u16, cookie: u64, data: &[u8]) -> io::Result<()> {
    let mut bytes = 0x668e_33ef_u32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    to.write_all(&bytes)
}

fn read<const BYTES: usize>(stream: &mut TcpStream) -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}
