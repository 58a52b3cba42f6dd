//! `cgroup`: jobs in control groups of the blkio controller, version 1, as fio has it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fathom_core::Nanos;
use fathom_host::probe::blkio_mount;
use fathom_job::{Options, Plan};
use fathom_sys::{clock, lease};

/// The group that a job's thread enters; it leaves it by ending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    folder: PathBuf,
    /// `cgroup_weight`.
    weight: Option<u32>,
    /// Not `cgroup_nodelete`.
    deletes: bool,
}

impl Group {
    /// The one that the options ask for.
    pub(crate) fn of(options: &Options) -> Option<Self> {
        let name = options.process.cgroup.as_ref()?;
        Some(Self {
            folder: blkio_mount()?.join(name),
            weight: options.process.cgroup_weight,
            deletes: !options.process.cgroup_nodelete,
        })
    }

    /// Puts the calling thread into it, and makes it first where there is none.
    pub(crate) fn enter(&self) -> Result<(), (String, io::Error)> {
        let mut entered = self.try_to_enter();
        for _ in 1..TRIES {
            match &entered {
                // Another run that ended has just removed it: it looked empty.
                Err((_, error)) if error.kind() == io::ErrorKind::NotFound => {
                    entered = self.try_to_enter();
                }
                _ => break,
            }
        }
        entered
    }

    fn try_to_enter(&self) -> Result<(), (String, io::Error)> {
        let at = |path: &Path| {
            let shown = path.display().to_string();
            move |error| (shown, error)
        };
        match fs::create_dir(&self.folder) {
            Ok(()) if self.deletes => lease::mark(&self.folder),
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(at(&self.folder)(error)),
        }
        if let Some(weight) = self.weight {
            let file = self.folder.join("blkio.weight");
            put(&file, &weight.to_string()).map_err(at(&file))?;
        }
        let file = self.folder.join("tasks");
        // The kernel's word for the thread that writes: no number can be another thread's.
        put(&file, "0").map_err(at(&file))
    }
}

/// The groups that a run makes and does not leave behind.
///
/// They are marked, so that one that a killed run has left is known for what it is by the next. The
/// kernel keeps every group that a thread is in. Before Linux 5.7 it keeps no marks: what is not
/// there when the run begins is then the run's.
#[derive(Debug, Default)]
pub(crate) struct Made(BTreeMap<PathBuf, IsNew>);

type IsNew = bool;

impl Made {
    /// Those of the plan; what killed runs have left is removed.
    pub(crate) fn by(plan: &Plan) -> Self {
        let jobs = plan.jobs.iter();
        let groups = jobs.filter_map(|job| Group::of(&job.options));
        let groups: Vec<Group> = groups.collect();
        if let (false, Some(mount)) = (groups.is_empty(), blkio_mount()) {
            remove_abandoned(&mount);
        }
        let clears = groups.into_iter().filter(|group| group.deletes);
        let folders = clears.map(|group| (!group.folder.exists(), group.folder));
        Self(folders.map(|(is_new, folder)| (folder, is_new)).collect())
    }

    /// Removes those that this or a killed run has made; what somebody else has put into them keeps
    /// them there.
    pub(crate) fn clear(self) {
        let all = self.0.into_iter();
        let made = all.filter(|(folder, is_new)| *is_new || lease::is_marked(folder));
        for (folder, _) in made {
            // A thread that has been joined may still be on its way out of its group.
            for _ in 0..TRIES {
                match fs::remove_dir(&folder) {
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
                    Ok(()) | Err(_) => break,
                }
                clock::sleep(BETWEEN);
            }
        }
    }
}

/// Removes the empty groups that runs have made.
fn remove_abandoned(mount: &Path) {
    let entries = fs::read_dir(mount).into_iter().flatten().flatten();
    let marked = entries.filter(|entry| lease::is_marked(&entry.path()));
    for entry in marked {
        let _in_use = fs::remove_dir(entry.path());
    }
}

/// Writes to a file that is there: one that is not is not made.
fn put(file: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(file)?;
    io::Write::write_all(&mut file, text.as_bytes())
}

/// How often, and how far apart, a group that is busy is tried to be removed: 0.2 s in all.
const TRIES: u32 = 100;
const BETWEEN: Nanos = Nanos::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_enters_a_group_that_has_its_weight() {
        let folder = std::env::temp_dir().join(format!("fathom-cgroup-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let group = |weight| Group {
            folder: folder.clone(),
            weight,
            deletes: true,
        };
        fs::write(folder.join("tasks"), "").unwrap();
        group(None).enter().unwrap();
        // A kernel whose controller has no weights is not passed over.
        let (place, _) = group(Some(200)).enter().unwrap_err();
        assert!(place.ends_with("blkio.weight"), "{place}");
        fs::write(folder.join("blkio.weight"), "").unwrap();
        group(Some(200)).enter().unwrap();
        let held = ["blkio.weight", "tasks"].map(|name| fs::read_to_string(folder.join(name)));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(held.map(Result::unwrap), ["200", "0"]);
    }

    /// A folder stands for the mount: a kernel's group is removed like an empty one.
    #[test]
    fn the_groups_of_killed_runs_are_removed_and_no_others() {
        let mount = std::env::temp_dir().join(format!("fathom-groups-{}", std::process::id()));
        fs::create_dir_all(&mount).unwrap();
        for name in ["theirs", "left", "in_use"] {
            fs::create_dir(mount.join(name)).unwrap();
        }
        fs::write(mount.join("in_use/tasks"), "").unwrap();
        for name in ["left", "in_use"] {
            lease::mark(&mount.join(name));
        }
        let keeps_marks = lease::is_marked(&mount.join("left"));
        remove_abandoned(&mount);
        let there = ["theirs", "left", "in_use"].map(|name| mount.join(name).exists());
        fs::remove_dir_all(&mount).unwrap();
        if !keeps_marks {
            return println!("skipped: no marks on this file system");
        }
        assert_eq!(there, [true, false, true]);
    }
}
