//! One run from start to finish.
//!
//! ```text
//! plan → translate → check → open logs → lay out → truncate logs → waves of jobs → record
//!                          └ nothing written before     └ earlier logs intact until here
//! ```
//!
//! The order follows from two promises: a plan that is rejected leaves nothing behind, and a run
//! that never starts keeps the logs of the previous one. State is local to the call, so one process
//! may run several plans at once.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_core::{Storage, Tick};
use fathom_engine::{Registry, start};
use fathom_host::block_tree::BlockTree;
use fathom_host::output_file::Stop;
use fathom_job::{ClockSource, Plan, Settings};
use fathom_log::{LogSummary, Logs, OpenLogs};
use fathom_record::{DeviceTraceRecord, JobRecord, Record, Warning};
use fathom_setup::check::scheduler::SchedulerChange;
use fathom_setup::collect;
use fathom_setup::debug_output;
use fathom_setup::lifecycle::Lifecycle;
use fathom_setup::outcome::JobOutcome;
use fathom_setup::status::{Meter, goals};
use fathom_setup::translate::JobSetup;
use fathom_setup::{
    Host, Preflight, ProblemKind, RunError, RunEvent, RunProblem, Session, Snapshot, preflight,
};
use fathom_sys::clock::Clock;
use fathom_sys::system;
use fathom_sys::thread;

use crate::affinity::ThreadSettings;
use crate::agreed_start::{self, AgreedStart, Span};
use crate::bandwidth::{BandwidthLog, OpenBandwidthLog};
use crate::calibration::own_costs;
use crate::cgroup;
use crate::device_trace::DeviceTrace;
use crate::drive::{JobSpec, RunState};
use crate::ended_run::{EndedRun, blank, jobs, record};
use crate::engine_config::engine_config;
use crate::evidence::{Baseline, CLONES_ASKED};
use crate::file_locks::FileLocks;
use crate::gtod::Gtod;
use crate::hooks::Hooks;
use crate::idleness::IdleWatch;
use crate::launch::{Launch, run_all};
use crate::live::LiveLatencies;
use crate::merge;
use crate::mismatches::VerifiedFiles;
use crate::prepare;
use crate::recording::Recording;
use crate::run_files::RunFiles;
use crate::tracing_engine::Trace;
use crate::verify_state::{self, SavedStates};
use crate::verify_threads::VerifyThreads;

/// Runs a plan: checks all of it, lays out its files, runs its jobs and collects their results.
///
/// Blocks until the last job has ended. Each job has a thread; the calling thread watches them,
/// delivers events to `session`, and is the only one to call its closures. Errors of single jobs
/// are in their records, not in the result. A stopped run ([`Session::stops`]) still returns the
/// record of what it measured.
///
/// # Errors
/// Problems that prevent the whole plan from running. If the checks found them, nothing has been
/// created or written. An engine that is missing from `engines` is one of them.
pub fn run(
    plan: &Plan,
    settings: &Settings,
    engines: &Registry,
    session: &mut Session<'_>,
) -> Result<Record, RunError> {
    // A few hundred jobs, or their logs, exceed the usual soft limit of 1024 files.
    let _as_it_was = system::raise_open_files_limit();
    // Forwards stop requests to the log writer, which runs on a thread of its own.
    let stopped = Arc::new(AtomicBool::new(false));
    let stops = session.stops;
    let look = || {
        let asked = stops();
        // Relaxed, here and below: the flag guards no other memory.
        stopped.fetch_or(asked > 0, Ordering::Relaxed);
        asked
    };
    let mut session = Session {
        tell: &mut *session.tell,
        stops: &look,
        progress: session.progress,
        report_every: session.report_every,
        reports_asked: session.reports_asked,
        jobs_fail_alone: session.jobs_fail_alone,
    };
    let seen = Arc::clone(&stopped);
    let stop = Stop::when(move || seen.load(Ordering::Relaxed));
    run_stoppable(plan, settings, engines, &mut session, stop)
}

fn run_stoppable(
    plan: &Plan,
    settings: &Settings,
    engines: &Registry,
    session: &mut Session<'_>,
    stop: Stop,
) -> Result<Record, RunError> {
    let (gtod, clock) = Gtod::start(plan, clock(plan)?)?;
    let begun = clock.now();
    let agreed = settings.start_at.map(AgreedStart::of).transpose()?;
    let mut preflight = preflight(plan, settings, Host::Local(&RunFiles::new(engines, clock)));
    let alone = session.jobs_fail_alone;
    let failing = check_all(plan, settings, &mut preflight, engines, clock, alone)?;
    load_states(&mut preflight, settings)?;
    let mut warnings = preflight.take_warnings();
    warnings.extend_from_slice(&failing);
    let setups = &preflight.setups;
    debug_output::tell_plan(plan, setups, &settings.debug, session);
    let planned = collect::planned(setups);
    announce(&planned, &warnings, session);
    let opened = Opened::new(plan, settings, setups, clock, session.stops)?;
    (session.tell)(RunEvent::Starting(setups.len()));
    let noted = prepare::lay_out(setups, &failing, clock, session)?;
    prepare::pre_read(setups, session.stops);
    let runs_jobs = !plan.jobs.iter().any(|job| job.options.create_only);
    let (states, unkept) = begin_states(runs_jobs, &mut preflight, settings, session);
    let setups = &preflight.setups;
    agreed_start::approach(agreed, session, &clock);
    let groups = cgroup::Made::by(plan);
    let own_costs = runs_jobs.then(|| own_costs(setups, &clock));
    let baseline = Baseline::capture(setups, clock.now());
    let watch = |profile| IdleWatch::start(profile, &clock);
    let idle = settings.idle_profile.map(watch);
    let execution = Execution {
        plan,
        settings,
        engines,
        setups,
        clock,
        begun,
        baseline: &baseline,
        stop: &stop,
        agreed,
    };
    let mut executed = match runs_jobs {
        true => execution.run(opened, session)?,
        false => Executed::none(setups),
    };
    states.save(setups, &mut executed.outcomes);
    let (finished, device_trace) = executed.end(setups, session, &clock);
    let idleness = idle.map(|watch| watch.finish());
    let evidence = baseline.finish(setups, clock.now());
    let kept = prepare::clear(setups);
    groups.clear();
    let host = agreed_start::host(settings, agreed, executed.span, &clock);
    warnings.extend(agreed_start::late(host.as_ref()));
    warnings.extend(noted.into_iter().chain(unkept).chain(kept));
    warnings.extend(gtod.warning().into_iter().chain(time_of_day_set(&clock)));
    warnings.extend(finished.warnings);
    let ended = EndedRun {
        planned,
        outcomes: executed.outcomes,
        evidence,
        lines: finished.lines,
        own_costs: own_costs.unwrap_or_default(),
        warnings,
        begun,
    };
    Ok(Record {
        hosts: host.into_iter().collect(),
        idleness,
        device_trace,
        log_failed: finished.failed,
        ..record(plan, preflight, ended, &clock)
    })
}

/// Jobs to run, and what they need.
struct Execution<'a> {
    plan: &'a Plan,
    settings: &'a Settings,
    engines: &'a Registry,
    setups: &'a [JobSetup],
    clock: Clock,
    begun: Tick,
    baseline: &'a Baseline,
    stop: &'a Stop,
    agreed: Option<AgreedStart>,
}

/// Outcomes of jobs, and their logs, which may still be written.
struct Executed {
    logs: Option<Logs>,
    /// Failure of the aggregate bandwidth log.
    broken: Option<Warning>,
    outcomes: Vec<Option<JobOutcome>>,
    trace: Option<DeviceTrace>,
    span: Option<Span>,
}

impl Execution<'_> {
    /// Starts the logs, and runs the jobs until the last has ended.
    fn run(&self, opened: Opened, session: &mut Session<'_>) -> Result<Executed, RunError> {
        let Self {
            plan,
            setups,
            clock,
            stop,
            ..
        } = *self;
        let trace = self
            .settings
            .trace
            .then(|| DeviceTrace::start(setups, &clock));
        let trace = trace.transpose()?;
        let (logs, bandwidth) = opened.begin(clock.now(), stop.clone())?;
        let launches = launches(setups, self.engines, clock, &logs, stop, self.settings);
        let lifecycle = Lifecycle::new(plan, setups.iter().map(|setup| setup.place));
        let goals = goals(plan);
        let so_far = |outcomes: Vec<Option<JobOutcome>>, snapshot: &Snapshot| Record {
            jobs: jobs(setups, outcomes, &clock),
            disks: self.baseline.disks_so_far(clock.now()),
            eta_s: Meter::default().sample(&goals, snapshot).eta_s,
            ..blank(plan, self.begun, &clock)
        };
        let settings = self.settings;
        let shows = settings.eta_percentiles || settings.is_viewed();
        let groups = || setups.iter().map(|setup| setup.place.group);
        let live = || LiveLatencies::new(&groups().collect::<Vec<_>>());
        let disks = settings.is_viewed().then(|| self.baseline.disks());
        let shared = RunState {
            live: (shows && session.progress.is_some()).then(live),
            wakes_early: thread::allowed_cpus().is_ok_and(|cpus| setups.len() <= cpus.len()),
            agreed: self.agreed,
            ..RunState::new(clock)
        };
        let (outcomes, broken) = run_all(
            launches, lifecycle, &shared, session, &so_far, bandwidth, disks,
        );
        Ok(Executed {
            logs,
            broken,
            outcomes,
            trace,
            span: shared.origin.get().map(|&start| Span {
                start,
                end: clock.now(),
            }),
        })
    }
}

impl Executed {
    /// Returns what a run leaves whose jobs do not start (`create_only`).
    fn none(setups: &[JobSetup]) -> Self {
        Self {
            logs: None,
            broken: None,
            outcomes: setups.iter().map(|_| None).collect(),
            trace: None,
            span: None,
        }
    }

    /// Ends the logs, and the trace, which it joins with the ops of the jobs.
    fn end(
        &mut self,
        setups: &[JobSetup],
        session: &mut Session<'_>,
        clock: &Clock,
    ) -> (LogSummary, Option<DeviceTraceRecord>) {
        let outcomes = &self.outcomes;
        let mut finished = end_logs(
            self.logs.take(),
            self.broken.take(),
            outcomes,
            session,
            clock,
        );
        let Some(trace) = self.trace.take() else {
            return (finished, None);
        };
        let ended = trace.finish(setups, finished.ops.take(), outcomes, clock);
        for warning in &ended.warnings {
            (session.tell)(RunEvent::Lost(warning));
        }
        finished.warnings.extend(ended.warnings);
        (finished, ended.record)
    }
}

/// Loads the verify states that jobs ask for.
fn load_states(preflight: &mut Preflight, settings: &Settings) -> Result<(), RunError> {
    let problems = verify_state::load(&mut preflight.setups, aux_path(settings));
    match problems.is_empty() {
        true => Ok(()),
        false => Err(RunError { problems }),
    }
}

/// Begins the verify states of the jobs that are to run, and tells which cannot be kept.
fn begin_states(
    runs_jobs: bool,
    preflight: &mut Preflight,
    settings: &Settings,
    session: &mut Session<'_>,
) -> (SavedStates, Option<Warning>) {
    let (states, unkept) = match runs_jobs {
        true => SavedStates::begin(&mut preflight.setups, aux_path(settings)),
        false => Default::default(),
    };
    if let Some(warning) = &unkept {
        (session.tell)(RunEvent::Warning(warning));
    }
    (states, unkept)
}

/// Returns the folder of verify states and saved blocks; empty: the current one.
fn aux_path(settings: &Settings) -> &Path {
    Path::new(settings.aux_path.as_deref().unwrap_or_default())
}

/// Announces the planned jobs and the warnings that precede the results.
fn announce(planned: &[JobRecord], warnings: &[Warning], session: &mut Session<'_>) {
    (session.tell)(RunEvent::Planned(planned));
    for warning in warnings {
        (session.tell)(RunEvent::Warning(warning));
    }
}

/// Open logs, before the jobs start: those of single jobs, and the aggregate bandwidth log.
struct Opened {
    logs: Option<OpenLogs>,
    bandwidth: Option<OpenBandwidthLog>,
}

impl Opened {
    fn new(
        plan: &Plan,
        settings: &Settings,
        setups: &[JobSetup],
        clock: Clock,
        stops: &dyn Fn() -> u32,
    ) -> Result<Self, RunError> {
        let refused = |problems| RunError { problems };
        merge::check(setups)?;
        let problems = Recording::check(setups);
        if !problems.is_empty() {
            return Err(refused(problems));
        }
        let stop = || stops() > 0;
        let prefix = settings.bandwidth_log.as_deref();
        let bandwidth = prefix.map(|prefix| OpenBandwidthLog::open(prefix, &stop));
        Ok(Self {
            bandwidth: bandwidth.transpose().map_err(refused)?,
            logs: OpenLogs::open(plan, setups, clock, &stop, settings.trace).map_err(refused)?,
        })
    }

    /// Truncates the logs and starts them; times in the aggregate log count from `now`.
    fn begin(
        self,
        now: Tick,
        stop: Stop,
    ) -> Result<(Option<Logs>, Option<BandwidthLog>), RunError> {
        let bandwidth = self.bandwidth.map(|log| log.begin(now)).transpose()?;
        let logs = self.logs.map(|logs| logs.begin(stop)).transpose()?;
        Ok((logs, bandwidth))
    }
}

/// Waits until the logs are written and announces the warnings of logs and jobs.
fn end_logs(
    logs: Option<Logs>,
    broken: Option<Warning>,
    outcomes: &[Option<JobOutcome>],
    session: &mut Session<'_>,
    clock: &Clock,
) -> LogSummary {
    let look = || {
        let _seen_by_the_writer = (session.stops)();
    };
    let mut finished = logs.map_or_else(LogSummary::default, |logs| logs.finish(&look, clock));
    finished.failed |= broken.is_some();
    let warnings = &mut finished.warnings;
    warnings.extend(broken);
    let ended = outcomes.iter().flatten();
    for warning in ended.flat_map(|outcome| &outcome.warnings) {
        // Clones repeat each other's warnings.
        if !warnings.contains(warning) {
            warnings.push(warning.clone());
        }
    }
    for warning in warnings {
        (session.tell)(RunEvent::Lost(warning));
    }
    finished
}

/// Returns the clock of the run. All jobs share one, so the first job's `clocksource` decides.
fn clock(plan: &Plan) -> Result<Clock, RunError> {
    let asked = plan
        .jobs
        .first()
        .map_or(ClockSource::Default, |job| job.options.clocksource);
    match asked {
        ClockSource::Default => Ok(Clock::calibrated()),
        ClockSource::ClockGettime => Ok(Clock::monotonic()),
        ClockSource::Gettimeofday => Ok(Clock::gettimeofday()),
        ClockSource::Cpu => Clock::cpu().map_err(|why| {
            let message = format!("clocksource=cpu cannot be trusted here: {why}");
            let problem = RunProblem::new(ProblemKind::ClockNotTrusted, message);
            let problem = problem.hint("remove `clocksource`");
            plan.jobs
                .first()
                .map_or(problem.clone(), |job| problem.at(job, "clocksource"))
                .into()
        }),
    }
}

/// Returns a warning if the time of day was set during a run that measures with it.
fn time_of_day_set(clock: &Clock) -> Option<Warning> {
    let steps = clock.steps();
    (steps > 0).then(|| Warning {
        code: "time_of_day_set".into(),
        job: String::new(),
        message: format!(
            "`clocksource=gettimeofday` uses the time of day, which was set during the run (steps: \
             {steps}); each step was compensated to within 100 ms"
        ),
        hint: "remove `clocksource`".into(),
    })
}

/// Reports every problem before anything is written. If jobs may fail alone, returns a warning for
/// each job that will.
fn check_all(
    plan: &Plan,
    settings: &Settings,
    preflight: &mut Preflight,
    engines: &Registry,
    clock: Clock,
    jobs_fail_alone: bool,
) -> Result<Vec<Warning>, RunError> {
    let mut problems = std::mem::take(&mut preflight.problems);
    let of_one_job = |problem: &mut RunProblem| jobs_fail_alone && problem.kind.is_of_one_job();
    let failing = problems.extract_if(.., of_one_job).map(|problem| Warning {
        code: problem.kind.code().into(),
        job: problem.job,
        message: format!("{}: the job fails", problem.message),
        hint: problem.hint.map(String::from).unwrap_or_default(),
    });
    let failing = failing.collect();
    if plan.jobs.is_empty() {
        let problem = RunProblem::new(ProblemKind::NoJobs, "no job to run");
        problems.push(problem.hint("name a job file, or begin with `--name=test`"));
    }
    if problems.is_empty() {
        problems.extend(refused_engines(&preflight.setups, engines, clock));
    }
    if problems.is_empty() && settings.trace {
        problems.extend(DeviceTrace::check(&preflight.setups));
    }
    if problems.is_empty() {
        Ok(failing)
    } else {
        Err(RunError { problems })
    }
}

/// Starts and drops each engine once, so that an engine that the kernel rejects is reported before
/// layout.
fn refused_engines(setups: &[JobSetup], engines: &Registry, clock: Clock) -> Vec<RunProblem> {
    let (mut tried, mut locks) = (HashSet::new(), FileLocks::default());
    let mut problems = Vec::new();
    for setup in setups {
        let job = &setup.job;
        let info = job.options.engine;
        let Some(engine) = engines.find(info.name) else {
            let message = format!("cannot start engine `{}`: it is not registered", info.name);
            problems.push(RunProblem::new(ProblemKind::EngineRefused, message).at(job, "ioengine"));
            continue;
        };
        let config = engine_config(job, setup, engine, &mut locks, clock);
        // A system call on a file needs nothing that the kernel could refuse beforehand.
        let certain = setup.has_local_files() && job.options.is_synchronous(config.depth);
        // Where the kernel can be asked, a trial would delay the first op for nothing: giving up
        // what it has started takes libaio longer than all else before the first op.
        if !tried.insert(setup.place.section) || certain || (engine.is_permitted)() {
            continue;
        }
        let name = info.name;
        if let Err(error) = start(config) {
            let message = format!("cannot start engine `{name}`: {error}");
            let mut problem = RunProblem::new(ProblemKind::EngineRefused, message);
            if !error.hint.is_empty() {
                problem = problem.hint(error.hint);
            }
            problems.push(problem.at(job, "ioengine"));
        }
    }
    problems
}

fn launches(
    setups: &[JobSetup],
    engines: &Registry,
    clock: Clock,
    logs: &Option<Logs>,
    stop: &Stop,
    settings: &Settings,
) -> Vec<Launch> {
    let mut locks = FileLocks::default();
    let each = setups.iter().enumerate().map(|(index, setup)| {
        let job = &setup.job;
        let engine = engines.find(job.options.engine.name);
        let engine = engine.expect("the plan was checked with these engines");
        let files = match engine.info.storage {
            Storage::None | Storage::Peer => 0,
            Storage::LocalFiles | Storage::Remote => setup.files.len(),
        };
        Launch {
            name: setup.name.clone(),
            allow_mounted_write: job.options.allow_mounted_write,
            spec: JobSpec {
                worker: setup.worker.clone(),
                engine: engine_config(job, setup, engine, &mut locks, clock),
                thread: ThreadSettings {
                    scheduler: SchedulerChange::of(job, setup, &BlockTree::default()),
                    ..ThreadSettings::new(&job.options, setup.place.number)
                },
                files: u32::try_from(files).unwrap_or(u32::MAX),
                log: logs.as_ref().and_then(|logs| logs.job(index)),
                hooks: Hooks::of(job, setup.place.clone),
                verified: VerifiedFiles::of(setup, aux_path(settings)),
                trace: Trace::of(setup, &settings.debug),
                replay: setup.replay.clone(),
                recording: Recording::of(setup, stop),
                verify_threads: VerifyThreads::of(&job.options),
                early_end: setup.early_end.clone(),
                watches_processors: setup.place.clone < CLONES_ASKED,
            },
        }
    });
    each.collect()
}
