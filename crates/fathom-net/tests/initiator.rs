//! The engine `nvme_tcp` against a target of its own: the conformance suite, limits of controllers,
//! and faults of connections.
#![expect(
    clippy::unwrap_used,
    reason = "the whole file is a test, its helpers too"
)]

mod bench;
mod peer;

use std::io::Write as _;
use std::net::{Shutdown, TcpListener};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bench::Bench;
use fathom_conformance::{BLOCK, Subject as _, conformance, content};
use fathom_core::{Direction, Errno, Nanos, OpKind};
use fathom_nvme::{ControllerLimits, OptionalCommands};
use peer::{Peer, PeerConfig};

/// Runs a case at depths 1 and 16, with digests, several queues, commands that are split, and all
/// data on request.
fn each(case: impl Fn(&mut Bench)) {
    let tiny = ControllerLimits {
        mdts: 0,
        ..PeerConfig::default().limits
    };
    let no_capsules = ControllerLimits {
        in_capsule_bytes: 0,
        ..tiny
    };
    for (depth, options, limits, success_in_data) in [
        (1, "", tiny, true),
        (16, "", tiny, true),
        (16, "", tiny, false),
        (16, "hdgst ddgst", tiny, true),
        (16, "queues=3", tiny, true),
        (16, "hipri", tiny, true),
        (16, "", no_capsules, true),
        (5, "queues=2 ddgst", no_capsules, false),
        (
            16,
            "keep_alive=0",
            ControllerLimits {
                queue_entries: 4,
                ..tiny
            },
            true,
        ),
    ] {
        let peer = Peer::start(PeerConfig {
            limits,
            success_in_data,
            ..PeerConfig::default()
        });
        let mut bench = Bench::new(peer, depth, options);
        bench.open();
        case(&mut bench);
        bench.finish();
    }
}

conformance!(each);

#[test]
fn the_end_of_a_namespace_is_that_of_a_block_device() {
    each(|bench| {
        let end = u64::from(BLOCK) * 64;
        let mut across = bench.read(0, 63);
        across.offset = end - 512;
        assert_eq!(bench.run(across).result, 512);
        across.offset = end;
        assert_eq!(bench.run(across).result, 0);
        across.offset = 1 << 63;
        assert_eq!(bench.run(across).result, 0);
        let mut past = bench.write(0, 63);
        past.offset = end;
        assert_eq!(bench.run(past).result, Errno::ENOSPC.result());
    });
}

#[test]
fn an_op_of_half_a_block_fails_alone() {
    each(|bench| {
        if bench.depth() < 4 {
            return;
        }
        for slot in 0..4 {
            let mut op = bench.read(slot, slot);
            op.offset += u64::from(slot == 1);
            bench.prepare(op);
        }
        bench.submit(0);
        for completion in bench.collect() {
            match completion.slot.get() {
                1 => assert_eq!(completion.result, Errno::EINVAL.result()),
                slot => {
                    assert_eq!(completion.result, BLOCK.cast_signed());
                    bench.check(slot, slot);
                }
            }
        }
    });
}

#[test]
fn a_trim_leaves_zeros() {
    each(|bench| {
        let mut trim = bench.read(0, 1);
        trim.kind = OpKind::Data(Direction::Trim);
        bench.run_one(trim);
        assert!(bench.stored(1).iter().all(|&byte| byte == 0));
        bench.check_stored(2, 2);
    });
}

#[test]
fn closing_a_file_shuts_its_controller_down() {
    each(|bench| {
        for count in 1..=3 {
            bench.close();
            assert_eq!(bench.peer().shutdowns(), count);
            bench.open();
        }
    });
}

#[test]
fn an_engine_may_be_dropped_with_ops_in_flight() {
    let mut bench = Bench::new(Peer::start(PeerConfig::default()), 8, "");
    bench.open();
    for slot in 0..7 {
        bench.prepare(bench.read(slot, slot));
    }
    bench.submit(0);
    bench.reap(1);
    bench.prepare(bench.write(7, 1));
    drop(bench);
}

/// 128 KiB per command, 1 MiB per op: eight commands each, in a queue that has room for few.
#[test]
fn large_ops_are_split_into_commands() {
    for (entries, options) in [(128, ""), (4, "ddgst hdgst"), (2, "queues=2")] {
        let peer = Peer::start(PeerConfig {
            limits: ControllerLimits {
                queue_entries: entries,
                ..PeerConfig::default().limits
            },
            bytes: 4 << 20,
            ..PeerConfig::default()
        });
        let mut bench = Bench::with_bytes(peer, 3, options, 1 << 20);
        bench.open();
        let before = bench.peer().io_commands();
        for slot in 0..3 {
            let byte = u8::try_from(slot + 1).unwrap();
            bench.buffer(slot).fill(byte);
            let mut write = bench.write(slot, 0);
            (write.offset, write.length) = (u64::from(slot) << 20, 1 << 20);
            bench.prepare(write);
        }
        bench.submit(0);
        for done in bench.collect() {
            assert_eq!(done.result, 1 << 20);
        }
        assert_eq!(bench.peer().io_commands() - before, 24);
        let mut read = bench.read(0, 0);
        (read.offset, read.length) = (1 << 19, 1 << 20);
        assert_eq!(bench.run(read).result, 1 << 20);
        let (first, second) = bench.buffer(0).split_at(1 << 19);
        assert!(first.iter().all(|&byte| byte == 1) && second.iter().all(|&byte| byte == 2));
        bench.finish();
    }
}

#[test]
fn namespaces_of_a_subsystem_share_a_connection() {
    let peer = Peer::start(PeerConfig::default());
    let mut bench = Bench::new(peer, 4, "");
    bench.open();
    bench.open_second();
    assert_eq!(bench.peer().connects(), 1);
    bench.fill(0, 5);
    let mut write = bench.write(0, 1);
    write.file = bench::SECOND;
    bench.run_one(write);
    // The first namespace is as it was.
    bench.check_stored(1, 1);
    let second = bench.peer().content(2);
    assert_eq!(second[BLOCK as usize..][..BLOCK as usize], content(5));
    bench.finish();
}

/// All connections are cut in mid-transfer, again and again: each op completes once, with its data.
#[test]
fn ops_in_flight_survive_a_lost_connection() {
    for options in ["", "hdgst ddgst queues=3"] {
        let peer = Peer::start(PeerConfig::default());
        let mut bench = Bench::new(peer, 16, options);
        bench.open();
        for round in 0..8 {
            bench.peer().cut_after(round * 3);
            for slot in 0..16 {
                let block = (round * 16 + slot) % 64;
                bench.fill(slot, block + 100);
                bench.prepare(bench.write(slot, block));
            }
            bench.submit(0);
            bench.finish_all();
        }
        for block in 0..64 {
            bench.run_one(bench.read(0, block));
            bench.check(0, block + 100);
        }
        assert!(bench.peer().connects() > 5, "connections were cut");
        bench.finish();
    }
}

/// Data must not go to a namespace that only has the address of the one that was opened.
#[test]
fn a_target_that_is_replaced_by_another_is_not_written_to() {
    let plain = PeerConfig::default;
    for (other, is_same) in [
        (plain(), true),
        (
            PeerConfig {
                nguid: [8; 16],
                ..plain()
            },
            false,
        ),
        (
            PeerConfig {
                bytes: 65 << 12,
                ..plain()
            },
            false,
        ),
    ] {
        let mut bench = Bench::new(Peer::start(plain()), 1, "reconnect=20");
        bench.open();
        bench.run_one(bench.read(0, 1));
        bench.replace_peer(other);
        let written = bench.run(bench.write(0, 1)).result;
        match is_same {
            true => assert_eq!(written, BLOCK.cast_signed()),
            false => assert_eq!(written, Errno::ENOLINK.result()),
        }
        // Nor by way of another file, whose opening connects again.
        let opened = bench.try_open_second();
        let wants = "the namespace has another size or identity";
        match is_same {
            true => opened.unwrap(),
            false => assert!(opened.unwrap_err().to_string().contains(wants)),
        }
        let written = bench.run(bench.write(0, 2)).result;
        assert_eq!(written == BLOCK.cast_signed(), is_same);
        assert_eq!(bench.peer().io_commands(), 2 * u64::from(is_same));
    }
}

/// Ops that begin after a reconnect have the limits of the controller that has come back.
#[test]
fn a_target_may_come_back_with_a_smaller_limit() {
    let peer = Peer::start(PeerConfig::default());
    let mut bench = Bench::with_bytes(peer, 2, "reconnect=20", 65_536);
    bench.open();
    let mut read = bench.read(0, 0);
    read.length = 65_536;
    assert_eq!(bench.run(read).result, 65_536);
    bench.replace_peer(PeerConfig {
        limits: ControllerLimits {
            mdts: 1,
            ..PeerConfig::default().limits
        },
        ..PeerConfig::default()
    });
    // The first may be in flight when the connection is found to be lost; the others begin after.
    for _ in 0..3 {
        assert_eq!(bench.run(read).result, 65_536);
    }
    assert_eq!(bench.peer().io_commands(), 3 * 8);
    bench.finish();
}

#[test]
fn ops_fail_when_reconnecting_is_given_up() {
    for options in ["reconnect=0", "reconnect=1 connect_timeout=1"] {
        let peer = Peer::start(PeerConfig::default());
        let mut bench = Bench::new(peer, 4, options);
        bench.open();
        bench.run_one(bench.read(0, 1));
        bench.end_peer();
        for slot in 0..4 {
            bench.prepare(bench.read(slot, slot));
        }
        bench.submit(0);
        for done in bench.collect() {
            assert_eq!(done.result, Errno::ENOLINK.result());
        }
        assert_eq!(bench.run(bench.read(0, 0)).result, Errno::ENOLINK.result());
    }
}

/// A target that can be reached, but ends each connection before an op completes, was connected to
/// for ever.
#[test]
fn ops_fail_when_no_connection_is_of_use() {
    let peer = Peer::start(PeerConfig::default());
    let mut bench = Bench::new(peer, 4, "reconnect=1");
    bench.open();
    bench.run_one(bench.read(0, 1));
    bench.peer().cut_always();
    for slot in 0..4 {
        bench.prepare(bench.read(slot, slot));
    }
    bench.submit(0);
    for done in bench.collect() {
        assert_eq!(done.result, Errno::ENOLINK.result());
    }
    assert!(bench.peer().connects() > 2, "it tried again");
    let why = bench.engine().explain(Errno::ENOLINK).unwrap();
    assert!(why.contains("was abandoned: "), "{why}");
}

/// The end of a connection may come with its last bytes, as one event; not each time. No time-out
/// helps here.
#[test]
fn a_target_that_leaves_with_its_last_bytes_is_noticed_at_once() {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for _ in 0..20 {
            let peer = Peer::start(PeerConfig::default());
            let mut bench = Bench::new(peer, 4, "keep_alive=0 reconnect=0");
            bench.open();
            bench.peer().leave();
            for slot in 0..4 {
                bench.prepare(bench.read(slot, slot));
            }
            bench.submit(0);
            let done = bench.collect();
            let lost = |result: i32| result == Errno::ENOLINK.result();
            let lost = done.iter().filter(|done| lost(done.result)).count();
            assert_eq!((done.len(), lost), (4, 3));
        }
        tell.send(()).unwrap();
    });
    let waited = told.recv_timeout(Duration::from_secs(60));
    assert_eq!(waited, Ok(()), "waits for ever, or has failed");
}

/// As for an I/O queue; no op needs the admin queue, and no Keep Alive asks for it.
#[test]
fn an_admin_queue_that_ends_with_its_last_bytes_is_noticed_at_once() {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for _ in 0..20 {
            let peer = Peer::start(PeerConfig::default());
            let mut bench = Bench::new(peer, 4, "keep_alive=0");
            bench.open();
            bench.peer().end_admin_queue();
            while bench.peer().connects() < 2 {
                thread::yield_now();
            }
            bench.finish();
        }
        tell.send(()).unwrap();
    });
    let waited = told.recv_timeout(Duration::from_secs(60));
    assert_eq!(waited, Ok(()), "waits for ever, or has failed");
}

/// As for the other queues, while they connect.
#[test]
fn a_connection_that_ends_with_the_first_bytes_is_noticed_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        // Kept open for reading: a reset would be noticed in any case.
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // The beginning of the answer to the request that initializes the connection.
            stream.write_all(&[1, 0, 0x80, 0]).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            kept.push(stream);
        }
    });
    for _ in 0..20 {
        let peer = Peer::start(PeerConfig::default());
        let old = format!("trsvcid={}", peer.address.port());
        let new = format!("trsvcid={port}");
        let mut bench = Bench::renamed(peer, "connect_timeout=60", (&old, &new));
        let begun = bench.now();
        let error = bench.try_open().unwrap_err();
        assert_eq!(error.errno, Some(Errno::ECONNRESET), "{error}");
        let took = bench.now() - begun;
        assert!(
            took < Nanos::from_secs(30),
            "waited for connect_timeout: {took}"
        );
    }
}

#[test]
fn a_target_that_falls_silent_is_given_up_by_keep_alive() {
    let peer = Peer::start(PeerConfig::default());
    let mut bench = Bench::new(peer, 4, "keep_alive=1 connect_timeout=1 reconnect=20");
    bench.open();
    bench.peer().set_deaf(true);
    for slot in 0..4 {
        bench.prepare(bench.read(slot, slot));
    }
    bench.submit(0);
    while bench.peer().accepted() < 3 {
        bench.wait(4, Some(bench.in_a_moment()));
    }
    bench.peer().set_deaf(false);
    bench.finish_all();
    for slot in 0..4 {
        bench.check(slot, slot);
    }
    bench.finish();
}

#[test]
fn an_op_that_is_not_answered_is_sent_again_on_another_connection() {
    for options in [
        "io_timeout=1",
        "io_timeout=1 hipri",
        "io_timeout=1 queues=2",
    ] {
        let mut bench = Bench::new(Peer::start(PeerConfig::default()), 4, options);
        bench.open();
        bench.peer().ignore(2);
        for slot in 0..4 {
            bench.prepare(bench.read(slot, slot));
        }
        bench.submit(0);
        bench.finish_all();
        for slot in 0..4 {
            bench.check(slot, slot);
        }
        assert_eq!(bench.peer().connects(), 2, "{options}");
        assert!(bench.repeated.get() >= 2, "{options}");
        bench.finish();
    }
}

#[test]
fn a_target_that_never_answers_ops_is_given_up() {
    let peer = Peer::start(PeerConfig::default());
    let mut bench = Bench::new(peer, 4, "io_timeout=1 reconnect=2");
    bench.open();
    bench.peer().ignore(u32::MAX);
    bench.prepare(bench.read(0, 0));
    bench.submit(0);
    let results: Vec<i32> = bench.collect().iter().map(|done| done.result).collect();
    assert_eq!(results, [Errno::ENOLINK.result()]);
    let why = bench.engine().explain(Errno::ENOLINK).unwrap();
    assert!(why.contains("no answer within io_timeout (1"), "{why}");
}

#[test]
fn a_wrong_data_digest_fails_its_op_alone() {
    let peer = Peer::start(PeerConfig::default());
    let mut bench = Bench::new(peer, 4, "ddgst");
    bench.open();
    bench.peer().corrupt(1);
    for slot in 0..4 {
        bench.prepare(bench.read(slot, slot));
    }
    bench.submit(0);
    let failed = Errno::EILSEQ.result();
    let results: Vec<i32> = bench.collect().iter().map(|done| done.result).collect();
    assert_eq!(
        results.iter().filter(|&&result| result == failed).count(),
        1
    );
    let why = bench.engine().explain(Errno::EILSEQ).unwrap();
    assert!(why.contains("data digest"), "{why}");
    assert_eq!(bench.peer().connects(), 1);
    bench.finish();
}

#[track_caller]
fn check_refused(config: PeerConfig, options: &str, change: (&str, &str), want: [&str; 2]) {
    let mut bench = Bench::renamed(Peer::start(config), options, change);
    let error = bench.try_open().unwrap_err();
    assert!(error.to_string().contains(want[0]), "{error}");
    assert!(error.hint.contains(want[1]), "{}", error.hint);
}

#[test]
fn refusals_name_the_status_and_a_remedy() {
    let plain = PeerConfig::default;
    check_refused(
        plain(),
        "",
        ("io.fathom:peer", "io.fathom:other"),
        [
            "io.fathom:other: Connect: invalid parameters (status 1h/82h): subsystem NQN",
            "nvme discover",
        ],
    );
    let closed = PeerConfig {
        allowed_hosts: Some(vec!["nqn.friend".into()]),
        ..plain()
    };
    check_refused(
        closed,
        "hostnqn=nqn.stranger",
        ("", ""),
        ["host not allowed (status 1h/84h)", "nqn.stranger"],
    );
    check_refused(plain(), "", ("ns=1", "ns=7"), ["no namespace 7", "ns"]);
    check_refused(
        plain(),
        "queues=9",
        ("", ""),
        ["grants 4 I/O queues of 9", "queues=4"],
    );
    let no_digests = PeerConfig {
        digests: Default::default(),
        ..plain()
    };
    check_refused(
        no_digests,
        "ddgst",
        ("", ""),
        ["does not support data digests", "ddgst"],
    );
    let mut bench = Bench::new(Peer::start(plain()), 1, "");
    bench.end_peer();
    let error = bench.try_open().unwrap_err();
    assert_eq!(error.hint, "start the target, or check traddr and trsvcid");
}

#[test]
fn trims_of_a_controller_without_them_fail() {
    let peer = Peer::start(PeerConfig {
        limits: ControllerLimits {
            optional: OptionalCommands::default(),
            ..PeerConfig::default().limits
        },
        ..PeerConfig::default()
    });
    let mut bench = Bench::new(peer, 1, "");
    bench.open();
    let mut trim = bench.read(0, 1);
    trim.kind = OpKind::Data(Direction::Trim);
    assert_eq!(bench.run(trim).result, Errno::EOPNOTSUPP.result());
    bench.finish();
}
