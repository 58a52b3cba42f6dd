//! Block devices and regular files in use, and the data that a write to one of them affects.
//!
//! Everything is compared by identity: devices by number, files by file system and inode.
//!
//! ```text
//!           loop0 (mounted)    loop1 ◄── written
//!               │                │
//!               └───► image ◄────┘       down to what is written, up to who relies on it
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use fathom_core::Nanos;
use fathom_sys::clock::{Clock, sleep_until};
use fathom_sys::files::{self, Access};

use super::DeviceUse;
use crate::block_tree::{BlockTree, HostDevice, Mount, Store};

/// Uses that the kernel lists, and the loop devices that connect them to files.
#[derive(Debug)]
pub(super) struct InUse {
    uses: HashMap<Store, Use>,
    loops: Vec<(HostDevice, Store)>,
}

/// Use of one device or file.
#[derive(Debug)]
enum Use {
    Mounted(PathBuf),
    Swap,
    Member,
}

impl InUse {
    /// Reads the kernel's lists of mounts, swap areas, btrfs members and loop devices.
    pub(super) fn scan(tree: &BlockTree, mounts: &[Mount]) -> Self {
        let mut uses = HashMap::new();
        for mount in mounts {
            let point = || Use::Mounted(mount.point.clone());
            uses.entry(Store::Device(mount.device_number()))
                .or_insert_with(point);
            // A file system without a device may be stored in a file (erofs, FUSE).
            if mount.device.major == 0
                && Path::new(&mount.source).is_absolute()
                && let Some(file @ Store::File(_)) = tree.store_at(Path::new(&mount.source))
            {
                uses.entry(file).or_insert_with(point);
            }
        }
        for swap in tree.swaps() {
            uses.entry(swap).or_insert(Use::Swap);
        }
        for member in tree.btrfs_members() {
            uses.entry(Store::Device(member.number))
                .or_insert(Use::Member);
        }
        Self {
            uses,
            loops: tree.loops(),
        }
    }

    /// Returns the use of `store` or of anything that depends on it; `path` is its name in
    /// messages.
    pub(super) fn usage(&self, store: Store, path: &Path, tree: &BlockTree) -> Option<DeviceUse> {
        let is_behind = || self.loops.iter().any(|(_, backing)| *backing == store);
        if matches!(store, Store::File(_)) && !self.uses.contains_key(&store) && !is_behind() {
            return None; // most files: no device is backed by them
        }
        let mut affected = Affected {
            in_use: self,
            tree,
            members: BTreeMap::new(),
            expanded: BTreeSet::new(),
        };
        affected.down(store, true);
        let members = affected.members.iter();
        let listed = members.filter_map(|(member, device)| {
            let name = || match device {
                Some(device) => device.name.clone(),
                None => path.display().to_string(),
            };
            Some((self.uses.get(member)?, name()))
        });
        // A mount is the most informative.
        let rank = |used: &Use| match used {
            Use::Mounted(_) => 0,
            Use::Swap => 1,
            Use::Member => 2,
        };
        let listed = listed.min_by_key(|(used, _)| rank(used));
        let listed = listed.map(|(used, device)| match used {
            Use::Mounted(point) => DeviceUse::Mounted {
                device,
                point: point.clone(),
            },
            Use::Swap => DeviceUse::Swap { device },
            Use::Member => DeviceUse::Member { device },
        });
        listed.or_else(|| affected.claimed(store, path))
    }
}

/// Closure of the devices and files whose data a write affects.
struct Affected<'a> {
    in_use: &'a InUse,
    tree: &'a BlockTree,
    /// `None` for files, and for devices that sysfs does not show.
    members: BTreeMap<Store, Option<HostDevice>>,
    /// Devices affected as a whole, with their partitions and everything stacked on them.
    expanded: BTreeSet<Store>,
}

impl Affected<'_> {
    /// Adds everything that is written when `store` is, and everything that depends on it. A disk
    /// below a partition, or a device below a volume, is written only in part, so its other
    /// partitions and volumes are not affected.
    fn down(&mut self, store: Store, whole: bool) {
        let Store::Device(number) = store else {
            self.members.insert(store, None);
            return self.add_loops_over(store);
        };
        let Some(device) = self.tree.device(number) else {
            self.members.insert(store, None);
            return self.add_loops_over(store);
        };
        if whole {
            self.add_with_users(&device);
        } else {
            self.members.insert(store, Some(device.clone()));
            self.add_loops_over(store);
        }
        let disk = device.whole_disk();
        if disk != device {
            self.down(Store::Device(disk.number), false);
            for holder in disk.holders() {
                self.add_with_users(&holder);
            }
        }
        for slave in device.slaves() {
            self.down(Store::Device(slave.number), false);
        }
        let loops = self.in_use.loops.iter();
        let behind = loops.filter(|(over, _)| over.number == number);
        for &(_, backing) in behind {
            // As a whole: the backing device's partitions may be the loop device's own.
            self.down(backing, true);
        }
    }

    /// Adds a device that is affected as a whole.
    fn add_with_users(&mut self, device: &HostDevice) {
        let store = Store::Device(device.number);
        if !self.expanded.insert(store) {
            return;
        }
        self.members.insert(store, Some(device.clone()));
        for other in device.partitions().iter().chain(&device.holders()) {
            self.add_with_users(other);
        }
        self.add_loops_over(store);
    }

    /// Adds the loop devices backed by a file or device, which the kernel's `holders` omit.
    fn add_loops_over(&mut self, store: Store) {
        let in_use = self.in_use;
        for (device, backing) in &in_use.loops {
            if *backing == store {
                self.add_with_users(device);
            }
        }
    }

    /// Returns a claim that the lists do not show: of another mount namespace, or of a driver.
    fn claimed(&self, target: Store, path: &Path) -> Option<DeviceUse> {
        let affected = self.expanded.iter();
        affected
            .filter_map(|store| self.members.get(store)?.as_ref())
            .find_map(|device| {
                let is_target = target == Store::Device(device.number);
                let refused = self.refusal_to_share(device, is_target.then_some(path))?;
                let name = device.name.clone();
                let is_loop = || self.in_use.loops.iter().any(|(one, _)| one == device);
                match refused {
                    ErrorKind::ResourceBusy if is_target => Some(DeviceUse::Exclusive),
                    ErrorKind::ResourceBusy => Some(DeviceUse::Claimed { device: name }),
                    // A device that cannot be opened will not be written, but a loop device's
                    // backing file can be written without opening the loop device.
                    _ if !is_target && is_loop() => Some(DeviceUse::Unknown { device: name }),
                    _ => None,
                }
            })
    }

    /// Returns the error of opening a device exclusively; `None` if that succeeds, and for trees of
    /// tests. Nothing is written. Retries on EBUSY: another run that checks the same device claims
    /// it for a moment, and only a lasting claim counts.
    fn refusal_to_share(&self, device: &HostDevice, node: Option<&Path>) -> Option<ErrorKind> {
        let access = Access {
            exclusive: true,
            ..Access::default()
        };
        let clock = Clock::monotonic();
        let mut attempts = 0;
        loop {
            let opened = match node {
                Some(node) => files::open(node, access),
                None => self.tree.open(device, access),
            };
            let kind = opened.err()?.kind();
            attempts += 1;
            if kind != ErrorKind::ResourceBusy || attempts == CLAIM_ATTEMPTS {
                return Some(kind).filter(|_| self.tree.is_real());
            }
            sleep_until(&clock, clock.now() + BETWEEN_ATTEMPTS);
        }
    }
}

/// Attempts 1 ms apart. 10 ms in all is thousands of times as long as an open and a close.
const CLAIM_ATTEMPTS: u32 = 11;
const BETWEEN_ATTEMPTS: Nanos = Nanos::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::FakeHost;

    /// sda with sda1 (in a RAID md0) and sda2 (a logical volume dm-0); sdb whole, in a dm-1.
    fn machine(name: &str) -> FakeHost {
        let fake = FakeHost::new(name);
        fake.device("sda", "8:0")
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
        fake
    }

    #[track_caller]
    fn check_usage(mounted: &str, written: &str, want: bool) {
        let name = format!("usage-{}-{written}", mounted.replace(':', "-"));
        let fake = machine(&name);
        fake.mountinfo(&format!("1 0 {mounted} / /mnt/x rw - ext4 x rw\n"));
        let found = usage(&fake, written);
        assert_eq!(found.is_some(), want, "{found:?}");
    }

    /// Returns the use that a device of a made-up machine is in.
    fn usage(fake: &FakeHost, written: &str) -> Option<DeviceUse> {
        let tree = fake.tree();
        let path = Path::new("/dev").join(written);
        let store = tree.store_at(&path).unwrap();
        InUse::scan(&tree, &tree.mounts()).usage(store, &path, &tree)
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
        let fake = machine("loop");
        fake.device("loop0", "7:0")
            .attribute("loop0", "loop/backing_file", "/dev/sdb\n")
            .mountinfo("1 0 7:0 / /mnt/x rw - ext4 /dev/loop0 rw\n");
        let found = usage(&fake, "sdb").unwrap();
        assert_eq!(found.to_string(), "loop0 is mounted at /mnt/x");
    }

    #[test]
    fn a_member_of_a_btrfs_is_in_use() {
        let fake = machine("btrfs");
        assert_eq!(usage(&fake, "sdb"), None);
        fake.attribute("../fs/btrfs/some-id", "devices/sdb", "");
        let want = DeviceUse::Member {
            device: "sdb".into(),
        };
        assert_eq!(usage(&fake, "sdb"), Some(want));
    }

    /// A made-up machine with these loop devices, each with what is behind it: the name of a
    /// device or of a file. A device is mounted.
    fn loops(name: &str, behind: &[(&str, &str)], mounted: &str) -> FakeHost {
        let fake = machine(&format!("loops-{name}"));
        for (minor, (device, backing)) in behind.iter().enumerate() {
            let backing = match backing.strip_prefix("/dev/") {
                Some(_) => PathBuf::from(backing),
                None => fake.file(backing),
            };
            let text = format!("{}\n", backing.display());
            fake.device(device, &format!("7:{minor}"));
            fake.attribute(device, "loop/backing_file", &text);
        }
        fake.mountinfo(&format!("1 0 {mounted} / /mnt/x rw - ext4 x rw\n"));
        fake
    }

    #[test]
    fn a_second_loop_device_over_one_file_writes_the_first() {
        let fake = loops(
            "second",
            &[("loop0", "f"), ("loop1", "f"), ("loop2", "g")],
            "7:0",
        );
        let found = usage(&fake, "loop1").unwrap();
        assert_eq!(found.to_string(), "loop0 is mounted at /mnt/x");
        assert_eq!(usage(&fake, "loop2"), None);
    }

    #[test]
    fn a_loop_device_writes_what_is_behind_it() {
        // The disk of a mounted partition, a mounted partition, and the partition beside it.
        let behind = [
            ("loop0", "/dev/sda"),
            ("loop1", "/dev/sda1"),
            ("loop2", "/dev/sda2"),
        ];
        let fake = loops("behind", &behind, "8:1");
        assert!(usage(&fake, "loop0").is_some());
        assert!(usage(&fake, "loop1").is_some());
        assert_eq!(usage(&fake, "loop2"), None);
    }

    #[test]
    fn a_volume_on_a_loop_device_writes_its_file() {
        let fake = loops("volume", &[("loop0", "f"), ("loop1", "f")], "7:0");
        fake.device("dm-7", "253:7").stack("dm-7", "loop1");
        let found = usage(&fake, "dm-7").unwrap();
        assert_eq!(found.to_string(), "loop0 is mounted at /mnt/x");
    }

    #[test]
    fn a_volume_is_free_though_another_of_its_group_is_mounted() {
        let fake = machine("volumes");
        fake.device("dm-8", "253:8")
            .stack("dm-8", "sda/sda2")
            .mountinfo("1 0 253:0 / /mnt/x rw - ext4 x rw\n");
        assert_eq!(usage(&fake, "dm-8"), None);
        assert!(usage(&fake, "dm-0").is_some());
        assert!(usage(&fake, "sda2").is_some());
    }

    #[test]
    fn a_file_is_in_use_as_the_device_that_it_backs() {
        let fake = loops("file", &[("loop0", "f"), ("loop1", "g")], "7:0");
        let tree = fake.tree();
        let in_use = InUse::scan(&tree, &tree.mounts());
        let of = |name: &str| {
            let path = fake.file(name);
            in_use.usage(tree.store_at(&path).unwrap(), &path, &tree)
        };
        assert_eq!(of("f").unwrap().to_string(), "loop0 is mounted at /mnt/x");
        assert_eq!(of("g"), None);
        assert_eq!(of("h"), None);
    }

    #[test]
    fn a_file_is_in_use_as_swap_and_as_a_file_system() {
        let fake = machine("files");
        let (swap, image) = (fake.file("swap file"), fake.file("image"));
        let text = swap.display().to_string().replace(' ', "\\040");
        fake.swaps(&format!(
            "Filename Type Size Used Priority\n{text} file 8 0 -2\n"
        ));
        let image_name = image.display();
        fake.mountinfo(&format!("1 0 0:50 / /mnt/e ro - erofs {image_name} ro\n"));
        let tree = fake.tree();
        let in_use = InUse::scan(&tree, &tree.mounts());
        let of = |path| {
            in_use
                .usage(tree.store_at(path).unwrap(), path, &tree)
                .unwrap()
        };
        assert!(
            of(&swap)
                .to_string()
                .ends_with("swap file is in use as swap")
        );
        assert!(
            of(&image)
                .to_string()
                .ends_with("image is mounted at /mnt/e")
        );
    }
}
