//! Checks of `ioscheduler` against the devices under a job's files.

use std::path::{Path, PathBuf};

use fathom_host::block_tree::BlockTree;
use fathom_host::storage::{disks_under, scheduler_in_force};
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
        Some(Self::under(paths, name, tree))
    }

    /// Returns the change to the scheduler `name` of the devices under these files.
    pub fn under<'a>(
        paths: impl Iterator<Item = &'a Path>,
        name: String,
        tree: &BlockTree,
    ) -> Self {
        let devices = disks_under(paths, tree).into_iter().map(|disk| {
            let file = disk.folder().join("queue/scheduler");
            (disk.name, file)
        });
        Self {
            name,
            devices: devices.collect(),
        }
    }

    /// Returns the devices whose scheduler changes, each with the one in force.
    fn changed(&self) -> Vec<(&str, String)> {
        let devices = self.devices.iter().filter_map(|(device, file)| {
            let text = std::fs::read_to_string(file).ok()?;
            let before = scheduler_in_force(text.trim()).to_owned();
            (before != self.name).then_some((device.as_str(), before))
        });
        devices.collect()
    }

    /// Returns a problem if the scheduler cannot be set, as far as is known without trying.
    pub fn problem(&self) -> Option<RunProblem> {
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
        } else {
            add_changes(&change, &job.name, &mut warnings);
        }
    }
    (problems, warnings)
}

/// Adds a warning about each scheduler that a job leaves changed, of several jobs on a device once.
fn add_changes(change: &SchedulerChange, job: &str, warnings: &mut Vec<PlanWarning>) {
    for (device, before) in change.changed() {
        let message = format!(
            "`ioscheduler` changes the scheduler of {device} from `{before}` to `{}`, which stays \
             after the run",
            change.name
        );
        if !warnings.iter().any(|known| known.message == message) {
            warnings.push(PlanWarning {
                kind: PlanWarningKind::SchedulerStays,
                job: job.to_owned(),
                message,
                hint: format!(
                    "restore it with `echo {before} > /sys/block/{device}/queue/scheduler`"
                ),
            });
        }
    }
}

/// Schedulers that the kernel may load as modules when their name is written to sysfs.
const MODULES: [&str; 3] = ["mq-deadline", "kyber", "bfq"];

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_host::fixture::FakeHost;

    /// Returns a change to `name` on a fake device whose sysfs file holds `text`.
    fn change(world: &str, text: &str, name: &str) -> (FakeHost, SchedulerChange) {
        let fake = FakeHost::new(world);
        fake.device("sda", "8:0");
        fake.attribute("sda", "queue/scheduler", text);
        let disk = fake.tree().named("sda").unwrap();
        let file = disk.folder().join("queue/scheduler");
        let change = SchedulerChange {
            name: name.to_owned(),
            devices: vec![(disk.name, file)],
        };
        (fake, change)
    }

    #[track_caller]
    fn check(world: &str, text: &str, name: &str, refused: bool) {
        let (_fake, change) = change(world, text, name);
        assert_eq!(change.problem().is_some(), refused, "{name}: {text}");
    }

    #[test]
    fn a_scheduler_that_stays_changed_is_told_once() {
        let (_fake, change) = change("scheduler-f", "[none] mq-deadline\n", "mq-deadline");
        let mut warnings = Vec::new();
        add_changes(&change, "a", &mut warnings);
        add_changes(&change, "b", &mut warnings);
        let told = warnings.iter().map(|one| (&*one.job, &*one.message));
        let want = "`ioscheduler` changes the scheduler of sda from `none` to `mq-deadline`, which \
                    stays after the run";
        assert_eq!(told.collect::<Vec<_>>(), [("a", want)]);
    }

    #[test]
    fn a_scheduler_in_force_is_no_change() {
        let (_fake, change) = change("scheduler-g", "[none] mq-deadline\n", "none");
        assert_eq!(change.changed(), []);
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
