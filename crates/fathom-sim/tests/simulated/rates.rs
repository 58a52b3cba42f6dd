//! Rates, due times, and response times after a stall.

use crate::common::{Rig, deep_job, device, job, ms, run};
use fathom_block::Stall;
use fathom_core::{Nanos, Tick};
use fathom_workload::{Mix, Pace, Rate, RateProcess};

fn iops(rate: u64) -> Option<Rate> {
    Some(Rate {
        pace: Pace::Ops(rate),
        process: RateProcess::Linear,
    })
}

#[test]
fn rate_iops_is_held() {
    let mut config = job();
    config.time_based = true;
    config.runtime = Some(Nanos::from_secs(10));
    config.rate.read = iops(1000);
    let results = run(config, device());
    assert_eq!(results.directions.read.ios, 10_000);
}

#[test]
fn rate_in_bytes_is_held() {
    let mut config = deep_job(4);
    config.time_based = true;
    config.runtime = Some(Nanos::from_secs(10));
    config.rate.read = Some(Rate {
        pace: Pace::Bytes(1 << 20),
        process: RateProcess::Linear,
    });
    let results = run(config, device());
    assert_eq!(results.directions.read.bytes, 10 << 20);
}

#[test]
fn each_direction_keeps_its_own_pace() {
    let mut config = job();
    config.pattern.mix = Mix::ReadWrite { read: 50 };
    config.time_based = true;
    config.runtime = Some(Nanos::from_secs(10));
    config.rate.read = iops(900);
    config.rate.write = iops(100);
    let results = run(config, device());
    let (reads, writes) = (results.directions.read.ios, results.directions.write.ios);
    assert!((8_995..=9_005).contains(&reads), "{reads}");
    assert!((995..=1_005).contains(&writes), "{writes}");
}

#[test]
fn an_unreachable_rate_shows_as_lag() {
    let mut config = job();
    config.time_based = true;
    config.runtime = Some(Nanos::from_secs(1));
    config.rate.read = iops(20_000);
    let results = run(config, device());
    assert_eq!(results.directions.read.ios, 10_000);
    let lag = results.directions.read.lag.expect("a rate was set");
    // Due every 50 µs, served every 100 µs: half a second behind after one second.
    assert_eq!(ms(Nanos::new(lag.summary.max())), 499);
}

/// Returns the results of a run at R ops/s with a stall of length D on a device of latency L: ops
/// due within the stall wait for its rest, then are served one after the other.
fn stalled() -> fathom_workload::Results {
    let mut config = job();
    config.time_based = true;
    config.runtime = Some(Nanos::from_secs(6));
    config.rate.read = iops(1000);
    let stall = Stall {
        at: Tick::new(2_000_000_000),
        length: Nanos::from_secs(1),
    };
    let device = Rig {
        stalls: vec![stall],
        latency: Nanos::from_micros(30),
        ..device()
    };
    run(config, device)
}

#[test]
fn a_stall_is_in_resp_and_not_in_clat() {
    let results = stalled();
    let read = &results.directions.read;
    assert_eq!(read.ios, 6000);
    let clat = read.clat.histogram.as_ref().expect("kept").percentile(99.0);
    assert!(clat < 31_000, "{clat}");
    // The k-th op due in the stall responds after 1 s − k · (1 ms − 30 µs); of 6000 ops the
    // 60 slowest are k < 60, so p99 is that of k = 60.
    let want = 1_000_000_000.0 - 60.0 * 970_000.0;
    let resp = read.resp.as_ref().expect("a rate was set");
    let got = resp.histogram.as_ref().expect("kept").percentile(99.0) as f64;
    assert!(
        (got / want - 1.0).abs() < 0.01,
        "p99 {got} ns, closed form {want} ns"
    );
}

#[test]
fn equal_plans_give_equal_results() {
    let print = || format!("{:?}", stalled());
    assert_eq!(print(), print());
}

#[test]
fn a_rate_below_its_minimum_ends_the_job() {
    let mut config = job();
    config.time_based = true;
    config.runtime = Some(Nanos::from_secs(10));
    config.rate_min.read = Some(Pace::Ops(20_000));
    let results = run(config, device());
    let error = results.error.expect("10,000 per second are too few");
    assert_eq!((error.errno.get(), error.activity.name()), (5, "rate_min"));
    assert!(ms(results.directions.read.runtime) <= 3_001);
}

#[test]
fn a_rate_above_its_minimum_goes_on() {
    let mut config = job();
    config.time_based = true;
    config.runtime = Some(Nanos::from_secs(10));
    config.rate_min.read = Some(Pace::Ops(9_000));
    assert_eq!(run(config, device()).error, None);
}
