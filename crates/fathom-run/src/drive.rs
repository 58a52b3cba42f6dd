//! The thread driver: one job on one thread, on the real clock, with a real engine.
//!
//! ```text
//! settings → engine → files opened → worker made → gate → turn … wait … turn → closed → outcome
//! ```
//!
//! It decides nothing about ops; it waits, and gives the worker the new time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use fathom_core::{Engine, FileIndex, Nanos, Step, Tick};
use fathom_engine::{AnyEngine, EngineConfig, SharedStats, start_with_stats};
use fathom_record::CpuRecord;
use fathom_setup::JobState;
use fathom_setup::outcome::{Fault, Outcome};
use fathom_sys::clock::{Clock, sleep_until, spin_until};
use fathom_sys::thread::{self, Usage};
use fathom_workload::{Control, JobLog, Worker, WorkerConfig, turn};

use crate::affinity::{self, ThreadSettings};
use crate::gate::Gate;
use crate::hooks::Hooks;
use crate::interim::Answer;
use crate::offload;
use crate::progress::ProgressCell;
use crate::tracing_engine::{Say, Trace};

/// What one thread is given.
pub(crate) struct Assignment {
    /// What the worker does; taken when it is made.
    pub(crate) worker: WorkerConfig,
    /// Its engine.
    pub(crate) engine: EngineConfig,
    /// How its thread runs.
    pub(crate) thread: ThreadSettings,
    /// Files are made when the job starts, and opened.
    pub(crate) files: u32,
    /// Where it logs.
    pub(crate) log: Option<JobLog>,
    /// Its own commands.
    pub(crate) hooks: Hooks,
    /// What `--debug` wants to hear of it.
    pub(crate) trace: Trace,
}

/// What the threads of a run share.
pub(crate) struct Shared {
    /// The run's clock.
    pub(crate) clock: Clock,
    /// When the first jobs were let go.
    pub(crate) origin: OnceLock<Tick>,
    /// Chunks of lines of `--debug` that nobody has heard yet.
    pub(crate) unheard: Arc<AtomicUsize>,
}

impl Shared {
    /// Nobody has been let go yet.
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            origin: OnceLock::new(),
            unheard: Arc::default(),
        }
    }
}

/// What guides a job's thread from outside.
pub(crate) struct Guides<'a> {
    /// What it shares with the others.
    pub(crate) shared: &'a Shared,
    /// What the watcher tells it.
    pub(crate) control: &'a Control,
    /// Where it waits for those that start with it.
    pub(crate) gate: &'a Gate,
    /// Where it shows how far it has come.
    pub(crate) cell: &'a ProgressCell,
    /// To be called once, when only the gate is waited for.
    pub(crate) ready: &'a dyn Fn(),
    /// Where the lines of `--debug` go.
    pub(crate) say: &'a Say,
}

/// Runs one job on the calling thread.
pub(crate) fn run_job(assignment: Assignment, guides: &Guides<'_>) -> Outcome {
    let cell = guides.cell;
    cell.set(JobState::SettingUp);
    let mut outcome = Outcome {
        thread_id: thread::id(),
        ..Outcome::default()
    };
    let trace = assignment.trace;
    trace.begun(outcome.thread_id, guides.say);
    let body = AssertUnwindSafe(|| {
        let _held = affinity::apply(&assignment.thread)?;
        let kernel_threads = assignment.engine.engine.info.kernel_threads;
        let (engine, offload) = start_with_stats(assignment.engine)?;
        outcome.features = engine.features();
        let context = Context {
            guides,
            files: assignment.files,
            hooks: &assignment.hooks,
            offload: offload.clone(),
            kernel_threads,
        };
        let engine = trace.around(engine, outcome.thread_id, guides.say);
        let work = (assignment.worker, assignment.log);
        let ended = dispatch(engine, work, &context, &mut outcome);
        // The engine is gone, and with it its workers.
        if let Some(told) = offload {
            offload::settle(&told.borrow(), assignment.hooks.job(), &mut outcome);
        }
        ended
    });
    let ended = catch_unwind(body).unwrap_or_else(|panic| Err(panicked(&*panic)));
    outcome.fault = ended.err();
    trace.ended(outcome.thread_id, guides.say);
    cell.set(if outcome.has_failed() {
        JobState::Failed
    } else {
        JobState::Ended
    });
    outcome
}

/// What a job's loop needs beside its worker and engine.
struct Context<'a> {
    guides: &'a Guides<'a>,
    files: u32,
    hooks: &'a Hooks,
    offload: Option<SharedStats>,
    /// The kernel runs threads on behalf of the engine.
    kernel_threads: bool,
}

/// A loop of its own for each engine that is fast; one for all others.
fn dispatch(
    engine: AnyEngine,
    worker: (WorkerConfig, Option<JobLog>),
    context: &Context<'_>,
    outcome: &mut Outcome,
) -> Result<(), Fault> {
    let unwatched = |_: &Worker| {};
    let mut ramp = offload::Ramp::new(&worker.0, context.offload.as_ref());
    let watched = |worker: &Worker| ramp.look(worker);
    match engine {
        AnyEngine::Null(engine) => whole(engine, worker, context, outcome, unwatched),
        AnyEngine::Sync(engine) => whole(engine, worker, context, outcome, unwatched),
        AnyEngine::Libaio(engine) => whole(engine, worker, context, outcome, unwatched),
        AnyEngine::Uring(engine) => whole(engine, worker, context, outcome, unwatched),
        AnyEngine::Offload(engine) => {
            whole::<Box<dyn Engine>, _>(engine, worker, context, outcome, watched)
        }
        AnyEngine::Boxed(engine) => whole(engine, worker, context, outcome, watched),
    }
}

/// Everything between the engine's start and its end; `watch` sees the worker after every turn.
fn whole<E: Engine, W: FnMut(&Worker)>(
    mut engine: E,
    (config, log): (WorkerConfig, Option<JobLog>),
    context: &Context<'_>,
    outcome: &mut Outcome,
    watch: W,
) -> Result<(), Fault> {
    let guides = context.guides;
    let clock = guides.shared.clock;
    let capabilities = engine.capabilities();
    outcome.engine = Some(capabilities);
    let (invalidate, delay) = (config.invalidate, config.start_delay);
    open_files(&mut engine, context.files, invalidate).inspect_err(|_| {
        // What tidies up has its turn all the same, as in fio.
        outcome.said.extend(context.hooks.after());
    })?;
    // Before the gate: a map of a large device takes a while to make.
    let mut worker = Worker::new(config, capabilities, clock.now()).map_err(|error| Fault {
        errno: EINVAL,
        text: error.to_string(),
        hint: String::new(),
    })?;
    if let Some(log) = log {
        worker.log_to(log);
    }
    worker.join_flow();
    (guides.ready)();
    guides.gate.pass();
    if context.hooks.has_prerun() {
        let origin = guides.shared.origin.get().copied().unwrap_or_default();
        let start = origin + delay;
        if let Some(said) = context.hooks.before(start, &clock, guides.control) {
            outcome.said.push(said);
            return Ok(());
        }
    }
    let begun = clock.now();
    // `startdelay` counts from the start of the first jobs of the run, as in fio.
    worker.start_at(guides.shared.origin.get().copied().unwrap_or(begun));
    let before = thread::usage();
    let thread_id = outcome.thread_id;
    let told = context.offload.as_ref();
    let so_far = |worker: &Worker, now: Tick| {
        let own = Outcome {
            results: worker.results_so_far(now),
            cpu: cpu(thread::usage().since(before), now - begun),
            thread_id,
            engine: Some(capabilities),
            ..Outcome::default()
        };
        offload::so_far(own, told, context.kernel_threads)
    };
    let driven = drive(&mut worker, &mut engine, guides, &so_far, watch);
    outcome.cpu = cpu(thread::usage().since(before), clock.now() - begun);
    if context.kernel_threads {
        outcome.cpu.system_us += helpers_us(thread_id, offload::at_work(told));
    }
    guides.cell.publish(&worker.progress());
    outcome.results = Some(worker.into_results());
    outcome.said.extend(context.hooks.after());
    driven?;
    for file in (0..context.files).map(FileIndex::new) {
        engine.close(file)?;
    }
    Ok(())
}

/// Processor time of a thread over `wall`.
fn cpu(used: Usage, wall: Nanos) -> CpuRecord {
    let mut cpu = CpuRecord {
        wall_us: wall.get() / 1_000,
        ..CpuRecord::default()
    };
    add_usage(&mut cpu, used);
    cpu
}

/// Adds what another thread has used.
pub(crate) fn add_usage(cpu: &mut CpuRecord, used: Usage) {
    cpu.user_us += used.user_us;
    cpu.system_us += used.system_us;
    cpu.context_switches += used.voluntary_switches + used.involuntary_switches;
    cpu.major_faults += used.major_faults;
    cpu.minor_faults += used.minor_faults;
}

/// Processor time that the kernel's threads have used so far on behalf of a job's engine and of
/// its workers' engines. To find them, every thread of the process is looked at.
pub(crate) fn helpers_us(thread_id: u32, workers: Vec<u32>) -> u64 {
    let mut owners = workers;
    owners.push(thread_id);
    thread::kernel_helpers_us(&owners)
}

fn open_files<E: Engine>(engine: &mut E, files: u32, invalidate: bool) -> Result<(), Fault> {
    for file in (0..files).map(FileIndex::new) {
        engine.open(file)?;
        if invalidate {
            // What cannot be dropped is seen in the page-cache check of the report.
            let _stays_cached = engine.invalidate(file);
        }
    }
    Ok(())
}

/// What to answer who asks meanwhile.
type SoFar<'a> = &'a dyn Fn(&Worker, Tick) -> Answer;

/// The loop: a turn, a wait, a turn.
fn drive<E: Engine>(
    worker: &mut Worker,
    engine: &mut E,
    guides: &Guides<'_>,
    so_far: SoFar<'_>,
    mut watch: impl FnMut(&Worker),
) -> Result<(), Fault> {
    let (control, clock) = (guides.control, &guides.shared.clock);
    let mut now = clock.now();
    let mut publish_at = now;
    loop {
        match turn(worker, engine, control, now) {
            Step::Again => {}
            Step::Wait {
                min: 0,
                until,
                spin,
            } => {
                let until = until.unwrap_or(now + LOOK_AROUND);
                pause(clock, until.min(now + LOOK_AROUND), spin);
            }
            Step::Wait { min, until, .. } => engine.wait(min, until)?,
            // A job holds the lock on a file (`lockfile`). Nobody wakes the waiter: it polls.
            Step::Blocked => pause(clock, now + Nanos::from_micros(10), false),
            Step::Done => return Ok(()),
        }
        now = clock.now();
        watch(worker);
        if now >= publish_at {
            guides.cell.publish(&worker.progress());
            publish_at = now + PUBLISH;
        }
        if guides.cell.mailbox.is_asked() {
            guides.cell.mailbox.answer(so_far(worker, now));
        }
    }
}

/// Sleeps or spins until the clock shows `until`.
fn pause(clock: &Clock, until: Tick, spin: bool) {
    if !spin && until - clock.now() > TOO_SHORT_TO_SLEEP {
        return sleep_until(clock, until);
    }
    spin_until(clock, until);
}

/// A panic on a job's thread is an error of that job, and a bug of ours.
fn panicked(panic: &(dyn std::any::Any + Send)) -> Fault {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    Fault {
        errno: ENOTRECOVERABLE,
        text: format!("internal error: {text}"),
        hint: "this is a bug in fathom; please report it".into(),
    }
}

/// The longest sleep after which a request to stop is looked for.
const LOOK_AROUND: Nanos = Nanos::from_millis(100);
/// How often progress is published; the status line is drawn four times a second at most.
const PUBLISH: Nanos = Nanos::from_millis(100);
/// Falling asleep and waking up take about as long, even without timer slack: an op that is due
/// before then would be late by our own doing.
const TOO_SHORT_TO_SLEEP: Nanos = Nanos::from_micros(5);
const EINVAL: u32 = 22;
const ENOTRECOVERABLE: u32 = 131;

#[cfg(test)]
mod tests {
    use fathom_job::Options;

    use super::*;

    #[test]
    fn a_panic_is_an_error_of_the_job_and_is_heard_of() {
        let clock = Clock::monotonic();
        let plan = crate::testing::plan("--name=t --ioengine=null --size=1m");
        let probe = fathom_host::target_kind::HostFileSystem;
        let mut setups = fathom_setup::translate::translate(&plan, &probe, &mut || 0).setups;
        let assignment = Assignment {
            worker: setups.remove(0).worker,
            engine: EngineConfig {
                // Not allowed: the engine's own assertion fails.
                depth: 0,
                ..EngineConfig::new(fathom_engine::built_in("null"), clock)
            },
            thread: ThreadSettings::new(&Options::default(), 1),
            files: 0,
            log: None,
            hooks: Hooks::default(),
            trace: Trace::default(),
        };
        let (shared, control) = (Shared::new(clock), Control::default());
        let (gate, cell) = (Gate::default(), ProgressCell::default());
        let job = || {
            let say: Say = std::rc::Rc::new(|_| {});
            let guides = Guides {
                shared: &shared,
                control: &control,
                gate: &gate,
                cell: &cell,
                ready: &|| {},
                say: &say,
            };
            run_job(assignment, &guides)
        };
        let outcome = std::thread::scope(|scope| scope.spawn(job).join());
        let fault = outcome.expect("caught").fault.expect("a fault");
        assert!(fault.text.starts_with("internal error"), "{}", fault.text);
        assert_eq!(cell.read().0, JobState::Failed);
    }
}
