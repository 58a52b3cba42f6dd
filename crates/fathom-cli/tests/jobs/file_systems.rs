//! Special files, and file systems that are full, small, or not meant for data.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::common::{Folder, Run};

/// Returns ops and bytes of a report's first job, over all directions.
fn moved(run: &Run) -> (u64, u64) {
    let job = &run.json()["jobs"][0];
    let sum = |name: &str| {
        let each = ["read", "write", "trim"];
        each.iter().filter_map(|&way| job[way][name].as_u64()).sum()
    };
    (sum("total_ios"), sum("io_bytes"))
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

fn make(folder: &Folder, name: &str, length: u64) {
    let file = fs::File::create(folder.path().join(name)).unwrap();
    file.set_len(length).unwrap();
}

/// Runs the program in a mount namespace with a tmpfs of `kib` KiB on the directory `small`;
/// nothing of it remains when the program has ended. `None` where mounting is not permitted.
fn on_small_disk(folder: &Folder, kib: u32, before: &str, words: &str) -> Option<Run> {
    fs::create_dir_all(folder.path().join("small")).unwrap();
    let program = env!("CARGO_BIN_EXE_fathom");
    let script = format!(
        "mount -t tmpfs -o size={kib}k fathom-test small || exit 77
        {before}
        exec {program} {words}"
    );
    let mut command = folder.command("unshare", "--mount --propagation private sh -c");
    let run = Run::of({
        command.arg(script);
        command
    });
    let refused = run.code == Some(77) || run.err.contains("unshare:");
    (!refused).then_some(run)
}

const NO_MOUNT: &str = "skipped: a tmpfs cannot be mounted in a namespace of its own";

#[test]
fn what_a_read_only_file_system_lacks_fails_as_in_fio() {
    let folder = Folder::new();
    let before = "head -c 4096 /dev/zero > small/short; mount -o remount,ro small";
    for (words, why) in [
        (
            "--rw=write --size=8k --directory=small",
            "cannot create small/t.0.0: small is on a read-only file system",
        ),
        (
            "--rw=read --size=8k --filename=small/short",
            "cannot extend small/short from 4096 B",
        ),
    ] {
        let words = format!("run --name=t {words}");
        let Some(run) = on_small_disk(&folder, 64, before, &words) else {
            return println!("{NO_MOUNT}");
        };
        assert!(run.expect(2).err.contains(why), "{why}");
        // Under the name fio the job fails alone, without an op.
        let as_fio = format!("{before}; ln -s $0 fio; exec ./fio {words} --output-format=json");
        let as_fio = as_fio
            .replace("fio run", "fio")
            .replace("$0", env!("CARGO_BIN_EXE_fathom"));
        let run = on_small_disk(&folder, 64, &as_fio, "").unwrap().expect(1);
        let job = &run.json()["jobs"][0];
        assert_eq!(
            (&job["error"], moved(&run)),
            (&30.into(), (0, 0)),
            "{run:#?}"
        );
        fs::remove_file(folder.path().join("fio")).unwrap();
    }
}

/// A mapping cannot extend a file.
#[test]
fn mapped_files_have_their_size_with_fill_device() {
    let folder = Folder::new();
    let words = "--name=t --ioengine=mmap --rw=write --filename=data --fill_device=1";
    folder.fathom(&format!("run {words} --size=64k")).expect(0);
    assert_eq!(length(&folder.path().join("data")), 65_536);
    folder.fathom(&format!("run {words}")).expect(0);
    let without = words.replace("data", "new");
    folder.fathom(&format!("run {without}")).expect(2);
}

#[test]
fn a_file_that_ends_early_is_not_said_to_be_truncated() {
    let folder = Folder::new();
    make(&folder, "data", 8192);
    let words = "run --name=t --rw=read --size=16k --filename=data --create_on_open=1";
    let run = folder.fathom(words).expect(1);
    assert!(run.err.contains("the file ends at 8192 B"), "{run:#?}");
}

#[test]
fn proc_and_sysfs_files_are_never_written() {
    let folder = Folder::new();
    let setting = format!("/proc/{}/oom_score_adj", std::process::id());
    let before = fs::read_to_string(&setting).unwrap();
    symlink(&setting, folder.path().join("link")).unwrap();
    for file in [
        &setting,
        "link",
        "/proc/no/such/file",
        "/sys/kernel/fathom-test/x",
    ] {
        for rest in [
            "--rw=read",
            "--rw=write",
            "--rw=trim",
            "--rw=write --fill_device=1",
            "--rw=randrw --ioengine=mmap",
        ] {
            let words = format!("run --name=t --filename={file} --size=4k --bs=4k {rest}");
            let run = folder.fathom(&words).expect(2);
            assert!(
                run.err.contains("is an interface to the kernel"),
                "{run:#?}"
            );
        }
    }
    assert_eq!(fs::read_to_string(&setting).unwrap(), before);
    assert!(!Path::new("/sys/kernel/fathom-test").exists());
    assert_eq!(folder.names(), ["link"]);
}

#[test]
fn a_missing_file_is_made_where_its_link_leads() {
    let folder = Folder::new();
    symlink("target", folder.path().join("link")).unwrap();
    for rest in [
        "--rw=read",
        "--rw=write",
        "--rw=write --fallocate=none",
        "--rw=write --create_on_open=1",
        "--rw=randrw --ioengine=mmap",
    ] {
        let words = format!("run --name=t --filename=link --size=64k {rest}");
        folder.fathom(&words).expect(0);
        assert_eq!(length(&folder.path().join("target")), 64 << 10, "{rest}");
        assert!(folder.path().join("link").is_symlink());
        fs::remove_file(folder.path().join("target")).unwrap();
    }
}

#[test]
fn a_new_file_is_long_enough_to_be_mapped() {
    let folder = Folder::new();
    let file = folder.path().join("f");
    for rest in [
        "--fallocate=none",
        "--fallocate=keep",
        "--create_on_open=1",
        "--fallocate=none --create_on_open=1 --numjobs=2",
        "--fallocate=none --unlink_each_loop=1 --loops=2",
        "--fallocate=none --io_submit_mode=offload --iodepth=4",
    ] {
        for held in [None, Some(100_000)] {
            let _gone = fs::remove_file(&file);
            if let Some(bytes) = held {
                make(&folder, "f", bytes);
            }
            let words = format!(
                "run --name=t --filename=f --size=1m --bs=64k --rw=randwrite --ioengine=mmap {rest}"
            );
            folder.fathom(&words).expect(0);
            assert_eq!(length(&file), 1 << 20, "{rest} {held:?}");
        }
    }
    // What is only read is not made longer.
    make(&folder, "f", 4096);
    let words = "run --name=t --filename=f --size=4k --bs=4k --rw=read --ioengine=mmap";
    folder.fathom(words).expect(0);
    assert_eq!(length(&file), 4096);
}

#[test]
fn a_size_beyond_the_file_size_limit_fails_in_an_op() {
    let folder = Folder::new();
    let words = "run --name=t --filename=f --size=4000t --bs=4k --rw=write --io_size=64k";
    for fallocate in ["native", "posix", "none"] {
        let run = folder.fathom(&format!(
            "{words} --fallocate={fallocate} --output-format=json"
        ));
        assert_eq!(moved(&run.expect(0)), (16, 64 << 10), "{fallocate}");
    }
    let mut limited = folder.command("sh", "-c");
    let program = env!("CARGO_BIN_EXE_fathom");
    let words = "run --name=t --filename=g --size=10m --bs=4k --rw=write --output-format=json";
    limited.arg(format!("ulimit -f 1024; exec {program} {words}"));
    let run = Run::of(limited).expect(1);
    // Blocks of 512 or of 1024 bytes, as the shell counts.
    assert!(moved(&run).1 >= 512 << 10, "{run:#?}");
    assert_eq!(run.json()["jobs"][0]["error"], 27);
}

#[test]
fn buffers_in_a_file_that_finds_no_room_are_an_error() {
    let folder = Folder::new();
    for memory in ["mmapshared", "mmap"] {
        let words = format!(
            "run --name=t --filename=f --size=4m --bs=2m --rw=write --mem={memory}:small/buffers"
        );
        let Some(run) = on_small_disk(&folder, 1024, "", &words) else {
            println!("{NO_MOUNT}");
            return;
        };
        let run = run.expect(1);
        assert!(run.err.contains("No space left"), "{run:#?}");
    }
    // A sparse file has room for nothing either, and stays as long as it was.
    let words = "run --name=t --filename=f --size=4m --bs=2m --rw=write --mem=mmap:small/sparse";
    let before = "truncate -s 4m small/sparse";
    let run = on_small_disk(&folder, 1024, before, words).unwrap();
    assert!(run.expect(1).err.contains("No space left"));
    let run = on_small_disk(&folder, 8 << 10, before, words).unwrap();
    run.expect(0);
}

#[test]
fn a_trim_of_more_than_two_gibibytes_is_one_op() {
    let folder = Folder::new();
    make(&folder, "f", 6 << 30);
    for engine in ["psync", "libaio", "io_uring", "mmap"] {
        let words = format!(
            "run --name=t --filename=f --size=6g --bs=3g --rw=trim --ioengine={engine} \
             --output-format=json"
        );
        let run = folder.fathom(&words);
        if let Some(why) = run.refused() {
            println!("skipped: {why}");
            continue;
        }
        assert_eq!(moved(&run), (2, 6 << 30), "{engine}");
        assert_eq!(run.json()["jobs"][0]["trim"]["short_ios"], 0, "{engine}");
    }
}

#[test]
fn sequential_ops_of_one_size_go_on_where_the_file_does() {
    let folder = Folder::new();
    for name in ["a", "b", "c"] {
        make(&folder, name, 5 << 20);
    }
    make(&folder, "d", 2600 << 10);
    // As counted of fio 3.33.
    for (words, mib) in [
        ("--filename=a:b:c --size=5m --rw=read", 5),
        ("--filename=a:b:c --size=5m --rw=write", 5),
        ("--filename=a:b:c --size=5m --rw=randread", 3),
        ("--filename=a:b:c --size=4m --rw=rw", 4),
        ("--filename=a --size=2500k --rw=read", 3),
        ("--filename=d --size=2500k --rw=read", 2),
        ("--filename=a --size=2500k --rw=read --loops=2", 5),
        ("--filename=a --size=2500k --rw=read --offset=1m", 3),
        ("--filename=a --size=50% --rw=read", 2),
        ("--filename=a --size=2500k --rw=write --io_size=4m", 4),
        ("--filename=new --size=2500k --rw=write", 2),
        ("--filename=a:b --size=1m --rw=read", 1),
    ] {
        let words = format!("run --name=t --bs=1m {words} --output-format=json");
        let run = folder.fathom(&words).expect(0);
        assert_eq!(moved(&run), (mib, mib << 20), "{words}");
    }
}

#[test]
fn a_size_of_zero_is_refused() {
    let folder = Folder::new();
    make(&folder, "f", 1 << 20);
    for (words, ops) in [
        ("--size=0", 16),
        ("--size=0%", 16),
        ("--io_size=0", 16),
        ("--size=0 --offset=512k", 8),
        ("--size=0 --filesize=512k", 8),
    ] {
        let words = format!("run --name=t --filename=f --bs=64k --rw=read {words}");
        let run = folder
            .fathom(&format!("{words} --output-format=json"))
            .expect(0);
        assert_eq!(moved(&run).0, ops, "{words}");
    }
}
