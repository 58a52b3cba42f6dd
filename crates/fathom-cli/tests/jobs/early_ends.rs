//! Jobs that end before their first op, beside sound ones: under fio's name they end alone, as in
//! fio 3.33, with its exit code; under the name `fathom` the plan is refused.

use std::fs;

use crate::common::{Folder, Run};

/// Returns the error and the number of reads of each job.
fn ends(run: &Run) -> Vec<(u64, u64)> {
    let jobs = run.json()["jobs"].as_array().unwrap().clone();
    let ends = jobs.iter().map(|job| {
        let reads = job["read"]["total_ios"].as_u64().unwrap();
        (job["error"].as_u64().unwrap(), reads)
    });
    ends.collect()
}

const EINVAL: u64 = 22;
const EISDIR: u64 = 21;
const ENOSPC: u64 = 28;

#[track_caller]
fn check(words: &str, failed: i32, want: &[(u64, u64)]) {
    let folder = Folder::new();
    folder.write("short", vec![1; 64 << 10]);
    fs::create_dir(folder.path().join("folder")).unwrap();
    let words = format!("--output-format=json --rw=read --ioengine=psync {words}");
    let run = folder.fio(&words).expect(failed);
    assert_eq!(ends(&run), want, "{words}: {run:#?}");
    let refused = folder.fathom(&format!("run {words}")).expect(2);
    assert_eq!(refused.out, "", "{words}");
}

#[test]
fn jobs_without_a_size_fail_alone() {
    let (failed, done) = ((EINVAL, 0), (0, 16));
    check("--name=z --name=b --size=64k", 1, &[failed, done]);
    check("--name=b --size=64k --name=z --size=0", 1, &[done, failed]);
    check(
        "--name=z --numjobs=2 --name=b --stonewall --size=64k",
        2,
        &[failed, failed, done],
    );
    check(
        "--name=z --size=50% --name=b --size=64k",
        1,
        &[failed, done],
    );
    check("--name=z --thread", 1, &[failed]);
    check(
        "--name=z --filename=short --offset=128k --name=b --size=64k",
        1,
        &[failed, done],
    );
}

#[test]
fn jobs_whose_files_cannot_be_opened_fail_alone() {
    let (failed, done) = ((EISDIR, 0), (0, 16));
    let (bad, good) = ("--name=z --filename=folder", "--name=b --filename=short");
    check(&format!("--size=64k {bad}"), 1, &[failed]);
    check(&format!("--size=64k {bad} {good}"), 1, &[failed, done]);
    check(&format!("--size=64k {good} {bad}"), 1, &[done, failed]);
}

/// 64 B are less than any logical block.
#[test]
fn jobs_with_unaligned_direct_ops_fail_alone() {
    let folder = Folder::new();
    let words = "run --name=z --rw=read --size=64k --bs=64 --direct=1 --ioengine=psync";
    if !folder.fathom(words).err.contains("logical block") {
        println!("skipped: the logical block under temporary files is unknown");
        return;
    }
    let (failed, done) = ((EINVAL, 0), (0, 16));
    let common = "--size=64k --direct=1 --filename=short";
    let good = "--name=b --bs=4k";
    for bad in ["--bs=4032", "--bssplit=4k/50:64/50", "--bs=4k --offset=64"] {
        check(
            &format!("{common} {good} --name=z {bad}"),
            1,
            &[done, failed],
        );
        check(
            &format!("{common} --name=z {bad} {good}"),
            1,
            &[failed, done],
        );
    }
    let clones = "--name=z --bs=4k --size=32k --numjobs=2 --offset_increment=64";
    check(
        &format!("{common} {good} {clones}"),
        2,
        &[done, failed, failed],
    );
}

/// No disk has room for the larger file.
#[test]
fn jobs_whose_files_cannot_be_laid_out_fail_alone() {
    let (failed, done) = ((ENOSPC, 0), (0, 16));
    let (bad, good) = ("--name=z --size=900t", "--name=b --size=64k");
    check(&format!("{bad} {good}"), 1, &[failed, done]);
    check(&format!("{good} {bad}"), 1, &[done, failed]);
    check(
        &format!("--create_serialize=0 {good} {bad}"),
        1,
        &[done, failed],
    );
    check(&format!("{bad} --numjobs=2"), 2, &[failed, failed]);
}

#[test]
fn jobs_without_a_cpu_fail_alone() {
    let (failed, done) = ((EINVAL, 0), (0, 16));
    for option in ["cpus_allowed=1-0", "cpumask=0"] {
        let words = format!("--size=64k --name=z --{option} --name=b");
        check(&words, 1, &[failed, done]);
    }
}

#[test]
fn jobs_without_files_end_at_once() {
    let words = "--size=64k --name=z --nrfiles=0 --time_based --runtime=60 --name=b";
    check(words, 0, &[(0, 0), (0, 16)]);
}

/// Only a job that writes fills the device itself.
#[test]
fn files_that_are_read_are_laid_out_even_with_fill_device() {
    let folder = Folder::new();
    for rw in ["read", "randread", "rw"] {
        let words = format!("run --output-format=json --name={rw} --rw={rw} --size=64k");
        let run = folder.fathom(&format!("{words} --fill_device=1")).expect(0);
        let job = &run.json()["jobs"][0];
        let ops = ["read", "write"].map(|way| job[way]["total_ios"].as_u64().unwrap());
        assert_eq!(ops.iter().sum::<u64>(), 16, "{rw}: {run:#?}");
    }
}
