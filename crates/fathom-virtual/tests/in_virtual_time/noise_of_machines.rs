//! Noise of a modelled machine: how it changes what jobs measure, run by run, and mistakes in it.

use crate::common::{on, try_on};
use fathom_core::Nanos;
use fathom_record::JobRecord;
use fathom_virtual::MachineModel;

const JOB: &str = "--name=j --filename=/dev/d --direct=1 --ioengine=libaio --rw=randread --bs=4k \
                   --time_based --runtime=1s --norandommap --iodepth=4";

fn machine(noise: &str) -> String {
    format!(
        "[[device]]\nnames = [\"*\"]\nmodel = \"constant\"\ncapacity_gib = 4\n\
         [device.constant]\nlatency_us = 100\n[noise]\n{noise}\n"
    )
}

/// Runs the job on a device of 100 µs, at this place of an experiment.
#[track_caller]
fn job(noise: &str, start: Nanos, run: u64) -> JobRecord {
    let machine = MachineModel::parse("m.toml", &machine(noise)).expect("a machine");
    let record = try_on(&machine.at(start, run), JOB, &mut |_| {}, &|| 0).expect("a run");
    record.jobs.into_iter().next().expect("one job")
}

fn latencies_ns(job: &JobRecord) -> [u64; 2] {
    let clat = job.directions.read.clat.as_ref().expect("clat is kept");
    [clat.summary.min(), clat.summary.max()]
}

#[track_caller]
fn near(got: f64, want: f64, part: f64) {
    assert!((got / want - 1.0).abs() < part, "{got}, not {want}");
}

#[expect(clippy::cast_precision_loss, reason = "thousands of ops")]
fn ops(job: &JobRecord) -> f64 {
    job.directions.read.ios as f64
}

#[test]
fn runs_differ_by_their_number_alone() {
    let noise = "between_runs_percent = 2";
    let rates: Vec<f64> = (0..200)
        .map(|run| ops(&job(noise, Nanos::from_secs(run % 7), run)).ln())
        .collect();
    let mean = rates.iter().sum::<f64>() / 200.0;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / 199.0;
    near(mean.exp(), 40_000.0, 0.005);
    // Standard error: 5 %.
    near(variance.sqrt(), 0.02, 0.15);
    let of = |noise: &str, start, run| latencies_ns(&job(noise, start, run));
    let fifth = of(noise, Nanos::ZERO, 5);
    assert_eq!(fifth, of(noise, Nanos::from_secs(9), 5));
    assert_ne!(fifth, of(noise, Nanos::ZERO, 6));
    assert_ne!(fifth, of(&format!("{noise}\nseed = 2"), Nanos::ZERO, 5));
}

#[test]
fn drift_goes_on_from_run_to_run() {
    let noise = "drift_percent_per_hour = 10";
    for (hours, want) in [
        (0, 40_000.0),
        (1, 40_000.0 / 1.1),
        (5, 40_000.0 / 1.1_f64.powi(5)),
    ] {
        near(
            ops(&job(noise, Nanos::from_secs(hours * 3_600), 0)),
            want,
            0.001,
        );
    }
    near(
        ops(&job(
            "drift_percent_per_hour = -50",
            Nanos::from_secs(3_600),
            0,
        )),
        80_000.0,
        0.001,
    );
}

#[test]
fn a_neighbour_slows_the_ops_while_it_is_there() {
    let noise = "neighbour = { every_s = 0.5, for_s = 0.1, times = 4 }";
    let job = job(noise, Nanos::ZERO, 0);
    let [least, most] = latencies_ns(&job);
    assert!((100_000..100_010).contains(&least), "{least}");
    assert!((400_000..400_010).contains(&most), "{most}");
    // 0.8 s at full speed, 0.2 s at a quarter of it.
    near(ops(&job), 40_000.0 * 0.85, 0.001);
}

#[test]
fn wander_moves_the_level_within_a_run() {
    let noise = "wander = { percent = 10, every_s = 0.01, correlation = 0.5 }";
    let [least, most] = latencies_ns(&job(noise, Nanos::ZERO, 0));
    // The extremes of a hundred steps, about 2.5 deviations either way.
    assert!((65_000..90_000).contains(&least), "{least}");
    assert!((112_000..150_000).contains(&most), "{most}");
}

#[test]
fn noise_covers_queues_layers_and_syncs() {
    let tables = "[device.queue]\nscheduler = \"mq-deadline\"\nqueue_depth = 32\n\
                  [[device.layer]]\nkind = \"delay\"\nread_us = 100\nwrite_us = 100\n";
    let plain = machine("").replace("[noise]\n", tables);
    let noise = "[noise]\nneighbour = { every_s = 1, for_s = 1, times = 2 }\n";
    let words = "--name=j --filename=/dev/d --rw=randrw --bs=4k --number_ios=500 --fsync=10 \
                 --ioengine=libaio --iodepth=4 --norandommap";
    let runtimes =
        [plain.clone(), format!("{plain}{noise}")].map(|machine| on(&machine, words).elapsed_ms);
    // Milliseconds, rounded down.
    assert!(runtimes[1] - 2 * runtimes[0] <= 1, "{runtimes:?}");
}

#[test]
fn noise_is_printed_as_an_assumption() {
    let text = include_str!("../../../../examples/machines/noisy.toml");
    let record = on(text, JOB);
    let noise = record.modelled.and_then(|machine| machine.noise);
    let want = "2 % between runs; drift 10 % per hour; wander 1 %, 90 % kept after 100.000 ms; \
                a neighbour once in 20.000 s for 1.000 s, 1.2 times slower; seed 1";
    assert_eq!(noise.as_deref(), Some(want));
}

#[track_caller]
fn check_refused(noise: &str, want: &str) {
    let error = MachineModel::parse("m.toml", &machine(noise)).expect_err("a mistake");
    let text = error.to_string();
    assert!(text.contains(want), "{text}");
}

#[test]
fn mistakes_are_told() {
    check_refused("", "it describes no noise");
    check_refused("between_runs_percent = 0", "it describes no noise");
    check_refused(
        "between_runs_percent = 200",
        "`between_runs_percent` must be",
    );
    check_refused(
        "drift_percent_per_hour = -100",
        "`drift_percent_per_hour` must be",
    );
    check_refused("drift_percent = 1", "unknown key `drift_percent`");
    check_refused("wander = { percent = 1, every_s = 1 }", "correlation");
    check_refused(
        "wander = { percent = 1, every_s = 1, correlation = 1 }",
        "correlation` must be",
    );
    check_refused(
        "neighbour = { every_s = 1, for_s = 2, times = 2 }",
        "a visit is longer than its period",
    );
    check_refused(
        "neighbour = { every_s = 1, for_s = 1, times = 0.5 }",
        "times` must be",
    );
}
