//! Response times of a queue with Poisson arrivals and constant (M/D/1) or exponential (M/M/1)
//! service times, against the closed forms.

use crate::common::{on, try_on};
use fathom_core::Nanos;
use fathom_virtual::MachineModel;

/// Device of 100 µs per op that serves one at a time.
const MACHINE: &str = "[[device]]\nnames = [\"*\"]\ncapacity_gib = 1\nmodel = \"constant\"\n\
                       [device.constant]\nlatency_us = 100\n\
                       [device.queue]\nscheduler = \"mq-deadline\"\nqueue_depth = 1\n\
                       nr_requests = 4096\n";
const OP_US: f64 = 100.0;

/// Returns the mean response time of all jobs, µs, and the IOPS.
#[track_caller]
fn responses(words: &str) -> (f64, f64) {
    let record = on(
        MACHINE,
        &format!(
            "--name=t --filename=/dev/m --direct=1 --rw=randread --bs=4k --time_based \
             --runtime=40 {words}"
        ),
    );
    let (mut sum, mut ops) = (0.0, 0.0);
    for job in &record.jobs {
        let resp = job.directions.read.resp.as_ref().expect("a rate was set");
        #[expect(clippy::cast_precision_loss, reason = "some million ops")]
        let count = resp.summary.count() as f64;
        sum += resp.summary.mean() * count;
        ops += count;
    }
    (sum / ops / 1000.0, ops / 40.0)
}

/// Checks the mean response time at utilisation `load`: an op waits for `load / (2 · (1 − load))`
/// of a service time on average.
#[track_caller]
fn check(words: &str, per_second: f64) {
    let (got, came) = responses(&format!("{words} --rate_process=poisson"));
    assert!(
        (came / per_second - 1.0).abs() < 0.01,
        "{words}: {came} ops/s"
    );
    let load = per_second * OP_US / 1e6;
    let want = OP_US * (1.0 + load / (2.0 * (1.0 - load)));
    let error = got / want - 1.0;
    assert!(
        error.abs() < 0.04,
        "{words}: {got} µs, in closed form {want}"
    );
}

#[test]
fn poisson_arrivals_wait_as_long_as_they_must() {
    for (rate, quarter) in [(2000, 500), (5000, 1250), (8000, 2000)] {
        check(
            &format!("--ioengine=psync --rate_iops={rate}"),
            f64::from(rate),
        );
        check(
            &format!("--ioengine=libaio --iodepth=256 --rate_iops={rate}"),
            f64::from(rate),
        );
        // Four that know nothing of each other come as one.
        check(
            &format!("--ioengine=libaio --iodepth=256 --rate_iops={quarter} --numjobs=4"),
            f64::from(rate),
        );
    }
}

#[test]
fn even_arrivals_do_not_wait() {
    for rate in [2000, 5000, 8000] {
        let (got, _) = responses(&format!("--ioengine=psync --rate_iops={rate}"));
        assert!((got - OP_US).abs() < 0.1, "{rate}: {got} µs");
    }
}

/// Service times of 100 µs on average: 10,000 ops/s.
const ONE_SERVER: &str = include_str!("../../../../examples/machines/one-server.toml");

/// Returns the mean response time and its median and 99th percentile, µs, at a rate.
fn exponential(rate: u32, run: u64) -> [f64; 3] {
    let machine = MachineModel::parse("one-server.toml", ONE_SERVER).expect("a machine");
    let words = format!(
        "--name=t --filename=/dev/m --direct=1 --rw=randread --bs=4k --time_based --runtime=300 \
         --ioengine=libaio --iodepth=1024 --rate_process=poisson --rate_iops={rate} \
         --randseed={run}"
    );
    let machine = machine.at(Nanos::ZERO, run);
    let record = try_on(&machine, &words, &mut |_| {}, &|| 0).expect("a run");
    let resp = record.jobs[0].directions.read.resp.as_ref();
    let resp = resp.expect("a rate was set");
    let percentile = |percent| resp.interpolated(percent).expect("many ops");
    [resp.summary.mean(), percentile(50.0), percentile(99.0)].map(|ns| ns / 1000.0)
}

/// Of an M/M/1 queue the response time is exponentially distributed, with mean 1 ÷ (μ − λ).
#[test]
fn response_times_of_one_exponential_server_are_exponential() {
    for rate in [2_000, 5_000] {
        let mean = 1e6 / (10_000.0 - f64::from(rate));
        let want = [mean, mean * 2.0_f64.ln(), mean * 100.0_f64.ln()];
        let got = exponential(rate, 0);
        for (got, want) in got.iter().zip(want) {
            assert!(
                (got / want - 1.0).abs() < 0.02,
                "{rate}: {got} µs, not {want}"
            );
        }
    }
}

#[test]
fn runs_of_an_experiment_draw_service_times_of_their_own() {
    let [first, again, other] = [0, 0, 1].map(|run| exponential(100, run));
    assert_eq!(first, again);
    assert_ne!(first, other);
}
