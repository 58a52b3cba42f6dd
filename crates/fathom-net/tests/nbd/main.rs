//! The engine `nbd`: the conformance suite against a server of our own, nbdkit and qemu-nbd, limits
//! of servers, and faults of connections.
#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    reason = "the whole crate is a test"
)]

mod bench;
mod programs;
mod server;

use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bench::{Bench, config};
use fathom_conformance::{BLOCK, BLOCKS, Subject as _, conformance, content};
use fathom_core::{Direction, Errno, OpKind, RemoteFile, SyncKind};
use fathom_net::NBD;
use fathom_sys::clock::Clock;
use programs::Program;
use server::{Fault, Server, ServerConfig};

/// Runs a case at depths 1 and 16: with simple and structured replies, several connections, ops
/// that are split, and servers of others.
fn each(case: impl Fn(&mut Bench)) {
    let plain = ServerConfig::PLAIN;
    let old = ServerConfig {
        structured: false,
        go: false,
        ..plain
    };
    let small = ServerConfig {
        block: Some((512, 1536)),
        ..plain
    };
    for (depth, options, config) in [
        (1, "", plain),
        (16, "", plain),
        (16, "", old),
        (16, "hipri", plain),
        (16, "replies=simple", plain),
        (16, "connections=3", plain),
        (5, "connections=2", small),
    ] {
        let mut bench = Bench::new(Server::start(config), depth, options);
        bench.open();
        case(&mut bench);
        bench.finish();
    }
    let programs = [
        Program::nbdkit("", ""),
        Program::nbdkit("--no-sr", ""),
        Program::qemu_nbd(""),
    ];
    for program in programs.into_iter().flatten() {
        let mut bench = Bench::new(program, 16, "");
        bench.open();
        case(&mut bench);
        bench.finish();
    }
}

conformance!(each);

#[test]
fn the_end_of_an_export_is_that_of_a_block_device() {
    each(|bench| {
        let end = u64::from(BLOCK * BLOCKS);
        let mut across = bench.read(0, BLOCKS - 1);
        across.offset = end - 512;
        assert_eq!(bench.run(across).result, 512);
        for offset in [end, 1 << 63] {
            across.offset = offset;
            assert_eq!(bench.run(across).result, 0);
        }
        let mut past = bench.write(0, BLOCKS - 1);
        past.offset = end;
        assert_eq!(bench.run(past).result, Errno::ENOSPC.result());
    });
}

#[test]
fn a_trim_reaches_the_server() {
    each(|bench| {
        let mut trim = bench.read(0, 1);
        trim.kind = OpKind::Data(Direction::Trim);
        bench.run_one(trim);
        bench.check_stored(2, 2);
        // A server may keep what was trimmed; ours does not.
        if bench.is_ours() {
            bench.run_one(bench.read(0, 1));
            assert!(bench.buffer(0).iter().all(|&byte| byte == 0));
        }
    });
}

#[test]
fn zeroes_are_written_without_being_sent() {
    let mut bench = Bench::new(Server::start(ServerConfig::PLAIN), 1, "write_mode=zeroes");
    bench.open();
    bench.run_one(bench.write(0, 3));
    assert_eq!(bench.server().requests(), [(0, 6, BLOCK)]);
    bench.run_one(bench.read(0, 3));
    assert!(bench.buffer(0).iter().all(|&byte| byte == 0));
    bench.finish();
}

#[test]
fn synchronous_writes_are_fua_and_syncs_are_flushes() {
    let server = Server::start(ServerConfig::PLAIN);
    let mut bench = Bench::with(server, 1, "", |config| config.sync_flag = 2);
    bench.open();
    bench.run_one(bench.write(0, 3));
    bench.run_one(bench.read(0, 3));
    bench.run(bench.sync(0, SyncKind::Data));
    let want = [(1, 1, BLOCK), (0, 0, BLOCK), (0, 3, 0)];
    assert_eq!(bench.server().requests(), want);
}

#[test]
fn ops_beyond_the_servers_limit_become_several_requests() {
    let small = ServerConfig {
        block: Some((512, 1536)),
        ..ServerConfig::PLAIN
    };
    let mut bench = Bench::new(Server::start(small), 1, "");
    bench.open();
    bench.fill(0, 9);
    bench.run_one(bench.write(0, 2));
    bench.check_stored(2, 9);
    let parts = [1536, 1536, 1024].map(|length| (0, 1, length));
    assert_eq!(bench.server().requests(), parts);
}

#[test]
fn large_ops_go_straight_into_their_place() {
    for structured in [false, true] {
        let config = ServerConfig {
            structured,
            ..ServerConfig::PLAIN
        };
        let bytes = BLOCK * BLOCKS;
        let server = Server::start(config);
        let mut bench = Bench::with(server, 3, "", |config| config.buffer_bytes = bytes);
        bench.open();
        let all: Vec<u8> = (0..BLOCKS).flat_map(content).collect();
        for slot in 0..3 {
            let mut read = bench.read(slot, 0);
            read.length = bytes;
            bench.prepare(read);
        }
        bench.submit(0);
        for done in bench.collect() {
            assert_eq!(done.result, bytes.cast_signed());
            assert!(bench.buffer(done.slot.get()) == all);
        }
        bench.finish();
    }
}

#[test]
fn each_connection_is_used() {
    let server = Server::start(ServerConfig::PLAIN);
    let mut bench = Bench::new(server, 8, "connections=4");
    bench.open();
    assert_eq!(bench.server().connections(), 4);
    for slot in 0..8 {
        bench.prepare(bench.read(slot, slot));
    }
    bench.submit(0);
    bench.finish_all();
    for slot in 0..8 {
        bench.check(slot, slot);
    }
}

#[test]
fn an_engine_may_be_dropped_with_ops_in_flight() {
    let mut bench = Bench::new(Server::start(ServerConfig::PLAIN), 8, "");
    bench.open();
    for slot in 0..7 {
        bench.prepare(bench.read(slot, slot));
    }
    bench.submit(0);
    bench.reap(1);
    bench.prepare(bench.write(7, 1));
    drop(bench);
}

/// All ops of a connection that a fault ends fail with its errno, those in flight and later ones.
#[track_caller]
fn check_lost(fault: Fault, reply_timeout: u32, errno: Errno, why: &str) {
    let server = Server::start(ServerConfig::with(fault));
    let mut bench = Bench::new(server, 4, &format!("reply_timeout={reply_timeout}"));
    bench.open();
    bench.run_one(bench.write(0, 1));
    for slot in 0..4 {
        bench.prepare(bench.read(slot, slot));
    }
    bench.submit(0);
    let results: Vec<i32> = bench.collect().iter().map(|done| done.result).collect();
    // A reply may have been good before the server broke the rules.
    let is_good = |result: &i32| *result == BLOCK.cast_signed() && fault == Fault::Twice;
    assert!(
        results
            .iter()
            .all(|result| *result == errno.result() || is_good(result)),
        "{fault:?}: {results:?}"
    );
    assert_eq!(bench.run(bench.read(0, 0)).result, errno.result());
    let text = bench.engine().explain(errno).unwrap_or_default();
    assert!(text.contains(why), "{fault:?}: {text}");
    assert_eq!(bench.engine().explain(Errno::EPERM), None);
}

#[test]
fn servers_that_break_the_rules_end_the_connection() {
    let check = |fault, why| check_lost(fault, 1, Errno::EPROTO, why);
    check(Fault::WrongCookie, "reply to an unknown request");
    check(Fault::Twice, "second reply to a request");
    check(Fault::Oversize, "data outside the request");
    check(Fault::Missing, "lacks data");
    check(Fault::Simple, "simple reply to a read");
    check(Fault::Noise, "reply begins with 0xaaaaaaaa");
}

#[test]
fn servers_that_leave_are_noticed_at_once() {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        // The last bytes and the end may come together, as one event; not each time.
        for _ in 0..20 {
            // What the system says depends on what the server has not read.
            check_lost(Fault::Closes, 3600, Errno::ECONNRESET, "");
        }
        tell.send(()).unwrap();
    });
    let waited = told.recv_timeout(Duration::from_secs(60));
    assert_eq!(waited, Ok(()), "waits for the time-out, or has failed");
}

#[test]
fn servers_that_fall_silent_fail_the_ops() {
    check_lost(
        Fault::Silence,
        1,
        Errno::ETIMEDOUT,
        "no answer of the server",
    );
}

#[test]
fn an_error_of_the_server_fails_its_op_alone() {
    for (structured, options, text) in [
        (true, "", Some("the server says ENOSPC: cold spare")),
        (true, "replies=simple", None),
        (false, "", None),
    ] {
        let config = ServerConfig {
            structured,
            ..ServerConfig::with(Fault::Error(28))
        };
        let mut bench = Bench::new(Server::start(config), 2, options);
        bench.open();
        assert_eq!(bench.run(bench.read(0, 0)).result, Errno::ENOSPC.result());
        let said = bench.engine().explain(Errno::ENOSPC);
        assert_eq!(said.as_deref(), text);
        bench.run_one(bench.write(1, 1));
        bench.finish();
    }
}

#[test]
fn errors_of_nbdkit_have_their_errnos() {
    let filter = "--filter=error";
    for (name, errno) in [
        ("EIO", Errno::EIO),
        ("ENOSPC", Errno::ENOSPC),
        ("EPERM", Errno::EPERM),
        ("ESHUTDOWN", Errno::ESHUTDOWN),
    ] {
        let words = format!("error-pread={name} error-pread-rate=100%");
        let Some(program) = Program::nbdkit(filter, &words) else {
            return;
        };
        let mut bench = Bench::new(program, 1, "");
        bench.open();
        assert_eq!(bench.run(bench.read(0, 0)).result, errno.result(), "{name}");
        bench.run_one(bench.write(0, 1));
    }
}

#[track_caller]
fn check_refused(config: ServerConfig, options: &str, change: (&str, &str), want: [&str; 2]) {
    let server = Server::start(config);
    let mut bench = Bench::with(server, 1, options, |config| {
        let path = &mut config.files[0].path;
        *path = path.replace(change.0, change.1);
    });
    let error = bench.try_open().unwrap_err();
    assert!(error.to_string().contains(want[0]), "{error}");
    assert!(error.hint.contains(want[1]), "{}", error.hint);
}

#[test]
fn refusals_name_a_remedy() {
    let plain = ServerConfig::PLAIN;
    let same = ("disk", "disk");
    let flags = |flags| ServerConfig { flags, ..plain };
    check_refused(
        plain,
        "",
        ("/disk", "/tape"),
        ["no export `tape`: not served here", "name an export"],
    );
    check_refused(
        ServerConfig::with(Fault::Deaf),
        "",
        same,
        [
            "the server closed the connection",
            "check that an NBD server",
        ],
    );
    check_refused(
        ServerConfig::with(Fault::Stranger),
        "",
        same,
        ["not an NBD server", "check the port"],
    );
    check_refused(
        flags(1),
        "connections=2",
        same,
        [
            "does not support several connections",
            "remove `connections`",
        ],
    );
    check_refused(
        flags(1),
        "write_mode=zeroes",
        same,
        ["does not support writing zeroes", "remove `write_mode`"],
    );
    let sizes = ServerConfig {
        block: Some((0, 1)),
        ..plain
    };
    check_refused(sizes, "", same, ["impossible block sizes", ""]);
    let server = Server::start(flags(1));
    let mut bench = Bench::with(server, 1, "", |config| config.sync_flag = 1);
    let error = bench.try_open().unwrap_err();
    assert!(error.to_string().contains("forced unit access"), "{error}");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("nbd://{}/", listener.local_addr().unwrap());
    drop(listener);
    let look_up = NBD.remote_file.unwrap();
    for uri in [uri, "nbd+unix:///?socket=/no/such/socket".to_owned()] {
        let error = look_up(&config(&uri, "", Clock::monotonic())).unwrap_err();
        assert!(error.target.starts_with(&uri), "{error}");
        assert_eq!(error.hint, "start the server, or check uri");
    }
    let tls = look_up(&config("nbds://h/", "", Clock::monotonic())).unwrap_err();
    assert_eq!(tls.to_string(), "uri: nbds://h/: TLS is not supported");
}

#[track_caller]
fn check_found(config_of_server: ServerConfig, block_bytes: u32, directions: &[Direction]) {
    let server = Server::start(config_of_server);
    let look_up = NBD.remote_file.unwrap();
    let found = look_up(&config(&server.uri(), "", Clock::monotonic())).unwrap();
    let RemoteFile {
        bytes,
        block_bytes: block,
        directions: taken,
    } = found;
    assert_eq!(bytes, u64::from(BLOCK * BLOCKS));
    assert_eq!((block, taken), (block_bytes, directions));
}

#[test]
fn an_export_tells_its_size_and_what_it_takes() {
    let plain = ServerConfig::PLAIN;
    let flags = |flags| ServerConfig { flags, ..plain };
    check_found(plain, 1, &Direction::ALL);
    check_found(flags(1), 1, &[Direction::Read, Direction::Write]);
    check_found(flags(0b11), 1, &[Direction::Read]);
    let sizes = ServerConfig {
        block: Some((512, 1 << 20)),
        ..plain
    };
    check_found(sizes, 512, &Direction::ALL);
}

#[test]
fn what_an_export_lacks_fails_as_not_supported() {
    let config = ServerConfig {
        flags: 1,
        ..ServerConfig::PLAIN
    };
    let mut bench = Bench::new(Server::start(config), 1, "");
    bench.open();
    let mut trim = bench.read(0, 1);
    trim.kind = OpKind::Data(Direction::Trim);
    let sync = bench.sync(0, SyncKind::Full);
    for op in [trim, sync] {
        assert_eq!(bench.run(op).result, Errno::EOPNOTSUPP.result());
    }
    assert_eq!(bench.server().requests(), []);
}
