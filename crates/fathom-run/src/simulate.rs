//! The same plan in virtual time: on modelled devices, and on no clock but the simulation's.
//!
//! The translation, the workers and the collection are those of a real run; nothing is read,
//! written or waited for.

use std::io;

use fathom_core::{Nanos, Tick};
use fathom_job::Plan;
use fathom_record::{JobRecord, RECORD_VERSION, Record, Warning};
use fathom_sim::{Constant, Direct, EngineSpec, Orders, Simulation, Storage};
use fathom_workload::{Results, Worker};

use crate::collect;
use crate::drive::Outcome;
use crate::engines;
use crate::error::{Problem, RunError};
use crate::found::{Found, Look};
use crate::lifecycle::Lifecycle;
use crate::logs::MemoryLogs;
use crate::modelled::{Home, Machine, Placed, place};
use crate::seeks::seek_record;
use crate::session::Event;
use crate::translate::{JobSetup, Translation, translate};

/// Runs a plan in virtual time, every file on `device`. Same plan, same device: same record.
///
/// # Errors
/// What stands in the way of the plan, or a job that can never end.
pub fn simulate(plan: &Plan, device: &Constant) -> Result<Record, RunError> {
    simulate_logged(plan, device).map(|(record, _logs)| record)
}

/// Name and content of each file of a run's I/O logs.
pub type LogFiles = Vec<(String, Vec<u8>)>;

/// The same, with the I/O logs that the plan asks for: name and content of each file.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_logged(plan: &Plan, device: &Constant) -> Result<(Record, LogFiles), RunError> {
    let translation = translate(plan, &Nothing, &mut || 0).checked()?;
    let world = World {
        storages: vec![Direct::new(device.clone())],
        placed: place(&translation.setups, &|_| ONLY_ONE),
    };
    let (record, logs, _storages) = finish(plan, translation, world)?;
    Ok((record, logs))
}

/// Runs a plan in virtual time on a modelled machine: its files and devices are looked up there,
/// and nothing of this machine is looked at. With `seeks` the record says what each device was
/// given, and how far apart.
///
/// # Errors
/// What stands in the way of the plan, a name that has no model, a model that no job uses.
pub fn simulate_on(
    plan: &Plan,
    machine: &Machine,
    seeks: bool,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<(Record, LogFiles), RunError> {
    let mut translation = translate(plan, machine, &mut || 0).checked()?;
    let placed = machine.place(plan, &translation.setups)?;
    translation.warnings.extend(not_modelled(plan));
    let planned: Vec<JobRecord> = (translation.setups.iter())
        .map(|setup| collect::planned(&plan.jobs[setup.place.section], setup))
        .collect();
    tell(Event::Planned(&planned));
    for warning in &translation.warnings {
        tell(Event::Warning(warning));
    }
    tell(Event::Starting(translation.setups.len()));
    let jobs = u32::try_from(translation.setups.len()).unwrap_or(u32::MAX);
    let mut storages = machine.storages(jobs);
    if seeks {
        let ramps = translation.setups.iter().map(|setup| setup.worker.ramp);
        let from = Tick::ZERO + ramps.max().unwrap_or(Nanos::ZERO);
        for storage in &mut storages {
            storage.count_seeks(from);
        }
    }
    let (record, logs, storages) = finish(plan, translation, World { storages, placed })?;
    let mut modelled = machine.record();
    if seeks {
        for (device, storage) in modelled.devices.iter_mut().zip(&storages) {
            device.seeks = storage.seeks().map(seek_record);
        }
    }
    let record = Record {
        modelled: Some(modelled),
        ..record
    };
    Ok((record, logs))
}

impl Translation {
    /// Itself, or what stands in the way.
    fn checked(self) -> Result<Self, RunError> {
        if self.problems.is_empty() {
            return Ok(self);
        }
        Err(RunError {
            problems: self.problems,
        })
    }
}

/// What a plan asks for that has no meaning in virtual time.
fn not_modelled(plan: &Plan) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code: &str, job: &str, message: &str, hint: &str| {
        warnings.push(Warning {
            code: code.into(),
            job: job.into(),
            message: message.into(),
            hint: hint.into(),
        });
    };
    for job in &plan.jobs {
        let lifecycle = &job.options.lifecycle;
        if lifecycle.exec_prerun.is_some() || lifecycle.exec_postrun.is_some() {
            let message = "commands are not run in virtual time";
            warn("commands_not_run", &job.name, message, "");
        }
        if !job.options.direct {
            let message = "there is no page cache in virtual time: every op goes to the device";
            let hint = "write `direct=1` to say so";
            warn("no_page_cache", &job.name, message, hint);
        }
    }
    warnings
}

/// Runs the jobs and makes the record of what came of them; gives the storages back.
fn finish<S: Storage>(
    plan: &Plan,
    translation: Translation,
    world: World<S>,
) -> Result<(Record, LogFiles, Vec<S>), RunError> {
    let logs = MemoryLogs::new(plan, &translation.setups);
    let (results, storages) = run_all(plan, &translation.setups, world, &logs)?;
    let ended = results.iter().flatten().map(|results| results.ended);
    let ended = ended.max().unwrap_or(Tick::ZERO);
    let jobs = translation.setups.iter().zip(results);
    let jobs = jobs.map(|(setup, results)| {
        let planned = collect::planned(&plan.jobs[setup.place.section], setup);
        let outcome = results.map(|results| Outcome {
            wall: results.ended - results.started,
            results: Some(results),
            ..Outcome::default()
        });
        collect::complete(planned, setup, outcome, &|tick| tick.get() / 1_000_000)
    });
    let record = Record {
        version: RECORD_VERSION,
        time: "Thu Jan  1 00:00:00 1970".into(),
        elapsed_ms: ended.get() / 1_000_000,
        global_options: plan.global_options.clone(),
        jobs: jobs.collect(),
        warnings: translation.warnings,
        ..Record::default()
    };
    Ok((record, logs.finish(), storages))
}

/// Files are on the one device that there is.
const ONLY_ONE: Home = Home {
    storage: 0,
    is_device: false,
};

/// What the jobs of a plan share.
struct World<S> {
    storages: Vec<S>,
    placed: Placed,
}

/// What came of each job, `None` for those that never started, and the storages.
type RanAll<S> = (Vec<Option<Results>>, Vec<S>);

/// Runs the jobs on one clock, each when it may start.
fn run_all<S: Storage>(
    plan: &Plan,
    setups: &[JobSetup],
    world: World<S>,
    logs: &MemoryLogs,
) -> Result<RanAll<S>, RunError> {
    let mut simulation = Simulation::new(world.storages, world.placed.files);
    let mut lifecycle = Lifecycle::new(plan, setups.iter().map(|setup| setup.place));
    let mut started = vec![false; setups.len()];
    let first = lifecycle.ready();
    for ((index, setup), files) in setups.iter().enumerate().zip(world.placed.of_jobs) {
        let job = &plan.jobs[setup.place.section];
        let engine = simulation.engine(&EngineSpec {
            depth: setup.worker.depth,
            buffer_bytes: setup.buffer_bytes,
            synchronous: engines::is_synchronous(&job.options, setup.worker.depth),
            files,
        });
        let mut worker = Worker::new(setup.worker.clone(), engine.capabilities(), Tick::ZERO)
            .map_err(|error| {
                Problem::new("job_makes_no_sense", error.to_string()).at(job, "name")
            })?;
        if let Some(log) = logs.job(index) {
            worker.log_to(log);
        }
        if first.contains(&index) {
            started[index] = true;
            simulation.add(worker, engine, Tick::ZERO);
        } else {
            simulation.add_waiting(worker, engine);
        }
    }
    let ran = simulation.run_with(&mut |index, worker| {
        let stop = lifecycle.ended(index, worker.has_failed());
        let start = lifecycle.ready();
        start.iter().for_each(|&index| started[index] = true);
        Orders { start, stop }
    });
    let ran = ran.map_err(|stuck| Problem::new("stuck", stuck.to_string()))?;
    let results = ran.jobs.into_iter().map(|(results, _)| results);
    let results = started.into_iter().zip(results);
    let results = results.map(|(started, results)| started.then_some(results));
    Ok((results.collect(), ran.storages))
}

/// A file system with nothing in it: sizes come from the plan.
struct Nothing;

impl Look for Nothing {
    fn look(&self, _path: &str) -> io::Result<Found> {
        Ok(Found::Missing)
    }
}
