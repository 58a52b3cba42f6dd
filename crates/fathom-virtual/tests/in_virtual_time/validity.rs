//! Validity checks of runs in virtual time: those that need no host.

use crate::common::{on, record};
use fathom_record::Record;

/// Returns the checks of a run, each with its result.
fn checks(record: &Record) -> Vec<(&str, bool)> {
    let judged = record.validity.iter();
    judged.map(|one| (one.check.as_str(), one.ok)).collect()
}

fn sentence<'a>(record: &'a Record, check: &str) -> &'a str {
    let judged = record.validity.iter().find(|one| one.check == check);
    judged.map_or("", |one| one.sentence.as_str())
}

const JOB: &str = "--name=t --rw=randread --size=64m --time_based --runtime=2";

#[test]
fn a_rate_that_the_device_cannot_keep_is_told() {
    let kept = record(&format!("{JOB} --rate_iops=5000"));
    assert_eq!(checks(&kept), [("response_time", true), ("length", true)]);
    let missed = record(&format!("{JOB} --rate_iops=200000"));
    let want = [("response_time", false), ("length", true)];
    assert_eq!(checks(&missed), want);
    let said = sentence(&missed, "response_time");
    assert!(said.contains("a rate that could not be kept"), "{said}");
}

#[test]
fn an_engine_without_a_queue_is_told() {
    let deep = |engine: &str| record(&format!("{JOB} --iodepth=8 --ioengine={engine}"));
    let want = |ok| vec![("queue_depth", ok), ("length", true)];
    assert_eq!(checks(&deep("psync")), want(false));
    // A modelled kernel has no page cache that would make libaio wait.
    assert_eq!(checks(&deep("libaio")), want(true));
}

#[test]
fn the_outcome_of_a_latency_target_is_told() {
    let words = "--latency_target=99 --latency_window=100ms --latency_percentile=99.9";
    let missed = record(&format!("{JOB} {words}"));
    let want = [("latency_target", false), ("length", true)];
    assert_eq!(checks(&missed), want);
    let said = sentence(&missed, "latency_target");
    assert!(said.contains("not even at queue depth 1"), "{said}");
}

/// Nothing interrupts a run in virtual time, so a short one is no worse than a long one.
#[test]
fn few_ops_are_told_and_little_time_is_not() {
    let few = record("--name=t --rw=randread --size=64m --number_ios=99");
    assert_eq!(checks(&few), [("length", false)]);
    let said = sentence(&few, "length");
    assert_eq!(
        said,
        "the figures come from 99 ops: p99 is the slowest of them"
    );
    let short = record("--name=t --rw=randread --size=64m --number_ios=100");
    assert_eq!(checks(&short), [("length", true)]);
}

#[test]
fn a_job_that_ends_within_its_ramp_is_told() {
    let job = "--name=t --rw=randread --size=64m";
    for ramp in ["--ramp_time=60", "--ramp_size=1g"] {
        let within = record(&format!("{job} --number_ios=1000 {ramp}"));
        assert_eq!(checks(&within), [("ramp", false), ("length", true)]);
        let said = sentence(&within, "ramp");
        assert!(said.contains("ended within its ramp"), "{said}");
    }
    let after = record(&format!("{job} --time_based --runtime=2 --ramp_time=1"));
    assert_eq!(checks(&after), [("ramp", true), ("length", true)]);
}

#[test]
fn clones_are_judged_together_and_jobs_that_never_started_not_at_all() {
    let machine = "[[device]]\nnames = [\"*\"]\nmodel = \"constant\"\ncapacity_gib = 1\n\
                   [device.constant]\nlatency_us = 100\n";
    let words = format!("{JOB} --filename=/dev/m --direct=1 --rate_iops=20000 --numjobs=3");
    let clones = on(machine, &words);
    assert_eq!(
        checks(&clones),
        [("response_time", false), ("length", true)]
    );
}
