//! Trial of the jobs on their modelled machines.

use std::collections::BTreeSet;

use fathom_toml::{TomlProblem, TomlProblemKind};
use fathom_virtual::{MachineModel, refuse_unmodelled};

use super::jobs::{PROBLEMS_MAX, file_of, origin_of};
use super::machine::machine_of;
use super::reader::Reader;
use super::trials::{Trial, Trials};
use crate::lab_plan::{LabPlan, MachineSource, job_plan};

/// Notes what the modelled machines of the runs cannot do, at its place in the lab file, the job
/// file or the machine file. Jobs and machines that cannot be read are told by others.
pub(super) fn check(reader: &Reader<'_>, plan: &LabPlan) {
    let Some(machine) = &plan.machine else {
        return;
    };
    let mut told = BTreeSet::new();
    for trial in Trials::of(plan).runs {
        for problem in problems_of(reader, plan, machine, trial) {
            let place = (problem.origin.file.clone(), problem.origin.line);
            if told.insert((place, problem.message.clone())) {
                reader.source.push(problem);
            }
        }
        if told.len() >= PROBLEMS_MAX {
            return;
        }
    }
}

/// Returns what the machine of one run cannot do.
fn problems_of(
    reader: &Reader<'_>,
    plan: &LabPlan,
    machine: &MachineSource,
    trial: Trial<'_>,
) -> Vec<TomlProblem> {
    let Some(job) = trial.job(plan) else {
        return Vec::new();
    };
    let file = file_of(job, trial);
    let jobs = job_plan(reader.environment, &job.file, &file.text);
    let changed = machine_of(reader, machine, &trial).ok();
    let model = changed.and_then(|text| MachineModel::parse(&machine.path, &text).ok());
    let (Ok(jobs), Some(model)) = (jobs, model) else {
        return Vec::new();
    };
    let refused = refuse_unmodelled(&jobs, &model).err().into_iter();
    let problems = refused.flat_map(|refused| refused.problems);
    let told = problems.map(|problem| TomlProblem {
        kind: TomlProblemKind::BadValue,
        origin: origin_of(reader, job, &file, &problem.origin),
        message: problem.message,
        hint: problem.hint.unwrap_or_default().into(),
    });
    told.collect()
}
