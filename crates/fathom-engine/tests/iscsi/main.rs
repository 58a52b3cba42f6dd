//! The engine `libiscsi`: the conformance suite on a unit of tgt, and faults of targets.
#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    reason = "the whole crate is a test"
)]

mod bench;
mod server;
#[path = "../server_bench/mod.rs"]
mod server_bench;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use bench::{Bench, config};
use fathom_conformance::{BLOCK, BLOCKS, Subject as _, conformance};
use fathom_core::{Direction, Errno, FileIndex, Op, OpKind, RemoteFile};
use fathom_engine::built_in;
use fathom_sys::clock::Clock;
use server::{BYTES, DISK, LOCKED, TARGET, Tgt, hide_library, url, within_namespaces};
use server_bench::{Server as _, check_refused};

/// Runs a case at depths 1 and 32, and with writes that complete when they are on the medium.
fn each(case: impl Fn(&mut Bench)) {
    within_namespaces(|| {
        for (depth, sync_flag) in [(1, 0), (32, 0), (32, 2)] {
            let mut bench = Bench::new(depth, "", |config| config.sync_flag = sync_flag);
            bench.open();
            case(&mut bench);
            bench.finish();
        }
    });
}

conformance!(each);

fn trim(bench: &Bench, slot: u32, block: u32) -> Op {
    Op {
        kind: OpKind::Data(Direction::Trim),
        ..bench.read(slot, block)
    }
}

#[test]
fn trims_unmap_where_the_unit_can() {
    within_namespaces(|| {
        let mut bench = Bench::thin(4);
        bench.open();
        assert_eq!(bench.run(trim(&bench, 0, 2)).result, BLOCK.cast_signed());
        assert_eq!(bench.stored(2), vec![0; BLOCK as usize]);
        for block in [1, 3] {
            bench.check_stored(block, block);
        }
        bench.finish();
    });
}

#[test]
fn trims_fail_as_not_supported_elsewhere() {
    each(|bench| {
        let result = bench.run(trim(bench, 0, 1)).result;
        assert_eq!(result, Errno::EOPNOTSUPP.result());
        bench.check_stored(1, 1);
    });
}

#[test]
fn ops_are_in_whole_blocks_of_the_unit() {
    each(|bench| {
        let mut odd = bench.read(0, 1);
        odd.length = 700;
        assert_eq!(bench.run(odd).result, Errno::EINVAL.result());
        let text = bench.engine().explain(Errno::EINVAL).unwrap_or_default();
        assert_eq!(text, "not a whole number of 512 B blocks");
    });
}

#[test]
fn a_command_that_fails_names_its_sense() {
    each(|bench| {
        let mut past = bench.write(0, 0);
        past.offset = BYTES;
        assert_eq!(bench.run(past).result, Errno::EIO.result());
        let text = bench.engine().explain(Errno::EIO).unwrap_or_default();
        let want = "ILLEGAL REQUEST, LOGICAL BLOCK ADDRESS OUT OF RANGE";
        assert!(text.starts_with(want), "{text}");
        // It fails alone.
        bench.run_one(bench.write(0, 5));
        assert_eq!(fs::metadata(DISK).unwrap().len(), BYTES);
    });
}

/// Reads a block that cannot be read, and returns why.
#[track_caller]
fn read_failure(bench: &mut Bench, block: u32) -> String {
    let failed = bench.run(bench.read(0, block));
    assert_eq!(failed.result, Errno::EIO.result());
    bench.engine().explain(Errno::EIO).unwrap_or_default()
}

#[test]
fn an_error_of_the_medium_is_named() {
    within_namespaces(|| {
        let mut bench = Bench::new(1, "", |_| {});
        bench.open();
        // The file behind the unit ends earlier than the unit.
        let file = fs::File::options().write(true).open(DISK).unwrap();
        file.set_len(BLOCK.into()).unwrap();
        let want = "MEDIUM ERROR, UNRECOVERED READ ERROR (sense 3h/11h/00h)";
        assert_eq!(read_failure(&mut bench, 2), want);
        bench.run_one(bench.read(0, 0));
    });
}

#[test]
fn a_unit_that_becomes_read_only_fails_writes() {
    within_namespaces(|| {
        let mut bench = Bench::new(1, "", |_| {});
        bench.open();
        bench.run_one(bench.write(0, 0));
        bench.server.lock("1");
        let failed = bench.run(bench.write(0, 0));
        assert_eq!(failed.result, Errno::EIO.result());
        let text = bench.engine().explain(Errno::EIO).unwrap_or_default();
        assert_eq!(text, "DATA PROTECT, WRITE PROTECTED (sense 7h/27h/00h)");
        bench.run_one(bench.read(0, 0));
    });
}

#[test]
fn a_unit_whose_capacity_changes_is_refused() {
    within_namespaces(|| {
        let mut bench = Bench::new(1, "", |_| {});
        bench.open();
        bench.engine().close(FileIndex::new(0)).unwrap();
        fs::write("/run/other", vec![0; 1 << 20]).unwrap();
        bench.server.replace_unit("1", "/run/other");
        let error = bench.try_open().unwrap_err();
        assert!(error.hint.contains("capacity changed"), "{error:?}");
    });
}

/// Longer than tgt's bursts of 256 KiB, at an odd place in the buffer.
#[test]
fn long_ops_are_moved_whole() {
    within_namespaces(|| {
        let (room, bytes) = (6 << 20, 5 << 20);
        let mut bench = Bench::new(2, "", |config| config.buffer_bytes = room);
        bench.open();
        for (place, byte) in bench.buffer(0).iter_mut().enumerate() {
            *byte = (place >> 12) as u8 ^ place as u8;
        }
        let part = 4096..4096 + bytes as usize;
        let data = bench.buffer(0)[part.clone()].to_vec();
        let (mut write, mut read) = (bench.write(0, 0), bench.read(1, 0));
        for op in [&mut write, &mut read] {
            (op.length, op.buffer_offset) = (bytes, 4096);
        }
        assert_eq!(bench.run(write).result, bytes.cast_signed());
        assert!(fs::read(DISK).unwrap()[..bytes as usize] == data);
        assert_eq!(bench.run(read).result, bytes.cast_signed());
        assert!(bench.buffer(1)[part] == data);
        bench.finish();
    });
}

#[test]
fn an_engine_may_be_dropped_with_ops_in_flight() {
    within_namespaces(|| {
        Bench::new(8, "", |_| {}).drop_in_flight();
    });
}

#[test]
fn a_file_may_be_closed_and_opened_again() {
    within_namespaces(|| {
        Bench::new(1, "", |_| {}).check_reopening();
    });
}

/// Checks the ops after a fault, and the reason that the engine gives.
#[track_caller]
fn check_lost(fault: impl FnOnce(&mut Bench), errno: Errno, why: &str) {
    let text = Bench::new(4, "reply_timeout=1", |_| {}).check_lost(fault, errno);
    assert!(text.contains(why), "{text}");
    assert!(text.starts_with("127.0.0.1:3260: "), "{text}");
    // Not what the library said last, about the first command of the session.
    assert!(!text.contains("SENSE"), "{text}");
}

#[test]
fn a_target_that_is_killed_fails_the_ops() {
    within_namespaces(|| {
        check_lost(
            |bench| bench.server.kill(),
            Errno::ECONNRESET,
            "no connection to the target",
        );
    });
}

#[test]
fn a_target_that_falls_silent_fails_the_ops_in_time() {
    within_namespaces(|| {
        let silent = |bench: &mut Bench| bench.server.stop();
        let why = "no answer of the server for 1.000 s, with commands in flight";
        check_lost(silent, Errno::ETIMEDOUT, why);
    });
}

/// The commands have left when the target is killed.
#[test]
fn a_target_that_is_killed_with_ops_in_flight_fails_them() {
    within_namespaces(|| {
        check_lost(
            Bench::kill_in_flight,
            Errno::ECONNRESET,
            "with commands in flight",
        );
    });
}

#[test]
fn units_are_looked_up_before_a_run() {
    within_namespaces(|| {
        let _server = Tgt::start();
        let found = |unit| {
            let look_up = built_in("libiscsi").remote_file.unwrap();
            look_up(&config(&url(TARGET, unit), "", Clock::monotonic())).unwrap()
        };
        let unit = |directions| RemoteFile {
            bytes: BYTES,
            block_bytes: 512,
            directions,
        };
        assert_eq!(found(1), unit(&[Direction::Read, Direction::Write]));
        assert_eq!(found(2), unit(&[Direction::Read]));
        assert_eq!(found(3), unit(&Direction::ALL));
    });
}

#[test]
fn refusals_name_a_remedy() {
    within_namespaces(|| {
        let config = |target, unit| config(&url(target, unit), "", Clock::monotonic());
        let at =
            |step: &str, target, unit, why: &str| format!("{step}: {}: {why}", url(target, unit));
        let check = |target, unit, errno, step, why, hint| {
            let want = at(step, target, unit, why);
            check_refused(config(target, unit), errno, [&want, hint]);
        };
        let why = "no connection to the target: Connection refused";
        check(TARGET, 1, None, "connect", why, "check host and port");
        let server = Tgt::start();
        let why = "Failed to log in to target. Status: Target not found";
        check("iqn.none", 1, None, "login", why, "check the target's name");
        let why = "Failed to log in to target. Status: Authentication failure";
        check(LOCKED, 1, None, "login", why, "LIBISCSI_CHAP_PASSWORD");
        let why = "the target has no such logical unit";
        check(TARGET, 9, None, "INQUIRY", why, "iscsi-ls");
        let why = "it is not a disk but of device type 0ch";
        check(
            TARGET,
            0,
            None,
            "INQUIRY",
            why,
            "name the logical unit of a disk",
        );
        check(TARGET, 2, Some(Errno::EROFS), "open", "", "use `rw=read`");
        let moved = "iqn.moved";
        server.redirect(moved, "127.0.0.2", "3261");
        let want = format!("connect: {}, redirected to 127.0.0.2:3261", url(moved, 1));
        check_refused(config(moved, 1), None, [&want, "check host and port"]);
    });
}

/// Answers one login with another address of the target (RFC 7143, 11.13).
fn redirect_once(listener: TcpListener, address: &str) -> JoinHandle<()> {
    let text = format!("TargetAddress={address},1\0");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 48];
        stream.read_exact(&mut request).unwrap();
        let mut reply = [0; 48];
        // Opcode; length of the text; ISID and initiator task tag; status Target Moved Temporarily.
        reply[0] = 0x23;
        reply[7] = text.len() as u8;
        reply[8..14].copy_from_slice(&request[8..14]);
        reply[16..20].copy_from_slice(&request[16..20]);
        reply[36..38].copy_from_slice(&[1, 1]);
        let mut text = text.into_bytes();
        text.resize(text.len().next_multiple_of(4), 0);
        stream
            .write_all(&[&reply, text.as_slice()].concat())
            .unwrap();
        // Until the initiator has ended the connection.
        let _rest = stream.read_to_end(&mut Vec::new());
    })
}

#[test]
fn redirected_logins_are_followed() {
    within_namespaces(|| {
        let mut bench = Bench::new(1, "", |config| {
            config.files[0].path = format!("iscsi://127.0.0.2:3261/{TARGET}/1");
        });
        let listener = TcpListener::bind("127.0.0.2:3261").unwrap();
        let portal = redirect_once(listener, "127.0.0.1:3260");
        bench.open();
        portal.join().unwrap();
        bench.run_one(bench.read(0, 1));
        bench.server.kill();
        let lost = Errno::ECONNRESET;
        assert_eq!(bench.run(bench.read(0, 1)).result, lost.result());
        let text = bench.engine().explain(lost).unwrap_or_default();
        assert!(text.starts_with("127.0.0.1:3260: "), "{text}");
    });
}

#[test]
fn redirections_end() {
    within_namespaces(|| {
        let server = Tgt::start();
        server.listen("127.0.0.2:3261");
        server.redirect("iqn.moved", "127.0.0.2", "3261");
        let url = url("iqn.moved", 1);
        let want = format!("login: {url}: redirected 4 times");
        let config = config(&url, "", Clock::monotonic());
        check_refused(config, None, [&want, "check the addresses"]);
    });
}

#[test]
fn a_target_that_does_not_answer_ends_in_time() {
    within_namespaces(|| {
        let mut bench = Bench::new(1, "connect_timeout=1", |_| {});
        bench.server.stop();
        let error = bench.try_open().unwrap_err();
        assert_eq!(error.errno, Some(Errno::ETIMEDOUT), "{error}");
        assert!(
            error.to_string().starts_with("login: iscsi://127.0.0.1/"),
            "{error}"
        );
    });
}

/// A queue of connections that is full: the kernel does not answer.
#[test]
fn a_host_that_does_not_answer_ends_in_time() {
    within_namespaces(|| {
        fs::write("/proc/sys/net/core/somaxconn", "0").unwrap();
        let listener = TcpListener::bind("127.0.0.1:3260").unwrap();
        let _queued = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let url = url(TARGET, 1);
        let config = config(&url, "connect_timeout=1", Clock::monotonic());
        let want = format!("connect: {url}: no answer of the server for 1.000 s");
        check_refused(
            config,
            Some(Errno::ETIMEDOUT),
            [&want, "check host and port"],
        );
    });
}

#[test]
fn other_servers_are_refused() {
    let http = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    within_namespaces(|| {
        for answer in [&b""[..], http, &[0xff; 480]] {
            let listener = TcpListener::bind("127.0.0.1:3260").unwrap();
            let server = thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 4096];
                assert!(stream.read(&mut request).unwrap() >= 48);
                stream.write_all(answer).unwrap();
            });
            let url = url(TARGET, 1);
            let config = config(&url, "", Clock::monotonic());
            let want = format!("login: {url}: no connection to the target: it has ended");
            check_refused(config, None, [&want, "check that an iSCSI target listens"]);
            server.join().unwrap();
        }
    });
}

#[test]
fn a_missing_library_is_named_with_its_package() {
    within_namespaces(|| {
        hide_library();
        let config = config(&url(TARGET, 1), "", Clock::monotonic());
        let want = [
            "load library: engine `libiscsi`: cannot load libiscsi.so.7: ",
            "install the package libiscsi7",
        ];
        check_refused(config, None, want);
    });
}

/// The content of blocks that are not written stays.
#[test]
fn opening_writes_nothing() {
    within_namespaces(|| {
        let mut bench = Bench::new(1, "", |_| {});
        let before = fs::read(DISK).unwrap();
        bench.open();
        for block in 0..BLOCKS {
            bench.run_one(bench.read(0, block));
        }
        bench.engine().close(FileIndex::new(0)).unwrap();
        assert!(fs::read(DISK).unwrap() == before);
    });
}
