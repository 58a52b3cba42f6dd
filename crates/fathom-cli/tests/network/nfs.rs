//! `ioengine=nfs` as a user runs it, on an export of nfs-ganesha.

#![allow(
    dead_code,
    reason = "the engine's own tests use the rest of the server"
)]

#[path = "../../../fathom-engine/tests/nfs/server.rs"]
mod server;

use std::fs;
use std::process::Command;

use crate::common::{Folder, Run};
use server::{EXPORT, Ganesha, READ_ONLY, hide_library, url, within_namespaces};

/// Runs a job on an export.
fn run(folder: &Folder, export: &str, words: &str) -> Run {
    let start = format!(
        "run --name=x --ioengine=nfs --nfs_url={} {words}",
        url(export)
    );
    folder.fathom(&start)
}

#[test]
fn data_are_verified_and_are_on_the_server() {
    within_namespaces(|| {
        let _server = Ganesha::start();
        let folder = Folder::new();
        for words in [
            "--rw=write --bs=64k --iodepth=8 --verify=crc32c",
            "--rw=randwrite --bs=4k --iodepth=32 --verify=crc32c --sync=1",
            "--rw=randwrite --bs=2m --iodepth=2 --fsync=2 --verify=md5",
        ] {
            let words = format!("{words} --filename=f --size=8m --output-format=json");
            let report = run(&folder, EXPORT, &words).expect(0).json();
            let job = &report["jobs"][0];
            assert_eq!(job["error"], 0, "{report}");
            assert_eq!(job["write"]["io_bytes"], 8 << 20, "{words}: {report}");
            assert_eq!(job["read"]["io_bytes"], 8 << 20, "{words}: {report}");
            let stored = fs::metadata(format!("{EXPORT}/f")).unwrap();
            assert_eq!(stored.len(), 8 << 20);
        }
        // A byte that changes on the server is found.
        let path = format!("{EXPORT}/f");
        let mut bytes = fs::read(&path).unwrap();
        bytes[5 << 20] ^= 1;
        fs::write(&path, bytes).unwrap();
        let words = "--rw=read --bs=2m --verify=md5 --filename=f --size=8m";
        run(&folder, EXPORT, words).expect(1);
        assert_eq!(folder.names(), [""; 0], "no file is made on this side");
    });
}

#[test]
fn jobs_have_a_connection_and_files_each() {
    within_namespaces(|| {
        let _server = Ganesha::start();
        let words = "--rw=randrw --bs=4k --iodepth=4 --size=2m --nrfiles=2 --numjobs=3 \
                     --group_reporting --output-format=json";
        let folder = Folder::new();
        for kind in [
            "--rw=write --bs=64k --size=2m --nrfiles=2 --numjobs=3",
            words,
        ] {
            run(&folder, EXPORT, kind).expect(0);
        }
        let files = fs::read_dir(EXPORT).unwrap();
        // The directory of the other export is there, too.
        assert_eq!(files.count(), 3 * 2 + 1);
    });
}

#[track_caller]
fn check_refused(export: &str, words: &str, want: &[&str]) {
    let run = run(&Folder::new(), export, words);
    assert_ne!(run.code, Some(0), "{words}: {run:#?}");
    for text in want {
        assert!(run.err.contains(text), "{words}: {run:#?}");
    }
}

#[test]
fn a_full_export_has_no_space() {
    within_namespaces(|| {
        let _server = Ganesha::start();
        // The export lies in it.
        let mut full = Command::new("mount");
        full.args(["-o", "remount,size=2m", "/run"]);
        assert!(full.status().unwrap().success());
        let words = "--rw=write --bs=64k --size=8m --iodepth=4 --filename=f --output-format=json";
        let run = run(&Folder::new(), EXPORT, words).expect(1);
        assert_eq!(run.json()["jobs"][0]["error"], 28, "{run:#?}");
    });
}

#[test]
fn what_cannot_run_is_refused_with_a_remedy() {
    within_namespaces(|| {
        let _server = Ganesha::start();
        let job = "--rw=write --bs=4k --size=1m --filename=f";
        check_refused(READ_ONLY, job, &["read-only", "use `rw=read`"]);
        check_refused("/run/none", job, &["mount", "check nfs_url"]);
        check_refused("/run/export?version=4", job, &["version=4"]);
        check_refused("/run/export?uid=me", job, &["`uid=me` is not a number"]);
        check_refused(
            "/run/export?gids=1",
            job,
            &["no argument `gids`", "nfsport"],
        );
        let read = "--rw=read --bs=4k --size=1m --filename=none";
        check_refused(EXPORT, read, &["none in nfs://", "write the file"]);
        check_refused(EXPORT, "--rw=write --bs=4k", &["size"]);
        let run = Folder::new().fathom("run --name=x --ioengine=nfs --rw=read --size=1m");
        let run = run.expect(2);
        assert!(run.err.contains("add `nfs_url="), "{run:#?}");
        hide_library();
        let want = ["cannot load libnfs.so.13", "install the package libnfs13"];
        check_refused(EXPORT, job, &want);
    });
}
