//! Write safety: refuses devices in use, files that back such devices, kernel interfaces, harmful
//! character devices, and names under /dev that are not devices.
//!
//! A device is in use if it, its disk, one of its partitions, a device that backs it, or any device
//! stacked on these (a logical volume, a RAID, a loop device) is mounted or used as swap. Claims
//! that no list shows, such as those of another mount namespace, are found by opening the device
//! exclusively (`O_EXCL`).

mod characters;
mod in_use;
mod kernel_files;

use std::cell::OnceCell;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use fathom_sys::files::{DeviceNumber, FileKind};

use self::in_use::InUse;
pub use self::kernel_files::kernel_filesystem;
use crate::block_tree::{BlockTree, HostDevice, Mount, Store, mount_of};
use crate::storage::nearest_existing;

/// Reason why a file is not touched. Exhaustive, so that each reason gets a kind of problem where a
/// run reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No such name under /dev, where a new file would be stored in RAM.
    NoSuchDevice {
        /// The path as given.
        path: PathBuf,
    },
    /// A regular file under /dev, which is stored in RAM.
    FileAmongDevices {
        /// The path as given.
        path: PathBuf,
    },
    /// A block device in use, or a file that backs one.
    InUse {
        /// The device or file that would be written.
        path: PathBuf,
        /// Its current use.
        usage: DeviceUse,
    },
    /// A character device that is not known to be safe.
    Harmful {
        /// The device.
        path: PathBuf,
        /// Description of the device: `a watchdog`.
        what: String,
        /// Only writing is refused; otherwise even opening or reading is unsafe.
        writes: bool,
    },
    /// A file of procfs, sysfs or another file system that is a kernel interface.
    KernelInterface {
        /// The file that would be written or created.
        path: PathBuf,
        /// Its file system.
        filesystem: &'static str,
    },
    /// Not a device that takes commands.
    NotPassthrough {
        /// The path as given.
        path: PathBuf,
    },
    /// A pipe or a socket, which has no offsets.
    NoOffsets {
        /// The path as given.
        path: PathBuf,
    },
}

/// Use of a block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceUse {
    /// `device` is mounted at `point`.
    Mounted {
        /// The device itself, one stacked on it, or one that backs it.
        device: String,
        /// Mount point.
        point: PathBuf,
    },
    /// `device` is used as swap.
    Swap {
        /// The device itself, one stacked on it, or one that backs it.
        device: String,
    },
    /// `device` is a member of a mounted multi-device file system.
    Member {
        /// The device itself, one stacked on it, or one that backs it.
        device: String,
    },
    /// It is opened exclusively (`O_EXCL`), by a user that no list shows.
    Exclusive,
    /// `device`, which is stacked on it or backs it, is opened exclusively.
    Claimed {
        /// The device.
        device: String,
    },
    /// The loop device `device` is backed by it and cannot be opened for a check.
    Unknown {
        /// The device.
        device: String,
    },
}

impl Refusal {
    /// Returns the remedy, in the imperative.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NoSuchDevice { .. } => "check the device's name with `lsblk`",
            Self::FileAmongDevices { .. } => "remove it, and check the device's name with `lsblk`",
            Self::InUse { .. } => {
                "choose a device or file that is not in use, or set `allow_mounted_write=1` if \
                 what is on it may be destroyed"
            }
            Self::KernelInterface { .. } => "choose a file on a disk",
            Self::NotPassthrough { .. } => {
                "name the character device of an NVMe namespace, like /dev/ng0n1, or a SCSI disk, \
                 like /dev/sg0"
            }
            Self::Harmful { .. } | Self::NoOffsets { .. } => {
                "choose a regular file or a block device"
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchDevice { path } => write!(
                f,
                "{}: no such device; a file created here would be stored in RAM",
                path.display()
            ),
            Self::FileAmongDevices { path } => {
                write!(
                    f,
                    "{}: not a device but a regular file, stored in RAM",
                    path.display()
                )
            }
            Self::InUse { path, usage } => {
                write!(f, "{}: will not be written: {usage}", path.display())
            }
            Self::Harmful { path, what, writes } => {
                let done = if *writes { "written" } else { "opened" };
                write!(f, "{}: will not be {done}: it is {what}", path.display())
            }
            Self::KernelInterface { path, filesystem } => write!(
                f,
                "{}: will not be written: {filesystem} is an interface to the kernel",
                path.display()
            ),
            Self::NotPassthrough { path } => {
                write!(f, "{}: not a device that takes commands", path.display())
            }
            Self::NoOffsets { path } => {
                write!(f, "{}: a pipe or socket has no offsets", path.display())
            }
        }
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for DeviceUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounted { device, point } => {
                write!(f, "{device} is mounted at {}", point.display())
            }
            Self::Swap { device } => write!(f, "{device} is in use as swap"),
            Self::Member { device } => write!(f, "{device} is part of a mounted file system"),
            Self::Exclusive => f.write_str(
                "it is opened exclusively (O_EXCL) by another user, such as a file system or RAID",
            ),
            Self::Claimed { device } => {
                write!(f, "{device} is in use (by a file system, a RAID, swap…)")
            }
            Self::Unknown { device } => write!(
                f,
                "{device} is backed by it and cannot be opened to check whether it is in use"
            ),
        }
    }
}

/// Checks files and devices against a snapshot of the host.
///
/// Create one per decision: mounts are read by [`new`](Self::new), devices in use when first
/// needed, and neither again. A run asks a new guard before each section starts, because a device
/// may have been mounted meanwhile. The check is not atomic with the open that follows it.
#[derive(Debug)]
pub struct Guard {
    tree: BlockTree,
    mounts: Vec<Mount>,
    /// Read on first use: most runs write neither a device nor a file that backs one.
    in_use: OnceCell<InUse>,
}

impl Guard {
    /// Reads the mounts of the host.
    #[must_use]
    pub fn new(tree: BlockTree) -> Self {
        Self {
            mounts: tree.mounts(),
            tree,
            in_use: OnceCell::new(),
        }
    }

    /// Checks that a job may use `path`; `writes` covers trims, extension and removal. Modifies
    /// nothing.
    ///
    /// # Errors
    /// The reason for the refusal.
    pub fn check(
        &self,
        path: &Path,
        writes: bool,
        allow_mounted_write: bool,
    ) -> Result<(), Refusal> {
        let owned = || path.to_path_buf();
        let Ok(metadata) = fs::metadata(path) else {
            return self.check_missing(path);
        };
        match FileKind::of(&metadata) {
            FileKind::Regular if self.is_among_devices(path) => {
                Err(Refusal::FileAmongDevices { path: owned() })
            }
            FileKind::Other => Err(Refusal::NoOffsets { path: owned() }),
            FileKind::Character => {
                let number = DeviceNumber::of_node(&metadata);
                match characters::objection(number, writes, &self.tree) {
                    Some(what) => Err(Refusal::Harmful {
                        path: owned(),
                        what,
                        writes,
                    }),
                    None => Ok(()),
                }
            }
            FileKind::Regular if writes => {
                refuse_kernel_interface(path, path)?;
                match allow_mounted_write {
                    true => Ok(()),
                    false => self.check_free(path),
                }
            }
            FileKind::Block if writes && !allow_mounted_write => self.check_free(path),
            FileKind::Regular | FileKind::Block | FileKind::Directory => Ok(()),
        }
    }

    /// Checks that a job may send commands to `path`, an NVMe namespace or a SCSI disk: if it
    /// `writes`, that its block device is free, as [`check`](Self::check) does with a block device.
    ///
    /// # Errors
    /// The reason for the refusal.
    pub fn check_passthrough(
        &self,
        path: &Path,
        writes: bool,
        allow_mounted_write: bool,
    ) -> Result<(), Refusal> {
        let not_passthrough = || Refusal::NotPassthrough {
            path: path.to_path_buf(),
        };
        let Ok(metadata) = fs::metadata(path) else {
            return self.check_missing(path).and(Err(not_passthrough()));
        };
        let number = DeviceNumber::of_node(&metadata);
        let block = match FileKind::of(&metadata) {
            // A disk whose format the block layer does not support has no use but by commands.
            FileKind::Character if characters::takes_commands(number, &self.tree) => {
                self.tree.behind_character_device(number)
            }
            FileKind::Block => {
                let disk = self.tree.device(number).filter(HostDevice::is_scsi_disk);
                Some(disk.ok_or_else(not_passthrough)?)
            }
            _ => return Err(not_passthrough()),
        };
        let usage = block
            .filter(|_| writes && !allow_mounted_write)
            .and_then(|block| {
                let node = Path::new("/dev").join(&block.name);
                self.in_use()
                    .usage(Store::Device(block.number), &node, &self.tree)
            });
        match usage {
            Some(usage) => Err(Refusal::InUse {
                path: path.to_path_buf(),
                usage,
            }),
            None => Ok(()),
        }
    }

    /// Checks that `path` may be overwritten: that it is neither a device in use nor a file that
    /// backs one. Other kinds and missing files pass.
    ///
    /// # Errors
    /// Its current use.
    pub fn check_free(&self, path: &Path) -> Result<(), Refusal> {
        let Some(store) = fs::metadata(path).ok().and_then(|found| Store::of(&found)) else {
            return Ok(());
        };
        match self.in_use().usage(store, path, &self.tree) {
            Some(usage) => Err(Refusal::InUse {
                path: path.to_path_buf(),
                usage,
            }),
            None => Ok(()),
        }
    }

    /// Checks that a report or a log may go to `path`: a regular file that backs no device in use,
    /// a pipe, a terminal, or a character device known to be safe. Permission is not checked.
    ///
    /// # Errors
    /// The reason for the refusal.
    pub fn check_output(&self, path: &Path) -> Result<(), Refusal> {
        let Ok(metadata) = fs::metadata(path) else {
            return self.check_missing(path);
        };
        match FileKind::of(&metadata) {
            FileKind::Regular => {
                refuse_kernel_interface(path, path)?;
                self.check_free(path)
            }
            FileKind::Block => self.check_free(path),
            FileKind::Character => {
                let number = DeviceNumber::of_node(&metadata);
                match characters::objection_to_output(number, &self.tree) {
                    Some(what) => Err(Refusal::Harmful {
                        path: path.to_path_buf(),
                        what,
                        writes: true,
                    }),
                    None => Ok(()),
                }
            }
            FileKind::Directory | FileKind::Other => Ok(()),
        }
    }

    /// Checks a file that would be created.
    fn check_missing(&self, path: &Path) -> Result<(), Refusal> {
        let target = link_target(path);
        if self.is_among_devices(&target) {
            return Err(Refusal::NoSuchDevice {
                path: path.to_path_buf(),
            });
        }
        match nearest_existing(&target) {
            Some(folder) => refuse_kernel_interface(path, &folder),
            None => Ok(()),
        }
    }

    fn in_use(&self) -> &InUse {
        let look = || InUse::scan(&self.tree, &self.mounts);
        self.in_use.get_or_init(look)
    }

    /// Returns whether `path` is under /dev and not on a mount below it (/dev/shm, /dev/hugepages).
    fn is_among_devices(&self, path: &Path) -> bool {
        let Some(there) = nearest_existing(path) else {
            return false;
        };
        let point = mount_of(&there, &self.mounts).map_or(Path::new("/"), |mount| &mount.point);
        there.starts_with("/dev") && (point == Path::new("/dev") || !point.starts_with("/dev"))
    }
}

/// Checks `at`, the file itself or the folder in which it would be created.
fn refuse_kernel_interface(path: &Path, at: &Path) -> Result<(), Refusal> {
    match kernel_filesystem(at) {
        Some(filesystem) => Err(Refusal::KernelInterface {
            path: path.to_path_buf(),
            filesystem,
        }),
        None => Ok(()),
    }
}

/// Follows a chain of symbolic links whose end does not exist.
fn link_target(path: &Path) -> PathBuf {
    let mut target = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let Ok(next) = fs::read_link(&target) else {
            break;
        };
        // `join` with an absolute target replaces the whole path.
        target = target.parent().unwrap_or(Path::new("")).join(next);
    }
    target
}

/// More than the kernel follows.
const LINKS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_refused_among_devices_only() {
        let guard = Guard::new(BlockTree::default());
        let refused = |path: &str| guard.check(Path::new(path), false, false).err();
        let error = refused("/dev/fathom-no-such-device").unwrap();
        assert!(matches!(error, Refusal::NoSuchDevice { .. }));
        assert!(error.to_string().contains("would be stored in RAM"));
        assert_eq!(refused("/tmp/fathom-no-such-file"), None);
        assert!(refused("/dev/fathom-no-such-folder/x").is_some());
        let mut mounts = guard.mounts.iter();
        if mounts.any(|mount| mount.point == Path::new("/dev/shm")) {
            assert_eq!(refused("/dev/shm/fathom-no-such-file"), None);
        } else {
            println!("skipped: /dev/shm is not a mount of its own");
        }
    }

    #[test]
    fn character_devices_are_judged_by_their_number() {
        let guard = Guard::new(BlockTree::default());
        let refused = |path: &str, writes| guard.check(Path::new(path), writes, true).err();
        let is_harmful = |refusal| matches!(refusal, Some(Refusal::Harmful { .. }));
        for harmless in ["/dev/null", "/dev/zero", "/dev/full"] {
            assert_eq!(refused(harmless, true), None, "{harmless}");
        }
        if Path::new("/dev/mem").exists() {
            assert!(is_harmful(refused("/dev/mem", true)));
            assert!(is_harmful(refused("/dev/mem", false)));
        }
        assert!(is_harmful(refused("/dev/tty", true)));
    }

    #[test]
    fn commands_go_to_devices_that_take_them_alone() {
        let guard = Guard::new(BlockTree::default());
        for path in [
            "/dev/null",
            "/dev/fathom-no-such-device",
            "/tmp",
            "/etc/passwd",
        ] {
            let refused = guard.check_passthrough(Path::new(path), false, true);
            assert!(refused.is_err(), "{path}");
        }
    }

    #[test]
    fn the_root_file_system_is_not_overwritten() {
        let guard = Guard::new(BlockTree::default());
        let root = mount_of(Path::new("/"), &guard.mounts).unwrap();
        let Some(device) = guard.tree.device(root.device_number()) else {
            println!("skipped: / is on no block device");
            return;
        };
        for device in [device.whole_disk(), device] {
            let node = Path::new("/dev").join(&device.name);
            if FileKind::of(&fs::metadata(&node).unwrap()) != FileKind::Block {
                println!("skipped: {} is not here", node.display());
                return;
            }
            let refusal = guard.check(&node, true, false).unwrap_err();
            assert!(matches!(refusal, Refusal::InUse { .. }));
            assert!(guard.check(&node, false, false).is_ok());
            assert!(guard.check(&node, true, true).is_ok());
        }
    }
}
