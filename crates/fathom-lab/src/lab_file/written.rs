//! Names of all that runs write, as the jobs have them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use fathom_job::{Environment, Job, file_names};
use fathom_run::replayed_targets;

use super::jobs::file_of;
use super::trials::{Trials, each_value};
use crate::lab_plan::{
    LabPlan, Setting, Subject, changes_files, job_plan, may_replay_changes, peak_with,
};

/// Files and devices that runs write.
#[derive(Debug, Default)]
pub(crate) struct WrittenNames {
    /// Each name with the place of the first run that writes it.
    pub(crate) names: BTreeMap<String, String>,
    /// Logs whose replays may write anything: each with the reason for which it cannot be read.
    pub(crate) unread: BTreeMap<String, String>,
}

/// Returns the names of files and devices that runs write. The runs are those that are tried when
/// the file is read; links are not followed. Costs the reading of all logs that are replayed.
pub(crate) fn written_names(plan: &LabPlan, environment: &dyn Environment) -> WrittenNames {
    let mut written = WrittenNames::default();
    if let Subject::Peak(of_lab) = &plan.subject {
        for trial in each_value(plan) {
            let settings: Vec<&Setting> = trial.settings().collect();
            let peak = peak_with(of_lab, &settings);
            let target = peak.value("target").filter(|_| peak.writes());
            if let Some(target) = target {
                let names = &mut written.names;
                names.entry(target.to_owned()).or_insert(trial.place());
            }
        }
        return written;
    }
    let mut replays = HashSet::new();
    for trial in Trials::of(plan).runs {
        let Some(job) = trial.job(plan) else {
            continue;
        };
        let file = file_of(job, trial);
        let jobs = job_plan(environment, &job.file, &file.text).unwrap_or_default();
        for job in &jobs.jobs {
            let replay = &job.options.replay;
            // Trials differ in options that a log knows nothing of.
            if may_replay_changes(job) && replays.insert(format!("{replay:?}")) {
                written.add_replayed(job, &trial.place());
            }
            if changes_files(job) && !replay.replays() {
                written.add(names_of(job), &trial.place());
            }
        }
    }
    written
}

/// Returns each I/O scheduler that runs ask for, with a file on the device that is to have it.
pub(crate) fn asked_schedulers(
    plan: &LabPlan,
    environment: &dyn Environment,
) -> BTreeSet<(String, String)> {
    let mut asked = BTreeSet::new();
    for trial in Trials::of(plan).runs {
        let Some(job) = trial.job(plan) else {
            continue;
        };
        let file = file_of(job, trial);
        let jobs = job_plan(environment, &job.file, &file.text).unwrap_or_default();
        for job in &jobs.jobs {
            let files = file_names(job, 0).into_iter().take(NAMES_MAX);
            let name = job.options.ioscheduler.iter();
            asked.extend(name.flat_map(|name| files.clone().map(|file| (name.clone(), file))));
        }
    }
    asked
}

impl WrittenNames {
    fn add(&mut self, names: Vec<String>, place: &str) {
        for name in names {
            if self.names.len() < NAMES_MAX {
                self.names.entry(name).or_insert_with(|| place.to_owned());
            }
        }
    }

    fn add_replayed(&mut self, job: &Job, place: &str) {
        match replayed_targets(job) {
            Ok(names) => self.add(names, place),
            Err(problem) => {
                let logs = job.options.replay.logs.join(":");
                self.unread.insert(logs, problem.message);
            }
        }
    }
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
