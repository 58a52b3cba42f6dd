//! Jobs that verify what they would write (`verify_only`): what they read, and what they leave
//! alone.

use crate::common::{Folder, Run};
use serde_json::Value;

/// Writes by a job, verifies by the same one with `verify_only`, and returns its report; then
/// damages one block after the other, and returns how many of them it reports.
#[track_caller]
fn check(words: &str) -> (Value, u64) {
    let folder = Folder::new();
    let path = folder.path().join("data");
    folder.write("data", [0x5a; 64 << 10]);
    let write = format!("run {JOB} {words} --output-format=json");
    folder.fathom(&write).expect(0);
    let intact = std::fs::read(&path).unwrap();
    let verify = format!("{write} --verify_only");
    let run = folder.fathom(&verify).expect(0).json();
    assert_eq!(std::fs::read(&path).unwrap(), intact, "{words}");
    let job = run["jobs"][0].clone();
    assert_eq!(total(&job, "write") + total(&job, "trim"), 0, "{words}");

    let is_found = |place: usize| {
        let mut data = intact.clone();
        data[place] ^= 4;
        folder.write("data", data);
        let run = folder.fathom(&verify);
        let reported = run.code == Some(1) && run.err.contains("verify: data: ");
        assert!(
            reported || run.code == Some(0),
            "{words}: {place}: {run:#?}"
        );
        reported
    };
    let found = (0..16).filter(|block| is_found(block * 4096 + 100));
    (job, found.count() as u64)
}

fn total(job: &Value, direction: &str) -> u64 {
    job[direction]["total_ios"].as_u64().unwrap()
}

#[test]
fn every_block_that_a_job_writes_is_verified_and_no_other() {
    let deep = "--ioengine=posixaio --iodepth=8";
    for (words, blocks) in [
        ("--rw=write", 16),
        ("--rw=randwrite --verify_backlog=4", 16),
        ("--rw=randwrite --rate_iops=1000", 16),
        ("--rw=randwrite --time_based --runtime=1", 16),
        ("--rw=trimwrite", 16),
        ("--rw=randwrite --io_size=24k", 6),
        ("--rw=randwrite --number_ios=5 --loops=1", 5),
        ("--rw=write:4k", 8),
        (&format!("--rw=randwrite {deep} --verify_async=2"), 16),
        (&format!("--rw=randwrite {deep} --loops=3 --fsync=2"), 16),
    ] {
        let (job, found) = check(words);
        assert_eq!((total(&job, "read"), found), (blocks, blocks), "{words}");
    }
}

/// Of a mix, what the writes leave is read after all passes; its reads are left out.
#[test]
fn of_a_mix_the_writes_are_verified() {
    for words in [
        "--rw=rw",
        "--rw=randrw",
        "--rw=randrw --loops=3",
        "--rw=randrw --norandommap --io_size=256k",
        "--rw=randrw --rwmixread=80",
        "--rw=randrw --ioengine=posixaio --iodepth=4 --number_ios=9",
        "--rw=randtrimwrite --number_ios=13",
    ] {
        let (job, found) = check(words);
        let reads = total(&job, "read");
        assert_eq!(reads, found, "{words}");
        // A single pass leaves room for reads.
        let passes = words.contains("loops") || words.contains("io_size");
        assert!(reads > 0 && (passes || reads < 16), "{words}: {reads}");
    }
}

/// Larger blocks are read as they were written, where later ones have left some of them.
#[test]
fn sizes_that_vary_and_overlap_are_verified() {
    for words in [
        "--rw=randrw --bs=4k,8k",
        "--rw=randrw --bsrange=4k-16k --verify_interval=4k",
        "--rw=randwrite --bssplit=4k/50:8k/50 --norandommap --io_size=128k",
    ] {
        let (job, found) = check(words);
        assert!(total(&job, "read") > 0 && found > 0, "{words}: {job:#}");
    }
    // In part. At depth 4 their order is not known, so that little is left to read.
    let places = "--rw=randwrite --bs=8k --blockalign=512 --norandommap --io_size=256k";
    let (job, found) = check(places);
    assert!(total(&job, "read") > 0 && found > 0, "{job:#}");
    check(&format!("{places} --ioengine=posixaio --iodepth=4"));
}

#[test]
fn what_another_job_damages_in_the_same_run_is_found() {
    let folder = Folder::new();
    let common = "--filename=data --filesize=64k --stonewall";
    let verified = format!("--rw=randwrite --bs=4k --verify=md5 {common}");
    let run = folder.fathom(&format!(
        "run --output-format=json --continue_on_error=verify --name=w {verified} \
         --name=r --verify_only {verified} --name=u --rw=write --bs=4k {common} \
         --name=o --verify_only {verified}"
    ));
    let report = run.expect(1).json();
    let errors = [0, 1, 2, 3].map(|job| report["jobs"][job]["total_err"].as_u64().unwrap());
    assert_eq!(errors[..3], [0, 0, 0], "{report:#}");
    assert_eq!(errors[3], total(&report["jobs"][0], "write"), "{report:#}");
}

#[test]
fn nothing_is_created_extended_or_removed() {
    let folder = Folder::new();
    let verify = format!("run {JOB} --rw=randrw --verify_only");
    let refused = |run: Run, why: &str| assert!(run.err.contains(why), "{run:#?}");
    refused(
        folder.fathom(&verify).expect(2),
        "there is nothing to verify",
    );
    assert_eq!(folder.names(), [""; 0]);
    folder.write("data", [0x5a; 9000]);
    folder.fathom(&verify).expect(1);
    assert_eq!(
        std::fs::metadata(folder.path().join("data")).unwrap().len(),
        9000
    );

    std::fs::remove_file(folder.path().join("data")).unwrap();
    let each = format!("run {JOB} --rw=randwrite --unlink_each_loop=1 --loops=3");
    folder.fathom(&each).expect(0);
    folder
        .fathom(&format!("{each} --verify_only --readonly"))
        .expect(0);
    assert_eq!(folder.names(), ["data"]);
}

#[test]
fn without_verification_nothing_is_read() {
    let folder = Folder::new();
    folder.write("data", [0x5a; 64 << 10]);
    for words in ["--verify=0", "--do_verify=0"] {
        let run = format!("run {JOB} --rw=randrw --verify_only {words} --output-format=json");
        let run = folder.fathom(&run).expect(0);
        assert!(run.err.contains("nothing is read"), "{run:#?}");
        assert_eq!(total(&run.json()["jobs"][0], "read"), 0, "{words}");
    }
}

/// A job in virtual time verifies what another one wrote before, of another number, so that of a
/// mix it would draw other ops.
#[test]
fn in_virtual_time_it_is_the_same() {
    let folder = Folder::new();
    let machine = "[[device]]\nnames = [\"*\"]\nmodel = \"constant\"\ncapacity_gib = 1\n\n\
                   [device.constant]\nlatency_us = 100\n";
    folder.write("disk.toml", machine);
    let run = folder.fathom(&format!(
        "run --machine=disk.toml --output-format=json {JOB} --rw=trimwrite \
         {} --rw=trimwrite --verify_only --stonewall",
        JOB.replace("--name=t", "--name=v")
    ));
    let report = run.expect(0).json();
    let (written, verified) = (&report["jobs"][0], &report["jobs"][1]);
    assert_eq!(
        total(written, "write"),
        total(verified, "read"),
        "{report:#}"
    );
    assert_eq!(total(verified, "write"), 0);
}

#[test]
fn what_depends_on_more_than_the_job_is_refused_by_name() {
    let folder = Folder::new();
    for (words, option) in [
        ("--rw=randwrite --trim_percentage=10", "trim_percentage"),
        ("--rw=randrw --rate_iops=100", "rate_iops"),
        ("--rw=write --number_ios=4 --verify_backlog=2", "number_ios"),
        ("--rw=randtrim", "only trims"),
    ] {
        let run = folder
            .fathom(&format!("run {JOB} {words} --verify_only"))
            .expect(2);
        assert!(run.err.contains(option), "{words}: {run:#?}");
    }
}

const JOB: &str = "--name=t --bs=4k --size=64k --filename=data --verify=crc32c";
