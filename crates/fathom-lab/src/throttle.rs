//! IOPS limit on a disk for one program: a control group of version 1.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fmt, io};

use fathom_sys::lease::Lease;

/// Control group of the blkio controller; removed on drop, or by the next run if this one is
/// killed.
pub(crate) struct Throttle(Lease);

impl Throttle {
    /// Limits the disk under `file` to `iops` in each direction.
    pub(crate) fn new(file: &Path, iops: u32) -> Result<Self, ThrottleError> {
        let device = whole_disk(file)?;
        let root = Path::new("/sys/fs/cgroup/blkio");
        remove_abandoned(root);
        let lease = Lease::new_folder(root, NAME).map_err(|source| ThrottleError::Group {
            root: root.to_owned(),
            source,
        })?;
        let group = Self(lease);
        for limit in ["read_iops_device", "write_iops_device"] {
            let limit = group.0.path().join(format!("blkio.throttle.{limit}"));
            fs::write(&limit, format!("{device} {iops}\n"))
                .map_err(|source| ThrottleError::Limit { limit, source })?;
        }
        Ok(group)
    }

    /// Returns a command that runs `program` in the group, with the arguments added to it later.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        let enter = r#"echo $$ > "$0" && exec "$@""#;
        command.args(["-c", enter]);
        command.arg(self.0.path().join("cgroup.procs")).arg(program);
        command
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        // The kernel may take a moment to notice that the last process has ended.
        let group = self.0.path();
        let _left_behind = fs::remove_dir(group).or_else(|_busy| fs::remove_dir(group));
    }
}

/// Reason why a disk cannot be limited.
#[derive(Debug)]
pub(crate) enum ThrottleError {
    /// The file cannot be examined.
    File(io::Error),
    /// The file is not on a disk.
    NoDisk,
    /// No control group can be created.
    Group { root: PathBuf, source: io::Error },
    /// The group does not accept a limit.
    Limit { limit: PathBuf, source: io::Error },
}

impl fmt::Display for ThrottleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::NoDisk => f.write_str("no disk under the directory"),
            Self::Group { root, source } => {
                let root = root.display();
                write!(f, "{root}: {source}: needs root and blkio of cgroup v1")
            }
            Self::Limit { limit, source } => write!(f, "{}: {source}", limit.display()),
        }
    }
}

/// Removes groups left behind by killed runs; a group with a process in it stays.
fn remove_abandoned(root: &Path) {
    for left in Lease::abandoned(root, NAME) {
        let _busy = fs::remove_dir(left.path());
    }
}

/// Prefix of group names, followed by a number.
const NAME: &str = "fathom-table-";

/// Returns `major:minor` of the disk under a file: limits apply to whole disks.
fn whole_disk(file: &Path) -> Result<String, ThrottleError> {
    let metadata = fs::metadata(file).map_err(ThrottleError::File)?;
    let device = metadata.dev();
    let (major, minor) = (
        device >> 8 & 0xfff,
        device & 0xff | device >> 12 & 0xffff_ff00,
    );
    let node = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let number = if node.join("partition").exists() {
        fs::read_to_string(node.join("../dev"))
    } else {
        fs::read_to_string(node.join("dev"))
    };
    let number = number.map_err(|_none| ThrottleError::NoDisk)?;
    Ok(number.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_killed_table_is_removed_by_the_next() {
        let root = Path::new("/sys/fs/cgroup/blkio");
        let (left, used) = match (Lease::new_folder(root, NAME), Lease::new_folder(root, NAME)) {
            (Ok(left), Ok(used)) => (left, used),
            _ => return println!("skipped: needs root and blkio of cgroup v1"),
        };
        let path = left.path().to_owned();
        drop(left);
        remove_abandoned(root);
        let there = (path.exists(), used.path().exists());
        fs::remove_dir(used.path()).unwrap();
        assert_eq!(there, (false, true));
    }

    #[test]
    fn memory_has_no_disk() {
        assert!(whole_disk(Path::new("/proc/self")).is_err());
    }
}
