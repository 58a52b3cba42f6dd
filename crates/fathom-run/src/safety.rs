//! Keeps a run from destroying what it was not asked to: devices in use, and names under /dev that
//! are not devices.
//!
//! A device is in use if it, its disk, one of its partitions, or anything that is made of these
//! (a logical volume, a RAID, a loop device) is mounted or swapped to; and beyond what the tables
//! say, if the kernel has given it to somebody for himself alone.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fathom_sys::files::{self, Access, DeviceNumber, Kind};

use crate::block_tree::{BlockDevice, BlockTree, mount_of};
use crate::storage::nearest_existing;

/// Why a file is not touched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Nothing of this name under /dev: a file made there would lie in memory.
    NoSuchDevice {
        /// The name.
        path: PathBuf,
    },
    /// A regular file under /dev, which lies in memory.
    FileAmongDevices {
        /// The name.
        path: PathBuf,
    },
    /// A block device that is in use.
    InUse {
        /// The device that would be written.
        path: PathBuf,
        /// How it is used.
        usage: Usage,
    },
    /// A character device whose writing harms the machine.
    Harmful {
        /// The device that would be written.
        path: PathBuf,
        /// What it is.
        what: &'static str,
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
    /// The kernel has given it to somebody for himself alone, and the tables do not say to whom.
    Exclusive,
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
                "choose a device that holds nothing, or set `allow_mounted_write=1` if what is on \
                 it may be destroyed"
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
                "{}: no such device: a file of this name would lie in memory",
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
            Self::Harmful { path, what } => {
                write!(f, "{}: will not be written: it is {what}", path.display())
            }
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
                "somebody has it for himself alone (a file system, a RAID, a logical volume…)",
            ),
        }
    }
}

/// Whether a job may use `path`; `writes` covers trims. Writes nothing, and leaves regular files
/// elsewhere than under /dev to others.
///
/// # Errors
/// Why it may not.
pub fn check(
    path: &Path,
    writes: bool,
    allow_mounted_write: bool,
    tree: &BlockTree,
) -> Result<(), Refusal> {
    let owned = || path.to_path_buf();
    let Ok(metadata) = fs::metadata(path) else {
        return match is_among_devices(path, tree) {
            true => Err(Refusal::NoSuchDevice { path: owned() }),
            false => Ok(()),
        };
    };
    let device = match Kind::of(&metadata) {
        Kind::Regular if is_among_devices(path, tree) => {
            return Err(Refusal::FileAmongDevices { path: owned() });
        }
        Kind::Other => return Err(Refusal::NoOffsets { path: owned() }),
        Kind::Regular | Kind::Directory => return Ok(()),
        _ if !writes => return Ok(()),
        Kind::Character => {
            if let Some(what) = harm_in_writing(&metadata) {
                return Err(Refusal::Harmful {
                    path: owned(),
                    what,
                });
            }
            tree.behind_character_device(DeviceNumber::of_node(&metadata))
        }
        Kind::Block => tree.device(DeviceNumber::of_node(&metadata)),
    };
    if allow_mounted_write {
        return Ok(());
    }
    let listed = device.and_then(|device| usage(&device, tree));
    let exclusive = || is_exclusive(path, &metadata).then_some(Usage::Exclusive);
    match listed.or_else(exclusive) {
        Some(usage) => Err(Refusal::InUse {
            path: owned(),
            usage,
        }),
        None => Ok(()),
    }
}

/// Under /dev, and not on something that is mounted below it (/dev/shm, /dev/hugepages).
fn is_among_devices(path: &Path, tree: &BlockTree) -> bool {
    let Some(there) = nearest_existing(path) else {
        return false;
    };
    let mounts = tree.mounts();
    let point = mount_of(&there, &mounts).map_or(Path::new("/"), |mount| &mount.point);
    there.starts_with("/dev") && (point == Path::new("/dev") || !point.starts_with("/dev"))
}

/// How `device` is used, by the tables that the kernel shows.
fn usage(device: &BlockDevice, tree: &BlockTree) -> Option<Usage> {
    let family = family(device, tree);
    let in_family = |number: DeviceNumber| family.iter().find(|member| member.0 == number);
    let mounted = tree.mounts().into_iter().find_map(|mount| {
        let (_, name) = in_family(mount.device_number())?;
        Some(Usage::Mounted {
            device: name.clone(),
            point: mount.point,
        })
    });
    let swap = || {
        tree.swaps().into_iter().find_map(|path| {
            let metadata = fs::metadata(path).ok()?;
            let node = (Kind::of(&metadata) == Kind::Block).then_some(metadata.rdev())?;
            let (_, name) = in_family(DeviceNumber::from_raw(node))?;
            Some(Usage::Swap {
                device: name.clone(),
            })
        })
    };
    let member = || {
        let mut members = tree.btrfs_members().into_iter();
        let member = members.find(|member| in_family(member.number).is_some())?;
        Some(Usage::Member {
            device: member.name,
        })
    };
    mounted.or_else(swap).or_else(member)
}

/// All devices whose data are lost when `device` is written: itself, the disk that it is a
/// partition of, its partitions, and whatever is made of any of these except the partition's
/// sisters.
fn family(device: &BlockDevice, tree: &BlockTree) -> BTreeSet<(DeviceNumber, String)> {
    let mut family = BTreeSet::new();
    let loops = tree.loops();
    add_with_users(device, &loops, &mut family);
    let disk = device.whole();
    if disk != *device {
        // What is made of the whole disk, but not its other partitions.
        family.insert((disk.number, disk.name.clone()));
        for holder in users(&disk, &loops) {
            add_with_users(&holder, &loops, &mut family);
        }
    }
    family
}

fn add_with_users(
    device: &BlockDevice,
    loops: &[(BlockDevice, PathBuf)],
    family: &mut BTreeSet<(DeviceNumber, String)>,
) {
    if !family.insert((device.number, device.name.clone())) {
        return;
    }
    for other in device.partitions().into_iter().chain(users(device, loops)) {
        add_with_users(&other, loops, family);
    }
}

/// Devices that are made of this one. Loop devices are not among the kernel's holders.
fn users(device: &BlockDevice, loops: &[(BlockDevice, PathBuf)]) -> Vec<BlockDevice> {
    let node = Path::new("/dev").join(&device.name);
    let loops = loops.iter().filter(|(_, file)| *file == node);
    let mut users = device.holders();
    users.extend(loops.map(|(device, _)| device.clone()));
    users
}

/// Opening a block device for oneself alone, without writing, fails if another has it so.
fn is_exclusive(path: &Path, metadata: &Metadata) -> bool {
    let access = Access {
        exclusive: true,
        ..Access::default()
    };
    Kind::of(metadata) == Kind::Block
        && files::open(path, access)
            .is_err_and(|error| error.kind() == std::io::ErrorKind::ResourceBusy)
}

/// What harm there is in writing to a character device; the numbers are those of the Linux
/// kernel's list of allocated devices.
fn harm_in_writing(metadata: &Metadata) -> Option<&'static str> {
    let number = DeviceNumber::of_node(metadata);
    match (number.major, number.minor) {
        // null, zero, full, random, urandom.
        (1, 3 | 5 | 7 | 8 | 9) => None,
        (1, _) => Some("the machine's memory, its ports or its kernel log"),
        (4 | 5 | 136..=143, _) => Some("a terminal"),
        (10, _) => Some("a control device of the kernel"),
        (13, _) => Some("an input device"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_tree::tests::MadeUp;

    /// sda with sda1 (in a RAID md0) and sda2 (a logical volume dm-0); sdb whole, in a dm-1.
    fn machine(name: &str) -> MadeUp {
        let made_up = MadeUp::new(name);
        made_up
            .device("sda", "8:0")
            .device("sda/sda1", "8:1")
            .device("sda/sda2", "8:2")
            .device("sdb", "8:16")
            .device("sdb/sdb1", "8:17")
            .device("md0", "9:0")
            .device("dm-0", "253:0")
            .device("dm-1", "253:1")
            .stack("md0", "sda/sda1")
            .stack("dm-0", "sda/sda2")
            .stack("dm-1", "sdb");
        made_up
    }

    #[track_caller]
    fn check_usage(mounted: &str, written: &str, want: bool) {
        let name = format!("usage-{}-{written}", mounted.replace(':', "-"));
        let made_up = machine(&name);
        made_up.mountinfo(&format!("1 0 {mounted} / /mnt/x rw - ext4 x rw\n"));
        let tree = made_up.tree();
        let found = usage(&tree.named(written).unwrap(), &tree);
        assert_eq!(found.is_some(), want, "{found:?}");
    }

    #[test]
    fn a_device_is_in_use_through_its_family() {
        check_usage("8:0", "sda", true);
        check_usage("8:1", "sda", true);
        check_usage("8:0", "sda1", true);
        check_usage("9:0", "sda1", true);
        check_usage("9:0", "sda", true);
        check_usage("253:1", "sdb1", true);
    }

    #[test]
    fn a_device_is_free_though_its_sisters_are_in_use() {
        check_usage("8:2", "sda1", false);
        check_usage("253:0", "sda1", false);
        check_usage("9:0", "sda2", false);
        check_usage("8:0", "sdb", false);
        check_usage("0:21", "sda", false);
    }

    #[test]
    fn a_loop_device_uses_what_is_behind_it() {
        let made_up = machine("loop");
        made_up
            .device("loop0", "7:0")
            .attribute("loop0", "loop/backing_file", "/dev/sdb\n")
            .mountinfo("1 0 7:0 / /mnt/x rw - ext4 /dev/loop0 rw\n");
        let tree = made_up.tree();
        let found = usage(&tree.named("sdb").unwrap(), &tree).unwrap();
        assert_eq!(found.to_string(), "loop0 is mounted at /mnt/x");
    }

    #[test]
    fn a_member_of_a_btrfs_is_in_use() {
        let made_up = machine("btrfs");
        let tree = made_up.tree();
        let sdb = tree.named("sdb").unwrap();
        assert_eq!(usage(&sdb, &tree), None);
        made_up.attribute("../fs/btrfs/some-id", "devices/sdb", "");
        let want = Usage::Member {
            device: "sdb".into(),
        };
        assert_eq!(usage(&sdb, &tree), Some(want));
    }

    #[test]
    fn a_missing_file_is_refused_among_devices_only() {
        let tree = BlockTree::default();
        let refused = |path: &str| check(Path::new(path), false, false, &tree).err();
        let error = refused("/dev/fathom-no-such-device").unwrap();
        assert_eq!(error.code(), "no_such_device");
        assert!(error.to_string().contains("would lie in memory"));
        assert_eq!(refused("/tmp/fathom-no-such-file"), None);
        assert!(refused("/dev/fathom-no-such-folder/x").is_some());
        if tree
            .mounts()
            .iter()
            .any(|mount| mount.point == Path::new("/dev/shm"))
        {
            assert_eq!(refused("/dev/shm/fathom-no-such-file"), None);
        } else {
            println!("skipped: /dev/shm is not a mount of its own");
        }
    }

    #[test]
    fn character_devices_are_judged_by_their_number() {
        let tree = BlockTree::default();
        let refused = |path: &str, writes| check(Path::new(path), writes, true, &tree).err();
        for harmless in ["/dev/null", "/dev/zero", "/dev/full"] {
            assert_eq!(refused(harmless, true), None, "{harmless}");
        }
        if Path::new("/dev/mem").exists() {
            assert_eq!(refused("/dev/mem", true).unwrap().code(), "harmful_device");
            assert_eq!(refused("/dev/mem", false), None);
        }
        assert_eq!(refused("/dev/tty", true).unwrap().code(), "harmful_device");
    }

    #[test]
    fn the_root_file_system_is_not_overwritten() {
        let tree = BlockTree::default();
        let mounts = tree.mounts();
        let root = mount_of(Path::new("/"), &mounts).unwrap();
        let Some(device) = tree.device(root.device_number()) else {
            println!("skipped: / is on no block device");
            return;
        };
        for device in [device.whole(), device] {
            let node = Path::new("/dev").join(&device.name);
            if Kind::of(&fs::metadata(&node).unwrap()) != Kind::Block {
                println!("skipped: {} is not here", node.display());
                return;
            }
            let refusal = check(&node, true, false, &tree).unwrap_err();
            assert_eq!(refusal.code(), "device_in_use");
            assert!(check(&node, false, false, &tree).is_ok());
            assert!(check(&node, true, true, &tree).is_ok());
        }
    }
}
