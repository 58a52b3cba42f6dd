//! Random jobs.

use fathom_core::{Nanos, PerDirection};
use fathom_workload::{
    Batching, CHECKSUMS, Distribution, MapMode, Measure, Mix, Pace, Rate, RateProcess, SizeChoice,
    Think, Tolerate, VerifyConfig, VerifyMethod, WorkerConfig,
};
use proptest::prelude::*;

use crate::common;

#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) depth: u32,
    pub(crate) submit: u32,
    pub(crate) complete_min: u32,
    pub(crate) complete_max: u32,
    pub(crate) low: u32,
    pub(crate) mix: Mix,
    pub(crate) random: bool,
    pub(crate) distribution: Distribution,
    pub(crate) map: MapMode,
    pub(crate) sizes: SizeChoice,
    pub(crate) ops: u64,
    pub(crate) loops: u32,
    pub(crate) runtime_ns: Option<u64>,
    pub(crate) ramp_ns: u64,
    /// Rate of reads and of writes.
    pub(crate) rates: [Option<Rate>; 2],
    pub(crate) files: u64,
    pub(crate) logged: bool,
    pub(crate) verify: bool,
    pub(crate) slat: bool,
    /// Time of a clock read; many ops of the device take less.
    pub(crate) clock_read: Nanos,
}

pub(crate) fn job() -> impl Strategy<Value = Job> {
    let batching = (1..9_u32, 1..9_u32, 0..9_u32, 1..9_u32, 0..9_u32);
    let length = (
        1..300_u64,
        1..3_u32,
        prop::option::of(1..2_000_000_u64),
        prop_oneof![Just(0), 1..500_000_u64],
    );
    let switches = (
        any::<bool>(),
        any::<bool>(),
        prop::bool::weighted(0.2),
        1..4_u64,
        prop_oneof![Just(0), 1..60_u64],
    );
    (batching, pattern(), length, rates(), switches).prop_map(
        |(batching, pattern, length, rates, switches)| {
            let (slat, logged, verify, files, clock_read) = switches;
            let (depth, submit, complete_min, complete_max, low) = batching;
            let (mix, random, distribution, map, sizes) = pattern;
            let (ops, loops, runtime_ns, ramp_ns) = length;
            Job {
                depth,
                // Half of the jobs go one by one, as by default.
                submit: if submit < 5 { 1 } else { submit.min(depth) },
                complete_min: complete_min.min(depth),
                complete_max: if submit < 5 {
                    1
                } else {
                    complete_max.min(depth)
                },
                low: if submit < 5 { depth } else { low.min(depth) },
                mix,
                random,
                distribution,
                map,
                sizes,
                ops,
                loops,
                runtime_ns,
                ramp_ns,
                rates,
                slat,
                logged,
                verify,
                files,
                clock_read: Nanos::new(clock_read),
            }
        },
    )
}

/// Generates mix, order, distribution, map and sizes.
fn pattern() -> impl Strategy<Value = (Mix, bool, Distribution, MapMode, SizeChoice)> {
    let mix = prop_oneof![
        Just(Mix::Read),
        Just(Mix::Write),
        Just(Mix::ReadWrite { read: 70 })
    ];
    let map = prop_oneof![Just(MapMode::On), Just(MapMode::Off)];
    let sizes = prop_oneof![
        Just(SizeChoice::Fixed(4096)),
        Just(SizeChoice::Range {
            min: 4096,
            max: 16384
        })
    ];
    (mix, any::<bool>(), distribution(), map, sizes)
}

/// Generates rates of neither direction, of reads alone, or of both, which then compete.
fn rates() -> impl Strategy<Value = [Option<Rate>; 2]> {
    let pace = prop_oneof![
        (1_000..3_000_000_u64).prop_map(Pace::Ops),
        (4_096_000..10_000_000_000_u64).prop_map(Pace::Bytes)
    ];
    let rate = (pace, any::<bool>()).prop_map(|(pace, poisson)| Rate {
        pace,
        process: match poisson {
            true => RateProcess::Poisson,
            false => RateProcess::Linear,
        },
    });
    prop_oneof![
        Just([None, None]),
        rate.clone().prop_map(|rate| [Some(rate), None]),
        (rate.clone(), rate).prop_map(|(read, write)| [Some(read), Some(write)]),
    ]
}

fn distribution() -> impl Strategy<Value = Distribution> {
    prop_oneof![
        Just(Distribution::Uniform),
        Just(Distribution::Zipf {
            theta: 1.1,
            center: None
        }),
        Just(Distribution::Pareto {
            h: 0.2,
            center: Some(0.3)
        }),
    ]
}

pub(crate) fn config(job: &Job, think: Option<Think>) -> WorkerConfig {
    let mut pattern = common::config(job.mix, job.random, 4096, 1 << 20);
    pattern.files =
        vec![common::file(0, 1 << 20); usize::try_from(job.files).expect("a small number")];
    pattern.sizes = PerDirection::all(job.sizes.clone());
    pattern.align = PerDirection::all(4096);
    pattern.distribution = job.distribution;
    pattern.map = job.map;
    let measure = Measure {
        slat: job.slat,
        ..common::job(pattern.clone()).measure
    };
    WorkerConfig {
        depth: job.depth,
        batching: Batching {
            submit: job.submit,
            complete_min: job.complete_min,
            complete_max: job.complete_max,
            low: job.low,
        },
        bytes_per_pass: job.ops * 4096,
        loops: job.loops,
        bytes_in_all: None,
        runtime: job.runtime_ns.map(Nanos::new),
        time_based: job.runtime_ns.is_some() && job.loops == 1,
        ramp: Nanos::new(job.ramp_ns),
        rate: PerDirection::new(job.rates[0], job.rates[1], None),
        verify: job
            .verify
            .then(|| VerifyConfig::new(VerifyMethod::Checksum(&CHECKSUMS[0]))),
        think,
        tolerate: Tolerate {
            read: true,
            write: true,
            ..Tolerate::default()
        },
        measure,
        ..common::job(pattern)
    }
}
