//! Measuring threads, and the caller's thread that watches them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, ScopedJoinHandle, scope};

use fathom_core::{
    Direction, Engine, EngineError, EngineStep, EngineValues, Errno, FileIndex, Nanos, stream_seed,
};
use fathom_engine::{
    AnyEngine, EngineConfig, EngineFile, Libaio, Passthrough, SyncEngine, Uring, built_in, options,
    start,
};
use fathom_stats::Latency;
use fathom_sys::clock::{Clock, sleep_until};
use fathom_sys::thread::ScheduleTimes;
use fathom_sys::{signals, thread};

use crate::contention::{ProcessorWatch, ThreadTimes};
use crate::limits::explain;
use crate::spin::{LoopError, OpFailure, ProgressCell, Spinner, Task};
use crate::targets::CheckedTarget;
use crate::{Interval, PeakConfig, PeakError, PeakOutcome};

/// Starts the threads, watches them and collects their results.
pub(crate) fn run(
    config: &PeakConfig,
    targets: &[CheckedTarget],
    tell: &mut dyn FnMut(&Interval),
    stops: &dyn Fn() -> u32,
) -> Result<PeakOutcome, PeakError> {
    let shared = ThreadsState {
        config,
        targets,
        start: OnceLock::new(),
        stop: AtomicBool::new(false),
        clock: Clock::calibrated(),
    };
    let cells: Vec<ProgressCell> = (0..config.threads)
        .map(|_| ProgressCell::default())
        .collect();
    scope(|scope| {
        let (sender, receiver) = channel();
        let mut handles = Vec::new();
        for (number, cell) in (0..).zip(&cells) {
            let (shared, sender) = (&shared, sender.clone());
            let builder = Builder::new().name(format!("peak {number}"));
            let spawned =
                builder.spawn_scoped(scope, move || measure_thread(number, shared, cell, &sender));
            match spawned {
                Ok(handle) => handles.push(handle),
                Err(source) => {
                    shared.stop.store(true, Ordering::Relaxed);
                    shared.release();
                    return Err(PeakError::Thread { source });
                }
            }
        }
        drop(sender);
        // Each thread reports once before the barrier: its features, or `None` if it failed.
        let ready: Vec<Option<Vec<String>>> = receiver.iter().take(cells.len()).collect();
        let mut outcome = PeakOutcome::default();
        let processors = ProcessorWatch::start(config, shared.clock.now());
        if ready.iter().all(Option::is_some) {
            outcome.features = ready.into_iter().flatten().next().unwrap_or_default();
            shared.release();
            watch(&shared, &cells, &mut outcome, tell, stops, &|| {
                handles.iter().any(ScopedJoinHandle::is_finished)
            });
        }
        shared.stop.store(true, Ordering::Relaxed);
        shared.release();
        let (mut outcome, times) = gather(handles, config, outcome)?;
        outcome.contention = processors.finish(shared.clock.now(), &times);
        Ok(outcome)
    })
}

/// State shared by all threads.
struct ThreadsState<'a> {
    config: &'a PeakConfig,
    targets: &'a [CheckedTarget],
    /// Set once every engine is ready; threads wait for it.
    start: OnceLock<()>,
    stop: AtomicBool,
    clock: Clock,
}

impl ThreadsState<'_> {
    /// Lets the threads start; no effect if they have started.
    fn release(&self) {
        self.start.get_or_init(|| ());
    }
}

/// Records an interval per second, until the time is over, a stop is requested or a thread ends.
fn watch(
    shared: &ThreadsState<'_>,
    cells: &[ProgressCell],
    outcome: &mut PeakOutcome,
    tell: &mut dyn FnMut(&Interval),
    stops: &dyn Fn() -> u32,
    failed: &dyn Fn() -> bool,
) {
    let clock = shared.clock;
    let begun = clock.now();
    let (mut seen, mut since) = ((0, 0), begun);
    let end = begun + shared.config.duration;
    while since < end {
        let until = end.min(since + Nanos::from_secs(1));
        while clock.now() < until && stops() == 0 && !failed() {
            sleep_until(&clock, until.min(clock.now() + STOP_CHECK));
        }
        let (ops, calls) = count(cells);
        let now = clock.now();
        let interval = Interval {
            ops: ops - seen.0,
            calls: calls - seen.1,
            span: now - since,
        };
        (seen, since) = ((ops, calls), now);
        outcome.intervals.push(interval);
        outcome.total = Interval {
            ops,
            calls,
            span: now - begun,
        };
        if failed() {
            return;
        }
        tell(&interval);
        if stops() > 0 {
            outcome.interrupted = true;
            return;
        }
    }
}

/// Sums the ops and system calls of all threads.
fn count(cells: &[ProgressCell]) -> (u64, u64) {
    // Relaxed: counts that guard no other memory.
    let both = cells.iter().map(|cell| {
        let ops = cell.ops.load(Ordering::Relaxed);
        (ops, cell.calls.load(Ordering::Relaxed))
    });
    both.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// Result of a thread: its latencies, and its times if the kernel counts them.
type ThreadResult = (Latency, Option<ScheduleTimes>);

/// Merges the threads' latencies and collects their times, or returns the first failure.
fn gather(
    handles: Vec<ScopedJoinHandle<'_, Result<ThreadResult, PeakError>>>,
    config: &PeakConfig,
    mut outcome: PeakOutcome,
) -> Result<(PeakOutcome, Vec<ScheduleTimes>), PeakError> {
    let mut all = Latency::new(true);
    let mut times = Vec::new();
    let mut failure = None;
    for handle in handles {
        match handle.join() {
            Ok(Ok((latency, own))) => {
                all.merge(&latency);
                times.extend(own);
            }
            Ok(Err(problem)) => failure = failure.or(Some(problem)),
            Err(_panic) => {
                failure = failure.or(Some(PeakError::Panicked));
            }
        }
    }
    if let Some(problem) = failure {
        return Err(problem);
    }
    outcome.latency = config.latency.then_some(all);
    Ok((outcome, times))
}

/// Runs one measuring thread.
fn measure_thread(
    number: u32,
    shared: &ThreadsState<'_>,
    cell: &ProgressCell,
    sender: &Sender<Option<Vec<String>>>,
) -> Result<ThreadResult, PeakError> {
    let config = shared.config;
    let targets = share(shared.targets, number, config.threads);
    let ready = prepare_thread(number, config).and_then(|()| {
        let mut engine = start(engine_config(config, &targets, shared.clock))?;
        for file in (0..targets.len()).filter_map(|file| u32::try_from(file).ok()) {
            engine.as_dyn().open(FileIndex::new(file))?;
        }
        Ok(engine)
    });
    let told = ready.as_ref().ok().map(AnyEngine::features);
    // The watcher receives until every thread has reported.
    let _heard = sender.send(told);
    let engine = ready.map_err(|error| explain(error, config))?;
    let task = task(number, config, &targets);
    shared.start.wait();
    match engine {
        AnyEngine::Uring(engine) => spin(engine, Uring::system_calls, task, shared, cell),
        AnyEngine::Passthrough(engine) => {
            spin(engine, Passthrough::system_calls, task, shared, cell)
        }
        AnyEngine::Libaio(engine) => spin(engine, Libaio::system_calls, task, shared, cell),
        AnyEngine::Sync(engine) => spin(engine, SyncEngine::system_calls, task, shared, cell),
        AnyEngine::Null(_) | AnyEngine::Offload(_) | AnyEngine::Boxed(_) => {
            unreachable!("not one of `PeakEngine`")
        }
    }
    .map_err(|ended| match ended {
        LoopError::Op(failure) => op_failed(failure, &targets, config),
        LoopError::Engine(error) => explain(error, config),
    })
}

/// Blocks signals in this thread and pins it to its CPU.
fn prepare_thread(number: u32, config: &PeakConfig) -> Result<(), EngineError> {
    let failed = |step, error: std::io::Error| EngineError {
        step,
        target: format!("thread {number}"),
        errno: Errno::of(&error),
        hint: String::new(),
    };
    // The watcher handles signals.
    signals::block_in_this_thread().map_err(|error| failed(EngineStep::Call("sigmask"), error))?;
    config.cpu.map_or(Ok(()), |first| {
        thread::set_allowed_cpus(&[first + number])
            .map_err(|error| failed(EngineStep::Option("--cpu"), error))
    })
}

fn spin<E: Engine>(
    mut engine: E,
    calls: impl Fn(&E) -> u64,
    task: Task,
    shared: &ThreadsState<'_>,
    cell: &ProgressCell,
) -> Result<ThreadResult, LoopError> {
    let mut spinner = Spinner::new(task);
    let times = ThreadTimes::start();
    let (stop, now) = (&shared.stop, shared.clock.now());
    if shared.config.latency {
        spinner.run::<E, true>(&mut engine, calls, stop, cell, now)?;
    } else {
        let origin = Clock::stopped().now();
        spinner.run::<E, false>(&mut engine, calls, stop, cell, origin)?;
    }
    let times = times.finish();
    Ok((spinner.into_latency(), times))
}

/// Returns the targets of one thread. Every target gets a thread, every thread a target.
fn share(targets: &[CheckedTarget], number: u32, threads: u32) -> Vec<CheckedTarget> {
    let (number, threads) = (number as usize, threads as usize);
    if targets.is_empty() {
        return Vec::new();
    }
    if targets.len() <= threads {
        return vec![targets[number % targets.len()].clone()];
    }
    targets
        .iter()
        .skip(number)
        .step_by(threads)
        .cloned()
        .collect()
}

fn engine_config(config: &PeakConfig, targets: &[CheckedTarget], clock: Clock) -> EngineConfig {
    let mut files: Vec<EngineFile> = targets
        .iter()
        .map(|target| EngineFile {
            path: target.path.to_string_lossy().into_owned(),
            read: !config.write,
            write: config.write,
            create: false,
            recreate: false,
            trims_reset_zones: false,
            bytes: 0,
            random: !config.sequential,
        })
        .collect();
    if config.nops {
        // Every op names file 0, but no-ops never open it.
        files.push(EngineFile::default());
    }
    let clock = match config.latency {
        true => clock,
        false => Clock::stopped(),
    };
    EngineConfig {
        depth: config.depth,
        buffer_bytes: config.block_bytes,
        files,
        direct: !config.buffered,
        options: options(config),
        keep_access_time: true,
        ..EngineConfig::new(built_in(config.engine.name()), clock)
    }
}

fn options(config: &PeakConfig) -> EngineValues {
    EngineValues::default()
        .with(
            &options::FIXEDBUFS,
            (config.fixed_buffers && !config.nops).into(),
        )
        .with(
            &options::REGISTERFILES,
            (config.fixed_files && !config.nops).into(),
        )
        .with(&options::HIPRI, config.polled.into())
        .with(&options::NOPS, config.nops.into())
        .with(&options::PLAIN_DESCRIPTOR, (!config.register_ring).into())
}

fn task(number: u32, config: &PeakConfig, targets: &[CheckedTarget]) -> Task {
    let mut blocks: Vec<u64> = targets.iter().map(|target| target.blocks).collect();
    if blocks.is_empty() {
        blocks.push(1);
    }
    Task {
        depth: config.depth,
        submit: config.submit,
        complete: config.complete,
        block_bytes: config.block_bytes,
        expected: if config.nops {
            0
        } else {
            config.block_bytes.cast_signed()
        },
        direction: if config.write {
            Direction::Write
        } else {
            Direction::Read
        },
        // A no-op has no offset, so none is drawn.
        sequential: config.sequential || config.nops,
        blocks,
        seed: stream_seed(SEED, u64::from(number)),
    }
}

fn op_failed(failure: OpFailure, targets: &[CheckedTarget], config: &PeakConfig) -> PeakError {
    let target = targets.get(failure.file.index()).map_or_else(
        || "no-op".into(),
        |target| target.path.display().to_string(),
    );
    let verb = if config.write { "write" } else { "read" };
    if let Ok(moved_bytes) = u32::try_from(failure.result) {
        return PeakError::Short {
            verb,
            target,
            moved_bytes,
            block_bytes: config.block_bytes,
        };
    }
    let errno = Errno::try_from(-failure.result);
    PeakError::Op {
        verb,
        target,
        hint: match errno {
            Ok(Errno::EOPNOTSUPP) if config.polled => {
                "the device has no polled queues: leave out --polled, or give its driver some \
                 (nvme: module parameter poll_queues=N)"
            }
            Ok(Errno::EINVAL) if !config.buffered => {
                "direct I/O wants whole logical blocks: raise --block, or add --buffered"
            }
            _ => "",
        },
        source: std::io::Error::from_raw_os_error(-failure.result),
    }
}

/// Fixed, so that the order of blocks is the same in every measurement.
const SEED: u64 = 0x0066_6174_686f_6d00;

/// Interval between checks for failed threads and stop requests.
const STOP_CHECK: Nanos = Nanos::from_millis(100);
