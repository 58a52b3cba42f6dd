//! `cgroup`: runs jobs in control groups of the version 1 blkio controller, as fio does.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fathom_core::{Errno, Nanos};
use fathom_host::probe::blkio_mount;
use fathom_job::{Options, Plan};
use fathom_sys::{clock, lease};

/// Control group that a job's thread enters; it leaves by exiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    folder: PathBuf,
    /// `cgroup_weight`.
    weight: Option<u32>,
    /// Remove the group after the run (`cgroup_nodelete` is not set).
    deletes: bool,
}

impl Group {
    /// Returns the group that the options name.
    pub(crate) fn of(options: &Options) -> Option<Self> {
        let name = options.process.cgroup.as_ref()?;
        Some(Self {
            folder: blkio_mount()?.join(name),
            weight: options.process.cgroup_weight,
            deletes: !options.process.cgroup_nodelete,
        })
    }

    /// Moves the calling thread into the group, creating the group if it does not exist.
    pub(crate) fn enter(&self) -> Result<(), (String, io::Error)> {
        let mut entered = self.try_to_enter();
        for _ in 1..TRIES {
            match &entered {
                // Another run has just ended and removed the group, which was still empty.
                Err((_, error)) if is_removed(error) => entered = self.try_to_enter(),
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
        // 0 means the writing thread; a thread number could belong to another namespace.
        put(&file, "0").map_err(at(&file))
    }
}

/// Control groups that a run creates and removes.
///
/// Each is marked with an extended attribute, so that a later run recognises and removes the groups
/// of a killed one. The kernel refuses to remove a group that contains a thread. Kernels before
/// 5.7 store no attributes on cgroupfs; there, a group counts as created by this run if it was
/// missing at the start.
#[derive(Debug, Default)]
pub(crate) struct Made(BTreeMap<PathBuf, IsNew>);

type IsNew = bool;

impl Made {
    /// Collects the groups that the plan names and removes those left by killed runs.
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

    /// Removes the groups created by this run or a killed one. A group that still contains threads
    /// of other programs stays.
    pub(crate) fn clear(self) {
        let all = self.0.into_iter();
        let made = all.filter(|(folder, is_new)| *is_new || lease::is_marked(folder));
        for (folder, _) in made {
            // A joined thread may not have left its group yet.
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

/// Removes the empty groups that earlier runs created.
fn remove_abandoned(mount: &Path) {
    let entries = fs::read_dir(mount).into_iter().flatten().flatten();
    let marked = entries.filter(|entry| lease::is_marked(&entry.path()));
    for entry in marked {
        let _in_use = fs::remove_dir(entry.path());
    }
}

/// Returns whether this is the error of a group that has been removed: its files are gone, or one
/// was looked up before the removal and opened or written after it.
fn is_removed(error: &io::Error) -> bool {
    matches!(Errno::of(error), Some(Errno::ENOENT | Errno::ENODEV))
}

/// Writes to an existing file; never creates one.
fn put(file: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(file)?;
    io::Write::write_all(&mut file, text.as_bytes())
}

/// Attempts to enter or remove a group, and the pause between removals: 0.2 s in all.
const TRIES: u32 = 100;
const BETWEEN: Nanos = Nanos::from_millis(2);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn entering_sets_weight_then_joins() {
        let folder = std::env::temp_dir().join(format!("fathom-cgroup-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let group = |weight| Group {
            folder: folder.clone(),
            weight,
            deletes: true,
        };
        fs::write(folder.join("tasks"), "").unwrap();
        group(None).enter().unwrap();
        // A controller without weights is an error, not ignored.
        let (place, _) = group(Some(200)).enter().unwrap_err();
        assert!(place.ends_with("blkio.weight"), "{place}");
        fs::write(folder.join("blkio.weight"), "").unwrap();
        group(Some(200)).enter().unwrap();
        let held = ["blkio.weight", "tasks"].map(|name| fs::read_to_string(folder.join(name)));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(held.map(Result::unwrap), ["200", "0"]);
    }

    #[test]
    fn a_group_may_be_removed_while_it_is_entered() {
        let Some(mount) = blkio_mount() else {
            return println!("skipped: no blkio controller");
        };
        let folder = mount.join(format!("fathom-removed-{}", std::process::id()));
        if let Err(error) = fs::create_dir(&folder) {
            return println!("skipped: {}: {error}", folder.display());
        }
        let group = Group {
            folder: folder.clone(),
            weight: None,
            deletes: true,
        };
        // Each round removes it at most a few times: always, and it could never be entered.
        for _ in 0..500 {
            let entered = AtomicBool::new(false);
            let result = std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut removed = 0;
                    while removed < 3 && !entered.load(Ordering::Relaxed) {
                        removed += u32::from(fs::remove_dir(&folder).is_ok());
                    }
                });
                // A thread leaves its group by exiting.
                let result = scope.spawn(|| group.enter()).join().unwrap();
                entered.store(true, Ordering::Relaxed);
                result
            });
            result.unwrap();
        }
        Made(BTreeMap::from([(folder, true)])).clear();
    }

    /// A plain directory stands in for the mount: rmdir works alike on an empty group.
    #[test]
    fn only_marked_empty_groups_are_removed() {
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
            return println!("skipped: no extended attributes on this file system");
        }
        assert_eq!(there, [true, false, true]);
    }
}
