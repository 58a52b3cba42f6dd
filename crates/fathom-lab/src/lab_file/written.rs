//! Names of all that runs write, as the jobs have them.

use std::collections::BTreeMap;

use fathom_job::{Environment, Job, file_names};

use super::jobs::file_of;
use super::trials::{Trials, each_value};
use crate::lab_plan::{LabPlan, Setting, Subject, job_plan, peak_with, writes};

/// Returns the names of files and devices that runs write, each with the first run that does. The
/// runs are those that are tried when the file is read; links are not followed.
pub(crate) fn written_names(
    plan: &LabPlan,
    environment: &dyn Environment,
) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    if let Subject::Peak(of_lab) = &plan.subject {
        for trial in each_value(plan) {
            let settings: Vec<&Setting> = trial.settings().collect();
            let peak = peak_with(of_lab, &settings);
            let target = peak.value("target").filter(|_| peak.writes());
            if let Some(target) = target {
                names.entry(target.to_owned()).or_insert(trial.place());
            }
        }
        return names;
    }
    for trial in Trials::of(plan).runs {
        let Some(job) = trial.job(plan) else {
            continue;
        };
        let file = file_of(job, trial);
        let jobs = job_plan(environment, &job.file, &file.text).unwrap_or_default();
        let written = jobs.jobs.iter().filter(|job| writes(job));
        for name in written
            .filter(|job| job.options.moves_data())
            .flat_map(names_of)
        {
            if names.len() < NAMES_MAX {
                names.entry(name).or_insert_with(|| trial.place());
            }
        }
    }
    names
}

/// Returns the names of a job's files. A section that is named as a device is one.
fn names_of(job: &Job) -> Vec<String> {
    if job.options.filename.is_some() {
        // All clones share them.
        return file_names(job, 0);
    }
    let clones = 0..job.options.numjobs;
    let names = clones.flat_map(|clone| file_names(job, clone));
    names.chain([job.section.clone()]).collect()
}

/// Most names that are looked at: each takes a system call.
const NAMES_MAX: usize = 100_000;
