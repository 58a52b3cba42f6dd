//! Conformance of the engines that have a peer: what a worker relies on, between two engines.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::thread;

use fathom_conformance::option_values;
use fathom_core::{
    Completion, Direction, EngineError, FileIndex, Op, OpKind, Slot, Submitted, Tick,
};
use fathom_engine::{AnyEngine, EngineConfig, EngineFile, built_in, start};
use fathom_sys::clock::Clock;

/// Bytes of an op.
const BLOCK: u32 = 8192;
/// Ops of a job.
const OPS: u32 = 100;

/// One side of a connection.
struct Side {
    engine: AnyEngine,
    direction: Direction,
}

impl Side {
    /// Creates a side with options such as `port=1 listen`.
    fn new(engine: &'static str, direction: Direction, words: &str) -> Result<Self, EngineError> {
        let engine = built_in(engine);
        let write = direction == Direction::Write;
        let config = EngineConfig {
            buffer_bytes: BLOCK,
            options: option_values(engine.info, words),
            files: vec![EngineFile {
                path: "unused".into(),
                read: !write,
                write,
                ..EngineFile::default()
            }],
            ..EngineConfig::new(engine, Clock::monotonic())
        };
        start(config).map(|engine| Self { engine, direction })
    }

    fn connect(&mut self) -> Result<(), EngineError> {
        while !self.engine.as_dyn().connect()? {}
        Ok(())
    }

    fn buffer(&mut self) -> &mut [u8] {
        self.engine.as_dyn().buffer(Slot::new(0))
    }

    fn prepare(&mut self, number: u32) {
        let op = Op {
            slot: Slot::new(0),
            kind: OpKind::Data(self.direction),
            priority: 0,
            file: FileIndex::new(0),
            length: BLOCK,
            buffer_offset: 0,
            offset: u64::from(number * BLOCK),
            sequence: number.into(),
        };
        let engine = self.engine.as_dyn();
        engine.prepare(&op);
        assert!(matches!(engine.submit(0), Submitted::Issued { .. }));
    }

    /// Waits for the op in flight, and returns its result.
    fn complete(&mut self) -> Result<i32, EngineError> {
        let engine = self.engine.as_dyn();
        let mut done = [Completion::default(); 2];
        loop {
            match engine.reap(&mut done) {
                0 => engine.wait(1, None)?,
                count => {
                    assert_eq!((count, done[0].slot), (1, Slot::new(0)));
                    assert_eq!(engine.reap(&mut done), 0, "an op completes once");
                    return Ok(done[0].result);
                }
            }
        }
    }

    fn run(&mut self, number: u32) -> Result<i32, EngineError> {
        self.prepare(number);
        self.complete()
    }

    /// Runs all ops of a writer, each of other content.
    fn write_all(&mut self, ops: u32) -> Result<(), EngineError> {
        self.connect()?;
        for number in 0..ops {
            self.buffer().fill(number.to_le_bytes()[0]);
            assert_eq!(self.run(number)?, BLOCK.cast_signed());
        }
        Ok(())
    }

    /// Runs all ops of a reader, which checks their content.
    fn read_all(&mut self, ops: u32) -> Result<(), EngineError> {
        self.connect()?;
        for number in 0..ops {
            self.buffer().fill(0xff);
            assert_eq!(self.run(number)?, BLOCK.cast_signed());
            let want = number.to_le_bytes()[0];
            assert!(self.buffer().iter().all(|&byte| byte == want), "{number}");
        }
        Ok(())
    }
}

/// Returns a port that is free, for both protocols.
fn port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let _also_free = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    port
}

/// Path of a Unix socket, removed when the test ends.
struct SocketPath(PathBuf);

impl SocketPath {
    fn new(name: &str) -> Self {
        let name = format!("fathom-peers-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for SocketPath {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.0);
    }
}

/// Runs a writer of `ops` on a thread of its own, and returns its error.
fn writer(engine: &'static str, words: &str, ops: u32) -> Result<(), String> {
    let made = Side::new(engine, Direction::Write, words);
    let mut writer = made.map_err(|error| error.to_string())?;
    writer.write_all(ops).map_err(|error| error.to_string())
}

/// Moves blocks from a writer to a reader with these options, in order, up to the orderly end.
#[track_caller]
fn check(engine: &'static str, common: &str, read: &str, write: &str, ops: u32) {
    let (read, write) = (format!("{common} {read}"), format!("{common} {write}"));
    let mut reader = Side::new(engine, Direction::Read, &read).unwrap();
    thread::scope(|scope| {
        // The writer may be early: it tries again until the reader listens.
        let sent = scope.spawn(|| writer(engine, &write, ops));
        let received = reader.read_all(ops).map_err(|error| error.to_string());
        assert_eq!(
            (received, sent.join().unwrap()),
            (Ok(()), Ok(())),
            "{engine} {common}"
        );
        // The writer has finished in order, so the next read is the end.
        assert_eq!(reader.run(ops), Ok(Completion::ENDED), "{engine} {common}");
    });
}

#[test]
fn blocks_arrive_in_order_over_tcp() {
    for engine in ["net", "netsplice"] {
        for options in ["", "pingpong", "nodelay=1", "window_size=16384 mss=1000"] {
            let common = format!("port={} {options}", port());
            check(engine, &common, "listen", "hostname=localhost", OPS);
            let common = format!("port={} {options}", port());
            // The roles of listener and reader are independent.
            check(engine, &common, "hostname=127.0.0.1", "listen", OPS);
        }
    }
}

#[test]
fn blocks_arrive_in_order_over_unix_sockets() {
    for engine in ["net", "netsplice"] {
        for options in ["", "pingpong"] {
            let path = SocketPath::new(engine);
            let common = format!("protocol=unix hostname={} {options}", path.0.display());
            check(engine, &common, "", "", OPS);
            assert!(!path.0.exists(), "the socket's file is removed");
        }
    }
}

#[test]
fn blocks_arrive_in_order_over_udp() {
    let common = || format!("protocol=udp port={}", port());
    // As many as the receive buffer holds: nothing holds a UDP writer back.
    check("net", &common(), "", "hostname=127.0.0.1", 10);
    check(
        "net",
        &format!("{} pingpong", common()),
        "",
        "hostname=127.0.0.1",
        OPS,
    );
}

#[test]
fn blocks_arrive_in_order_over_ipv6() {
    if TcpListener::bind("[::1]:0").is_err() {
        println!("skipped: no IPv6 on the loopback interface");
        return;
    }
    let common = format!("protocol=tcpv6 port={}", port());
    check("net", &common, "listen", "hostname=::1", OPS);
    let common = format!("protocol=udpv6 port={} pingpong", port());
    check("net", &common, "", "hostname=::1", OPS);
}

/// Returns the reader of a peer that sends `data` and then ends.
fn reader_of(data: &[u8]) -> Side {
    let port = port();
    let words = format!("port={port} listen");
    let mut reader = Side::new("net", Direction::Read, &words).unwrap();
    // Binds; there is no peer yet.
    assert_eq!(reader.engine.as_dyn().connect(), Ok(false));
    let mut peer = TcpStream::connect(("127.0.0.1", port)).unwrap();
    peer.write_all(data).unwrap();
    drop(peer);
    reader.connect().unwrap();
    reader
}

#[test]
fn a_peer_that_is_cut_off_fails_the_job_and_one_that_has_finished_ends_it() {
    let block = vec![7; BLOCK as usize];
    for rest in [&[][..], &[7; 100]] {
        let mut reader = reader_of(&[&block, rest].concat());
        assert_eq!(reader.run(0), Ok(BLOCK.cast_signed()));
        let error = reader.run(1).unwrap_err().to_string();
        let bytes = block.len() + rest.len();
        let want = format!("closed the connection before it was done, after {bytes} bytes");
        assert!(error.ends_with(&want), "{error}");
        // What fio sends when it has finished.
        let mut reader = reader_of(&[&block, rest, b"knil\x89\0\0\0"].concat());
        assert_eq!(reader.run(0), Ok(BLOCK.cast_signed()));
        assert_eq!(reader.run(1), Ok(Completion::ENDED));
    }
}

#[test]
fn an_op_that_waits_for_its_peer_can_be_cancelled() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let words = format!(
        "hostname=127.0.0.1 port={}",
        listener.local_addr().unwrap().port()
    );
    let mut reader = Side::new("net", Direction::Read, &words).unwrap();
    reader.connect().unwrap();
    let (mut peer, _from) = listener.accept().unwrap();
    reader.prepare(0);
    let engine = reader.engine.as_dyn();
    engine.wait(1, None).unwrap();
    assert_eq!(engine.reap(&mut [Completion::default()]), 0);
    engine.cancel();
    engine.cancel();
    assert_eq!(reader.complete(), Ok(Completion::ENDED));
    drop(reader);
    // And the peer is told.
    let mut told = Vec::new();
    peer.read_to_end(&mut told).unwrap();
    assert_eq!(told, b"knil\x89\0\0\0");
}

#[test]
fn an_engine_may_be_dropped_with_an_op_in_flight() {
    for engine in ["net", "netsplice"] {
        let words = format!("port={} listen", port());
        let mut reader = Side::new(engine, Direction::Read, &words).unwrap();
        assert_eq!(reader.engine.as_dyn().connect(), Ok(false));
        reader.engine.as_dyn().wait(0, Some(Tick::ZERO)).unwrap();
        drop(reader);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let words = format!("port={port} hostname=127.0.0.1");
        let mut reader = Side::new(engine, Direction::Read, &words).unwrap();
        reader.connect().unwrap();
        reader.prepare(0);
    }
}

#[test]
fn a_peer_that_is_missing_is_an_error_that_names_it() {
    // A port that was free a moment ago may be another test's by now, or connect to itself.
    let port = 1;
    let path = SocketPath::new("missing");
    let unix = format!("protocol=unix hostname={}", path.0.display());
    let cases = [
        (
            format!("hostname=127.0.0.1 port={port}"),
            format!("connect: 127.0.0.1:{port}: "),
        ),
        (
            format!("protocol=udp hostname=127.0.0.1 port={port}"),
            format!("connect: 127.0.0.1:{port}: "),
        ),
        (unix, format!("connect: {}: ", path.0.display())),
    ];
    for (words, want) in cases {
        let mut writer = Side::new("net", Direction::Write, &words).unwrap();
        let error = writer.connect().unwrap_err();
        assert!(error.to_string().starts_with(&want), "{error}");
        assert_eq!(error.hint, "start the job of the peer first");
    }
}

#[test]
fn a_socket_file_left_behind_is_replaced_and_a_file_is_not() {
    let path = SocketPath::new("stale");
    let words = format!("protocol=unix hostname={}", path.0.display());
    drop(std::os::unix::net::UnixListener::bind(&path.0).unwrap());
    let mut reader = Side::new("net", Direction::Read, &words).unwrap();
    assert_eq!(reader.engine.as_dyn().connect(), Ok(false));
    let mut second = Side::new("net", Direction::Read, &words).unwrap();
    let error = second.engine.as_dyn().connect().unwrap_err();
    assert!(error.to_string().contains("in use"), "{error}");
    drop((reader, second));
    std::fs::write(&path.0, "kept").unwrap();
    let mut reader = Side::new("net", Direction::Read, &words).unwrap();
    assert!(reader.engine.as_dyn().connect().is_err());
    drop(reader);
    assert_eq!(std::fs::read(&path.0).unwrap(), b"kept");
}
