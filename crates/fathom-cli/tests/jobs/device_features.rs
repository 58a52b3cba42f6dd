//! Features of storage that few devices have: atomic writes, write streams. Mounts end with the
//! mount namespace of each run, loop devices with the last process that has them open.

use crate::common::Folder;
use crate::common::namespace::after;

/// Mounts XFS at `disk`, which stores writes of a file system block and more whole by itself.
const XFS: &str = "truncate --size=400m image && mkfs.xfs -q image && mkdir disk && \
                   mount -o loop image disk";

#[test]
fn atomic_writes_are_made_where_the_file_system_has_them() {
    for engine in ["io_uring", "libaio", "pvsync2"] {
        let folder = Folder::new();
        let words = format!(
            "--filename=disk/file --size=1m --bs=16k --rw=randwrite --direct=1 --atomic=1 \
             --ioengine={engine} --iodepth=4 --verify=crc32c --output-format=json"
        );
        let Some(run) = after(&folder, XFS, &words) else {
            return;
        };
        if run.code == Some(1) && run.err.contains("no atomic writes") {
            println!("skipped: {}", run.err.trim());
            return;
        }
        let report = run.expect(0).json();
        assert_eq!(report["jobs"][0]["write"]["total_ios"], 64, "{engine}");
        assert_eq!(report["jobs"][0]["read"]["total_ios"], 64, "{engine}");
        let features = report["fathom"].to_string();
        assert!(features.contains("RWF_ATOMIC"), "{features}");
    }
}

#[test]
fn atomic_writes_of_other_sizes_are_refused_with_the_limits() {
    let folder = Folder::new();
    let script = format!("{XFS} && truncate --size=64m disk/file");
    let words = "--filename=disk/file --bs=8m --rw=write --direct=1 --atomic=1 --ioengine=libaio";
    let Some(run) = after(&folder, &script, words) else {
        return;
    };
    let run = run.expect(2);
    assert!(run.err.contains("no atomic writes of 8388608 B"), "{run:?}");
    assert!(run.err.contains("hint: choose a power of two"), "{run:?}");
}

#[test]
fn storage_without_atomic_writes_is_named() {
    let folder = Folder::new();
    let script = "truncate --size=4m image && device=$(losetup --find --show image) && \
                  exec 3<$device && losetup --detach $device";
    let words = "--filename=$device --bs=4k --rw=write --direct=1 --atomic=1 --ioengine=libaio";
    let Some(run) = after(&folder, script, words) else {
        return;
    };
    let run = run.expect(2);
    let wanted = ["no atomic writes: /dev/loop", "its storage has none"];
    assert!(wanted.iter().all(|text| run.err.contains(text)), "{run:?}");
    // A file of the layout is looked at when the engine opens it.
    let words = "--filename=memory/file --size=64k --bs=4k --rw=write --direct=1 --atomic=1 \
                 --ioengine=pvsync2";
    let script = "mkdir memory && mount -t tmpfs -o size=8m fathom memory";
    let Some(run) = after(&folder, script, words) else {
        return;
    };
    let run = run.expect(1);
    let hint = "hint: remove `atomic`: the file's storage has no atomic writes";
    assert!(run.err.contains(hint), "{run:?}");
}

#[test]
fn a_device_without_write_streams_is_named() {
    let folder = Folder::new();
    folder.write("file", [0; 4096]);
    let words = "run --name=t --filename=file --rw=write --direct=1 --ioengine=io_uring --fdp=1";
    let run = folder.fathom(words).expect(2);
    assert!(
        run.err
            .contains("no write streams: file: the kernel offers none"),
        "{run:?}"
    );
}

/// Root may open it for writing, and each write would fail.
#[test]
fn a_write_protected_device_is_refused_before_the_run() {
    let script = "truncate --size=4m image && device=$(losetup --read-only --find --show image) && \
                  exec 3<$device && losetup --detach $device";
    for (words, code) in [("--rw=write", 2), ("--rw=trim", 2), ("--rw=read", 0)] {
        let folder = Folder::new();
        let words = format!("--filename=$device --bs=4k --ioengine=psync {words}");
        let Some(run) = after(&folder, script, &words) else {
            return;
        };
        let run = run.expect(code);
        let is_named =
            run.err.contains("is write-protected") && run.err.contains("--setrw /dev/loop");
        assert_eq!(is_named, code == 2, "{run:?}");
    }
}
