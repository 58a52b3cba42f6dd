//! Jobs with a peer: between two jobs, two runs, and a run and an installed fio.

use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use crate::common::{Folder, Run};

/// Returns a port that is free, for both protocols, and that no other test has been given: the
/// kernel gives the same one again as soon as it is closed.
fn port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let _also_free = UdpSocket::bind(("127.0.0.1", port)).unwrap();
        if GIVEN.lock().unwrap().insert(port) {
            return port;
        }
    }
}

/// Returns whether this is a port that something listens on, without connecting to it.
fn is_listened_on(port: u16) -> bool {
    // In the kernel's tables an address ends in a colon and the port in hexadecimal; 0A is LISTEN,
    // and a UDP socket that is not connected is in 07, CLOSE.
    let port = format!(":{port:04X}");
    let tables = ["tcp", "tcp6", "udp", "udp6"].map(|name| format!("/proc/net/{name}"));
    let text = tables.map(|path| std::fs::read_to_string(path).unwrap_or_default());
    text.iter().flat_map(|text| text.lines()).any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().unwrap_or_default();
        let state = fields.nth(1).unwrap_or_default();
        local.ends_with(&port) && matches!(state, "0A" | "07")
    })
}

fn start(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Starts a reader, and returns once it listens or has ended.
fn start_listener(command: Command, port: u16) -> Child {
    let mut reader = start(command);
    while !is_listened_on(port) && reader.try_wait().unwrap().is_none() {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    reader
}

/// Starts a reader, and a writer once the reader listens; returns both results.
fn both(reader: Command, writer: Command, port: u16) -> [Run; 2] {
    let reader = start_listener(reader, port);
    let writer = Run::of(writer);
    [Run::from(reader.wait_with_output().unwrap()), writer]
}

fn has_fio() -> bool {
    let version = Command::new("fio").arg("--version").output();
    // A link of that name may lead to Fathom.
    let is_fio = |version: &[u8]| !String::from_utf8_lossy(version).contains("-fathom-");
    let found = version.is_ok_and(|version| is_fio(&version.stdout));
    if !found {
        println!("skipped: no fio");
    }
    found
}

/// Returns the end of a run's JSON: fio prints messages before it.
fn job(run: &Run) -> serde_json::Value {
    let start = run.out.find("{\n").unwrap_or_else(|| panic!("{run:#?}"));
    let report: serde_json::Value = serde_json::from_str(&run.out[start..]).unwrap();
    report["jobs"][0].clone()
}

/// Moves 32 blocks from a writer to a reader, each `fathom` or `fio`.
#[track_caller]
fn check(reader: &str, writer: &str, options: &str, read: &str, write: &str) {
    let (folder, port) = (Folder::new(), port());
    let command = |program: &str, words: &str| {
        let program = match program {
            "fathom" => (env!("CARGO_BIN_EXE_fathom"), "run "),
            fio => (fio, ""),
        };
        let words = format!(
            "{}--name=t {options} --size=32k --bs=1k --port={port} --output-format=json {words}",
            program.1
        );
        folder.command(program.0, &words)
    };
    let reader = command(reader, &format!("--rw=read {read}"));
    let writer = command(writer, &format!("--rw=write {write}"));
    let title = format!("{reader:?} {writer:?}");
    let [reader, writer] = both(reader, writer, port);
    assert_eq!(
        (reader.code, writer.code),
        (Some(0), Some(0)),
        "{title} {reader:#?} {writer:#?}"
    );
    for (run, direction) in [(reader, "read"), (writer, "write")] {
        let direction = &job(&run)[direction];
        assert_eq!(direction["total_ios"].as_u64(), Some(32), "{title}");
        assert_eq!(direction["io_bytes"].as_u64(), Some(32 << 10), "{title}");
        assert_eq!(direction["slat_ns"]["N"].as_u64(), Some(0), "{title}");
    }
}

fn check_protocols(reader: &str, writer: &str) {
    let [listen, connect] = ["--listen=1", "--hostname=127.0.0.1"];
    for more in ["", "--pingpong=1"] {
        check(
            reader,
            writer,
            &format!("--ioengine=net {more}"),
            listen,
            connect,
        );
        let udp = format!("--ioengine=net --protocol=udp {more}");
        check(reader, writer, &udp, "", connect);
    }
    check(reader, writer, "--ioengine=netsplice", listen, connect);
}

#[test]
fn two_runs_have_a_connection() {
    check_protocols("fathom", "fathom");
}

#[test]
fn what_fio_writes_is_read() {
    if has_fio() {
        check_protocols("fathom", "fio");
    }
}

#[test]
fn what_is_written_fio_reads() {
    if has_fio() {
        check_protocols("fio", "fathom");
    }
}

#[test]
fn the_reader_verifies_what_the_writer_has_written() {
    let (folder, port) = (Folder::new(), port());
    folder.write(
        "j.fio",
        format!(
            "[global]\nioengine=net\nport={port}\nbs=4k\nsize=256k\nverify=md5\n\
             [r]\nlisten\nrw=read\n[w]\nhostname=localhost\nrw=write\n"
        ),
    );
    let run = folder.fathom("run j.fio --output-format=json").expect(0);
    let jobs = &run.json()["jobs"];
    assert_eq!(jobs[0]["read"]["total_ios"].as_u64(), Some(64));
    assert_eq!(jobs[1]["write"]["total_ios"].as_u64(), Some(64));
    assert_eq!(jobs[1]["read"]["total_ios"].as_u64(), Some(0));
}

#[test]
fn clones_take_a_range_of_ports() {
    let (folder, port) = (Folder::new(), port());
    folder.write(
        "j.fio",
        format!(
            "[global]\nioengine=net\nport={port}\nbs=4k\nsize=64k\nnumjobs=3\n\
             [r]\nlisten\nrw=read\n[w]\nhostname=localhost\nrw=write\n"
        ),
    );
    let run = folder.fathom("run j.fio --output-format=json");
    if run.err.contains("in use") {
        println!("skipped: a port after {port} is taken");
        return;
    }
    let jobs = run.expect(0).json()["jobs"].as_array().unwrap().clone();
    assert_eq!(jobs.len(), 6);
    for job in jobs {
        let ios = [&job["read"], &job["write"]].map(|part| part["total_ios"].as_u64().unwrap());
        assert_eq!(ios.iter().sum::<u64>(), 16);
    }
}

#[test]
fn jobs_that_lock_their_files_have_a_connection() {
    let (folder, port) = (Folder::new(), port());
    folder.write(
        "j.fio",
        format!(
            "[global]\nlockfile=exclusive\nioengine=net\nport={port}\nhostname=localhost\nbs=4k\n\
             size=64k\n[r]\nlisten\nrw=read\n[w]\nrw=write\n"
        ),
    );
    let run = folder.fathom("run j.fio --output-format=json").expect(0);
    let jobs = run.json();
    assert_eq!(jobs["jobs"][0]["read"]["total_ios"], 16);
    assert_eq!(jobs["jobs"][1]["write"]["total_ios"], 16);
}

#[test]
fn listeners_are_reached_from_this_machine_alone_unless_told_otherwise() {
    let address = |words: &str, host: &str| {
        let (folder, port) = (Folder::new(), port());
        let words = format!(
            "run --name=t --ioengine=net --rw=read --size=4k --port={port} --listen {words}"
        );
        let command = folder.command(env!("CARGO_BIN_EXE_fathom"), &words);
        let reader = start_listener(command, port);
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let local = format!(":{port:04X}");
        let line = table
            .lines()
            .find(|line| line.contains(&local))
            .map(str::to_owned);
        // Ends the wait, and is not a peer of fio's protocol.
        drop(TcpStream::connect((host, port)));
        let run = Run::from(reader.wait_with_output().unwrap()).expect(1);
        assert!(
            run.err.contains("the peer closed the connection"),
            "{run:#?}"
        );
        line.unwrap().split_whitespace().nth(1).unwrap()[..8].to_owned()
    };
    // In network order, as an integer of this machine.
    let text = |bytes| format!("{:08X}", u32::from_ne_bytes(bytes));
    assert_eq!(address("", "127.0.0.1"), text([127, 0, 0, 1]));
    assert_eq!(
        address("--hostname=0.0.0.0", "127.0.0.3"),
        text([0, 0, 0, 0])
    );
    assert_eq!(
        address("--interface=127.0.0.2", "127.0.0.2"),
        text([127, 0, 0, 2])
    );
}

#[test]
fn a_stop_request_ends_the_wait_for_a_peer() {
    let (folder, port) = (Folder::new(), port());
    let words =
        format!("run --name=t --ioengine=net --rw=read --size=4k --port={port} --listen --bs=4k");
    let reader = start_listener(folder.command(env!("CARGO_BIN_EXE_fathom"), &words), port);
    let kill = Command::new("kill")
        .args(["-INT", &reader.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    let run = Run::from(reader.wait_with_output().unwrap());
    assert!(run.err.contains("stopping"), "{run:#?}");
    assert!(!is_listened_on(port));
}

#[test]
fn a_job_whose_peer_is_missing_fails() {
    let (folder, port) = (Folder::new(), port());
    let words = format!("run --name=t --ioengine=net --rw=write --size=4k --port={port}");
    let run = folder
        .fathom(&format!("{words} --hostname=127.0.0.1"))
        .expect(1);
    let want = format!("connect: 127.0.0.1:{port}: Connection refused");
    assert!(run.err.contains(&want), "{run:#?}");
    assert!(
        run.err.contains("start the job of the peer first"),
        "{run:#?}"
    );
    let words = format!("run --name=t --ioengine=net --rw=read --size=4k --port={port}");
    let run = folder
        .fathom(&format!("{words} --listen --runtime=1"))
        .expect(1);
    assert!(run.err.contains("no peer has connected"), "{run:#?}");
}
