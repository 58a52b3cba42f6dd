//! Checks of a plan on this host, and the agreement of all ranks on it, before anything is written.

use std::collections::HashSet;

use fathom_core::Tick;
use fathom_engine::{Registry, start};
use fathom_job::{ClockSource, Plan, Settings};
use fathom_record::Warning;
use fathom_setup::translate::{EarlyEnd, JobSetup};
use fathom_setup::{Host, Preflight, ProblemKind, RunError, RunProblem, Session, preflight};
use fathom_sys::clock::Clock;

use crate::agreed_start::{self, AgreedStart};
use crate::device_trace::DeviceTrace;
use crate::engine_config::engine_config;
use crate::file_locks::FileLocks;
use crate::gtod::Gtod;
use crate::peer_access::PeerAccess;
use crate::prepare;
use crate::run::aux_path;
use crate::run_files::RunFiles;
use crate::shared_layout::{self, LayoutShare};
use crate::verify_state;

/// Plan that has passed the checks of this host.
pub(crate) struct Checked {
    /// Clock thread, if a job requests one.
    pub(crate) gtod: Gtod,
    /// Clock of the run.
    pub(crate) clock: Clock,
    /// Beginning of the checks.
    pub(crate) begun: Tick,
    /// `--start-at`.
    pub(crate) agreed: Option<AgreedStart>,
    /// Plan as it will run.
    pub(crate) preflight: Preflight,
    /// Jobs that will fail alone.
    pub(crate) failing: Vec<Warning>,
}

impl Checked {
    /// Checks all of a plan; nothing is created or written. Without other ranks, it needs a job.
    pub(crate) fn new(
        plan: &Plan,
        settings: &Settings,
        engines: &Registry,
        session: &Session<'_>,
        is_alone: bool,
    ) -> Result<Self, RunError> {
        let (gtod, clock) = Gtod::start(plan, clock(plan)?)?;
        let begun = clock.now();
        let agreed = agreed_start::of(settings, is_alone)?;
        check_talk(settings, is_alone)?;
        let files = RunFiles::new(engines, clock, session.stops);
        let mut preflight = preflight(plan, settings, Host::Local(&files));
        if files.is_interrupted() {
            let why = "interrupted while connecting to remote storage";
            return Err(RunProblem::new(ProblemKind::LookUpInterrupted, why).into());
        }
        if is_alone && plan.jobs.is_empty() && plan.left_out.is_empty() {
            let problem = RunProblem::new(ProblemKind::NoJobs, "no job to run");
            let hint = "name a job file, or begin with `--name=test`";
            preflight.problems.push(problem.hint(hint));
        }
        let failing = check_all(
            settings,
            &mut preflight,
            engines,
            clock,
            session.jobs_fail_alone,
        )?;
        load_states(&mut preflight, settings)?;
        Ok(Self {
            gtod,
            clock,
            begun,
            agreed,
            preflight,
            failing,
        })
    }
}

/// Refuses `--stop-together` for one of several ranks that do not talk.
fn check_talk(settings: &Settings, is_alone: bool) -> Result<(), RunError> {
    let is_one_of_several = settings.rank.is_some_and(|rank| rank.ranks > 1);
    if !(settings.stop_together && is_alone && is_one_of_several) {
        return Ok(());
    }
    let why = "--stop-together: ranks started by `--rank` do not communicate";
    let problem = RunProblem::new(ProblemKind::NoPeers, why);
    Err(problem
        .hint("remove it, or start the ranks by `mpirun fathom-mpi run`")
        .into())
}

/// Agrees with the other ranks on the plan and on the files that this one lays out.
pub(crate) fn agree(
    checked: Result<Checked, RunError>,
    peers: &PeerAccess<'_>,
    stops: &dyn Fn() -> u32,
) -> Result<(Checked, LayoutShare), RunError> {
    let jobs = match &checked {
        Ok(checked) => Ok(prepare::layout_jobs(
            &checked.preflight.setups,
            &checked.failing,
        )),
        Err(refusal) => Err(refusal.clone()),
    };
    let share = shared_layout::agree(jobs, peers, stops);
    Ok((checked?, share?))
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

/// Reports every problem before anything is written. If jobs may fail alone, returns a warning for
/// each job that will.
fn check_all(
    settings: &Settings,
    preflight: &mut Preflight,
    engines: &Registry,
    clock: Clock,
    jobs_fail_alone: bool,
) -> Result<Vec<Warning>, RunError> {
    let mut problems = std::mem::take(&mut preflight.problems);
    let of_one_job = |problem: &mut RunProblem| jobs_fail_alone && problem.kind.is_of_one_job();
    let failing: Vec<RunProblem> = problems.extract_if(.., of_one_job).collect();
    // Its own open would find that nothing was laid out, not why.
    for problem in failing.iter().filter(|problem| problem.errno.is_some()) {
        let setups = preflight.setups.iter_mut();
        let own = setups.filter(|setup| setup.job.name == problem.job);
        own.for_each(|setup| setup.early_end = Some(EarlyEnd::of(problem)));
    }
    let failing = failing.into_iter().map(warning_of).collect();
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

/// Returns the warning of a job that fails alone.
pub(crate) fn warning_of(problem: RunProblem) -> Warning {
    Warning {
        code: problem.kind.code().into(),
        job: problem.job,
        message: format!("{}: the job fails", problem.message),
        hint: problem.hint.map(String::from).unwrap_or_default(),
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

/// Loads the verify states that jobs ask for.
fn load_states(preflight: &mut Preflight, settings: &Settings) -> Result<(), RunError> {
    let problems = verify_state::load(&mut preflight.setups, aux_path(settings));
    match problems.is_empty() {
        true => Ok(()),
        false => Err(RunError { problems }),
    }
}
