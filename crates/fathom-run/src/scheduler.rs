//! `ioscheduler`: sets the I/O scheduler of the devices under a job's files when the job starts.
//! It stays set after the run, as in fio.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fathom_core::Errno;
use fathom_host::block_tree::BlockTree;
use fathom_host::storage::{disks_under, scheduler_in_force};
use fathom_setup::check::scheduler::SchedulerChange;
use fathom_setup::outcome::JobFailure;
use fathom_sys::lease::Lease;

/// Sets the scheduler on a job's devices and verifies that the kernel accepted it.
pub(crate) fn apply(change: &SchedulerChange) -> Result<(), JobFailure> {
    for (device, file) in &change.devices {
        set(file, &change.name).map_err(|error| JobFailure {
            errno: Errno::of(&error).unwrap_or(Errno::EINVAL),
            text: format!("ioscheduler: {}: {device}: {error}", change.name),
            hint: match std::fs::read_to_string(file) {
                Ok(text) => {
                    let offered = text.replace(['[', ']'], "");
                    format!("choose one that {device} offers: {}", offered.trim())
                }
                Err(_) => String::new(),
            },
        })?;
    }
    Ok(())
}

/// Returns why no device under a file can have the scheduler `name`, with a hint; `None` if it can,
/// as far as is known without trying.
#[must_use]
pub fn why_no_scheduler(path: &Path, name: &str) -> Option<(String, String)> {
    let tree = BlockTree::default();
    let change = SchedulerChange::under([path].into_iter(), name.to_owned(), &tree);
    let problem = change.problem()?;
    Some((
        problem.message,
        problem.hint.map_or_else(String::new, Into::into),
    ))
}

/// Original schedulers of the devices under a file. Dropping the guard restores them; if the
/// process is killed, the next guard for the same device does.
#[derive(Debug)]
pub struct SchedulerGuard {
    devices: Vec<SavedScheduler>,
}

/// Original scheduler of one device.
#[derive(Debug)]
struct SavedScheduler {
    device: String,
    /// The device's `queue/scheduler` in sysfs.
    file: PathBuf,
    /// The scheduler before the change.
    before: String,
    /// Record of the change on disk, for the guard after a killed process; `None` before the
    /// change, or if it cannot be written.
    note: Option<Lease>,
}

impl SchedulerGuard {
    /// Captures the schedulers of the devices under `path`; none if no block device is there.
    #[must_use]
    pub fn under(path: &Path) -> Self {
        let disks = disks_under([path], &BlockTree::default()).into_iter();
        let devices = disks.filter_map(|disk| {
            let file = disk.folder().join("queue/scheduler");
            let text = std::fs::read_to_string(&file).ok()?;
            let in_force = scheduler_in_force(text.trim()).to_owned();
            Some(SavedScheduler {
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

    /// Sets the scheduler `name` on all devices.
    ///
    /// # Errors
    /// There is no device, or one rejects the scheduler.
    pub fn set(&mut self, name: &str) -> Result<(), SchedulerError> {
        if self.devices.is_empty() {
            return Err(SchedulerError::NoDevice);
        }
        for SavedScheduler {
            device,
            file,
            before,
            note,
        } in &mut self.devices
        {
            *note = note.take().or_else(|| written(device, before, name));
            set(file, name).map_err(|source| SchedulerError::Rejected {
                name: name.to_owned(),
                device: device.clone(),
                source,
            })?;
        }
        Ok(())
    }
}

impl Drop for SchedulerGuard {
    fn drop(&mut self) {
        for kept in &self.devices {
            // A failure is unlikely, since the scheduler was active before, and drop cannot
            // report it.
            let _as_far_as_possible = set(&kept.file, &kept.before);
            if let Some(note) = &kept.note {
                let _left_behind = std::fs::remove_file(note.path());
            }
        }
    }
}

/// Reason why [`SchedulerGuard::set`] failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum SchedulerError {
    /// The target is not on a block device.
    NoDevice,
    /// A device does not accept the scheduler.
    Rejected {
        /// Name of the scheduler.
        name: String,
        /// Name of the device.
        device: String,
        /// Error of the write, or the scheduler that the kernel keeps.
        source: io::Error,
    },
}

impl SchedulerError {
    /// Returns the remedy, in the imperative.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NoDevice => "name a block device, or a file on one",
            Self::Rejected { .. } => {
                "run as root, and choose a scheduler listed in `queue/scheduler`"
            }
        }
    }
}

impl fmt::Display for SchedulerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot set the I/O scheduler")?;
        match self {
            Self::NoDevice => f.write_str(": the target is not on a block device"),
            Self::Rejected {
                name,
                device,
                source,
            } => write!(f, " `{name}` of {device}: {source}"),
        }
    }
}

impl std::error::Error for SchedulerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoDevice => None,
            Self::Rejected { source, .. } => Some(source),
        }
    }
}

/// Writes a note of the change from `before` to `name` for the process after a killed one.
fn written(device: &str, before: &str, name: &str) -> Option<Lease> {
    let note = Lease::new_file(&std::env::temp_dir(), &note_prefix(device)).ok()?;
    std::fs::write(note.path(), format!("{before} {name}")).ok()?;
    Some(note)
}

/// Returns the scheduler that a device had before a killed process set `in_force`, and removes that
/// process's note.
fn noted(device: &str, in_force: &str) -> Option<String> {
    let mut before = None;
    for note in Lease::abandoned(&std::env::temp_dir(), &note_prefix(device)) {
        let text = std::fs::read_to_string(note.path()).unwrap_or_default();
        // The administrator may have chosen another scheduler since.
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

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_host::fixture::FakeHost;

    /// A change to `name` on a made-up device whose file holds `text`.
    fn change(world: &str, text: &str, name: &str) -> (FakeHost, SchedulerChange) {
        let fake = FakeHost::new(world);
        fake.device("sda", "8:0");
        fake.attribute("sda", "queue/scheduler", text);
        let disk = fake.tree().named("sda").unwrap();
        let file = disk.folder().join("queue/scheduler");
        let devices = vec![(disk.name, file)];
        let name = name.to_owned();
        (fake, SchedulerChange { name, devices })
    }

    #[test]
    fn note_of_killed_process_names_original_scheduler() {
        let device = format!("made-up-{}", std::process::id());
        let note = written(&device, "none", "bfq").unwrap();
        assert_eq!(noted(&device, "bfq"), None, "its owner is alive");
        drop(note);
        assert_eq!(noted(&device, "bfq").as_deref(), Some("none"));
        assert_eq!(noted(&device, "bfq"), None);
        drop(written(&device, "none", "bfq"));
        assert_eq!(
            noted(&device, "kyber"),
            None,
            "changed since by the administrator"
        );
    }

    #[test]
    fn unaccepted_scheduler_is_an_error() {
        // A regular file keeps the tail of its old content, unlike a sysfs attribute.
        let (_made_up, kept) = change("scheduler-f", "none", "kyber");
        apply(&kept).unwrap();
        let (_made_up, refused) = change("scheduler-h", "mq-deadline", "none");
        let failure = apply(&refused).unwrap_err();
        assert_eq!(failure.errno, Errno::EINVAL);
        assert_eq!(
            failure.text,
            "ioscheduler: none: sda: the kernel keeps `noneeadline`"
        );
        let (fake, missing) = change("scheduler-g", "", "none");
        drop(fake);
        let missing = SchedulerChange {
            devices: vec![("sda".into(), "/proc/no-such-scheduler".into())],
            ..missing
        };
        let failure = apply(&missing).unwrap_err();
        assert_eq!(failure.errno, Errno::ENOENT);
        assert!(
            failure.text.starts_with("ioscheduler: none: sda: "),
            "{}",
            failure.text
        );
    }
}
