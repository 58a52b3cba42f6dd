//! A job that runs makes no heap allocation: 100,000 ops, every engine that has a loop of its own.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fathom_core::{Engine, FileIndex, Nanos, PerDirection, Step, StopRequest};
use fathom_engine::{AnyEngine, EngineConfig, EngineFile, Kick, built_in, start};
use fathom_sys::allocation_counter::{CountingAllocator, thread_allocations};
use fathom_sys::clock::Clock;
use fathom_workload::{
    Batching, BufferConfig, BufferFill, GroupTimeline, JobLog, LogChannel, LogConfig, Measure, Mix,
    Pace, Rate, RateProcess, Series, Worker, WorkerConfig, fixture, turn,
};

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

const OPS: u64 = 100_000;
const FILE_BYTES: u64 = 4 << 20;
/// A job starts a worker itself when no worker can: some allocations for the thread, and at most 16
/// threads. One per op would be 100,000.
const WORKER_ALLOCATIONS_MAX: u64 = 16 * 10;

fn job(depth: u32) -> WorkerConfig {
    let mix = Mix::ReadWrite { read: 90 };
    let plain = fixture::job(fixture::pattern(mix, true, 4096, FILE_BYTES));
    WorkerConfig {
        depth,
        batching: Batching {
            complete_max: depth,
            ..fixture::batching(depth)
        },
        bytes_per_pass: OPS * 4096,
        buffers: BufferConfig {
            fill: BufferFill::Random,
            scramble: true,
            ..plain.buffers
        },
        measure: Measure {
            slat_histogram: true,
            lat_histogram: true,
            bandwidth_sample: Nanos::from_millis(1),
            iops_sample: Nanos::from_millis(1),
            ..plain.measure
        },
        ..plain
    }
}

#[track_caller]
fn check(name: &str, config: WorkerConfig) {
    check_logged(name, config, None);
}

#[test]
fn a_job_with_workers_allocates_for_their_threads_alone() {
    for name in ["null", "psync", "libaio", "io_uring"] {
        check_with(name, job(16), None, Some(Kick::Batch));
    }
}

static CALLS: AtomicU32 = AtomicU32::new(0);

#[track_caller]
fn check_logged(name: &str, config: WorkerConfig, log: Option<JobLog>) {
    check_with(name, config, log, None);
}

#[track_caller]
fn check_with(name: &str, config: WorkerConfig, log: Option<JobLog>, offload: Option<Kick>) {
    // Tests run side by side: each call has a file of its own.
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let own = format!("fathom-alloc-{}-{call}-{name}", std::process::id());
    let path = std::env::temp_dir().join(own);
    let mut file = std::fs::File::create(&path).expect("a temporary file");
    file.write_all(&vec![7; usize::try_from(FILE_BYTES).expect("small")])
        .expect("4 MiB of room");
    let clock = Clock::calibrated();
    let engine = start(EngineConfig {
        depth: config.depth,
        buffer_bytes: 4096,
        files: vec![EngineFile {
            path: path.to_str().expect("a plain path").into(),
            read: true,
            write: true,
            ..EngineFile::default()
        }],
        offload,
        ..EngineConfig::new(built_in(name), clock)
    });
    let outcome = engine.map(|engine| count(engine, (config, log), clock));
    std::fs::remove_file(&path).expect("the temporary file");
    match outcome {
        Ok((ops, allocations)) => {
            assert_eq!(ops, OPS, "{name}");
            let most = if offload.is_some() {
                WORKER_ALLOCATIONS_MAX
            } else {
                0
            };
            assert!(
                allocations <= most,
                "{name}: {allocations} heap allocations while the job ran"
            );
        }
        Err(error) => skipped(&error.to_string()),
    }
}

/// Returns the ops completed and the allocations made meanwhile.
fn count(engine: AnyEngine, config: (WorkerConfig, Option<JobLog>), clock: Clock) -> (u64, u64) {
    match engine {
        AnyEngine::Null(engine) => drive(engine, config, clock),
        AnyEngine::Sync(engine) => drive(engine, config, clock),
        AnyEngine::Libaio(engine) => drive(engine, config, clock),
        AnyEngine::Uring(engine) => drive(engine, config, clock),
        AnyEngine::Passthrough(engine) => drive(engine, config, clock),
        AnyEngine::Offload(engine) => drive(*engine, config, clock),
        AnyEngine::Boxed(engine) => drive(engine, config, clock),
    }
}

fn drive<E: Engine>(
    mut engine: E,
    (config, log): (WorkerConfig, Option<JobLog>),
    clock: Clock,
) -> (u64, u64) {
    engine.open(FileIndex::new(0)).expect("the file is there");
    let mut worker = Worker::new(config, engine.capabilities(), clock.now()).expect("a worker");
    if let Some(log) = log {
        worker.log_to(log);
    }
    let stop = StopRequest::default();
    let before = thread_allocations();
    loop {
        match turn(&mut worker, &mut engine, &stop, clock.now()) {
            Step::Again | Step::Blocked => {}
            Step::Wait { min: 0, .. } => std::hint::spin_loop(),
            Step::Wait { min, until, .. } => engine.wait(min, until).expect("completions"),
            Step::Done => break,
        }
    }
    let allocations = thread_allocations() - before;
    let results = worker.into_results();
    (
        results.directions.read.ios + results.directions.write.ios,
        allocations,
    )
}

#[test]
fn null_allocates_nothing() {
    check("null", job(1));
    check("null", job(32));
}

#[test]
fn psync_allocates_nothing() {
    check("psync", job(1));
}

#[test]
fn libaio_allocates_nothing() {
    check("libaio", job(32));
}

#[test]
fn io_uring_allocates_nothing() {
    check("io_uring", job(32));
}

#[test]
fn timelines_allocate_nothing() {
    for ops in [None, Some(200_000)] {
        let mut config = job(4);
        // Half a second: several windows end.
        config.rate = PerDirection::all(ops.map(|ops| Rate {
            pace: Pace::Ops(ops),
            process: RateProcess::Linear,
        }));
        config.timeline = Some(Arc::new(GroupTimeline::new(&[&config])));
        check("null", config);
    }
}

#[test]
fn rates_allocate_nothing() {
    let mut config = job(32);
    config.rate = PerDirection::all(Some(Rate {
        pace: Pace::Ops(10_000_000),
        process: RateProcess::Poisson,
    }));
    check("null", config);
}

#[test]
fn logs_allocate_nothing() {
    let ms = Nanos::from_millis(1);
    let all = [
        Series::Bandwidth,
        Series::Iops,
        Series::Lat,
        Series::Clat,
        Series::Slat,
    ];
    let windows = all.map(|series| (series, ms)).to_vec();
    // Room for all, and room for next to nothing; single ops, and windows with histograms.
    for (chunks, windows, histograms) in [
        (400, Vec::new(), None),
        (3, Vec::new(), None),
        (400, windows, Some(ms)),
    ] {
        let config = LogConfig {
            used: PerDirection::new(true, true, false),
            ops: windows.is_empty(),
            lines: 5,
            windows,
            histograms,
            ..LogConfig::default()
        };
        let channel = Arc::new(LogChannel::new(chunks, 1024, 1));
        check_logged("null", job(32), Some(JobLog::new(config, channel)));
    }
}

/// Prints why an engine was not tried.
#[expect(clippy::print_stdout, reason = "a test that did not run says so")]
fn skipped(why: &str) {
    println!("skipped: {why}");
}
