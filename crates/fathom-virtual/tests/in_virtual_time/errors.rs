//! Ops that fail, are lost, or take too long by the faults of a machine file: what ends the job,
//! what it tolerates, and which other jobs end.

use std::ops::RangeInclusive;

use crate::common::on;
use fathom_record::{JobRecord, Record};

/// Runs WORDS on a device of 100 µs per op with these faults.
fn run(faults: &str, words: &str) -> Record {
    let machine = format!(
        "[[device]]\nnames = [\"*\"]\ncapacity_gib = 1\nmodel = \"constant\"\n\
         [device.constant]\nlatency_us = 100\n{faults}\n"
    );
    on(&machine, words)
}

const JOB: &str = "--name=t --filename=/dev/m --direct=1 --bs=4k --size=40m --ioengine=psync";

/// Checks the completed ops, tolerated errors and final error of a job of 10,240 ops.
#[track_caller]
fn check(
    faults: &str,
    words: &str,
    done: RangeInclusive<u64>,
    past: RangeInclusive<u64>,
    error: u32,
) {
    let words = format!("{JOB} {words}");
    let record = run(&format!("[device.faults]\n{faults}"), &words);
    let job = &record.jobs[0];
    let got = ops(job);
    assert!(done.contains(&got), "{words}: {got} ops done, not {done:?}");
    let got = job.tolerated.map_or(0, |tolerated| tolerated.total);
    assert!(past.contains(&got), "{words}: {got} errors, not {past:?}");
    assert_eq!(job.error, error, "{words}");
}

fn ops(job: &JobRecord) -> u64 {
    job.directions.each().iter().map(|each| each.ios).sum()
}

const EIO: u32 = 5;
const EREMOTEIO: u32 = 121;
const ETIMEDOUT: u32 = 110;

#[test]
fn an_error_ends_a_job_that_does_not_go_past_it() {
    let tenth = "read_errors_ppm = 100000";
    check(tenth, "--rw=randread", 0..=100, 0..=0, EIO);
    check(tenth, "--rw=randwrite", 10_240..=10_240, 0..=0, 0);
    let all = "--rw=randread --continue_on_error";
    check(tenth, &format!("{all}=io"), 9_000..=9_450, 900..=1_150, 0);
    check(tenth, &format!("{all}=read"), 9_000..=9_450, 900..=1_150, 0);
    check(tenth, &format!("{all}=all"), 9_000..=9_450, 900..=1_150, 0);
    check(tenth, &format!("{all}=write"), 0..=100, 0..=0, EIO);
    check(tenth, &format!("{all}=verify"), 0..=100, 0..=0, EIO);
    check(tenth, &format!("{all}=none"), 0..=100, 0..=0, EIO);
}

/// As in fio, only errors of the device itself are tolerated; another one ends the job, and is
/// counted if errors of its direction are tolerated.
#[test]
fn only_errors_of_the_device_are_gone_past() {
    let odd = "read_errors_ppm = 100000\nerrno = 121";
    check(
        odd,
        "--rw=randread --continue_on_error=io",
        0..=100,
        1..=1,
        EREMOTEIO,
    );
    check(
        odd,
        "--rw=randread --ignore_error=EIO",
        0..=100,
        1..=1,
        EREMOTEIO,
    );
}

#[test]
fn errors_that_are_named_are_ignored() {
    let tenth = "read_errors_ppm = 100000\nwrite_errors_ppm = 100000";
    check(
        tenth,
        "--rw=randread --ignore_error=EIO",
        9_000..=9_450,
        900..=1_150,
        0,
    );
    check(
        tenth,
        "--rw=randwrite --ignore_error=EIO",
        0..=100,
        0..=0,
        EIO,
    );
    check(
        tenth,
        "--rw=randwrite --ignore_error=,EIO",
        9_000..=9_450,
        900..=1_150,
        0,
    );
    check(
        tenth,
        "--rw=randrw --ignore_error=EIO:ENOSPC,5",
        9_000..=9_450,
        900..=1_150,
        0,
    );
    let lost = "lost_ppm = 1000\ntimeout_ms = 1000";
    check(
        lost,
        "--rw=randread --ignore_error=ETIMEDOUT",
        10_200..=10_239,
        1..=40,
        0,
    );
}

/// A completion that never comes: the host times the op out, and the run waits no longer than that,
/// whether or not the job has time left.
#[test]
fn a_lost_completion_is_an_error_after_its_timeout() {
    let all_lost = "[device.faults]\nlost_ppm = 1000000\ntimeout_ms = 2500";
    for (words, ms, error) in [
        ("--rw=randread", 2500, ETIMEDOUT),
        ("--rw=randread --time_based --runtime=1", 2500, ETIMEDOUT),
        (
            "--rw=randread --ioengine=libaio --iodepth=8 --runtime=1",
            2500,
            ETIMEDOUT,
        ),
        (
            "--rw=randread --ignore_error=ETIMEDOUT --time_based --runtime=6",
            7500,
            0,
        ),
    ] {
        let record = run(all_lost, &format!("{JOB} {words}"));
        let job = &record.jobs[0];
        assert_eq!((ops(job), job.error), (0, error), "{words}");
        assert_eq!(record.elapsed_ms, ms, "{words}");
    }
}

/// Stall of half a second, one second after the start.
#[test]
fn an_op_that_waits_for_too_long_ends_the_job() {
    let stall = "[[device.stall]]\nat_ms = 1000\nfor_ms = 500";
    for (bound, error, ms) in [
        ("400ms", ETIMEDOUT, 1500),
        ("600ms", 0, 3000),
        ("0", 0, 3000),
    ] {
        let words = format!("{JOB} --rw=randread --time_based --runtime=3 --max_latency={bound}");
        let record = run(stall, &words);
        assert_eq!(
            (record.jobs[0].error, record.elapsed_ms),
            (error, ms),
            "{words}"
        );
    }
}

/// Runs a reading job that fails beside a writing one, and returns the runtime of the latter, ms.
#[test]
fn an_error_ends_others_where_that_is_asked_for() {
    let half = "[device.faults]\nread_errors_ppm = 500000";
    for (words, with) in [
        ("", false),
        ("--exitall_on_error", true),
        ("--exitall_on_error --continue_on_error=io", false),
        ("--exitall", true),
    ] {
        let both = format!(
            "{JOB} --time_based --runtime=1 --rw=randread {words} --name=w --filename=/dev/m \
             --direct=1 --bs=4k --rw=randwrite --time_based --runtime=3"
        );
        let record = run(half, &both);
        let ms = record.jobs[1].runtime_ms;
        let ended = ms < 100;
        let early = with && record.jobs[0].error == EIO;
        assert_eq!(ended, early, "{words}: {ms} ms");
    }
}

/// Each part of an op is moved once, whatever else goes wrong.
#[test]
fn short_transfers_are_gone_on_with() {
    let words = "--name=t --filename=/dev/m --direct=1 --bs=64k --size=64m --rw=randwrite \
                 --ioengine=libaio --iodepth=4";
    let record = run("[device.faults]\nshort_ppm = 300000", words);
    let write = &record.jobs[0].directions.write;
    assert_eq!((write.ios, write.bytes), (1024, 64 << 20));
    assert!((300..600).contains(&write.short_ios), "{}", write.short_ios);
}

/// Pairs of a trim and a write: a block is trimmed once per pass until one of them fails.
#[test]
fn blocks_are_followed_until_their_first_error() {
    let faults = "[device.faults]\nwrite_errors_ppm = 100000\ntrim_errors_ppm = 20000";
    let words = "--rw=trimwrite --loops=5 --continue_on_error=all --block_error_percentiles=1";
    let record = run(faults, &format!("{JOB} {words}"));
    let lives = record.jobs[0].block_lives.as_ref().unwrap();
    let states = [lives.unwritten, lives.trimmed, lives.written];
    let failed = lives.trim_failure + lives.write_failure;
    assert_eq!(states.iter().sum::<u64>() + failed, 10_240);
    // 0.9⁵ · 0.98⁵ of the blocks survive, and ended with a write.
    assert!((5_200..=5_750).contains(&lives.written), "{lives:?}");
    assert_eq!((lives.unwritten, lives.trimmed), (0, 0));
    assert!(lives.trim_failure * 3 < lives.write_failure, "{lives:?}");
    let after: Vec<u32> = lives.failed_after_trims.iter().map(|row| row.0).collect();
    assert_eq!(after, [0, 1, 2, 3, 4, 5]);
    let sum: u64 = lives.failed_after_trims.iter().map(|row| row.1).sum();
    assert_eq!(sum, failed);
    // The first pass meets most blocks.
    assert_eq!(lives.percentile(20.0), Some(1));
    let plain = run("", &format!("{JOB} --rw=trim"));
    assert_eq!(plain.jobs[0].block_lives, None);
}
