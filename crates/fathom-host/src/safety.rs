//! Keeps a run from destroying what it was not asked to: devices in use, files that devices in use
//! are made of, interfaces to the kernel, and names under /dev that are not devices.
//!
//! A device is in use if it, its disk, one of its partitions, what it is made of, or anything that
//! is made of these (a logical volume, a RAID, a loop device) is mounted or swapped to; and beyond
//! what the tables say, if the kernel has granted somebody the exclusive right to it.

mod characters;
mod in_use;
mod kernel_files;

use std::cell::OnceCell;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use fathom_sys::files::{DeviceNumber, Kind};

use self::in_use::InUse;
pub use self::kernel_files::kernel_filesystem;
use crate::block_tree::{BlockTree, Mount, Store, mount_of};
use crate::storage::nearest_existing;

/// Why a file is not touched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// No such name under /dev, where a new file would be stored in RAM.
    NoSuchDevice {
        /// The name.
        path: PathBuf,
    },
    /// A regular file under /dev, which lies in memory.
    FileAmongDevices {
        /// The name.
        path: PathBuf,
    },
    /// A block device that is in use, or a file that such a device is made of.
    InUse {
        /// The device or file that would be written.
        path: PathBuf,
        /// The use it is in.
        usage: Usage,
    },
    /// A character device that is not known to be safe.
    Harmful {
        /// The device.
        path: PathBuf,
        /// Its kind.
        what: String,
        /// The job writes; else not even opening or reading the device is safe.
        writes: bool,
    },
    /// A file of procfs, sysfs or the like.
    KernelInterface {
        /// The file that would be written or created.
        path: PathBuf,
        /// Its file system.
        filesystem: &'static str,
    },
    /// A pipe or a socket: there are no offsets in it.
    NoOffsets {
        /// The name.
        path: PathBuf,
    },
}

/// How a block device is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Usage {
    /// `device` is mounted at `point`.
    Mounted {
        /// The device itself, or one that holds it or is part of it.
        device: String,
        /// Where it is mounted.
        point: PathBuf,
    },
    /// `device` is swapped to.
    Swap {
        /// The device itself, or one that holds it or is part of it.
        device: String,
    },
    /// `device` belongs to a mounted file system of several devices.
    Member {
        /// The device itself, or one that holds it or is part of it.
        device: String,
    },
    /// It is opened exclusively (O_EXCL), and the tables do not say by whom.
    Exclusive,
    /// `device`, which is made of it or holds it, is opened exclusively.
    Claimed {
        /// The device.
        device: String,
    },
    /// The loop device `device` is made of it and cannot be opened to find out more.
    Unknown {
        /// The device.
        device: String,
    },
}

impl Refusal {
    /// A stable name.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoSuchDevice { .. } => "no_such_device",
            Self::FileAmongDevices { .. } => "file_among_devices",
            Self::InUse { .. } => "device_in_use",
            Self::Harmful { .. } => "harmful_device",
            Self::KernelInterface { .. } => "kernel_interface",
            Self::NoOffsets { .. } => "no_offsets",
        }
    }

    /// What helps, in the imperative.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NoSuchDevice { .. } => "check the device's name with `lsblk`",
            Self::FileAmongDevices { .. } => "remove it, and check the device's name with `lsblk`",
            Self::InUse { .. } => {
                "choose a device or file that nothing uses, or set `allow_mounted_write=1` if what \
                 is on it may be destroyed"
            }
            Self::KernelInterface { .. } => "choose a file on a disk",
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
                    "{}: not a device but a file that lies in memory",
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
            Self::NoOffsets { path } => {
                write!(
                    f,
                    "{}: is a pipe or a socket, which has no offsets",
                    path.display()
                )
            }
        }
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for Usage {
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
                "{device} is made of it, and may not be opened to see whether it is in use"
            ),
        }
    }
}

/// Judge of files and devices by what the machine looks like at one moment.
#[derive(Debug)]
pub struct Guard {
    tree: BlockTree,
    mounts: Vec<Mount>,
    /// Read when it is first needed: most runs write no device, and no file that is one's backing.
    in_use: OnceCell<InUse>,
}

impl Guard {
    /// Takes the machine as it is now.
    #[must_use]
    pub fn new(tree: BlockTree) -> Self {
        Self {
            mounts: tree.mounts(),
            tree,
            in_use: OnceCell::new(),
        }
    }

    /// Says whether a job may use `path`; `writes` covers trims, lengthening and removal. Writes
    /// nothing.
    ///
    /// # Errors
    /// Why it may not.
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
        match Kind::of(&metadata) {
            Kind::Regular if self.is_among_devices(path) => {
                Err(Refusal::FileAmongDevices { path: owned() })
            }
            Kind::Other => Err(Refusal::NoOffsets { path: owned() }),
            Kind::Character => {
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
            Kind::Regular if writes => {
                refuse_kernel_interface(path, path)?;
                match allow_mounted_write {
                    true => Ok(()),
                    false => self.check_free(path),
                }
            }
            Kind::Block if writes && !allow_mounted_write => self.check_free(path),
            Kind::Regular | Kind::Block | Kind::Directory => Ok(()),
        }
    }

    /// Says whether `path` is free to be overwritten: no device in use, and no file that one is
    /// made of. It may be of any other kind, or missing.
    ///
    /// # Errors
    /// The use it is in.
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

    /// Says whether a report or a log may go to `path`: to a regular file that no device in use is
    /// made of, a pipe, a terminal, or a character device that is known to be safe. Whether it can
    /// be written is another question.
    ///
    /// # Errors
    /// Why it may not.
    pub fn check_output(&self, path: &Path) -> Result<(), Refusal> {
        let Ok(metadata) = fs::metadata(path) else {
            return self.check_missing(path);
        };
        match Kind::of(&metadata) {
            Kind::Regular => {
                refuse_kernel_interface(path, path)?;
                self.check_free(path)
            }
            Kind::Block => self.check_free(path),
            Kind::Character => {
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
            Kind::Directory | Kind::Other => Ok(()),
        }
    }

    /// A file that would be created.
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
        let look = || InUse::look(&self.tree, &self.mounts);
        self.in_use.get_or_init(look)
    }

    /// Under /dev, and not on something that is mounted below it (/dev/shm, /dev/hugepages).
    fn is_among_devices(&self, path: &Path) -> bool {
        let Some(there) = nearest_existing(path) else {
            return false;
        };
        let point = mount_of(&there, &self.mounts).map_or(Path::new("/"), |mount| &mount.point);
        there.starts_with("/dev") && (point == Path::new("/dev") || !point.starts_with("/dev"))
    }
}

/// `at` is the file, or the folder in which it would be created.
fn refuse_kernel_interface(path: &Path, at: &Path) -> Result<(), Refusal> {
    match kernel_filesystem(at) {
        Some(filesystem) => Err(Refusal::KernelInterface {
            path: path.to_path_buf(),
            filesystem,
        }),
        None => Ok(()),
    }
}

/// The name that a chain of links whose end is missing leads to.
fn link_target(path: &Path) -> PathBuf {
    let mut target = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let Ok(next) = fs::read_link(&target) else {
            break;
        };
        // Beginning with a slash it replaces all that was before.
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
        assert_eq!(error.code(), "no_such_device");
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
        for harmless in ["/dev/null", "/dev/zero", "/dev/full"] {
            assert_eq!(refused(harmless, true), None, "{harmless}");
        }
        if Path::new("/dev/mem").exists() {
            assert_eq!(refused("/dev/mem", true).unwrap().code(), "harmful_device");
            assert_eq!(refused("/dev/mem", false).unwrap().code(), "harmful_device");
        }
        assert_eq!(refused("/dev/tty", true).unwrap().code(), "harmful_device");
    }

    #[test]
    fn the_root_file_system_is_not_overwritten() {
        let guard = Guard::new(BlockTree::default());
        let root = mount_of(Path::new("/"), &guard.mounts).unwrap();
        let Some(device) = guard.tree.device(root.device_number()) else {
            println!("skipped: / is on no block device");
            return;
        };
        for device in [device.whole(), device] {
            let node = Path::new("/dev").join(&device.name);
            if Kind::of(&fs::metadata(&node).unwrap()) != Kind::Block {
                println!("skipped: {} is not here", node.display());
                return;
            }
            let refusal = guard.check(&node, true, false).unwrap_err();
            assert_eq!(refusal.code(), "device_in_use");
            assert!(guard.check(&node, false, false).is_ok());
            assert!(guard.check(&node, true, true).is_ok());
        }
    }
}
