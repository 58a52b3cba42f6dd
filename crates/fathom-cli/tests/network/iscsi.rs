//! `ioengine=libiscsi` as a user runs it, on units of tgt.

#![allow(
    dead_code,
    reason = "the engine's own tests use the rest of the server"
)]

#[path = "../../../fathom-engine/tests/iscsi/server.rs"]
mod server;

use std::fs;
use std::thread;
use std::time::Duration;

use crate::common::{Folder, Run};
use crate::serving;
use server::{BYTES, DISK, LOCKED, TARGET, THIN, Tgt, hide_library, url, within_namespaces};

/// Runs a job on a unit.
fn run(folder: &Folder, url: &str, words: &str) -> Run {
    folder.fathom(&format!(
        "run --name=x --ioengine=libiscsi --filename={url} {words}"
    ))
}

#[test]
fn data_are_verified_and_are_on_the_unit() {
    within_namespaces(|| {
        let _server = Tgt::start();
        let folder = Folder::new();
        let disk = url(TARGET, 1);
        for words in [
            "--rw=write --bs=64k --iodepth=1 --verify=crc32c",
            "--rw=randwrite --bs=4k --iodepth=32 --verify=crc32c --sync=1",
            "--rw=randwrite --bs=2m --iodepth=2 --fsync=2 --verify=md5",
        ] {
            let words = format!("{words} --size=8m --output-format=json");
            let report = run(&folder, &disk, &words).expect(0).json();
            let job = &report["jobs"][0];
            assert_eq!(job["error"], 0, "{report}");
            assert_eq!(job["write"]["io_bytes"], 8 << 20, "{words}: {report}");
            assert_eq!(job["read"]["io_bytes"], 8 << 20, "{words}: {report}");
        }
        let mut bytes = fs::read(DISK).unwrap();
        assert!(bytes[8 << 20..].iter().all(|byte| *byte == 0));
        // A byte that changes on the target is found.
        bytes[5 << 20] ^= 1;
        fs::write(DISK, &bytes).unwrap();
        let words = "--rw=read --bs=2m --verify=md5 --size=8m";
        run(&folder, &disk, words).expect(1);
        assert!(fs::read(DISK).unwrap() == bytes, "a reader writes nothing");
        assert_eq!(folder.names(), [""; 0], "no file is made on this side");
    });
}

#[test]
fn a_job_uses_the_whole_unit_and_several() {
    within_namespaces(|| {
        let _server = Tgt::start();
        let folder = Folder::new();
        let json = "--output-format=json --group_reporting";
        for depth in [1, 32] {
            let words = format!("--rw=randread --bs=4k --iodepth={depth} {json}");
            let report = run(&folder, &url(TARGET, 2), &words).expect(0).json();
            assert_eq!(report["jobs"][0]["read"]["io_bytes"], BYTES, "{report}");
        }
        let both = format!("{}:{}", url(TARGET, 1), url(TARGET, 3));
        let words = format!("--rw=randrw --bs=4k --iodepth=8 --numjobs=3 --size=2m {json}");
        let report = run(&folder, &both, &words).expect(0).json();
        let job = &report["jobs"][0];
        let moved = |direction: &str| job[direction]["io_bytes"].as_u64().unwrap();
        assert_eq!(moved("read") + moved("write"), 3 * (2 << 20), "{report}");
        // fio's form of a URL.
        let escaped = url(TARGET, 1).replace(':', "\\:");
        run(&folder, &escaped, "--rw=read --bs=1m").expect(0);
    });
}

#[test]
fn trims_leave_holes_where_the_unit_takes_them() {
    within_namespaces(|| {
        let _server = Tgt::start();
        fs::write(THIN, vec![7; usize::try_from(BYTES).unwrap()]).unwrap();
        let words = "--rw=trim --bs=64k --size=1m";
        run(&Folder::new(), &url(TARGET, 3), words).expect(0);
        let bytes = fs::read(THIN).unwrap();
        assert!(bytes[..1 << 20].iter().all(|byte| *byte == 0));
        assert!(bytes[1 << 20..].iter().all(|byte| *byte == 7));
    });
}

#[track_caller]
fn check_refused(url: &str, words: &str, want: &[&str]) {
    let run = run(&Folder::new(), url, words);
    assert_ne!(run.code, Some(0), "{words}: {run:#?}");
    for text in want {
        assert!(run.err.contains(text), "{words}: {run:#?}");
    }
}

#[test]
fn what_cannot_run_is_refused_with_a_remedy() {
    within_namespaces(|| {
        let server = Tgt::start();
        let (disk, write) = (url(TARGET, 1), "--rw=write --bs=4k --size=1m");
        check_refused(&url(TARGET, 2), write, &["is read-only", "use `rw=read`"]);
        check_refused(&disk, "--rw=trim --bs=4k", &["takes no trims"]);
        check_refused(&disk, "--rw=read --bs=700", &["512 B", "multiple of 512"]);
        check_refused(&disk, "--rw=write --bs=4k --readonly", &["--readonly"]);
        check_refused(&url(TARGET, 9), write, &["no such logical unit"]);
        check_refused(&url("iqn.none", 1), write, &["login", "Target not found"]);
        check_refused("/tmp/f", write, &["no URL of iSCSI", "iscsi://HOST"]);
        assert!(fs::read(DISK).unwrap().iter().all(|byte| *byte == 0));
        let past = run(&Folder::new(), &disk, "--rw=read --bs=1m --offset=1g");
        assert_ne!(past.code, Some(0), "{past:#?}");
        let small = run(&Folder::new(), &disk, "--rw=read --bs=1m --size=1g");
        assert!(small.err.contains("exceeds the device"), "{small:#?}");
        drop(server);
        check_refused(&disk, write, &["connect", "Connection refused"]);
        hide_library();
        let want = ["cannot load libiscsi.so.7", "install the package libiscsi7"];
        check_refused(&disk, write, &want);
    });
}

#[test]
fn passwords_come_from_the_environment_and_are_shown_nowhere() {
    within_namespaces(|| {
        let _server = Tgt::start();
        let (folder, secret) = (Folder::new(), "open-sesame-12");
        let job = "--rw=read --bs=64k --size=1m --record=record.json --output-format=json";
        let (disk, with) = (
            url(LOCKED, 1),
            "run --name=x --ioengine=libiscsi --filename",
        );
        let run_as = |user: &str, password: &str| {
            let line = format!("{with}={disk} {job}");
            let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), &line);
            command
                .env("LIBISCSI_CHAP_USERNAME", user)
                .env("LIBISCSI_CHAP_PASSWORD", password);
            Run::of(command)
        };
        let wrong = run_as("me", "close-sesame-1");
        assert_ne!(wrong.code, Some(0));
        assert!(wrong.err.contains("Authentication failure"), "{wrong:#?}");
        assert!(!wrong.err.contains("close-sesame"), "{wrong:#?}");
        let right = run_as("me", secret).expect(0);
        let record = folder.read("record.json");
        assert!(record.contains(LOCKED), "{record}");
        for text in [&right.out, &right.err, &record] {
            assert!(!text.contains(secret), "{text}");
        }
        let named = url(LOCKED, 1).replace("//", &format!("//me%{secret}@"));
        // A mistake elsewhere on the line shows the line.
        for words in [
            "--rw=read --bs=4k",
            "--rw=red --bs=4k",
            "--no-such-option=1",
        ] {
            let refused = run(&folder, &named, words);
            assert_ne!(refused.code, Some(0));
            let shown = refused.err + &refused.out;
            assert!(shown.contains("me%**"), "{shown}");
            assert!(!shown.contains(secret), "{shown}");
        }
        run(&folder, &named, "--rw=read").expect(2);
    });
}

#[test]
fn a_target_proves_itself_where_it_has_a_password() {
    within_namespaces(|| {
        let server = Tgt::start();
        server.prove();
        let folder = Folder::new();
        let disk = url(LOCKED, 1);
        let line = "run --name=x --ioengine=libiscsi --rw=read --bs=64k --size=1m --filename";
        let run_with = |variables: &[(&str, &str)]| {
            let mut command =
                folder.command(env!("CARGO_BIN_EXE_fathom"), &format!("{line}={disk}"));
            command.env("LIBISCSI_CHAP_USERNAME", "me");
            command.env("LIBISCSI_CHAP_PASSWORD", "open-sesame-12");
            command.env("LIBISCSI_CHAP_TARGET_USERNAME", "tgt");
            command.envs(variables.iter().copied());
            Run::of(command)
        };
        const PASSWORD: &str = "LIBISCSI_CHAP_TARGET_PASSWORD";
        run_with(&[(PASSWORD, "open-sesame-34")]).expect(0);
        let wrong = run_with(&[(PASSWORD, "close-sesame-34")]);
        assert_ne!(wrong.code, Some(0), "{wrong:#?}");
        assert!(wrong.err.contains("uthentication"), "{wrong:#?}");
        assert!(!wrong.err.contains("close-sesame"), "{wrong:#?}");
    });
}

#[test]
fn a_target_that_is_killed_ends_the_job_with_its_name() {
    within_namespaces(|| {
        let mut server = Tgt::start();
        let folder = Folder::new();
        let words = "--rw=write --bs=4k --iodepth=32 --time_based --runtime=300";
        let line = format!(
            "run --name=x --ioengine=libiscsi --filename={} {words}",
            url(TARGET, 1)
        );
        let running = serving::spawn(folder.command(env!("CARGO_BIN_EXE_fathom"), &line));
        // The first eight bytes of a block may be its offset.
        while fs::read(DISK).unwrap()[..64] == [0; 64] {
            thread::park_timeout(Duration::from_millis(5));
        }
        server.process.kill();
        let run = running.finish();
        assert_ne!(run.code, Some(0));
        let want = "127.0.0.1:3260: no connection to the target";
        assert!(run.err.contains(want), "{run:#?}");
    });
}
