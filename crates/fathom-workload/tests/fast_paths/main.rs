//! Ops take one of three paths through the loop. In jobs without a rule per op the fast two must
//! give the same ops at the same times, and the same results and logs, as the checked path; jobs
//! with such a rule must not take them.

#[path = "../common/mod.rs"]
mod common;
mod job;
mod model;

use std::sync::Arc;

use fathom_core::{Direction, Engine, Nanos, PerDirection, Step, StopRequest, Tick};
use fathom_stats::Windows;
use fathom_workload::{
    GroupTimeline, JobLog, LogChannel, LogConfig, LogItem, Results, Series, Think, WhenFull,
    Worker, turn,
};
use proptest::prelude::*;

use job::{Job, config, job};
use model::{Device, Model, Seen, device};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn fast_paths_match_checked(job in job(), device in device()) {
        let fast = run(&job, None, &device);
        // A pause after more ops than there are: a rule that looks at each op and never applies.
        let never = Think {
            time: Nanos::ZERO,
            spin: Nanos::ZERO,
            blocks: u32::MAX,
            count_issues: false,
            io_time: Nanos::ZERO,
            moves_schedule: false,
        };
        let checked = run(&job, Some(never), &device);
        prop_assert_eq!(fast.ops, checked.ops);
        prop_assert_eq!(fast.logged, checked.logged);
        prop_assert_eq!(format!("{:?}", fast.results), format!("{:?}", checked.results));
        prop_assert_eq!(fast.windows, checked.windows);
    }

    #[test]
    fn windows_add_up_to_the_results(job in job(), device in device()) {
        let ran = run(&job, None, &device);
        for direction in Direction::ALL {
            let results = &ran.results.directions[direction];
            let Some(windows) = &ran.windows[direction] else {
                prop_assert_eq!(results.ios, 0);
                continue;
            };
            let latency = results.resp.as_ref().unwrap_or(&results.clat);
            let total = windows.total();
            prop_assert_eq!((total.ios, total.bytes), (results.ios, results.bytes));
            let summary = &latency.summary;
            prop_assert_eq!((total.min_ns, total.max_ns), (summary.min(), summary.max()));
            let histogram = latency.histogram.clone().unwrap_or_default();
            prop_assert_eq!(windows.histogram(), histogram);
        }
    }

    #[test]
    fn clat_is_no_shorter_than_a_clock_read(job in job(), device in device()) {
        let ran = run(&job, None, &device);
        let read = job.clock_read.get();
        for direction in Direction::ALL {
            let results = &ran.results.directions[direction];
            let clat = &results.clat.summary;
            prop_assert!(clat.count() == 0 || clat.min() >= read, "{direction:?}: {clat:?}");
        }
        for item in ran.logged {
            if let LogItem::Op(op) = item {
                prop_assert!(op.clat >= read, "{op:?}");
            }
        }
    }

    #[test]
    fn clat_is_no_shorter_than_the_op(
        job in job(),
        device in device(),
        (latency, look_ns) in (1..10_000_u64, 1..20_000_u64),
    ) {
        let latencies = vec![latency];
        let ran = run(&job, None, &Device { latencies, look_ns, ..device });
        for direction in Direction::ALL {
            let clat = &ran.results.directions[direction].clat.summary;
            prop_assert!(clat.count() == 0 || clat.min() >= latency, "{direction:?}: {clat:?}");
        }
    }
}

/// Everything that a job did.
struct Ran {
    ops: Vec<Seen>,
    logged: Vec<LogItem>,
    results: Results,
    windows: PerDirection<Option<Windows>>,
}

fn run(job: &Job, think: Option<Think>, device: &Device) -> Ran {
    let mut engine = Model::new(device.clone(), job);
    let mut config = config(job, think);
    let timeline = Arc::new(GroupTimeline::new(&[&config]));
    config.timeline = Some(Arc::clone(&timeline));
    let mut worker =
        Worker::new(config, engine.capabilities(), Tick::ZERO).expect("it makes sense");
    let channel = Arc::new(LogChannel::new(0, 0, 1));
    worker.set_clock_read(job.clock_read);
    if job.logged {
        worker.log_to(JobLog::new(log_config(), Arc::clone(&channel)));
    }
    let stop = StopRequest::default();
    for _ in 0..1_000_000 {
        let now = Tick::new(engine.now);
        match turn(&mut worker, &mut engine, &stop, now) {
            Step::Again => {}
            Step::Wait { min, until, .. } => engine.pass_time(min, until),
            Step::Blocked => panic!("this engine never blocks"),
            Step::Done => {
                let results = worker.into_results();
                let batches = std::iter::from_fn(|| channel.take());
                let items = batches.flat_map(|batch| batch.items().collect::<Vec<_>>());
                return Ran {
                    ops: engine.seen,
                    logged: items.collect(),
                    results,
                    windows: PerDirection::from_fn(|direction| timeline.windows(direction)),
                };
            }
        }
    }
    panic!("the job does not end");
}

/// Returns a log of every op with its offset and lag, and averages over windows.
fn log_config() -> LogConfig {
    LogConfig {
        used: PerDirection::new(true, true, false),
        ops: true,
        lines: 1,
        offsets: true,
        lags: true,
        windows: vec![(Series::Bandwidth, Nanos::from_millis(10))],
        when_full: WhenFull::Grow,
        ..LogConfig::default()
    }
}
