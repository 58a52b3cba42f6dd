//! The same plan in virtual time: on modelled devices, and on no clock but the simulation's.
//!
//! The translation, the workers and the collection are those of a real run; nothing is read,
//! written or waited for.

use std::io;

use fathom_core::Tick;
use fathom_job::Plan;
use fathom_record::{RECORD_VERSION, Record};
use fathom_sim::{Constant, Direct, EngineSpec, Orders, Simulation, Storage};
use fathom_workload::{Results, Worker};

use crate::collect;
use crate::drive::Outcome;
use crate::engines;
use crate::error::{Problem, RunError};
use crate::found::{Found, Look};
use crate::lifecycle::Lifecycle;
use crate::logs::MemoryLogs;
use crate::modelled_files::{Home, Placed, place};
use crate::translate::{JobSetup, translate};

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
    let translation = translate(plan, &Nothing, &mut || 0);
    if !translation.problems.is_empty() {
        return Err(RunError {
            problems: translation.problems,
        });
    }
    let logs = MemoryLogs::new(plan, &translation.setups);
    let placed = place(&translation.setups, &|_| ONLY_ONE);
    let storages = vec![Direct::new(device.clone())];
    let world = World { storages, placed };
    let results = run_all(plan, &translation.setups, world, &logs)?;
    let ended = results
        .iter()
        .flatten()
        .map(|results| results.ended)
        .max()
        .unwrap_or(Tick::ZERO);
    let jobs = translation
        .setups
        .iter()
        .zip(results)
        .map(|(setup, results)| {
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
    Ok((record, logs.finish()))
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

/// Runs the jobs on one clock, each when it may start; `None` for those that never did.
fn run_all<S: Storage>(
    plan: &Plan,
    setups: &[JobSetup],
    world: World<S>,
    logs: &MemoryLogs,
) -> Result<Vec<Option<Results>>, RunError> {
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
    Ok(started
        .into_iter()
        .zip(results)
        .map(|(started, results)| started.then_some(results))
        .collect())
}

/// A file system with nothing in it: sizes come from the plan.
struct Nothing;

impl Look for Nothing {
    fn look(&self, _path: &str) -> io::Result<Found> {
        Ok(Found::Missing)
    }
}
