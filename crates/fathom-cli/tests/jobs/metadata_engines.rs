//! Engines that work on the size, the blocks and the names of files, from the command line to what
//! is left on the disk.

use std::fs;
use std::os::unix::fs::symlink;

use crate::common::Folder;
use serde_json::Value;

fn run(folder: &Folder, words: &str) -> Value {
    let words = format!("run --name=t --output-format=json {words}");
    let report = folder.fathom(&words).expect(0).json();
    assert_eq!(report["jobs"][0]["error"], 0, "{words}");
    report
}

/// Returns the ops of a direction of the first job.
fn ops(report: &Value, direction: &str) -> u64 {
    let direction = &report["jobs"][0][direction];
    let counted = direction["clat_ns"]["N"].as_u64().unwrap();
    assert_eq!(direction["total_ios"].as_u64(), Some(counted));
    counted
}

/// Checks that a plan is refused with this reason, before anything is created.
#[track_caller]
fn check_refused(words: &str, why: &str) {
    let folder = Folder::new();
    let run = folder.fathom(&format!("run --name=t --filesize=4k {words}"));
    let run = run.expect(2);
    assert!(run.err.contains(why), "{words}: {}", run.err);
    assert!(folder.names().is_empty(), "{words}: {:?}", folder.names());
}

#[test]
fn an_op_is_a_file_whatever_its_length() {
    for (engine, left) in [
        ("filecreate", 20),
        ("filestat", 20),
        ("filedelete", 0),
        ("dircreate", 20),
        ("dirstat", 20),
        ("dirdelete", 0),
    ] {
        for size in [
            "--filesize=1k",
            "--filesize=64k",
            "--filesize=4k-64k",
            "--size=16k",
        ] {
            for more in [
                "",
                "--rw=randrw --file_service_type=random",
                "--io_submit_mode=offload --iodepth=4",
            ] {
                let folder = Folder::new();
                let words = format!("--ioengine={engine} --nrfiles=20 {size} {more}");
                let report = run(&folder, &words);
                let all = ops(&report, "read") + ops(&report, "write");
                assert_eq!(all, 20, "{words}");
                let there = fs::read_dir(folder.path()).unwrap().count();
                assert_eq!(there, left, "{words}");
            }
        }
    }
}

#[test]
fn files_are_made_as_the_options_say() {
    let folder = Folder::new();
    run(
        &folder,
        "--ioengine=dirstat --nrfiles=3 --filesize=4k --unlink=1",
    );
    run(
        &folder,
        "--ioengine=filestat --nrfiles=3 --filesize=4k --unlink=1",
    );
    assert!(folder.names().is_empty(), "unlink=1");
    // Recreated in each pass, so that each op creates.
    let words = "--nrfiles=3 --filesize=4k --loops=3 --unlink_each_loop=1 --ioengine=";
    for engine in ["filecreate", "dircreate"] {
        let folder = Folder::new();
        assert_eq!(ops(&run(&folder, &format!("{words}{engine}")), "read"), 9);
    }
    let folder = Folder::new();
    run(&folder, "--ioengine=filecreate --nrfiles=3 --filesize=4k");
    let length = |name| fs::metadata(folder.path().join(name)).unwrap().len();
    assert_eq!(length("t.0.0"), 0, "not laid out");
}

#[test]
fn sizes_and_blocks_of_files_change() {
    let folder = Folder::new();
    let length = || fs::metadata(folder.path().join("t.0.0")).unwrap().len();
    let report = run(
        &folder,
        "--ioengine=ftruncate --rw=write --size=64k --fsync=4",
    );
    assert_eq!((ops(&report, "write"), length()), (16, 60 << 10));
    let report = run(&folder, "--ioengine=falloc --rw=write --size=64k");
    assert_eq!((ops(&report, "write"), length()), (16, 64 << 10));
    let report = run(&folder, "--ioengine=falloc --rw=randtrim --size=64k");
    assert_eq!((ops(&report, "trim"), length()), (16, 64 << 10));
}

#[test]
fn a_donor_is_made_in_the_directory_of_the_job() {
    let folder = Folder::new();
    fs::create_dir(folder.path().join("d")).unwrap();
    let words = "run --name=t --ioengine=e4defrag --rw=write --size=64k --directory=d \
                 --donorname=donor --output-format=json";
    let ran = folder.fathom(words);
    if ran.err.contains("not supported") || ran.err.contains("Inappropriate ioctl") {
        println!("skipped: no ext4: {}", ran.err);
        return;
    }
    assert_eq!(ops(&ran.expect(0).json(), "write"), 16);
    assert!(folder.path().join("d/donor").is_file());
}

#[test]
fn what_an_engine_does_not_do_is_refused_before_anything_is_created() {
    check_refused("--ioengine=ftruncate --rw=randread", "performs no reads");
    check_refused("--ioengine=e4defrag --rw=write", "needs `donorname`");
    check_refused("--ioengine=page_fault --rw=trim", "performs no trims");
    check_refused("--ioengine=page_fault --filesize=64t", "of memory");
    check_refused(
        "--ioengine=falloc --rw=write --verify=md5",
        "moves no data that could be verified",
    );
    check_refused("--ioengine=filedelete --loops=2", "can make one pass");
    check_refused(
        "--ioengine=dircreate --time_based --runtime=1",
        "can make one pass",
    );
    check_refused("--ioengine=filestat --rw=write --fsync=1", "no file that");
    check_refused("--ioengine=filestat --bsrange=1k-4k", "one op per file");
    check_refused("--readonly --ioengine=filedelete", "--readonly forbids");
    check_refused(
        "--readonly --ioengine=falloc --rw=read",
        "--readonly forbids",
    );
    check_refused(
        "--ioengine=filedelete --filename=/dev/null",
        "not a regular",
    );
    check_refused(
        "--ioengine=filecreate --filename=/dev/xyz",
        "no such device",
    );
    check_refused("--ioengine=dirdelete --filename=/etc/passwd", "a directory");
}

#[test]
fn neither_links_nor_their_targets_are_removed() {
    let folder = Folder::new();
    folder.write("target", "content");
    symlink("target", folder.path().join("link")).unwrap();
    fs::create_dir(folder.path().join("full")).unwrap();
    folder.write("full/file", "content");
    for words in [
        "--ioengine=filedelete --filename=link",
        "--ioengine=dirdelete --filename=link",
        "--ioengine=filecreate --filename=link",
        "--ioengine=filedelete --filename=full",
        "--ioengine=dirdelete --filename=target",
    ] {
        folder
            .fathom(&format!("run --name=t --filesize=4k {words}"))
            .expect(2);
    }
    // Not empty: the op fails, and the job.
    folder
        .fathom("run --name=t --filesize=4k --ioengine=dirdelete --filename=full")
        .expect(1);
    let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    names.retain(|entry| entry.is_ok());
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(folder.path().join("full/file").exists());
}

#[test]
fn bandwidth_is_no_amount_of_data_and_nothing_is_said_of_the_page_cache() {
    let folder = Folder::new();
    let report = run(&folder, "--ioengine=filestat --nrfiles=3 --filesize=4k");
    let checks = report["fathom"]["validity"].as_array().unwrap();
    let has = |check: &str| checks.iter().any(|validity| validity["check"] == check);
    assert!(has("bandwidth"), "{checks:?}");
    for check in ["page_cache", "cpu_bound", "working_set", "written"] {
        assert!(!has(check), "{checks:?}");
    }
}
