//! A device that stalls under a rate: response times include the wait, to the percentile, and a run
//! can be ended during the stall.

use std::cell::Cell;

use crate::common::{on, on_watched};

/// Returns a machine of 30 µs per op that stalls after two seconds.
fn machine(stall_ms: u64, queue: &str) -> String {
    format!(
        "[[device]]\nnames = [\"*\"]\ncapacity_gib = 1\nmodel = \"constant\"\n\
         [device.constant]\nlatency_us = 30\n{queue}\n\
         [[device.stall]]\nat_ms = 2000\nfor_ms = {stall_ms}\n"
    )
}

const OP_NS: u64 = 30_000;
/// Interval between due times at 1000 IOPS.
const DUE_NS: u64 = 1_000_000;

/// Returns the end of op `k` after the stall, served one after the other after all earlier ones,
/// ns.
fn one_by_one(k: u64) -> u64 {
    (k + 1) * OP_NS
}

/// Returns the end of op `k` after the stall at a depth of 64: those submitted during the stall end
/// together, then the next 64.
fn by_sixty_four(k: u64) -> u64 {
    (k / 64 + 1) * OP_NS
}

/// Runs for `seconds` at 1000 IOPS and checks the response times: op `k` due since the stall began
/// ends `served(k)` after the end of the stall, if that is not less than an op takes.
#[track_caller]
fn check(words: &str, queue: &str, stall_ms: u64, seconds: u64, served: fn(u64) -> u64) {
    let words = format!(
        "--name=t --filename=/dev/m --direct=1 --rw=randread --bs=4k --rate_iops=1000 \
         --time_based --runtime={seconds} {words}"
    );
    let record = on(&machine(stall_ms, queue), &words);
    let read = &record.jobs[0].directions.read;
    let ops = seconds * 1000;
    assert_eq!(read.ios, ops, "{words}");
    let since_stall = ops - 2000;
    let late = |k: u64| (stall_ms * 1_000_000 + served(k)).saturating_sub(k * DUE_NS);
    let mut want: Vec<u64> = (0..since_stall).map(|k| late(k).max(OP_NS)).collect();
    want.resize(usize::try_from(ops).unwrap_or(0), OP_NS);
    want.sort_unstable();
    let resp = read.resp.as_ref().expect("a rate was set");
    let histogram = resp.histogram.as_ref().expect("kept");
    for (percent, rank) in [
        (50.0, ops / 2),
        (99.0, ops * 99 / 100),
        (99.9, ops * 999 / 1000),
    ] {
        let at = usize::try_from(rank).unwrap_or(0) - 1;
        let (got, want) = (histogram.percentile(percent), want[at]);
        let within = got.abs_diff(want) <= want / 100;
        assert!(
            within,
            "{words}: p{percent} is {got} ns, in closed form {want}"
        );
    }
    assert_eq!(resp.summary.max(), want[want.len() - 1], "{words}: max");
}

/// In the short runs the median op waited, too.
#[test]
fn response_times_are_those_of_the_closed_form() {
    let shallow = "[device.queue]\nscheduler = \"none\"\nnr_requests = 64\nqueue_depth = 1";
    let deep = "--ioengine=libaio --iodepth=64";
    for (stall_ms, seconds) in [(1000, 6), (100, 4), (2000, 5), (4000, 7)] {
        check("--ioengine=psync", "", stall_ms, seconds, one_by_one);
        check(deep, "", stall_ms, seconds, by_sixty_four);
        check("--ioengine=psync", shallow, stall_ms, seconds, one_by_one);
    }
}

/// Without due times a stall is one slow op, however many were not issued meanwhile.
#[test]
fn completion_times_hide_a_stall() {
    let words = "--name=t --filename=/dev/m --direct=1 --rw=randread --bs=4k --ioengine=psync \
                 --rate_iops=1000 --time_based --runtime=6";
    let record = on(&machine(1000, ""), words);
    let clat = record.jobs[0].directions.read.clat.as_ref().expect("kept");
    let p999 = clat.histogram.as_ref().expect("kept").percentile(99.9);
    assert!(p999.abs_diff(OP_NS) < 300, "{p999}");
    assert_eq!(clat.summary.max(), 1_000_000_000 + OP_NS);
}

/// The stall ends some thirty years later in virtual time, so draining takes no real time.
#[test]
fn a_run_on_a_device_that_stands_still_is_ended() {
    let words = "--name=t --filename=/dev/m --direct=1 --rw=randread --bs=4k --ioengine=libaio \
                 --iodepth=8 --time_based --runtime=2000000000 --numjobs=3";
    let looks = Cell::new(0);
    let stops = || {
        looks.set(looks.get() + 1);
        u32::from(looks.get() > 50)
    };
    let record = on_watched(&machine(1_000_000_000, ""), words, &mut |_| {}, &stops);
    for job in &record.jobs {
        let read = &job.directions.read;
        assert_eq!((read.ios % 8, job.error), (0, 0));
        assert!(read.ios > 1000, "{}", read.ios);
    }
}
