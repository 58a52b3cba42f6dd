//! Execution of a plan in virtual time.
//!
//! Preflight, workers and collection are those of a real run. No file is read or written, and
//! nothing waits for real time.

mod recordings;
mod unsupported;
mod watch;

use std::io;
use std::sync::Arc;

use fathom_core::{Nanos, Tick};
use fathom_host::target_kind::{FileSystemProbe, TargetKind};
use fathom_job::{Job, Plan, RankPlace, Settings};
use fathom_log::MemoryLogs;
use fathom_record::{CpuRecord, HostClock, HostRecord, ModelledMachine, RECORD_VERSION, Record};
use fathom_setup::check::TakenFiles;
use fathom_setup::collect;
use fathom_setup::debug_output;
use fathom_setup::lifecycle::Lifecycle;
use fathom_setup::outcome::JobOutcome;
use fathom_setup::replay::{ReplayPlan, ReplayStream};
use fathom_setup::timelines;
use fathom_setup::translate::JobSetup;
use fathom_setup::validity::{judge_modelled, mean_depth};
use fathom_setup::{Host, Preflight, RunEvent, Session, preflight};
use fathom_setup::{ProblemKind, RunError, RunProblem};
use fathom_sim::{Constant, Direct, EngineSpec, ModelledStorage, Simulation};
use fathom_workload::{Results, Worker};

use crate::modelled::{Home, MachineModel, Placed, place};
use crate::seeks::seek_record;
use recordings::Recordings;
use watch::RunWatcher;

/// Runs a plan in virtual time with every file on `device`. The same plan and device give the same
/// record.
///
/// # Errors
/// All problems of the plan, or a job that can never end.
pub fn simulate(plan: &Plan, device: &Constant) -> Result<Record, RunError> {
    simulate_logged(plan, device).map(|(record, _logs)| record)
}

/// Name and content of each file of a run's I/O logs.
pub type LogFiles = Vec<(String, Vec<u8>)>;

/// Runs a plan as [`simulate`] does, and returns its I/O logs too.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_logged(plan: &Plan, device: &Constant) -> Result<(Record, LogFiles), RunError> {
    let settings = Settings::default();
    unsupported::refuse(plan)?;
    let mut preflight = preflight(plan, &settings, Host::Modelled(&EmptyFileSystem)).checked()?;
    let world = World {
        storages: vec![Direct::new(device.clone())],
        placed: place(&preflight.setups, &|_| SINGLE_DEVICE),
        machine: None,
    };
    let mut session = Session {
        tell: &mut |_| {},
        stops: &|| 0,
        progress: None,
        report_every: None,
        reports_asked: &|| 0,
        jobs_fail_alone: false,
    };
    let setups = &preflight.setups;
    let (mut record, logs, _storages) = finish(plan, &settings, setups, world, &mut session)?;
    record.warnings = preflight.take_warnings();
    Ok((record, logs))
}

/// Runs a plan in virtual time on a modelled machine. Files and devices are looked up there, never
/// on this machine. With `--seeks` the record has the seek distances of each device. The session's
/// report interval counts virtual time; a stop request ends the run with a record of the ops so
/// far.
///
/// # Errors
/// All problems of the plan, a name without a model, or a model that no job uses.
pub fn simulate_on(
    plan: &Plan,
    machine: &MachineModel,
    settings: &Settings,
    session: &mut Session<'_>,
) -> Result<(Record, LogFiles), RunError> {
    let (mut preflight, placed) = set_up(plan, machine, settings)?;
    refuse_taken_logs(plan, settings, &preflight.setups)?;
    let mut warnings = preflight.take_warnings();
    warnings.extend(unsupported::warnings(plan, settings));
    debug_output::tell_plan(plan, &preflight.setups, &settings.debug, session);
    let planned = collect::planned(&preflight.setups);
    (session.tell)(RunEvent::Planned(&planned));
    for warning in &warnings {
        (session.tell)(RunEvent::Warning(warning));
    }
    (session.tell)(RunEvent::Starting(preflight.setups.len()));
    let jobs = u32::try_from(preflight.setups.len()).unwrap_or(u32::MAX);
    let mut storages = machine.storages(jobs);
    if settings.seeks {
        let ramps = preflight.setups.iter().map(|setup| setup.worker.ramp);
        let from = Tick::ZERO + ramps.max().unwrap_or(Nanos::ZERO);
        for storage in &mut storages {
            storage.count_seeks(from);
        }
    }
    let world = World {
        storages,
        placed,
        machine: Some(machine.record()),
    };
    let setups = &preflight.setups;
    let (mut record, logs, storages) = finish(plan, settings, setups, world, session)?;
    record.warnings = warnings;
    if let Some(modelled) = record.modelled.as_mut().filter(|_| settings.seeks) {
        for (device, storage) in modelled.devices.iter_mut().zip(&storages) {
            device.seeks = storage.seeks().map(seek_record);
        }
    }
    Ok((record, logs))
}

/// Refuses what [`simulate_on`] would refuse before it starts.
///
/// # Errors
/// As [`simulate_on`].
pub fn refuse_unmodelled(plan: &Plan, machine: &MachineModel) -> Result<(), RunError> {
    set_up(plan, machine, &Settings::default()).map(|_set_up| ())
}

/// Refuses I/O logs that would replace files that were named for the run, or logs of its jobs.
fn refuse_taken_logs(
    plan: &Plan,
    settings: &Settings,
    setups: &[JobSetup],
) -> Result<(), RunError> {
    let taken = TakenFiles::default().named(settings).recorded(setups);
    let problems = MemoryLogs::new(setups, log_suffix(plan)).conflicts(&taken);
    match problems.is_empty() {
        true => Ok(()),
        false => Err(RunError { problems }),
    }
}

/// Sets up the jobs and places their files on the machine.
fn set_up(
    plan: &Plan,
    machine: &MachineModel,
    settings: &Settings,
) -> Result<(Preflight, Placed), RunError> {
    unsupported::refuse(plan)?;
    let preflight = preflight(plan, settings, Host::Modelled(machine)).checked()?;
    let placed = machine.place(plan, &preflight.setups)?;
    Ok((preflight, placed))
}

/// Runs a plan as [`simulate_on`] does, without events and logs, for callers that run many.
///
/// # Errors
/// As [`simulate_on`].
pub fn simulate_quietly(
    plan: &Plan,
    machine: &MachineModel,
    stops: &dyn Fn() -> u32,
) -> Result<Record, RunError> {
    let mut session = Session {
        tell: &mut |_| {},
        stops,
        progress: None,
        report_every: None,
        reports_asked: &|| 0,
        jobs_fail_alone: false,
    };
    simulate_on(plan, machine, &Settings::default(), &mut session).map(|(record, _logs)| record)
}

/// Runs the jobs and returns their record, their logs and the storages.
fn finish<S: ModelledStorage>(
    plan: &Plan,
    settings: &Settings,
    setups: &[JobSetup],
    world: World<S>,
    session: &mut Session<'_>,
) -> Result<(Record, LogFiles, Vec<S>), RunError> {
    let (logs, mut recordings) = (
        MemoryLogs::new(setups, log_suffix(plan)),
        Recordings::default(),
    );
    let machine = world.machine.clone();
    let run = RunParts {
        plan,
        setups,
        machine: &machine,
    };
    let (results, storages) = run_all(&run, settings, world, (&logs, &mut recordings), session)?;
    let ended = results.iter().flatten().map(|results| results.ended);
    let ended = ended.max().unwrap_or(Tick::ZERO);
    let mut files = logs.finish();
    files.extend(recordings.end());
    let depths = results.iter().map(|results| mean_depth(results.as_ref()));
    let mean_depths: Vec<f64> = depths.collect();
    let mut record = run.record(results, ended);
    record.validity = judge_modelled(setups, &record.jobs, &mean_depths);
    record.timelines = timelines::recorded(setups);
    record.hosts = modelled_host(plan, settings, ended).into_iter().collect();
    Ok((record, files, storages))
}

/// Returns the entry of this rank, if the run is one of several. All begin at 0 of virtual time.
fn modelled_host(plan: &Plan, settings: &Settings, ended: Tick) -> Option<HostRecord> {
    let rank = settings.rank?;
    Some(HostRecord {
        name: format!("rank-{}", rank.rank),
        rank: rank.rank,
        ranks: rank.ranks,
        program: format!("fathom {}", env!("CARGO_PKG_VERSION")),
        clock: HostClock {
            compared: "none".to_owned(),
            is_synchronised: true,
            bound_ns: Some(0),
            ..HostClock::default()
        },
        end_ns: ended.get(),
        left_out: plan.left_out.clone(),
        ..HostRecord::default()
    })
}

/// Returns the end of the names of this rank's logs: by its rank, as in the record.
fn log_suffix(plan: &Plan) -> String {
    let rank = plan.place.rank;
    let place = RankPlace {
        rank,
        host: format!("rank-{}", rank.rank),
        ..RankPlace::default()
    };
    place.log_suffix()
}

/// Parts of a record other than the results of the jobs.
struct RunParts<'a> {
    plan: &'a Plan,
    setups: &'a [JobSetup],
    machine: &'a Option<ModelledMachine>,
}

impl RunParts<'_> {
    /// Returns the record of the jobs until `now`; `None` stands for a job without results.
    fn record(&self, results: Vec<Option<Results>>, now: Tick) -> Record {
        let outcomes = results.into_iter().map(|results| {
            results.map(|results| JobOutcome {
                cpu: CpuRecord {
                    wall_us: (results.ended - results.started).get() / 1_000,
                    ..CpuRecord::default()
                },
                results: Some(results),
                ..JobOutcome::default()
            })
        });
        let wall_of = |_: &JobSetup, tick: Tick| tick.get() / 1_000_000;
        Record {
            version: RECORD_VERSION,
            time: "Thu Jan  1 00:00:00 1970".into(),
            elapsed_ms: now.get() / 1_000_000,
            global_options: self.plan.global_options.clone(),
            jobs: collect::completed(self.setups, outcomes.collect(), &wall_of),
            modelled: self.machine.clone(),
            ..Record::default()
        }
    }
}

/// Place of every file if there is only one device.
const SINGLE_DEVICE: Home = Home {
    storage: 0,
    is_device: false,
};

/// Devices of a machine, and the files placed on them.
struct World<S> {
    storages: Vec<S>,
    placed: Placed,
    /// Description of the machine, for the record.
    machine: Option<ModelledMachine>,
}

/// Results of each job, `None` for those that never started, and the storages.
type ResultsAndStorages<S> = (Vec<Option<Results>>, Vec<S>);

/// Runs all jobs on one virtual clock, each from the time at which it may start.
fn run_all<S: ModelledStorage>(
    run: &RunParts<'_>,
    settings: &Settings,
    world: World<S>,
    (logs, recordings): (&MemoryLogs, &mut Recordings),
    session: &mut Session<'_>,
) -> Result<ResultsAndStorages<S>, RunError> {
    let mut simulation = Simulation::new(world.storages, world.placed.files);
    if let Some(timeout) = settings.trigger_timeout {
        simulation.stop_at(Tick::ZERO + timeout);
    }
    let lifecycle = Lifecycle::new(run.plan, run.setups.iter().map(|setup| setup.place));
    let mut watcher = RunWatcher::new(run, lifecycle, session);
    for ((index, setup), files) in run.setups.iter().enumerate().zip(world.placed.of_jobs) {
        let job = &setup.job;
        let engine = simulation.engine(&EngineSpec {
            depth: setup.worker.depth,
            buffer_bytes: setup.buffer_bytes,
            synchronous: job.options.is_synchronous(setup.worker.depth) || job.options.gathers(),
            files,
        });
        let mut worker = Worker::new(setup.worker.clone(), engine.capabilities(), Tick::ZERO)
            .map_err(|error| {
                RunProblem::new(ProblemKind::JobMakesNoSense, error.to_string()).at(job, "name")
            })?;
        if let Some(log) = logs.job(index) {
            worker.log_to(log);
        }
        if let Some(sink) = recordings.begin(setup) {
            worker.record_to(sink);
        }
        if let Some(replay) = &setup.replay {
            worker.replay_from(Box::new(open_log(replay, job)?));
        }
        if watcher.has_started(index) {
            simulation.add(worker, engine, Tick::ZERO);
        } else {
            simulation.add_waiting(worker, engine);
        }
    }
    let ran = simulation.run_with(&mut watcher);
    let ran = ran.map_err(|stuck| RunProblem::new(ProblemKind::Stuck, stuck.to_string()))?;
    let results = ran.jobs.into_iter().enumerate();
    let results = results.map(|(index, (results, _))| {
        // A job that never started has no results, although its worker has empty ones.
        watcher.has_started(index).then_some(results)
    });
    Ok((results.collect(), ran.storages))
}

/// Opens the log of a replay, which is read between turns: virtual time does not pass meanwhile.
fn open_log(replay: &Arc<ReplayPlan>, job: &Job) -> Result<ReplayStream, RunProblem> {
    let opened = replay.open().map_err(|error| {
        let message = format!("cannot read {}: {error}", replay.log);
        RunProblem::new(ProblemKind::ReplayLog, message).at(job, "read_iolog")
    });
    Ok(replay.stream(opened?))
}

/// An empty file system: sizes come from the plan.
struct EmptyFileSystem;

impl FileSystemProbe for EmptyFileSystem {
    fn kind(&self, _path: &str) -> io::Result<TargetKind> {
        Ok(TargetKind::Missing)
    }
}
