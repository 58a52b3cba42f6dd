//! Checks of `ioscheduler` against the devices under a job's files.

use std::path::{Path, PathBuf};

use fathom_host::block_tree::BlockTree;
use fathom_host::storage::disks_under;
use fathom_job::Job;

use crate::error::RunProblem;
use crate::plan_warning::{PlanWarning, PlanWarningKind};
use crate::problem_kind::ProblemKind;
use crate::translate::JobSetup;

/// I/O scheduler to set on the devices under a job's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerChange {
    /// Name of the scheduler.
    pub name: String,
    /// Name of each device, and its `queue/scheduler` in sysfs.
    pub devices: Vec<(String, PathBuf)>,
}

impl SchedulerChange {
    /// Returns the change that `ioscheduler` requests, if any.
    pub fn of(job: &Job, setup: &JobSetup, tree: &BlockTree) -> Option<Self> {
        let name = job.options.ioscheduler.clone()?;
        if !setup.has_local_files() {
            return None; // ignored, as in fio
        }
        let paths = setup.files.iter().map(|file| Path::new(&file.path));
        let devices = disks_under(paths, tree).into_iter().map(|disk| {
            let file = disk.folder().join("queue/scheduler");
            (disk.name, file)
        });
        Some(Self {
            name,
            devices: devices.collect(),
        })
    }

    /// Returns a problem if the scheduler cannot be set, as far as is known without trying.
    fn problem(&self) -> Option<RunProblem> {
        self.devices.iter().find_map(|(device, file)| {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let has = text.replace(['[', ']'], "");
            let known = has.split_whitespace().chain(MODULES);
            if known.into_iter().any(|known| known == self.name) {
                return None;
            }
            let message = format!("{device} does not offer the I/O scheduler `{}`", self.name);
            let hint = format!("choose one of: {}", has.trim());
            Some(RunProblem::new(ProblemKind::NoSuchScheduler, message).hint(hint))
        })
    }
}

/// Checks the requested schedulers and returns problems and warnings.
pub fn check(setups: &[JobSetup]) -> (Vec<RunProblem>, Vec<PlanWarning>) {
    let tree = BlockTree::default();
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    for setup in setups.iter().filter(|setup| setup.place.clone == 0) {
        let job = &setup.job;
        let Some(change) = SchedulerChange::of(job, setup, &tree) else {
            continue;
        };
        if let Some(problem) = change.problem() {
            problems.push(problem.at(job, "ioscheduler"));
        } else if change.devices.is_empty() {
            warnings.push(PlanWarning {
                kind: PlanWarningKind::SchedulerWithoutDevice,
                job: job.name.clone(),
                message: "`ioscheduler` has no effect: there is no block device under the files"
                    .into(),
                hint: "remove it".into(),
            });
        }
    }
    (problems, warnings)
}

/// Schedulers that the kernel may load as modules when their name is written to sysfs.
const MODULES: [&str; 3] = ["mq-deadline", "kyber", "bfq"];

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_host::fixture::FakeHost;

    /// Checks a change to `name` on a fake device whose sysfs file holds `text`.
    #[track_caller]
    fn check(world: &str, text: &str, name: &str, refused: bool) {
        let fake = FakeHost::new(world);
        fake.device("sda", "8:0");
        fake.attribute("sda", "queue/scheduler", text);
        let disk = fake.tree().named("sda").unwrap();
        let file = disk.folder().join("queue/scheduler");
        let change = SchedulerChange {
            name: name.to_owned(),
            devices: vec![(disk.name, file)],
        };
        assert_eq!(change.problem().is_some(), refused, "{name}: {text}");
    }

    #[test]
    fn unknown_schedulers_are_rejected() {
        check("scheduler-a", "[none] mq-deadline\n", "none", false);
        check("scheduler-b", "[none] mq-deadline\n", "mq-deadline", false);
        check("scheduler-c", "[none] mq-deadline\n", "bfq", false);
        check("scheduler-d", "[none] mq-deadline\n", "mq-deadlin", true);
        check("scheduler-e", "none\n", "deadline", true);
    }
}
