//! Ops take one of two ways through the loop: many at a time, or each with a look at all rules.
//! Where no rule speaks up, both must give the same ops at the same times, and the same results.

mod common;

use std::collections::VecDeque;

use fathom_core::{
    Capabilities, Completion, Engine, EngineError, FileIndex, Nanos, Op, PerDirection, Slot, Step,
    Submitted, Tick,
};
use fathom_workload::{
    Batching, Control, Distribution, MapMode, Measure, Mix, Pace, Rate, RateProcess, SizeChoice,
    Think, Tolerate, Worker, WorkerConfig, turn,
};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn both_ways_lead_to_the_same_place(job in job(), device in device()) {
        let quick = run(&job, None, &device);
        // A pause after more ops than there are: a rule that looks at each op and says nothing.
        let never = Think {
            time: Nanos::ZERO,
            spin: Nanos::ZERO,
            blocks: u32::MAX,
            count_issues: false,
            io_time: Nanos::ZERO,
            moves_schedule: false,
        };
        let careful = run(&job, Some(never), &device);
        prop_assert_eq!(quick.0, careful.0);
        prop_assert_eq!(quick.1, careful.1);
    }
}

#[derive(Clone, Debug)]
struct Job {
    depth: u32,
    submit: u32,
    complete_min: u32,
    complete_max: u32,
    low: u32,
    mix: Mix,
    random: bool,
    distribution: Distribution,
    map: MapMode,
    sizes: SizeChoice,
    ops: u64,
    loops: u32,
    runtime_ns: Option<u64>,
    ramp_ns: u64,
    rate: Option<Rate>,
    slat: bool,
}

fn job() -> impl Strategy<Value = Job> {
    let batching = (1..9_u32, 1..9_u32, 0..9_u32, 1..9_u32, 0..9_u32);
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
    let pattern = (mix, any::<bool>(), distribution(), map, sizes);
    let pace = prop_oneof![
        (1_000..3_000_000_u64).prop_map(Pace::Ops),
        (4_096_000..10_000_000_000_u64).prop_map(Pace::Bytes)
    ];
    let rate = prop::option::of((pace, any::<bool>()).prop_map(|(pace, poisson)| Rate {
        pace,
        process: match poisson {
            true => RateProcess::Poisson,
            false => RateProcess::Linear,
        },
    }));
    let length = (
        1..300_u64,
        1..3_u32,
        prop::option::of(1..2_000_000_u64),
        prop_oneof![Just(0), 1..500_000_u64],
    );
    (batching, pattern, length, rate, any::<bool>()).prop_map(
        |(batching, pattern, length, rate, slat)| {
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
                rate,
                slat,
            }
        },
    )
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

fn config(job: &Job, think: Option<Think>) -> WorkerConfig {
    let mut pattern = common::config(job.mix, job.random, 4096, 1 << 20);
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
        runtime: job.runtime_ns.map(Nanos::new),
        time_based: job.runtime_ns.is_some() && job.loops == 1,
        ramp: Nanos::new(job.ramp_ns),
        rate: PerDirection::all(job.rate),
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

/// How long ops take, in turn, and which of them go wrong.
#[derive(Clone, Debug)]
struct Device {
    latencies: Vec<u64>,
    submit_ns: u64,
    short_every: u64,
    fail_every: u64,
}

fn device() -> impl Strategy<Value = Device> {
    let latency = prop_oneof![
        8 => 1..30_000_u64,
        1 => Just(0_u64),
        1 => Just(5_000_000_000_u64),
    ];
    (
        prop::collection::vec(latency, 1..20),
        1..2_000_u64,
        prop_oneof![Just(u64::MAX), 2..40_u64],
        prop_oneof![Just(u64::MAX), 2..40_u64],
    )
        .prop_map(|(latencies, submit_ns, short_every, fail_every)| Device {
            latencies,
            submit_ns,
            short_every,
            fail_every,
        })
}

/// An op as its engine saw it: when it was handed over, and what it was; in which slot is all one.
type Seen = (u64, u64, u32, u32, Option<u64>);

/// All ops of a job, and all it measured.
fn run(job: &Job, think: Option<Think>, device: &Device) -> (Vec<Seen>, String) {
    let mut engine = Model {
        device: device.clone(),
        now: 0,
        prepared: Vec::new(),
        in_flight: VecDeque::new(),
        seen: Vec::new(),
    };
    let config = config(job, think);
    let mut worker =
        Worker::new(config, engine.capabilities(), Tick::ZERO).expect("it makes sense");
    let control = Control::default();
    for _ in 0..1_000_000 {
        let now = Tick::new(engine.now);
        match turn(&mut worker, &mut engine, &control, now) {
            Step::Again => {}
            Step::Wait { min, until, .. } => engine.pass_time(min, until),
            Step::Blocked => panic!("this engine never blocks"),
            Step::Done => return (engine.seen, format!("{:?}", worker.into_results())),
        }
    }
    panic!("the job does not end");
}

struct Model {
    device: Device,
    now: u64,
    prepared: Vec<Op>,
    /// In the order of their ends.
    in_flight: VecDeque<(u64, Completion)>,
    seen: Vec<Seen>,
}

impl Model {
    /// Goes on to when `min` ops are done, or to `until`.
    fn pass_time(&mut self, min: u32, until: Option<Tick>) {
        let done = (min as usize)
            .checked_sub(1)
            .and_then(|last| self.in_flight.get(last));
        let moments = [done.map(|(end, _)| *end), until.map(Tick::get)];
        let next = moments
            .into_iter()
            .flatten()
            .min()
            .expect("something to wait for");
        assert!(next > self.now, "a wait for what is there already");
        self.now = next;
    }

    fn launch(&mut self, op: Op) {
        let number = self.seen.len();
        let device = &self.device;
        let end = self.now + device.latencies[number % device.latencies.len()];
        let number = number as u64 + 1;
        let result = if number.is_multiple_of(device.fail_every) {
            -5
        } else if number.is_multiple_of(device.short_every) {
            op.length.cast_signed() / 2
        } else {
            op.length.cast_signed()
        };
        let completion = Completion {
            slot: op.slot,
            result,
        };
        let taken = |(_, other): &(u64, Completion)| other.slot == op.slot;
        assert!(
            !self.in_flight.iter().any(taken),
            "{op:?}: its slot is in use"
        );
        let place = self.in_flight.partition_point(|(other, _)| *other <= end);
        self.in_flight.insert(place, (end, completion));
        // The rest of a short transfer need not tell its number.
        let whole = op.buffer_offset == 0;
        let seen = (
            self.now,
            op.offset,
            op.length,
            op.buffer_offset,
            whole.then_some(op.sequence),
        );
        self.seen.push(seen);
    }
}

impl Engine for Model {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "model",
            synchronous: false,
            moves_data: false,
            queued_sync: true,
            queued_trim: true,
        }
    }

    fn open(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        Ok(())
    }

    fn close(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        Ok(())
    }

    fn invalidate(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        Ok(())
    }

    fn buffer(&mut self, _slot: Slot) -> &mut [u8] {
        &mut []
    }

    fn prepare(&mut self, op: &Op) {
        self.prepared.push(*op);
    }

    fn submit(&mut self, _want: u32) -> Submitted {
        self.now += self.device.submit_ns;
        for op in std::mem::take(&mut self.prepared) {
            self.launch(op);
        }
        let now = Tick::new(self.now);
        Submitted::Issued { issue: now, now }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        let ready = self.in_flight.partition_point(|(end, _)| *end <= self.now);
        let count = ready.min(out.len());
        for (place, (_, completion)) in out.iter_mut().zip(self.in_flight.drain(..count)) {
            *place = completion;
        }
        count
    }

    fn wait(&mut self, _min: u32, _until: Option<Tick>) -> Result<(), EngineError> {
        Ok(())
    }
}
