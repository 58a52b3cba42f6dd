//! Trims on real files and devices: holes punched in regular files, BLKDISCARD on loop devices,
//! read back as zeros by the jobs themselves. Loop devices end with the last process that has them
//! open.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::common::{Folder, Run};
use serde_json::Value;

const ENGINES: [&str; 5] = ["psync", "mmap", "libaio", "io_uring", "vsync"];
/// Blocks that the jobs write.
const BLOCKS: u64 = 64;

/// Returns the options of a job that writes 64 blocks and verifies them.
fn verifying(engine: &str, rest: &str) -> String {
    format!(
        "run --name=t --bs=16k --size=1m --rw=randwrite --ioengine={engine} --iodepth=8 \
         --verify=crc32c --output-format=json {rest}"
    )
}

/// Returns the ops of a direction of the first job.
fn ops(report: &Value, direction: &str) -> u64 {
    report["jobs"][0][direction]["total_ios"].as_u64().unwrap()
}

/// Returns the bytes that a file takes on its disk.
fn allocated(folder: &Folder, name: &str) -> u64 {
    let file = fs::File::open(folder.path().join(name)).unwrap();
    // Blocks of delayed allocation are counted once they are written.
    file.sync_all().unwrap();
    file.metadata().unwrap().blocks() * 512
}

#[test]
fn trimmed_blocks_of_a_file_are_holes() {
    let folder = Folder::new();
    for engine in ENGINES {
        for (rest, trims) in [
            ("--trim_percentage=100", BLOCKS..=BLOCKS),
            ("--trim_percentage=100 --trim_backlog=8", BLOCKS..=BLOCKS),
            (
                "--trim_percentage=50 --trim_backlog=8 --trim_backlog_batch=2",
                16..=48,
            ),
        ] {
            let words = verifying(engine, &format!("--filename=f {rest}"));
            let report = folder.fathom(&words).expect(0).json();
            let trimmed = ops(&report, "trim");
            assert!(trims.contains(&trimmed), "{engine} {rest}: {trimmed}");
            assert_eq!(ops(&report, "write"), BLOCKS, "{engine} {rest}");
            assert_eq!(ops(&report, "read"), BLOCKS, "{engine} {rest}");
            let kept = (BLOCKS - trimmed) * 16384;
            let found = allocated(&folder, "f");
            // Some metadata may be counted.
            assert!(
                (kept..kept + 65536).contains(&found),
                "{engine} {rest}: {found}"
            );
            fs::remove_file(folder.path().join("f")).unwrap();
        }
    }
}

#[test]
fn trims_by_the_pattern_punch_holes() {
    let folder = Folder::new();
    for (rw, left) in [("trim", 0), ("randtrim", 0), ("trimwrite", 1 << 20)] {
        let written = folder.write("f", vec![0xaa; 1 << 20]);
        let words =
            format!("run --name=t --filename=f --bs=16k --size=1m --rw={rw} --output-format=json");
        let report = folder.fathom(&words).expect(0).json();
        assert_eq!(ops(&report, "trim"), BLOCKS, "{rw}");
        let found = allocated(&folder, "f");
        assert!((left..left + 65536).contains(&found), "{rw}: {found}");
        let zeros = fs::read(written)
            .unwrap()
            .iter()
            .filter(|&&byte| byte == 0)
            .count();
        assert_eq!(zeros > 1 << 19, left == 0, "{rw}");
    }
}

/// Runs the program on a loop device over `image`; `None`, with the reason printed, where the
/// machine has none.
fn on_loop(folder: &Folder, words: &str) -> Option<Run> {
    let script = format!(
        "{{ truncate --size=4m image && device=$(losetup --find --show image) && \
         exec 3<$device && losetup --detach $device; }} >&2 || exit 77\n\
         exec '{}' {words} --filename=$device",
        env!("CARGO_BIN_EXE_fathom"),
    );
    let mut command = folder.command("sh", "-c");
    command.arg(script);
    let run = Run::of(command);
    if run.code == Some(77) {
        println!("skipped: no loop device: {}", run.err.trim());
        return None;
    }
    Some(run)
}

#[test]
fn trimmed_blocks_of_a_device_are_discarded() {
    for engine in ["psync", "libaio", "io_uring"] {
        for direct in [0, 1] {
            let folder = Folder::new();
            let rest = format!("--direct={direct} --trim_percentage=100 --trim_backlog=16");
            let Some(run) = on_loop(&folder, &verifying(engine, &rest)) else {
                return;
            };
            let report = run.expect(0).json();
            for direction in ["read", "write", "trim"] {
                assert_eq!(ops(&report, direction), BLOCKS, "{engine} {direction}");
            }
            assert!(allocated(&folder, "image") < 65536, "{engine}");
        }
    }
}

#[test]
fn pairs_on_a_device_keep_the_written_data() {
    let folder = Folder::new();
    let words = "run --name=t --bs=16k --size=1m --rw=randtrimwrite --ioengine=io_uring \
                 --iodepth=8 --direct=1 --verify=crc32c --output-format=json";
    let Some(run) = on_loop(&folder, words) else {
        return;
    };
    let report = run.expect(0).json();
    for direction in ["read", "write", "trim"] {
        assert_eq!(ops(&report, direction), BLOCKS, "{direction}");
    }
}

/// A file system without holes, and so a loop device that discards nothing.
#[test]
fn a_device_that_discards_nothing_is_refused() {
    let folder = Folder::new();
    let script = format!(
        "mkdir -p memory; mount -t ramfs fathom memory && truncate --size=1m memory/image && \
         device=$(losetup --find --show memory/image) && exec 3<$device && \
         losetup --detach $device && \
         [ $(cat /sys/class/block/${{device#/dev/}}/queue/discard_max_bytes) = 0 ] || exit 77\n\
         for rest in --rw=trim '--rw=write --verify=md5 --trim_percentage=5'; do\n\
         '{}' run --name=t --filename=$device $rest && exit 1; done; exit 2",
        env!("CARGO_BIN_EXE_fathom"),
    );
    let mut command = folder.command("unshare", "--mount --propagation private sh -c");
    command.arg(script);
    let run = Run::of(command);
    if run.code == Some(77) || run.err.starts_with("unshare:") {
        println!(
            "skipped: no loop device that discards nothing: {}",
            run.err.trim()
        );
        return;
    }
    let run = run.expect(2);
    assert_eq!(
        run.err.matches("the device discards nothing").count(),
        2,
        "{run:?}"
    );
}
