//! `cgroup`: jobs in control groups of the blkio controller, version 1, as fio has it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use fathom_core::Nanos;
use fathom_job::{Options, Plan};
use fathom_sys::clock::{Clock, sleep_until};

use crate::error::Problem;

/// The group that a job's thread enters; it leaves it by ending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    folder: PathBuf,
    /// `cgroup_weight`.
    weight: Option<u32>,
}

impl Group {
    /// The one that the options ask for.
    pub(crate) fn of(options: &Options) -> Option<Self> {
        let name = options.process.cgroup.as_ref()?;
        Some(Self {
            folder: mount()?.join(name),
            weight: options.process.cgroup_weight,
        })
    }

    /// Puts the calling thread into it, and makes it first where there is none.
    pub(crate) fn enter(&self, thread: u32) -> Result<(), (String, io::Error)> {
        let at = |path: &Path| {
            let shown = path.display().to_string();
            move |error| (shown, error)
        };
        match fs::create_dir(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(at(&self.folder)(error));
            }
            Ok(()) | Err(_) => {}
        }
        if let Some(weight) = self.weight {
            let file = self.folder.join("blkio.weight");
            put(&file, &weight.to_string()).map_err(at(&file))?;
        }
        let file = self.folder.join("tasks");
        put(&file, &thread.to_string()).map_err(at(&file))
    }
}

/// The groups that a run makes and does not leave behind.
#[derive(Debug, Default)]
pub(crate) struct Made(BTreeSet<PathBuf>);

impl Made {
    /// Those of the plan that are not there yet.
    pub(crate) fn by(plan: &Plan) -> Self {
        let jobs = plan.jobs.iter();
        let clears = jobs.filter(|job| !job.options.process.cgroup_nodelete);
        let groups = clears.filter_map(|job| Group::of(&job.options));
        let new = groups.map(|group| group.folder);
        Self(new.filter(|folder| !folder.exists()).collect())
    }

    /// Removes them; what somebody else has put into them keeps them there.
    pub(crate) fn clear(self, clock: &Clock) {
        for folder in self.0 {
            // A thread that has been joined may still be on its way out of its group.
            for _ in 0..TRIES {
                match fs::remove_dir(&folder) {
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
                    Ok(()) | Err(_) => break,
                }
                sleep_until(clock, clock.now() + BETWEEN);
            }
        }
    }
}

/// What is wrong with the options, without looking into the group.
pub(crate) fn check(options: &Options) -> Option<Problem> {
    let name = options.process.cgroup.as_ref()?;
    let one = |part: Component<'_>| matches!(part, Component::Normal(_));
    if name.is_empty() || !Path::new(name).components().all(one) {
        let message = format!("`{name}` is not the name of a control group");
        return Some(Problem::new("bad_cgroup", message).hint("write it as in `cgroup=low`"));
    }
    if mount().is_none() {
        let message = "`cgroup` needs the blkio controller of version 1, which is not mounted";
        let hint = "mount it (`mount -t cgroup -o blkio none /sys/fs/cgroup/blkio`), or leave \
                    `cgroup` out";
        return Some(Problem::new("no_cgroups", message).hint(hint));
    }
    None
}

/// Where the controller is mounted.
fn mount() -> Option<PathBuf> {
    mount_in(&fs::read_to_string("/proc/mounts").ok()?)
}

fn mount_in(mounts: &str) -> Option<PathBuf> {
    let found = mounts.lines().find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [_, folder, "cgroup", options, ..] = fields[..] else {
            return None;
        };
        options.split(',').any(|o| o == "blkio").then_some(folder)
    });
    found.map(PathBuf::from)
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
    fn the_controller_is_found_among_the_mounts() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup /sys/fs/cgroup/blkio cgroup rw,relatime,blkio 0 0\n";
        assert_eq!(mount_in(mounts), Some("/sys/fs/cgroup/blkio".into()));
        assert_eq!(mount_in("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"), None);
    }

    #[test]
    fn a_thread_enters_a_group_that_has_its_weight() {
        let folder = std::env::temp_dir().join(format!("fathom-cgroup-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let group = |weight| Group {
            folder: folder.clone(),
            weight,
        };
        fs::write(folder.join("tasks"), "").unwrap();
        group(None).enter(7).unwrap();
        // A kernel whose controller has no weights is not passed over.
        let (place, _) = group(Some(200)).enter(8).unwrap_err();
        assert!(place.ends_with("blkio.weight"), "{place}");
        fs::write(folder.join("blkio.weight"), "").unwrap();
        group(Some(200)).enter(9).unwrap();
        let held = ["blkio.weight", "tasks"].map(|name| fs::read_to_string(folder.join(name)));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(held.map(Result::unwrap), ["200", "9"]);
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["..", "../x", "/x", "", "a/../b"] {
            let mut options = Options::default();
            options.process.cgroup = Some(name.into());
            let problem = check(&options).expect(name);
            assert_eq!(problem.code, "bad_cgroup", "{name}");
        }
    }
}
