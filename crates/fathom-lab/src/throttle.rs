//! A disk held to so many ops per second for one program: a control group of version 1.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A group of the blkio controller; removed when this goes.
pub(crate) struct Throttle(PathBuf);

impl Throttle {
    /// Holds what is below `file` to `iops` for each direction; or why not.
    pub(crate) fn new(file: &Path, iops: u32) -> Result<Self, String> {
        let device = whole_disk(file)?;
        let root = Path::new("/sys/fs/cgroup/blkio");
        let path = root.join(format!("fathom-table-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| {
            format!(
                "{}: {error}: needs root and blkio of cgroup v1",
                path.display()
            )
        })?;
        let group = Self(path);
        for limit in ["read_iops_device", "write_iops_device"] {
            let limit = group.0.join(format!("blkio.throttle.{limit}"));
            fs::write(&limit, format!("{device} {iops}\n"))
                .map_err(|error| format!("{}: {error}", limit.display()))?;
        }
        Ok(group)
    }

    /// A command that runs `program` in the group, with the arguments that it will be given.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        let enter = r#"echo $$ > "$0" && exec "$@""#;
        command.args(["-c", enter]);
        command.arg(self.0.join("cgroup.procs")).arg(program);
        command
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        // The kernel may take a moment to see that the last process is gone.
        let _left_behind = fs::remove_dir(&self.0).or_else(|_busy| fs::remove_dir(&self.0));
    }
}

/// `major:minor` of the disk under a file: limits are for whole disks.
fn whole_disk(file: &Path) -> Result<String, String> {
    let metadata = fs::metadata(file).map_err(|error| error.to_string())?;
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
    let number = number.map_err(|_none| "there is no disk under the folder".to_owned())?;
    Ok(number.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_no_disk() {
        assert!(whole_disk(Path::new("/proc/self")).is_err());
    }
}
