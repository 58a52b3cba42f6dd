//! Stalls of modelled devices, found by the jobs on them: exactly when, how long and in what.

use crate::common::{Rig, deep_job, device, job, run};
use fathom_block::Stall;
use fathom_core::{Direction, Nanos, Tick};
use fathom_workload::{Mix, ObservedStall, Pace, Rate, RateProcess, WorkerConfig};

/// Returns the stalls that a job of this length finds on a device of 100 µs per op that stalls at
/// these times, for so long each; ms.
fn found(mut config: WorkerConfig, seconds: u64, stalls: &[(u64, u64)]) -> Vec<ObservedStall> {
    config.time_based = true;
    config.runtime = Some(Nanos::from_secs(seconds));
    let stalls = stalls.iter().map(|&(at, length)| Stall {
        at: Tick::new(at * 1_000_000),
        length: Nanos::from_millis(length),
    });
    let rig = Rig {
        stalls: stalls.collect(),
        ..device()
    };
    run(config, rig).stalls
}

fn paced(rate: u64) -> Option<Rate> {
    Some(Rate {
        pace: Pace::Ops(rate),
        process: RateProcess::Linear,
    })
}

/// Checks when stalls were, for how long, and in how many ops; µs.
#[track_caller]
fn check(found: &[ObservedStall], want: &[(u64, u64, u64)]) {
    let seen: Vec<_> = found
        .iter()
        .map(|stall| {
            let (due, length) = (stall.due.get() / 1_000, stall.length.get() / 1_000);
            assert_eq!((stall.waited, stall.stopped), (Nanos::ZERO, Nanos::ZERO));
            (due, length, stall.ops)
        })
        .collect();
    assert_eq!(seen, want);
}

#[test]
fn each_stall_of_the_device_is_found() {
    // An op is under way when the device stalls, and takes the stall and its own 100 µs.
    let stalls = found(job(), 10, &[(2_000, 300), (5_000, 40), (7_500, 412)]);
    assert!(
        stalls
            .iter()
            .all(|stall| stall.direction == Direction::Read)
    );
    check(
        &stalls,
        &[
            (2_000_000, 300_100, 1),
            (5_000_000, 40_100, 1),
            (7_500_000, 412_100, 1),
        ],
    );
}

#[test]
fn ops_in_flight_together_stall_once() {
    let stalls = found(deep_job(32), 10, &[(2_000, 300)]);
    check(&stalls, &[(2_000_000, 300_100, 32)]);
}

#[test]
fn a_write_is_named_as_one() {
    let mut config = job();
    config.pattern.mix = Mix::Write;
    let stalls = found(config, 4, &[(2_000, 300)]);
    assert_eq!(stalls[0].direction, Direction::Write);
}

#[test]
fn a_schedule_that_catches_up_belongs_to_its_stall() {
    let mut config = job();
    config.rate.read = paced(1_000);
    let stalls = found(config, 6, &[(2_000, 1_000)]);
    // Of the ops due every 1 ms, each 0.9 ms less late than the one before, the last are less than
    // 1 ms late.
    check(&stalls, &[(2_000_000, 1_000_100, 1_111)]);
}

#[test]
fn a_job_that_never_keeps_up_does_not_stall() {
    let mut config = job();
    config.rate.read = paced(20_000);
    check(&found(config, 2, &[]), &[]);
}

#[test]
fn slow_devices_do_not_stall() {
    let rig = Rig {
        latency: Nanos::from_millis(8),
        ..device()
    };
    let mut config = deep_job(4);
    config.time_based = true;
    config.runtime = Some(Nanos::from_secs(10));
    check(&run(config, rig).stalls, &[]);
}

#[test]
fn ramp_time_is_not_part_of_it() {
    let mut config = job();
    config.ramp = Nanos::from_secs(3);
    let stalls = found(config, 4, &[(2_000, 300), (5_000, 40)]);
    check(&stalls, &[(5_000_000, 40_100, 1)]);
}

#[test]
fn the_worst_are_kept() {
    let planned: Vec<(u64, u64)> = (1..=20).map(|n| (n * 1_000, n * 10)).collect();
    let stalls = found(job(), 30, &planned);
    let lengths = stalls.iter().map(|stall| stall.length.as_millis());
    let want: Vec<u64> = (13..=20).map(|n| n * 10).collect();
    assert_eq!(lengths.collect::<Vec<_>>(), want);
}

#[test]
fn a_job_that_records_no_latency_finds_none() {
    let mut config = job();
    (config.measure.clat, config.measure.lat) = (false, false);
    check(&found(config, 4, &[(2_000, 300)]), &[]);
}
