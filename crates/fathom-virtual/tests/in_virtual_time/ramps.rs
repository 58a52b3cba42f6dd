//! Results when single ops are long compared with ramp and runtime.

use crate::common::on;

/// Device of 2.5 s per op.
const MACHINE: &str = "[[device]]\nnames = [\"*\"]\ncapacity_gib = 1\nmodel = \"constant\"\n\
                       [device.constant]\nlatency_us = 2500000\n";

/// Checks ops, blocks, measured milliseconds, and milliseconds in total.
#[track_caller]
fn check(words: &str, ops: u64, ms: u64, elapsed_ms: u64) {
    let words = format!(
        "--name=t --filename=/dev/m --direct=1 --bs=64k --rw=read --size=64m --time_based {words}"
    );
    let record = on(MACHINE, &words);
    let job = &record.jobs[0];
    let read = &job.directions.read;
    assert_eq!((read.ios, read.bytes >> 16), (ops, ops), "{words}");
    assert_eq!(
        (read.runtime_ms, record.elapsed_ms),
        (ms, elapsed_ms),
        "{words}"
    );
    let clat = read.clat.as_ref().expect("kept");
    assert_eq!(clat.summary.count(), ops, "{words}");
}

/// As in fio 3.33 with calls of that length, measuring begins when the call returns during which
/// the ramp ended; the bytes of that call belong to the ramp.
#[test]
fn a_job_in_a_call_sees_the_end_of_its_ramp_when_that_returns() {
    for engine in ["psync", "pvsync2"] {
        let psync = format!("--ioengine={engine} --runtime=5");
        check(&psync, 2, 5000, 5000);
        check(&format!("{psync} --ramp_time=100ms"), 2, 5000, 7500);
        check(&format!("{psync} --ramp_time=300ms"), 2, 5000, 7500);
        check(&format!("{psync} --ramp_time=2600ms"), 2, 5000, 10_000);
        check(&format!("{psync} --ramp_time=2500ms"), 2, 5000, 7500);
    }
    // The last op is waited for.
    check("--ioengine=psync --runtime=6", 3, 7500, 7500);
    check(
        "--ioengine=psync --runtime=6 --ramp_time=1",
        3,
        7500,
        10_000,
    );
}

/// With four ops that end together, a full queue notices the end of its ramp when it wakes.
#[test]
fn a_full_queue_sees_the_end_of_its_ramp_when_an_op_completes() {
    let queue = "--ioengine=libaio --iodepth=4 --runtime=5";
    check(queue, 8, 5000, 5000);
    check(&format!("{queue} --ramp_time=1"), 8, 5000, 7500);
    check(&format!("{queue} --ramp_time=2500ms"), 8, 5000, 7500);
    check(&format!("{queue} --ramp_time=4"), 8, 5000, 10_000);
}

/// A queue with free slots does not sleep: ops in flight at the end of the ramp count in full when
/// they complete, as in fio.
#[test]
fn a_queue_with_room_counts_what_completes() {
    // One is due each second, and takes two and a half.
    let queue = "--ioengine=libaio --iodepth=16 --rate_iops=1 --runtime=10";
    check(queue, 10, 11_500, 11_500);
    check(&format!("{queue} --ramp_time=5"), 12, 11_500, 16_500);
}

/// In long runs the edges do not matter: every way of measuring gives the device's rate.
#[test]
fn the_bandwidth_of_a_long_run_is_that_of_the_device() {
    for (engine, depth) in [
        ("psync", 1),
        ("libaio --iodepth=4", 4),
        ("io_uring --iodepth=32", 32),
    ] {
        for ramp in ["0", "1", "2600ms", "99"] {
            let words = format!(
                "--name=t --filename=/dev/m --direct=1 --bs=64k --rw=read --size=64m --time_based \
                 --ioengine={engine} --runtime=5000 --ramp_time={ramp}"
            );
            let record = on(MACHINE, &words);
            let read = &record.jobs[0].directions.read;
            // A thousand seconds are four hundred times the depth.
            let want = read.runtime_ms * depth * 400 / 1_000_000;
            assert!(
                read.ios.abs_diff(want) <= 2 * depth,
                "{words}: {} ops, not {want}",
                read.ios
            );
        }
    }
}

/// As in fio, `number_ios` ops are those that count; two more complete within the ramp.
#[test]
fn a_number_of_ops_leaves_out_those_of_the_ramp() {
    let job =
        "--name=t --filename=/dev/m --direct=1 --bs=64k --rw=read --size=64m --ioengine=psync";
    for (ramp, elapsed_ms) in [("0", 7500), ("2600ms", 12_500)] {
        let record = on(MACHINE, &format!("{job} --number_ios=3 --ramp_time={ramp}"));
        assert_eq!(record.jobs[0].directions.read.ios, 3, "{ramp}");
        assert_eq!(record.elapsed_ms, elapsed_ms, "{ramp}");
    }
}

/// Errno of an op that took too long.
const ETIMEDOUT: u32 = 110;

/// As in fio, a bound of latency applies to the ops that are measured.
#[test]
fn a_bound_of_latency_leaves_out_the_ramp() {
    let job = "--name=t --filename=/dev/m --direct=1 --bs=64k --rw=read --size=64m \
               --ioengine=psync --runtime=5 --time_based --max_latency=2s";
    let error = |words: &str| on(MACHINE, &format!("{job} {words}")).jobs[0].error;
    let elapsed = |words: &str| on(MACHINE, &format!("{job} {words}")).elapsed_ms;
    assert_eq!((error(""), elapsed("")), (ETIMEDOUT, 2500));
    let ramp = "--ramp_time=2600ms";
    assert_eq!((error(ramp), elapsed(ramp)), (ETIMEDOUT, 7500));
    assert_eq!(
        (error("--disable_lat=1"), elapsed("--disable_lat=1")),
        (0, 5000)
    );
}
