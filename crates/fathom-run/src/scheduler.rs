//! `ioscheduler`: set on the devices under a job's files when the job starts, and left so, as in
//! fio.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fathom_host::block_tree::BlockTree;
use fathom_host::storage::{disks_under, scheduler_in_force};
use fathom_job::{Job, Plan};
use fathom_record::Warning;
use fathom_sys::lease::Lease;

use crate::error::Problem;
use crate::outcome::Fault;
use crate::translate::JobSetup;

/// A scheduler to be set on some devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Switch {
    name: String,
    /// The device's name, and the file that names its scheduler.
    devices: Vec<(String, PathBuf)>,
}

impl Switch {
    /// What the job asks for; `None` for nothing.
    pub(crate) fn of(job: &Job, setup: &JobSetup, tree: &BlockTree) -> Option<Self> {
        let name = job.options.ioscheduler.clone()?;
        if setup.diskless {
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

    /// Sets it, and looks whether it is in force.
    pub(crate) fn apply(&self) -> Result<(), Fault> {
        for (device, file) in &self.devices {
            set(file, &self.name).map_err(|error| Fault {
                errno: error.raw_os_error().unwrap_or(EINVAL).unsigned_abs(),
                text: format!("ioscheduler: {}: {device}: {error}", self.name),
                hint: match std::fs::read_to_string(file) {
                    Ok(text) => format!("{device} has: {}", text.replace(['[', ']'], "").trim()),
                    Err(_) => String::new(),
                },
            })?;
        }
        Ok(())
    }

    /// Why it cannot be set, as far as that can be told without trying.
    fn problem(&self) -> Option<Problem> {
        self.devices.iter().find_map(|(device, file)| {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let has = text.replace(['[', ']'], "");
            let known = has.split_whitespace().chain(MODULES);
            if known.into_iter().any(|known| known == self.name) {
                return None;
            }
            let message = format!("{device} has no I/O scheduler `{}`", self.name);
            let hint = format!("choose one of: {}", has.trim());
            Some(Problem::new("no_such_scheduler", message).hint(hint))
        })
    }
}

/// The schedulers of the devices under a file, put back when this is dropped, or by the next one
/// if the process is killed.
#[derive(Debug)]
pub struct KeptSchedulers {
    devices: Vec<Kept>,
}

/// The scheduler of one device.
#[derive(Debug)]
struct Kept {
    device: String,
    /// It names the scheduler.
    file: PathBuf,
    /// The scheduler before the change.
    before: String,
    /// Says so to those who come after a process that was killed; `None` before it is changed, or
    /// where no file can be written.
    note: Option<Lease>,
}

impl KeptSchedulers {
    /// Those under `path`; none where no block device is.
    #[must_use]
    pub fn under(path: &Path) -> Self {
        let disks = disks_under([path], &BlockTree::default()).into_iter();
        let devices = disks.filter_map(|disk| {
            let file = disk.folder().join("queue/scheduler");
            let text = std::fs::read_to_string(&file).ok()?;
            let in_force = scheduler_in_force(text.trim()).to_owned();
            Some(Kept {
                before: noted(&disk.name, &in_force).unwrap_or(in_force),
                device: disk.name,
                file,
                note: None,
            })
        });
        Self {
            devices: devices.collect(),
        }
    }

    /// Sets another one on all of them.
    ///
    /// # Errors
    /// That there is no device, or which one refuses, and why.
    pub fn set(&mut self, name: &str) -> Result<(), Problem> {
        if self.devices.is_empty() {
            let problem = Problem::new("no_device", "no block device is under the target");
            return Err(problem.hint("name a block device, or a file on one"));
        }
        for Kept {
            device,
            file,
            before,
            note,
        } in &mut self.devices
        {
            *note = note.take().or_else(|| written(device, before, name));
            set(file, name).map_err(|error| {
                let message = format!("cannot set the I/O scheduler `{name}` of {device}: {error}");
                Problem::new("scheduler_not_set", message)
                    .hint("be root, and choose a device whose `queue/scheduler` lists it")
            })?;
        }
        Ok(())
    }
}

impl Drop for KeptSchedulers {
    fn drop(&mut self) {
        for kept in &self.devices {
            // It was in force a moment ago; nobody is left to be told if it is refused.
            let _as_far_as_possible = set(&kept.file, &kept.before);
            if let Some(note) = &kept.note {
                let _left_behind = std::fs::remove_file(note.path());
            }
        }
    }
}

/// A note of what is in force on a device, and of what is set instead.
fn written(device: &str, before: &str, name: &str) -> Option<Lease> {
    let note = Lease::new_file(&std::env::temp_dir(), &note_prefix(device)).ok()?;
    std::fs::write(note.path(), format!("{before} {name}")).ok()?;
    Some(note)
}

/// Returns the scheduler that a device had before a process, since killed, set `in_force`;
/// the note is taken away.
fn noted(device: &str, in_force: &str) -> Option<String> {
    let mut before = None;
    for note in Lease::abandoned(&std::env::temp_dir(), &note_prefix(device)) {
        let text = std::fs::read_to_string(note.path()).unwrap_or_default();
        // Somebody may have chosen another one since.
        if let Some((noted, name)) = text.split_once(' ')
            && name == in_force
        {
            before = Some(noted.to_owned());
        }
        let _left_behind = std::fs::remove_file(note.path());
    }
    before
}

fn note_prefix(device: &str) -> String {
    format!("fathom-scheduler-{device}-")
}

fn set(file: &Path, name: &str) -> io::Result<()> {
    let mut open = OpenOptions::new().write(true).open(file)?;
    open.write_all(name.as_bytes())?;
    let text = std::fs::read_to_string(file)?;
    match scheduler_in_force(&text) {
        in_force if in_force == name => Ok(()),
        in_force => Err(io::Error::other(format!(
            "the kernel keeps `{}`",
            in_force.trim()
        ))),
    }
}

/// What is wrong with the schedulers that the jobs ask for, and what they should know.
pub(crate) fn check(plan: &Plan, setups: &[JobSetup]) -> (Vec<Problem>, Vec<Warning>) {
    let tree = BlockTree::default();
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    for setup in setups.iter().filter(|setup| setup.place.clone == 0) {
        let job = &plan.jobs[setup.place.section];
        let Some(switch) = Switch::of(job, setup, &tree) else {
            continue;
        };
        if let Some(problem) = switch.problem() {
            problems.push(problem.at(job, "ioscheduler"));
        } else if switch.devices.is_empty() {
            warnings.push(Warning {
                code: "ioscheduler_without_device".into(),
                job: job.name.clone(),
                message: "`ioscheduler` does nothing: no block device is under the files".into(),
                hint: "leave it out".into(),
            });
        }
    }
    (problems, warnings)
}

/// Schedulers that the kernel may load when their name is written.
const MODULES: [&str; 3] = ["mq-deadline", "kyber", "bfq"];
const EINVAL: i32 = 22;

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_host::fixture::MadeUp;

    /// A switch to `name` on a made-up device whose file says `text`.
    fn switch(world: &str, text: &str, name: &str) -> (MadeUp, Switch) {
        let made_up = MadeUp::new(world);
        made_up.device("sda", "8:0");
        made_up.attribute("sda", "queue/scheduler", text);
        let disk = made_up.tree().named("sda").unwrap();
        let file = disk.folder().join("queue/scheduler");
        let devices = vec![(disk.name, file)];
        let name = name.to_owned();
        (made_up, Switch { name, devices })
    }

    #[track_caller]
    fn check(world: &str, text: &str, name: &str, refused: bool) {
        let (_made_up, switch) = switch(world, text, name);
        assert_eq!(switch.problem().is_some(), refused, "{name}: {text}");
    }

    #[test]
    fn names_that_no_device_has_are_refused_at_once() {
        check("scheduler-a", "[none] mq-deadline\n", "none", false);
        check("scheduler-b", "[none] mq-deadline\n", "mq-deadline", false);
        check("scheduler-c", "[none] mq-deadline\n", "bfq", false);
        check("scheduler-d", "[none] mq-deadline\n", "mq-deadlin", true);
        check("scheduler-e", "none\n", "deadline", true);
    }

    #[test]
    fn what_a_killed_process_has_changed_is_known_to_the_next() {
        let device = format!("made-up-{}", std::process::id());
        let note = written(&device, "none", "bfq").unwrap();
        assert_eq!(noted(&device, "bfq"), None, "its owner is alive");
        drop(note);
        assert_eq!(noted(&device, "bfq").as_deref(), Some("none"));
        assert_eq!(noted(&device, "bfq"), None);
        drop(written(&device, "none", "bfq"));
        assert_eq!(noted(&device, "kyber"), None, "chosen by somebody since");
    }

    #[test]
    fn what_was_written_is_looked_at() {
        // An ordinary file keeps what is written over its beginning, and the rest.
        let (_made_up, kept) = switch("scheduler-f", "none", "kyber");
        kept.apply().unwrap();
        let (_made_up, refused) = switch("scheduler-h", "mq-deadline", "none");
        let fault = refused.apply().unwrap_err();
        assert_eq!(fault.errno, 22);
        assert_eq!(
            fault.text,
            "ioscheduler: none: sda: the kernel keeps `noneeadline`"
        );
        let (made_up, missing) = switch("scheduler-g", "", "none");
        drop(made_up);
        let missing = Switch {
            devices: vec![("sda".into(), "/proc/no-such-scheduler".into())],
            ..missing
        };
        let fault = missing.apply().unwrap_err();
        assert_eq!(fault.errno, 2);
        assert!(
            fault.text.starts_with("ioscheduler: none: sda: "),
            "{}",
            fault.text
        );
    }
}
