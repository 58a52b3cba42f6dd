//! Table of minimum rates, pauses and ramps: a job, and its duration, ops and end on a device of
//! 100 µs per op.

use std::ops::RangeInclusive;

use crate::common::record;

/// Checks the result of a job of 256 reads: milliseconds, ops, error.
#[track_caller]
fn check(words: &str, ms: RangeInclusive<u64>, ios: RangeInclusive<u64>, error: u32) {
    let record = record(&format!("--name=t --size=1m --rw=read {words}"));
    let job = &record.jobs[0];
    let (read, write) = (&job.directions.read, &job.directions.write);
    let got = read.runtime_ms.max(write.runtime_ms);
    assert!(ms.contains(&got), "{words}: {got} ms, not {ms:?}");
    let got = read.ios + write.ios;
    assert!(ios.contains(&got), "{words}: {got} ops, not {ios:?}");
    assert_eq!(job.error, error, "{words}");
}

const EIO: u32 = 5;

/// 10 ops in 11 ms: about 909 IOPS.
const SLOW: &str = "--thinktime=10ms --thinktime_blocks=10 --time_based --runtime=6";

#[test]
fn a_job_below_its_least_rate_fails_once_it_had_time_to_settle() {
    check(
        &format!("{SLOW} --rate_iops_min=1000"),
        3000..=3022,
        2_700..=2_760,
        EIO,
    );
    check(
        &format!("{SLOW} --rate_min=4m"),
        3000..=3022,
        2_700..=2_760,
        EIO,
    );
    check(
        &format!("{SLOW} --ratemin=4m,1k"),
        3000..=3022,
        2_700..=2_760,
        EIO,
    );
    check(
        &format!("{SLOW} --rate_iops_min=900"),
        6000..=6000,
        5_400..=5_480,
        0,
    );
    check(
        &format!("{SLOW} --rate_min=3m"),
        6000..=6000,
        5_400..=5_480,
        0,
    );
}

#[test]
fn an_unkept_least_rate_is_told_with_its_unit() {
    let check = |words: &str, want: &str| {
        let words = format!("--name=t --rw=read --size=64m --ioengine=psync {SLOW} {words}");
        let record = record(&words);
        let text = record.jobs[0].error_text.as_deref().unwrap_or_default();
        assert!(text.contains(want), "{text}");
    };
    check(
        "--rate_iops_min=1000",
        " IOPS is below the minimum 1000 IOPS",
    );
    check("--rate_min=4m", " B/s is below the minimum 4194304 B/s");
}

/// Each pass takes 282 ms; the check interval spans several.
#[test]
fn a_least_rate_is_kept_over_the_passes_of_a_job() {
    let passes = "--thinktime=1ms --loops=20 --fsync_on_close=1 --rw=write";
    check(
        &format!("{passes} --rate_iops_min=2000"),
        3000..=3022,
        2_700..=2_760,
        EIO,
    );
}

#[test]
fn a_least_rate_is_that_of_the_direction() {
    let mixed = format!("{SLOW} --rw=randrw --rwmixread=80");
    check(
        &format!("{mixed} --rate_iops_min=600,100"),
        5_990..=6000,
        5_400..=5_480,
        0,
    );
    check(
        &format!("{mixed} --rate_iops_min=100,600"),
        3000..=3022,
        2_700..=2_760,
        EIO,
    );
    // Writes that the job has none of have no rate to keep.
    check(
        &format!("{SLOW} --rate_iops_min=,600"),
        6000..=6000,
        5_400..=5_480,
        0,
    );
}

/// Options for a pause of 1.5 s every 4 s.
#[test]
fn the_cycle_is_what_a_least_rate_is_looked_at_over() {
    let gaps = "--thinktime=1500ms --thinktime_blocks=25000 --time_based --runtime=12";
    // 2.5 s of 10,000 ops/s each, then a pause: nothing has moved for whole cycles of half a
    // second when it is over.
    check(
        &format!("{gaps} --rate_iops_min=1000 --rate_cycle=500"),
        4_000..=4_000,
        25_000..=25_000,
        EIO,
    );
    check(
        &format!("{gaps} --rate_iops_min=1000 --ratecycle=4000"),
        11_990..=12_000,
        70_000..=80_000,
        0,
    );
}

/// The numbers of fio 3.33, by its runtimes, within two: 94, 23, 19, 19, 13, 10 and 4.
#[test]
fn ops_that_complete_while_the_queue_drains_count_towards_the_next_pause() {
    let deep = "--size=400k --ioengine=libaio --iodepth=8 --thinktime=10ms";
    for (blocks, pauses) in [
        (1, 93),
        (2, 22),
        (3, 19),
        (4, 18),
        (8, 11),
        (10, 9),
        (20, 4),
    ] {
        let ms = pauses * 10;
        check(
            &format!("{deep} --thinktime_blocks={blocks}"),
            ms..=ms + 20,
            100..=100,
            0,
        );
    }
}

#[test]
fn a_pause_comes_after_so_many_ops() {
    check("--thinktime=1ms", 280..=282, 256..=256, 0);
    check(
        "--thinktime=1ms --thinktime_blocks=8",
        57..=58,
        256..=256,
        0,
    );
    check(
        "--thinktime=1ms --thinktime_blocks=300",
        25..=26,
        256..=256,
        0,
    );
    check("--thinktime=0 --thinktime_blocks=2", 25..=26, 256..=256, 0);
    // A job does not think past its end.
    check("--thinktime=10s --runtime=1", 1000..=1000, 1..=1, 0);
}

#[test]
fn what_is_burned_is_part_of_the_pause() {
    for spin in ["500us", "1ms", "5ms"] {
        check(
            &format!("--thinktime=1ms --thinktime_spin={spin}"),
            280..=282,
            256..=256,
            0,
        );
    }
    // Alone it does nothing, as in fio.
    check("--thinktime_spin=1ms", 25..=26, 256..=256, 0);
}

#[test]
fn ops_are_counted_as_they_complete_or_as_they_are_issued() {
    let deep = "--ioengine=libaio --iodepth=8 --thinktime=1ms --thinktime_blocks=8";
    // Eight at a time take 100 µs, and are waited for before the pause.
    let by_issue = format!("{deep} --thinktime_blocks_type=issue");
    check(&by_issue, 34..=36, 256..=256, 0);
    // Those that complete together begin a pause together; the queue had been filled again.
    check(
        &format!("{deep} --thinktime_blocks_type=complete"),
        19..=36,
        256..=256,
        0,
    );
}

#[test]
fn a_pause_comes_after_so_much_time_of_ops() {
    let long = "--time_based --runtime=10 --thinktime_blocks=10000000";
    // A second of ops, a second of pause.
    check(
        &format!("{long} --thinktime=1s --thinktime_iotime=1s"),
        10_000..=10_000,
        49_000..=51_000,
        0,
    );
    check(
        &format!("{long} --thinktime=1s"),
        10_000..=10_000,
        99_000..=100_000,
        0,
    );
}

/// In virtual time a cycle is a nanosecond.
#[test]
fn cycles_are_burned_on_top() {
    check("--thinkcycles=1000000", 280..=282, 256..=256, 0);
    check(
        "--thinkcycles=1000000 --thinktime=1ms",
        536..=538,
        256..=256,
        0,
    );
    check(
        "--thinkcycles=1000000 --thinktime_blocks=8",
        57..=58,
        256..=256,
        0,
    );
    check("--thinkcycles=0", 25..=26, 256..=256, 0);
}

#[test]
fn nothing_is_counted_before_so_many_bytes_are_moved() {
    check("--ramp_size=256k", 19..=20, 192..=192, 0);
    check("--ramp_size=4k", 25..=26, 255..=255, 0);
    check("--ramp_size=256k --rw=randrw", 19..=20, 192..=192, 0);
    // The runtime counts from the end of the ramp.
    check(
        "--ramp_size=512k --time_based --runtime=1",
        1000..=1000,
        9_990..=10_000,
        0,
    );
    // A job that ends within its ramp reports what it did, as in fio.
    check("--ramp_size=1g", 25..=26, 256..=256, 0);
}
