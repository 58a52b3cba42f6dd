//! Facilities of the host that a job's options may ask for: processors, NUMA nodes, clocks, control
//! groups, and permission to open or create files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fathom_sys::files::{self, Access, AtomicWriteUnits, FileKind};
use fathom_sys::kernel_version::KernelVersion;
use fathom_sys::{clock, numa, system};

use crate::block_tree::BlockTree;
use crate::storage::number_under;

/// Returns the number of processors that are online.
pub fn cpus_online() -> u32 {
    system::cpus_online()
}

/// Returns the number of processors that the kernel is configured for, online or not.
pub fn cpus_configured() -> u32 {
    system::cpus_configured()
}

/// Returns the numbers of the NUMA nodes.
pub fn numa_nodes() -> Vec<u32> {
    numa::nodes()
}

/// Checks that there is a clock of this number (`clock_gettime(2)`).
///
/// # Errors
/// The error of the system call if there is none.
pub fn check_clock(id: u32) -> io::Result<()> {
    clock::read(id).map(drop)
}

/// Opens a file for reading, or for both, and closes it again.
///
/// # Errors
/// The reason why it cannot be opened.
pub fn try_open(path: &Path, read_write: bool) -> io::Result<()> {
    let access = Access {
        read_write,
        ..Access::default()
    };
    files::open(path, access).map(drop)
}

/// Returns what to do about a file that this user may not open: a device belongs to a group.
#[must_use]
pub fn permission_hint(path: &Path) -> &'static str {
    let kind = path.metadata().map(|metadata| FileKind::of(&metadata));
    match kind {
        Ok(FileKind::Block | FileKind::Character) => "run as root, or join the device's group",
        _ => "change its permissions, or run as its owner",
    }
}

/// Returns the sizes of the atomic writes that a file or device takes; `None` if it takes none.
///
/// # Errors
/// The reason why it cannot be opened or queried.
pub fn atomic_writes(path: &Path) -> io::Result<Option<AtomicWriteUnits>> {
    AtomicWriteUnits::of(files::open(path, Access::READING)?)
}

/// Returns whether the block layer keeps write pointers of zones, by which it holds back writes
/// (zone write plugs): since Linux 6.10.
pub fn block_layer_keeps_write_pointers() -> bool {
    KernelVersion::running() >= Some(KernelVersion::new(6, 10))
}

/// Returns the number of write streams that the kernel offers for a block device; 0 for anything
/// else, and before Linux 6.16.
pub fn write_streams(path: &Path) -> u8 {
    let Some((true, number)) = number_under(path) else {
        return 0;
    };
    let disk = BlockTree::default().device(number);
    let streams = disk.and_then(|disk| disk.whole_disk().attribute("queue/max_write_streams"));
    let streams: u32 = streams.and_then(|text| text.parse().ok()).unwrap_or(0);
    // An entry of the ring has 8 bits for it.
    u8::try_from(streams).unwrap_or(u8::MAX)
}

/// Checks whether this process may create files in a directory.
///
/// # Errors
/// The reason why it may not.
pub fn check_create_in(directory: &Path) -> io::Result<()> {
    files::check_create_in(directory)
}

/// Returns the mount point of the blkio controller of control groups, version 1.
pub fn blkio_mount() -> Option<PathBuf> {
    blkio_mount_in(&fs::read_to_string("/proc/mounts").ok()?)
}

fn blkio_mount_in(mounts: &str) -> Option<PathBuf> {
    let found = mounts.lines().find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [_, folder, "cgroup", options, ..] = fields[..] else {
            return None;
        };
        options.split(',').any(|o| o == "blkio").then_some(folder)
    });
    found.map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_belongs_to_a_group() {
        let of_device = permission_hint(Path::new("/dev/null"));
        assert_eq!(of_device, "run as root, or join the device's group");
        let of_file = permission_hint(Path::new("/proc/self/status"));
        assert_eq!(of_file, "change its permissions, or run as its owner");
    }

    #[test]
    fn the_controller_is_found_among_the_mounts() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup /sys/fs/cgroup/blkio cgroup rw,relatime,blkio 0 0\n";
        let mount = blkio_mount_in(mounts);
        assert_eq!(mount, Some("/sys/fs/cgroup/blkio".into()));
        assert_eq!(
            blkio_mount_in("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
            None
        );
    }
}
