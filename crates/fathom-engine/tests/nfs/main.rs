//! The engine `nfs`: the conformance suite on an export of nfs-ganesha, and faults of servers.
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

use bench::{Bench, config};
use fathom_conformance::{BLOCK, BLOCKS, Subject as _, conformance, content};
use fathom_core::{Direction, Errno, OpKind};
use fathom_sys::clock::Clock;
use server::{EXPORT, FILE, Ganesha, READ_ONLY, hide_library, within_namespaces};
use server_bench::{Server as _, check_refused};

/// Runs a case at depths 1 and 16, and with writes that complete when they are stable.
fn each(case: impl Fn(&mut Bench)) {
    within_namespaces(|| {
        for (depth, sync_flag) in [(1, 0), (16, 0), (16, 2)] {
            let mut bench = Bench::new(depth, "", |config| config.sync_flag = sync_flag);
            bench.open();
            case(&mut bench);
            bench.finish();
        }
    });
}

conformance!(each);

#[test]
fn the_end_of_a_file_is_that_of_a_file() {
    each(|bench| {
        let end = u64::from(BLOCK * BLOCKS);
        let mut across = bench.read(0, BLOCKS - 1);
        across.offset = end - 512;
        assert_eq!(bench.run(across).result, 512);
        across.offset = end;
        assert_eq!(bench.run(across).result, 0);
        let mut past = bench.write(0, BLOCKS - 1);
        past.offset = end;
        bench.fill(0, 3);
        bench.run_one(past);
        assert_eq!(bench.stored(BLOCKS), content(3));
    });
}

#[test]
fn trims_fail_as_not_supported() {
    each(|bench| {
        let mut trim = bench.read(0, 1);
        trim.kind = OpKind::Data(Direction::Trim);
        assert_eq!(bench.run(trim).result, Errno::EOPNOTSUPP.result());
        bench.check_stored(1, 1);
    });
}

/// nfs-ganesha takes 1 MiB per request.
#[test]
fn ops_beyond_the_servers_limit_become_several_requests() {
    within_namespaces(|| {
        let bytes = 5 << 20;
        let mut bench = Bench::new(2, "", |config| config.buffer_bytes = bytes);
        bench.open();
        for (place, byte) in bench.buffer(0).iter_mut().enumerate() {
            *byte = (place >> 12) as u8 ^ place as u8;
        }
        let data = bench.buffer(0).to_vec();
        let (mut write, mut read) = (bench.write(0, 0), bench.read(1, 0));
        (write.length, read.length) = (bytes, bytes);
        assert_eq!(bench.run(write).result, bytes.cast_signed());
        assert!(fs::read(FILE).unwrap() == data);
        assert_eq!(bench.run(read).result, bytes.cast_signed());
        assert!(bench.buffer(1) == data);
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
}

#[test]
fn a_server_that_is_killed_fails_the_ops() {
    within_namespaces(|| {
        check_lost(
            |bench| bench.server.kill(),
            Errno::ECONNRESET,
            "no connection to the server",
        );
    });
}

#[test]
fn a_server_that_falls_silent_fails_the_ops_in_time() {
    within_namespaces(|| {
        let silent = |bench: &mut Bench| bench.server.stop();
        check_lost(silent, Errno::ETIMEDOUT, "no answer of the server for 1");
    });
}

/// The requests have left when the server is killed.
#[test]
fn a_server_that_is_killed_with_ops_in_flight_fails_them() {
    within_namespaces(|| {
        check_lost(
            Bench::kill_in_flight,
            Errno::ECONNRESET,
            "no connection to the server",
        );
    });
}

/// nfs-ganesha opens a file for its first read.
#[test]
fn a_file_that_was_removed_is_stale() {
    within_namespaces(|| {
        let mut bench = Bench::new(1, "", |config| config.files[0].write = false);
        bench.open();
        fs::remove_file(FILE).unwrap();
        let result = bench.run(bench.read(0, 0)).result;
        let why = Errno::try_from(-result).ok();
        let why = why.and_then(|errno| bench.engine().explain(errno));
        assert_eq!(result, Errno::ESTALE.result(), "{why:?}");
        let text = bench.engine().explain(Errno::ESTALE).unwrap_or_default();
        assert!(text.contains("NFS3ERR_STALE"), "{text}");
        bench.finish();
    });
}

#[test]
fn refusals_name_a_remedy() {
    within_namespaces(|| {
        let clock = Clock::monotonic();
        let nobody = config(EXPORT, "connect_timeout=2", clock);
        check_refused(
            nobody,
            None,
            ["no connection to the server", "check nfs_url"],
        );
        let _server = Ganesha::start();
        check_refused(
            config("/run/other", "", clock),
            Some(Errno::EACCES),
            ["MNT3ERR_ACCES", "check nfs_url"],
        );
        check_refused(
            config(READ_ONLY, "", clock),
            Some(Errno::EROFS),
            ["file in nfs://", "use `rw=read`"],
        );
        let mut reader = config(EXPORT, "", clock);
        (reader.files[0].path, reader.files[0].write) = ("none".into(), false);
        check_refused(
            reader,
            Some(Errno::ENOENT),
            ["none in nfs://", "write the file before"],
        );
    });
}

#[test]
fn a_host_that_does_not_answer_ends_in_time() {
    within_namespaces(|| {
        let mut bench = Bench::new(1, "connect_timeout=1", |_| {});
        bench.server.stop();
        let error = bench.try_open().unwrap_err();
        assert_eq!(error.errno, Some(Errno::ETIMEDOUT), "{error}");
    });
}

#[test]
fn a_missing_library_is_named_with_its_package() {
    within_namespaces(|| {
        hide_library();
        let config = config(EXPORT, "", Clock::monotonic());
        let want = ["cannot load libnfs.so.13: ", "install the package libnfs13"];
        check_refused(config, None, want);
    });
}
