//! Who starts after whom, who ends with whom, and when a job ends by itself, on devices that take
//! 100 µs for every op.

mod common;

use fathom_record::{JobRecord, Record};

use common::record;

/// When the first op of a job began to be measured, ms.
fn start(record: &Record, job: usize) -> u64 {
    record.jobs[job].start_ms
}

fn reads(job: &JobRecord) -> u64 {
    job.directions.read.ios
}

#[track_caller]
fn check_starts(words: &str, want: &[u64]) {
    let words = format!("--rw=read --size=4000k --time_based --runtime=1 {words}");
    let record = record(&words);
    let starts: Vec<_> = (0..record.jobs.len())
        .map(|job| start(&record, job))
        .collect();
    assert_eq!(starts, want, "{words}");
}

#[test]
fn jobs_start_after_those_that_they_wait_for() {
    check_starts("--name=a --name=b", &[0, 0]);
    check_starts("--name=a --name=b --wait_for=a", &[0, 1000]);
    check_starts(
        "--name=a --numjobs=2 --runtime=2 --name=b --runtime=1 --wait_for=a --name=c --name=d \
         --wait_for=b",
        &[0, 0, 2000, 0, 3000],
    );
    check_starts(
        "--name=a --name=b --stonewall --runtime=2 --name=c --wait_for=a --name=d --stonewall",
        &[0, 1000, 1000, 3000],
    );
}

#[test]
fn a_delay_counts_from_the_start_of_the_run() {
    check_starts("--name=a --startdelay=3", &[3000]);
    check_starts(
        "--name=a --name=b --stonewall --startdelay=500ms --name=c --stonewall --startdelay=5s",
        &[0, 1000, 5000],
    );
}

/// Runs three jobs, of 1 s, 3 s and 3 s, the last in a group of its own, and one behind a
/// stonewall; reads of each, in thousands.
#[track_caller]
fn check_ends(words: &str, want: [u64; 4]) {
    let words = format!(
        "--rw=read --size=4000k --time_based --runtime=3 {words} --name=a --runtime=1 --name=b \
         --name=c --new_group --name=d --stonewall"
    );
    let record = record(&words);
    let got: Vec<_> = record.jobs.iter().map(|job| reads(job) / 1000).collect();
    assert_eq!(got, want, "{words}");
}

#[test]
fn jobs_end_with_those_that_say_so() {
    check_ends("", [10, 30, 30, 30]);
    check_ends("--exitall", [10, 10, 30, 30]);
    check_ends("--exitall --exit_what=stonewall", [10, 10, 10, 30]);
    check_ends("--exitall --exit_what=all", [10, 10, 10, 0]);
    check_ends("--exitall_on_error --exit_what=all", [10, 30, 30, 30]);
}

#[test]
fn an_error_ends_the_others_where_the_job_says_so() {
    let slow = "--rate_iops=100 --rate_iops_min=99 --thinktime=1s";
    let words = |slow_has: &str, other_has: &str| {
        format!(
            "--rw=read --size=4000k --time_based --runtime=9 --name=slow {slow} {slow_has} \
             --name=b {other_has}"
        )
    };
    let check = |words: String, want: u64| {
        let record = record(&words);
        assert_eq!(record.jobs[0].error, 5, "{words}");
        let ms = record.jobs[1].runtime_ms;
        // The rate is looked at after two seconds, and between two ops a second apart.
        assert!((want..=want + 1_100).contains(&ms), "{words}: {ms} ms");
    };
    check(words("", ""), 9_000);
    check(words("--exitall_on_error", ""), 2_000);
    check(words("", "--exitall_on_error"), 9_000);
}
