//! Block devices, mounts and swap areas as the kernel shows them in /sys and /proc.
//!
//! ```text
//! mount /home ──► dm-0 ──slaves──► sda2 ──parent──► sda
//!                 dm-0 ◄─holders── sda2 ◄─partition─ sda
//! ```

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fathom_sys::files::{DeviceNumber, Kind};

/// Where the kernel shows its devices; tests put a made-up tree in its place.
#[derive(Clone, Debug)]
pub struct BlockTree {
    sys: PathBuf,
    proc: PathBuf,
}

impl Default for BlockTree {
    fn default() -> Self {
        Self::at("/sys", "/proc")
    }
}

impl BlockTree {
    /// The trees under these folders instead of /sys and /proc.
    pub fn at(sys: impl Into<PathBuf>, proc: impl Into<PathBuf>) -> Self {
        Self {
            sys: sys.into(),
            proc: proc.into(),
        }
    }

    /// The block device with this number.
    #[must_use]
    pub fn device(&self, number: DeviceNumber) -> Option<BlockDevice> {
        let link = self.sys.join("dev/block").join(number.to_string());
        BlockDevice::at(fs::canonicalize(link).ok()?)
    }

    /// The block device of this name, partitions included.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<BlockDevice> {
        // Names with a slash (`cciss/c0d0`) have an exclamation mark in sysfs.
        let folder = self.sys.join("class/block").join(name.replace('/', "!"));
        BlockDevice::at(fs::canonicalize(folder).ok()?)
    }

    /// The block device that a character device drives too: `sg0` of `sda`, `ng0n1` of `nvme0n1`.
    #[must_use]
    pub fn behind_character_device(&self, number: DeviceNumber) -> Option<BlockDevice> {
        let link = self.sys.join("dev/char").join(number.to_string());
        let folder = fs::canonicalize(link).ok()?;
        if let Some(name) = names_in(&folder.join("device/block")).first() {
            return self.named(name);
        }
        let name = folder.file_name()?.to_str()?.strip_prefix("ng")?;
        self.named(&format!("nvme{name}"))
    }

    /// Mounts that this process sees, in mounting order.
    #[must_use]
    pub fn mounts(&self) -> Vec<Mount> {
        let text = fs::read(self.proc.join("self/mountinfo")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines().filter_map(Mount::parse).collect()
    }

    /// Files and devices that are in use as swap.
    #[must_use]
    pub fn swaps(&self) -> Vec<PathBuf> {
        let text = fs::read_to_string(self.proc.join("swaps")).unwrap_or_default();
        let paths = text
            .lines()
            .skip(1)
            .filter_map(|line| line.split_ascii_whitespace().next());
        paths.map(|path| PathBuf::from(unescape(path))).collect()
    }

    /// Devices that a mounted btrfs spans; its mount names only one of them.
    #[must_use]
    pub fn btrfs_members(&self) -> Vec<BlockDevice> {
        let filesystems = self.sys.join("fs/btrfs");
        let members = names_in(&filesystems)
            .into_iter()
            .flat_map(|id| names_in(&filesystems.join(id).join("devices")));
        members.filter_map(|name| self.named(&name)).collect()
    }

    /// Loop devices, each with the file or device behind it.
    #[must_use]
    pub fn loops(&self) -> Vec<(BlockDevice, PathBuf)> {
        let devices = names_in(&self.sys.join("class/block"));
        let loops = devices.into_iter().filter(|name| name.starts_with("loop"));
        loops
            .filter_map(|name| {
                let device = self.named(&name)?;
                let file = device.attribute("loop/backing_file")?;
                Some((device, PathBuf::from(file)))
            })
            .collect()
    }
}

/// One block device: a whole disk, a partition, or one that is made of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// Its name, without /dev: `vda`, `nvme0n1p2`, `dm-0`.
    pub name: String,
    /// Its number.
    pub number: DeviceNumber,
    folder: PathBuf,
}

impl BlockDevice {
    fn at(folder: PathBuf) -> Option<Self> {
        let name = folder.file_name()?.to_str()?.replace('!', "/");
        let text = fs::read_to_string(folder.join("dev")).ok()?;
        let (major, minor) = text.trim().split_once(':')?;
        let number = DeviceNumber {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        };
        Some(Self {
            name,
            number,
            folder,
        })
    }

    /// Its folder in sysfs.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Text of one attribute, without the line feed.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.folder.join(name)).ok()?;
        Some(text.trim_end().to_owned())
    }

    /// The disk that a partition is part of; itself for anything else.
    #[must_use]
    pub fn whole(&self) -> Self {
        if !self.folder.join("partition").exists() {
            return self.clone();
        }
        let disk = self.folder.parent().map(Path::to_path_buf);
        disk.and_then(Self::at).unwrap_or_else(|| self.clone())
    }

    /// Its partitions.
    #[must_use]
    pub fn partitions(&self) -> Vec<Self> {
        let inside = names_in(&self.folder)
            .into_iter()
            .map(|name| self.folder.join(name));
        let partitions = inside.filter(|folder| folder.join("partition").exists());
        partitions.filter_map(Self::at).collect()
    }

    /// Devices that are made of this one.
    #[must_use]
    pub fn holders(&self) -> Vec<Self> {
        self.linked("holders")
    }

    /// Devices that this one is made of.
    #[must_use]
    pub fn slaves(&self) -> Vec<Self> {
        self.linked("slaves")
    }

    fn linked(&self, folder: &str) -> Vec<Self> {
        let links = self.folder.join(folder);
        let targets = names_in(&links)
            .into_iter()
            .map(|name| fs::canonicalize(links.join(name)));
        targets
            .filter_map(|target| Self::at(target.ok()?))
            .collect()
    }
}

/// One line of mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The device's number; major 0 where there is no one device behind it.
    pub device: DeviceNumber,
    /// Where it is mounted.
    pub point: PathBuf,
    /// `ext4`, `tmpfs`…
    pub filesystem: String,
    /// What is mounted: `/dev/sda1`, or whatever the file system calls it.
    pub source: String,
}

impl Mount {
    /// `36 35 98:0 /root /point rw,noatime shared:1 - ext3 /dev/sda1 rw`, with any number of
    /// fields before the dash.
    fn parse(line: &str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(2);
        let (major, minor) = left.next()?.split_once(':')?;
        let point = left.nth(1)?;
        let mut right = right.split(' ');
        Some(Self {
            device: DeviceNumber {
                major: major.parse().ok()?,
                minor: minor.parse().ok()?,
            },
            point: PathBuf::from(unescape(point)),
            filesystem: unescape(right.next()?),
            source: unescape(right.next().unwrap_or_default()),
        })
    }

    /// The device it stands on, also where the file system hides it behind a number of its own.
    #[must_use]
    pub fn device_number(&self) -> DeviceNumber {
        if self.device.major != 0 || !self.source.starts_with("/dev/") {
            return self.device;
        }
        let node = fs::metadata(&self.source).ok();
        let node = node.filter(|node| Kind::of(node) == Kind::Block);
        node.map_or(self.device, |node| DeviceNumber::from_raw(node.rdev()))
    }
}

/// The mount that an absolute path without links lies on: the longest mount point that leads to
/// it, and of those mounted over one another the last.
#[must_use]
pub fn mount_of<'a>(path: &Path, mounts: &'a [Mount]) -> Option<&'a Mount> {
    let leading = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    leading.max_by_key(|mount| mount.point.components().count())
}

/// Names in a folder, sorted; none if there is no such folder.
fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

/// The kernel writes space, tab, line feed and backslash as a backslash and three octal digits.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| first == b'\\');
        let code = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A made-up /sys and /proc in a folder that is removed when the test ends.
    pub(crate) struct MadeUp {
        root: PathBuf,
    }

    impl MadeUp {
        pub(crate) fn new(name: &str) -> Self {
            let name = format!("fathom-run-tree-{}-{name}", std::process::id());
            let root = std::env::temp_dir().join(name);
            for folder in [
                "sys/dev/block",
                "sys/class/block",
                "sys/devices",
                "proc/self",
            ] {
                fs::create_dir_all(root.join(folder)).unwrap();
            }
            Self { root }
        }

        pub(crate) fn tree(&self) -> BlockTree {
            BlockTree::at(self.root.join("sys"), self.root.join("proc"))
        }

        /// A device; `path` is `sda` or `sda/sda1` for a partition.
        pub(crate) fn device(&self, path: &str, number: &str) -> &Self {
            let folder = self.root.join("sys/devices").join(path);
            let name = folder.file_name().unwrap().to_owned();
            fs::create_dir_all(folder.join("holders")).unwrap();
            fs::create_dir_all(folder.join("slaves")).unwrap();
            fs::write(folder.join("dev"), format!("{number}\n")).unwrap();
            if path.contains('/') {
                fs::write(folder.join("partition"), "1\n").unwrap();
            }
            symlink(&folder, self.root.join("sys/dev/block").join(number)).unwrap();
            symlink(&folder, self.root.join("sys/class/block").join(name)).unwrap();
            self
        }

        /// `upper` is made of `lower`.
        pub(crate) fn stack(&self, upper: &str, lower: &str) -> &Self {
            let devices = self.root.join("sys/devices");
            let name = |path: &str| Path::new(path).file_name().unwrap().to_owned();
            let holder = devices.join(lower).join("holders").join(name(upper));
            symlink(devices.join(upper), holder).unwrap();
            let slave = devices.join(upper).join("slaves").join(name(lower));
            symlink(devices.join(lower), slave).unwrap();
            self
        }

        pub(crate) fn attribute(&self, device: &str, name: &str, text: &str) -> &Self {
            let file = self.root.join("sys/devices").join(device).join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
            self
        }

        pub(crate) fn mountinfo(&self, text: &str) -> &Self {
            fs::write(self.root.join("proc/self/mountinfo"), text).unwrap();
            self
        }
    }

    impl Drop for MadeUp {
        fn drop(&mut self) {
            let _gone_is_fine = fs::remove_dir_all(&self.root);
        }
    }

    #[test]
    fn a_mount_line_is_taken_apart() {
        let line = r"36 35 98:0 /r /mnt/a\040b rw master:1 propagate_from:2 - ext3 /dev/sda1 rw";
        let mount = Mount::parse(line).unwrap();
        assert_eq!(mount.device.to_string(), "98:0");
        assert_eq!(mount.point, Path::new("/mnt/a b"));
        assert_eq!(mount.filesystem, "ext3");
        assert_eq!(mount.source, "/dev/sda1");
        for broken in ["", "36 35", "36 35 98 / / rw - ext3 x rw", "36 35 98:0 / /"] {
            assert_eq!(Mount::parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn escapes_are_undone_and_nothing_else() {
        for (text, want) in [
            (r"a\040b", "a b"),
            (r"a\134b", r"a\b"),
            (r"a\", r"a\"),
            (r"a\04", r"a\04"),
            (r"\999x", r"\999x"),
            ("é", "é"),
        ] {
            assert_eq!(unescape(text), want, "{text}");
        }
    }

    #[test]
    fn the_longest_and_last_mount_wins() {
        let mount = |line: &str| Mount::parse(line).unwrap();
        let mounts = [
            mount("1 0 8:1 / / rw - ext4 /dev/sda1 rw"),
            mount("2 1 8:2 / /home rw - ext4 /dev/sda2 rw"),
            mount("3 1 8:3 / /home rw - xfs /dev/sda3 rw"),
        ];
        let on = |path: &str| mount_of(Path::new(path), &mounts).unwrap().device.minor;
        assert_eq!(on("/home/x"), 3);
        assert_eq!(on("/homely"), 1);
        assert_eq!(mount_of(Path::new("/x"), &mounts[1..]), None);
    }

    #[test]
    fn partitions_parents_holders_and_slaves_are_found() {
        let made_up = MadeUp::new("family");
        made_up
            .device("sda", "8:0")
            .device("sda/sda1", "8:1")
            .device("dm-0", "253:0")
            .stack("dm-0", "sda/sda1");
        let tree = made_up.tree();
        let disk = tree.named("sda").unwrap();
        assert_eq!(disk.whole(), disk);
        let [partition] = &disk.partitions()[..] else {
            panic!("one partition expected");
        };
        assert_eq!(partition.name, "sda1");
        assert_eq!(partition.whole(), disk);
        let [holder] = &partition.holders()[..] else {
            panic!("one holder expected");
        };
        assert_eq!(holder.number.to_string(), "253:0");
        assert_eq!(holder.slaves(), std::slice::from_ref(partition));
        assert_eq!(tree.device(holder.number), Some(holder.clone()));
        assert_eq!(tree.named("sdb"), None);
    }

    #[test]
    fn this_machine_has_a_root() {
        let mounts = BlockTree::default().mounts();
        assert!(mount_of(Path::new("/"), &mounts).is_some());
    }
}
