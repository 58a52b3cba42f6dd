//! Thread driver: runs one job on one thread, with the real clock and a real engine.
//!
//! ```text
//! settings → engine → open files → create worker → start barrier → turn … wait … turn → close
//! └────────────── not measured ─────────────────┘                 └── measured ──┘   → Outcome
//! ```
//!
//! The driver makes no decisions about ops: the worker's state machine does, and the driver only
//! waits and passes it the time. Virtual time therefore shares the state machine and replaces this
//! file.
//!
//! Cost per turn beyond worker and engine: one clock read, one relaxed load for interim reports,
//! and every 100 ms a few relaxed stores to publish progress; no lock, no allocation. The loop is
//! compiled once per fast engine, which saves a `dyn` call per submit and reap; offload and rarer
//! engines share one loop over `Box<dyn Engine>`.
//!
//! Limit: one thread per job. Several jobs on one thread would not do: a blocking system call of
//! one would add to the latencies of the others.

mod start;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use fathom_core::{Engine, Errno, FileIndex, Nanos, Step, StopRequest, Storage, Tick};
use fathom_engine::{AnyEngine, EngineConfig, SharedStats, start_with_stats};
use fathom_record::Warning;
use fathom_setup::JobState;
use fathom_setup::outcome::{JobFailure, JobOutcome};
use fathom_setup::replay::ReplayPlan;
use fathom_setup::translate::EarlyEnd;
use fathom_sys::clock::{Clock, sleep_until};
use fathom_sys::thread;
use fathom_workload::{Checker, JobLog, RecordingSink, Results, Worker, WorkerConfig, turn};

use self::start::{SharedStart, await_peer, check_files, open_files, pass_barrier, worker_of};
use crate::affinity::{self, ThreadSettings};
use crate::agreed_start::AgreedStart;
use crate::hooks::Hooks;
use crate::interim::InterimResults;
use crate::live::{LiveLatencies, SeenCounts, SharedCounts};
use crate::mismatches::VerifiedFiles;
use crate::offload;
use crate::pacing::{LOOK_AROUND, Pacer};
use crate::progress::ProgressCell;
use crate::recording::{Recording, RecordingWriter};
use crate::stalls::ProcessorWaits;
use crate::start_barrier::StartBarrier;
use crate::thread_watch::ThreadWatch;
use crate::tracing_engine::{Say, Trace};
use crate::verify_threads::VerifyThreads;

/// Everything that one job's thread needs, moved to the thread when it starts.
pub(crate) struct JobSpec {
    /// Configuration of the worker.
    pub(crate) worker: WorkerConfig,
    /// Configuration of the engine.
    pub(crate) engine: EngineConfig,
    /// Settings of the thread.
    pub(crate) thread: ThreadSettings,
    /// Number of files to open.
    pub(crate) files: u32,
    /// I/O log, if the job has one.
    pub(crate) log: Option<JobLog>,
    /// Commands before and after the job.
    pub(crate) hooks: Hooks,
    /// Names for the mismatches of a job that verifies.
    pub(crate) verified: VerifiedFiles,
    /// Log to replay.
    pub(crate) replay: Option<Arc<ReplayPlan>>,
    /// Log in which to record ops.
    pub(crate) recording: Option<Recording>,
    /// Threads that check what the job reads.
    pub(crate) verify_threads: VerifyThreads,
    /// `--debug` output to produce.
    pub(crate) trace: Trace,
    /// Reason to end before the first op.
    pub(crate) early_end: Option<EarlyEnd>,
    /// Observe the use of its processors.
    pub(crate) watches_processors: bool,
}

/// State shared by the threads of a run.
pub(crate) struct RunState {
    /// Clock of the run.
    pub(crate) clock: Clock,
    /// Start of the first wave, from which `startdelay` counts.
    pub(crate) origin: OnceLock<Tick>,
    /// Latencies for views of the run, if requested.
    pub(crate) live: Option<LiveLatencies>,
    /// Chunks of `--debug` output that the watcher has not received yet.
    pub(crate) unheard: Arc<AtomicUsize>,
    /// Each job can have a processor to itself and may spin until its ops are due.
    pub(crate) wakes_early: bool,
    /// Number of jobs on this host that come before those of the run: of ranks with lower numbers.
    pub(crate) jobs_before: usize,
    /// Agreed start of the first wave.
    pub(crate) agreed: Option<AgreedStart>,
    /// Interval at which the results so far are to be kept.
    pub(crate) keep_every: Option<Nanos>,
}

impl RunState {
    /// Creates the state of a run in which no job has started.
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            origin: OnceLock::new(),
            live: None,
            unheard: Arc::default(),
            wakes_early: false,
            jobs_before: 0,
            agreed: None,
            keep_every: None,
        }
    }
}

/// Connections between a job's thread and the watcher.
pub(crate) struct JobHandles<'a> {
    /// State shared with the other threads.
    pub(crate) shared: &'a RunState,
    /// Number of the job in the run, from 0.
    pub(crate) index: usize,
    /// Requests of the watcher, such as to stop.
    pub(crate) stop: &'a StopRequest,
    /// Start barrier of the wave.
    pub(crate) barrier: &'a StartBarrier,
    /// Progress that the thread publishes.
    pub(crate) cell: &'a ProgressCell,
    /// Latencies for views of the run, if requested.
    pub(crate) live: Option<&'a SharedCounts>,
    /// Callback, invoked once before waiting at the start barrier.
    pub(crate) ready: &'a dyn Fn(),
    /// Sink of `--debug` output.
    pub(crate) say: &'a Say,
}

/// Runs one job on the calling thread and returns its outcome. Never panics: a panic of the engine
/// or worker becomes the job's failure.
pub(crate) fn run_job(spec: JobSpec, handles: &JobHandles<'_>) -> JobOutcome {
    let cell = handles.cell;
    cell.set(JobState::SettingUp);
    let mut outcome = JobOutcome {
        thread_id: thread::id(),
        ..JobOutcome::default()
    };
    let trace = spec.trace;
    trace.begun(outcome.thread_id, handles.say);
    let body = AssertUnwindSafe(|| {
        match spec.early_end {
            Some(EarlyEnd::NoFiles) => return Ok(()),
            Some(EarlyEnd::Failure(failure)) => return Err(failure),
            None => {}
        }
        // Before the thread takes its settings: the writer shall not share CPUs, user and control
        // group of the job.
        let recording = spec.recording.map(Recording::start).transpose()?;
        // If this ends early, the sink is dropped first, for which the writer waits.
        let (writer, sink) = recording.unzip();
        let _held = affinity::apply(&spec.thread)?;
        let info = spec.engine.engine.info;
        let repeated = spec.engine.repeated.clone();
        check_files(&spec.engine)?;
        let (engine, offload) = start_with_stats(EngineConfig {
            stop: handles.stop.clone(),
            ..spec.engine
        })?;
        outcome.features = engine.features();
        let context = JobContext {
            handles,
            files: spec.files,
            hooks: &spec.hooks,
            verified: &spec.verified,
            offload: offload.clone(),
            kernel_threads: info.kernel_threads,
            has_peer: info.storage == Storage::Peer,
            watches_processors: spec.watches_processors,
        };
        let engine = trace.around(engine, outcome.thread_id, handles.say);
        let work = Work {
            config: spec.worker,
            log: spec.log,
            replay: spec.replay,
            sink,
            checker: spec.verify_threads.start()?,
        };
        let ended = dispatch(engine, work, &context, &mut outcome);
        // The engine has been dropped, so its offload workers have ended.
        outcome.repeated_requests = repeated.get();
        let repetitions = repetitions(outcome.repeated_requests, spec.hooks.job());
        outcome.warnings.extend(repetitions);
        if let Some(stats) = offload {
            offload::add_final_stats(&stats.borrow(), spec.hooks.job(), &mut outcome);
        }
        // And its worker, if there was one, has passed on the last ops.
        let writer = writer.filter(|_| outcome.results.is_some());
        let recorded = writer.map_or(Ok(()), RecordingWriter::finish);
        ended.and(recorded)
    });
    let ended = catch_unwind(body).unwrap_or_else(|panic| Err(panicked(&*panic)));
    outcome.failure = ended.err();
    trace.ended(outcome.thread_id, handles.say);
    cell.set(if outcome.has_failed() {
        JobState::Failed
    } else {
        JobState::Ended
    });
    outcome
}

/// Parts of a job's worker.
struct Work {
    config: WorkerConfig,
    log: Option<JobLog>,
    replay: Option<Arc<ReplayPlan>>,
    sink: Option<Box<dyn RecordingSink>>,
    checker: Option<Box<dyn Checker>>,
}

/// Arguments of a job's loop besides its worker and engine.
struct JobContext<'a> {
    handles: &'a JobHandles<'a>,
    files: u32,
    hooks: &'a Hooks,
    verified: &'a VerifiedFiles,
    offload: Option<SharedStats>,
    /// The kernel runs threads on behalf of the engine.
    kernel_threads: bool,
    /// The engine has a peer to connect to.
    has_peer: bool,
    watches_processors: bool,
}

/// Selects the loop: one monomorphised per fast engine, one shared by all others.
fn dispatch(
    engine: AnyEngine,
    worker: Work,
    context: &JobContext<'_>,
    outcome: &mut JobOutcome,
) -> Result<(), JobFailure> {
    let unwatched = |_: &Worker| {};
    let mut ramp = offload::Ramp::new(&worker.config, context.offload.as_ref());
    let watched = |worker: &Worker| ramp.check(worker);
    match engine {
        AnyEngine::Null(engine) => run_worker(engine, worker, context, outcome, unwatched),
        AnyEngine::Sync(engine) => run_worker(engine, worker, context, outcome, unwatched),
        AnyEngine::Libaio(engine) => run_worker(engine, worker, context, outcome, unwatched),
        AnyEngine::Uring(engine) => run_worker(engine, worker, context, outcome, unwatched),
        AnyEngine::Offload(engine) => {
            run_worker::<Box<dyn Engine>, _>(engine, worker, context, outcome, watched)
        }
        AnyEngine::Boxed(engine) => run_worker(engine, worker, context, outcome, watched),
        AnyEngine::Passthrough(engine) => {
            let engine: Box<dyn Engine> = Box::new(engine);
            run_worker(engine, worker, context, outcome, watched)
        }
    }
}

/// Runs a job from opening its files to closing them; `watch` sees the worker after every turn.
fn run_worker<E: Engine, W: FnMut(&Worker)>(
    mut engine: E,
    work: Work,
    context: &JobContext<'_>,
    outcome: &mut JobOutcome,
    watch: W,
) -> Result<(), JobFailure> {
    let (handles, clock) = (context.handles, context.handles.shared.clock);
    let capabilities = engine.capabilities();
    outcome.engine = Some(capabilities);
    let config = &work.config;
    let (invalidate, delay, runtime) = (config.invalidate, config.start_delay, config.runtime);
    let replays = work.replay.is_some();
    let scheduled = replays || config.rate.iter().any(|(_, rate)| rate.is_some());
    let opened = open_files(&mut engine, context.files, invalidate, replays);
    opened.inspect_err(|_| {
        // `exec_postrun` runs even so, as in fio: it may clean up.
        run_postrun(context.hooks, outcome);
    })?;
    // Before the barrier: allocating the random map of a large device takes a while.
    let mut worker = worker_of(work, capabilities, &clock)?;
    worker.join_flow();
    let mut beside = Beside::open(handles, scheduled);
    let mut watched = ThreadWatch::new(context.watches_processors, clock.now());
    // Read once in advance: a first reading takes 20 to 50 µs, and would delay the start of jobs
    // that share the processor.
    let _warmed_up = watched.begin(clock.now());
    (handles.ready)();
    let (begun, shared_start) = pass_barrier(context);
    (outcome.begun, beside.shared_start) = (Some(begun), shared_start);
    if context.hooks.has_prerun() {
        let origin = handles.shared.origin.get().copied().unwrap_or_default();
        let start = origin + delay;
        if let Some(warning) = context.hooks.before(start, &clock, handles.stop) {
            outcome.failed_commands += 1;
            outcome.warnings.push(warning);
            return Ok(());
        }
    }
    let there = await_peer(&mut engine, delay, runtime, context);
    if !matches!(there, Ok(true)) {
        run_postrun(context.hooks, outcome);
        return there.map(drop);
    }
    let begun = clock.now();
    // `startdelay` counts from the start of the first wave, as in fio.
    worker.start_at(handles.shared.origin.get().copied().unwrap_or(begun));
    if let Some(times) = watched.begin(begun) {
        beside.waits.add(begun, times.waited);
    }
    let thread_id = outcome.thread_id;
    let stats = context.offload.as_ref();
    let so_far = |worker: &Worker, now: Tick| {
        let own = JobOutcome {
            results: worker.results_so_far(now),
            cpu: watched.cpu(now),
            scheduling: watched.scheduling(),
            thread_id,
            engine: Some(capabilities),
            ..JobOutcome::default()
        };
        offload::so_far(own, stats, context.kernel_threads)
    };
    let driven = drive(&mut worker, &mut engine, handles, beside, &so_far, watch);
    let ended = clock.now();
    outcome.cpu = watched.cpu(ended);
    outcome.scheduling = watched.final_scheduling();
    outcome.processors = watched.processors(ended);
    if context.kernel_threads {
        outcome.cpu.system_us += helpers_us(thread_id, offload::at_work(stats));
    }
    handles.cell.publish(&worker.progress());
    let results = results(worker, &engine);
    outcome.warnings.extend(context.verified.report(&results));
    outcome.results = Some(results);
    run_postrun(context.hooks, outcome);
    driven?;
    // A replay has closed its files when its log did.
    let open = if replays { 0 } else { context.files };
    for file in (0..open).map(FileIndex::new) {
        engine.close(file)?;
    }
    Ok(())
}

/// Returns the warning of a job whose engine has sent requests again, which its results hide.
fn repetitions(requests: u64, job: &str) -> Option<Warning> {
    let times = match requests {
        1 => "a request once".to_owned(),
        _ => format!("requests {requests} times"),
    };
    (requests > 0).then(|| Warning {
        code: "repeated_requests".into(),
        job: job.into(),
        message: format!(
            "the engine repeated {times}, after lost connections or because the server asked for \
             it: latencies include the waits, and a server that was restarted may have lost data"
        ),
        hint: "look at the server's log, and repeat the run".into(),
    })
}

/// Returns the results of a worker; its engine may say more of an error than the errno does.
fn results(worker: Box<Worker>, engine: &impl Engine) -> Results {
    let mut results = worker.into_results();
    if let Some(error) = &mut results.error
        && error.detail.is_none()
    {
        error.detail = engine.explain(error.errno);
    }
    results
}

/// Runs `exec_postrun`, if the job has one.
fn run_postrun(hooks: &Hooks, outcome: &mut JobOutcome) {
    if let Some(warning) = hooks.after() {
        outcome.failed_commands += 1;
        outcome.warnings.push(warning);
    }
}

/// Returns the CPU time that the kernel's helper threads have used so far for the engines of a job
/// and of its offload workers. Cost: every thread of the process is examined to find them.
pub(crate) fn helpers_us(thread_id: u32, workers: Vec<u32>) -> u64 {
    let mut owners = workers;
    owners.push(thread_id);
    thread::kernel_helpers_us(&owners)
}

/// Builds the answer to a request for interim results.
type AnswerFn<'a> = &'a dyn Fn(&Worker, Tick) -> InterimResults;

/// State of the loop besides its worker and engine, and work a few times per second.
struct Beside<'a> {
    /// Evidence of the cause of stalls.
    waits: ProcessorWaits,
    /// Latencies for views of the run.
    live: Option<(&'a SharedCounts, SeenCounts)>,
    /// Waits for ops to be due.
    pacer: Pacer,
    /// Confinement that holds until the first op has been issued.
    shared_start: Option<SharedStart>,
}

impl<'a> Beside<'a> {
    /// Reserves what it needs, before the measurement.
    fn open(handles: &JobHandles<'a>, scheduled: bool) -> Self {
        Self {
            waits: ProcessorWaits::open(),
            live: handles.live.map(|live| (live, SeenCounts::new())),
            pacer: Pacer::new(scheduled && handles.shared.wakes_early),
            shared_start: None,
        }
    }

    fn update(&mut self, worker: &mut Worker, now: Tick) {
        self.waits.note(now);
        if let Some((live, seen)) = &mut self.live {
            live.add(worker, seen);
        }
    }
}

/// Runs the loop: turn, wait, turn.
fn drive<E: Engine>(
    worker: &mut Worker,
    engine: &mut E,
    handles: &JobHandles<'_>,
    mut beside: Beside<'_>,
    so_far: AnswerFn<'_>,
    mut watch: impl FnMut(&Worker),
) -> Result<(), JobFailure> {
    let (stop, clock) = (handles.stop, &handles.shared.clock);
    let mut now = clock.now();
    let mut publish_at = now;
    loop {
        let step = turn(worker, engine, stop, now);
        if let Some(shared_start) = beside.shared_start.take() {
            shared_start.give_way();
        }
        match step {
            Step::Again => {}
            Step::Wait {
                min: 0,
                until,
                spin,
            } => {
                engine.send_held();
                beside
                    .pacer
                    .pause(clock, until.unwrap_or(now + LOOK_AROUND), spin);
            }
            Step::Wait { min, until, .. } => {
                if worker.is_ending() {
                    engine.cancel();
                }
                beside.pacer.wait(engine, clock, min, until)?;
            }
            // Another job holds the lock on a file (`lockfile`). Polled, since unlocking does not
            // wake waiters.
            Step::Blocked => {
                engine.send_held();
                sleep_until(clock, now + Nanos::from_micros(10));
            }
            Step::Done => {
                beside.update(worker, now);
                return Ok(());
            }
        }
        now = clock.now();
        watch(worker);
        // Before the next reading of the waits: a stall is explained by the last one before it.
        if let Some(due) = worker.take_stall() {
            worker.waited_in_stall(beside.waits.since(due));
        }
        if now >= publish_at {
            beside.update(worker, now);
            handles.cell.publish(&worker.progress());
            publish_at = now + PUBLISH;
        }
        if handles.cell.mailbox.is_asked() {
            handles.cell.mailbox.answer(so_far(worker, now));
        }
    }
}

/// Converts a panic on a job's thread into a failure of that job: a bug in this program.
fn panicked(panic: &(dyn std::any::Any + Send)) -> JobFailure {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    JobFailure::new(Errno::ENOTRECOVERABLE, format!("internal error: {text}"))
        .hint("this is a bug in fathom; please report it")
}

/// Interval between progress updates; the status line is drawn at most four times a second.
const PUBLISH: Nanos = Nanos::from_millis(100);

#[cfg(test)]
mod tests {
    use fathom_job::Options;

    use super::*;

    #[test]
    fn panic_is_a_failure_of_the_job() {
        let clock = Clock::monotonic();
        let plan = crate::testing::plan("--name=t --ioengine=null --size=1m");
        let probe = fathom_host::target_kind::HostFileSystem;
        let mut setups = fathom_setup::translate::translate(&plan, &probe, &mut || 0).setups;
        let spec = JobSpec {
            worker: setups.remove(0).worker,
            engine: EngineConfig {
                // Invalid: triggers an assertion of the engine.
                depth: 0,
                ..EngineConfig::new(fathom_engine::built_in("null"), clock)
            },
            thread: ThreadSettings::new(&Options::default(), 1),
            files: 0,
            log: None,
            hooks: Hooks::default(),
            verified: VerifiedFiles::default(),
            replay: None,
            recording: None,
            verify_threads: VerifyThreads::default(),
            trace: Trace::default(),
            early_end: None,
            watches_processors: false,
        };
        let (shared, stop) = (RunState::new(clock), StopRequest::default());
        let (barrier, cell) = (StartBarrier::default(), ProgressCell::default());
        let job = || {
            let say: Say = std::rc::Rc::new(|_| {});
            let handles = JobHandles {
                shared: &shared,
                index: 0,
                stop: &stop,
                barrier: &barrier,
                cell: &cell,
                live: None,
                ready: &|| {},
                say: &say,
            };
            run_job(spec, &handles)
        };
        let outcome = std::thread::scope(|scope| scope.spawn(job).join());
        let failure = outcome.expect("caught").failure.expect("a failure");
        assert!(
            failure.text.starts_with("internal error"),
            "{}",
            failure.text
        );
        assert_eq!(cell.read().state, JobState::Failed);
    }
}
