//! Block devices, mounts and swap areas as the kernel shows them in /sys and /proc.
//!
//! ```text
//! mount /home ──► dm-0 ──slaves──► sda2 ──parent──► sda
//!                 dm-0 ◄─holders── sda2 ◄─partition─ sda
//! ```

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fathom_sys::files::{self, Access, DeviceNumber, FileId, FileKind};

/// View of the block devices, mounts and swap areas in sysfs and procfs.
///
/// `default()` reads this host. [`at`](Self::at) reads a tree under other folders, for tests; its
/// devices are never opened. Nothing is cached: each method reads the files again, so a caller that
/// judges several paths keeps the lists it needs.
#[derive(Clone, Debug)]
pub struct BlockTree {
    sys: PathBuf,
    proc: PathBuf,
    /// False for trees of tests, whose device numbers belong to devices of the real host.
    is_real: bool,
}

/// Identity of a block device or a regular file, independent of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Store {
    /// A block device.
    Device(DeviceNumber),
    /// A regular file.
    File(FileId),
}

impl Store {
    /// Returns the identity of the file that `metadata` describes; `None` for other kinds.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Option<Self> {
        match FileKind::of(metadata) {
            FileKind::Block => Some(Self::Device(DeviceNumber::of_node(metadata))),
            FileKind::Regular => Some(Self::File(FileId::of(metadata))),
            FileKind::Character | FileKind::Directory | FileKind::Other => None,
        }
    }
}

impl Default for BlockTree {
    fn default() -> Self {
        Self {
            is_real: true,
            ..Self::at("/sys", "/proc")
        }
    }
}

impl BlockTree {
    /// Reads these folders instead of /sys and /proc.
    pub fn at(sys: impl Into<PathBuf>, proc: impl Into<PathBuf>) -> Self {
        Self {
            sys: sys.into(),
            proc: proc.into(),
            is_real: false,
        }
    }

    /// Looks up a block device by number.
    #[must_use]
    pub fn device(&self, number: DeviceNumber) -> Option<HostDevice> {
        let link = self.sys.join("dev/block").join(number.to_string());
        HostDevice::at(fs::canonicalize(link).ok()?)
    }

    /// Looks up a block device or partition by name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<HostDevice> {
        // Names with a slash (`cciss/c0d0`) have an exclamation mark in sysfs.
        let folder = self.sys.join("class/block").join(name.replace('/', "!"));
        HostDevice::at(fs::canonicalize(folder).ok()?)
    }

    /// Returns the block device behind a passthrough character device: `sda` for `sg0`, `nvme0n1`
    /// for `ng0n1`.
    #[must_use]
    pub fn behind_character_device(&self, number: DeviceNumber) -> Option<HostDevice> {
        let folder = self.character_device(number)?;
        if let Some(name) = names_in(&folder.join("device/block")).first() {
            return self.named(name);
        }
        let name = folder.file_name()?.to_str()?.strip_prefix("ng")?;
        self.named(&format!("nvme{name}"))
    }

    /// Looks up the block device at a path, or the one behind a passthrough character device.
    #[must_use]
    pub fn device_at(&self, path: &Path) -> Option<HostDevice> {
        let metadata = fs::metadata(path).ok()?;
        let number = DeviceNumber::of_node(&metadata);
        match FileKind::of(&metadata) {
            FileKind::Block => self.device(number),
            FileKind::Character => self.behind_character_device(number),
            FileKind::Regular | FileKind::Directory | FileKind::Other => None,
        }
    }

    /// Returns the sysfs folder of a character device.
    pub fn character_device(&self, number: DeviceNumber) -> Option<PathBuf> {
        let link = self.sys.join("dev/char").join(number.to_string());
        fs::canonicalize(link).ok()
    }

    /// Lists the mounts of this process's namespace, in mounting order.
    #[must_use]
    pub fn mounts(&self) -> Vec<Mount> {
        let text = fs::read(self.proc.join("self/mountinfo")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines().filter_map(Mount::parse).collect()
    }

    /// Lists the files and devices in use as swap.
    #[must_use]
    pub fn swaps(&self) -> Vec<Store> {
        let text = fs::read_to_string(self.proc.join("swaps")).unwrap_or_default();
        let paths = text
            .lines()
            .skip(1)
            .filter_map(|line| line.split_ascii_whitespace().next());
        let stores = paths.map(|path| self.store_at(Path::new(&unescape(path))));
        stores.flatten().collect()
    }

    /// Lists the members of mounted btrfs file systems, whose mounts name only one device each.
    #[must_use]
    pub fn btrfs_members(&self) -> Vec<HostDevice> {
        let filesystems = self.sys.join("fs/btrfs");
        let members = names_in(&filesystems)
            .into_iter()
            .flat_map(|id| names_in(&filesystems.join(id).join("devices")));
        members.filter_map(|name| self.named(&name)).collect()
    }

    /// Lists the loop devices, each with its backing file or device.
    #[must_use]
    pub fn loops(&self) -> Vec<(HostDevice, Store)> {
        let devices = names_in(&self.sys.join("class/block"));
        let loops = devices.into_iter().filter(|name| name.starts_with("loop"));
        loops
            .filter_map(|name| {
                let device = self.named(&name)?;
                let path = PathBuf::from(device.attribute("loop/backing_file")?);
                let store = self.behind_loop(&device, &path);
                Some((device, store.or_else(|| self.store_at(&path))?))
            })
            .collect()
    }

    /// Returns whether this is the host's own tree, whose devices can be opened.
    pub const fn is_real(&self) -> bool {
        self.is_real
    }

    /// Opens a device.
    ///
    /// # Errors
    /// The errno of `open(2)`; `ENOENT` where /dev has no node of this name and number.
    pub fn open(&self, device: &HostDevice, access: Access) -> io::Result<File> {
        let node = Path::new("/dev").join(&device.name);
        let found = fs::metadata(&node).ok().filter(|_| self.is_real);
        if found.and_then(|found| Store::of(&found)) != Some(Store::Device(device.number)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        files::open(&node, access)
    }

    /// Asks the loop driver for the identity of its backing file. The path in sysfs may name
    /// another file by now, or belong to another mount namespace.
    fn behind_loop(&self, device: &HostDevice, path: &Path) -> Option<Store> {
        let backing = files::loop_backing(self.open(device, Access::default()).ok()?).ok()?;
        let is_regular = match backing.device {
            None => true,
            Some(_) if !backing.is_ambiguous => false,
            // If the path no longer leads to the file, assume a device, which is protected better.
            Some(_) => fs::metadata(path).is_ok_and(|found| {
                FileKind::of(&found) == FileKind::Regular && FileId::of(&found) == backing.file
            }),
        };
        match backing.device {
            Some(number) if !is_regular => Some(Store::Device(number)),
            _ => Some(Store::File(backing.file)),
        }
    }

    /// Returns the identity of a path that the kernel printed. Devices are found by name, with or
    /// without a node in /dev.
    pub fn store_at(&self, path: &Path) -> Option<Store> {
        let found = || Store::of(&fs::metadata(path).ok()?);
        let named = || {
            let device = self.named(path.strip_prefix("/dev").ok()?.to_str()?)?;
            Some(Store::Device(device.number))
        };
        match self.is_real {
            true => found().or_else(named),
            false => named().or_else(found),
        }
    }
}

/// A block device: a whole disk, a partition or a stacked device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostDevice {
    /// Name without `/dev/`: `vda`, `nvme0n1p2`, `dm-0`.
    pub name: String,
    /// Device number.
    pub number: DeviceNumber,
    folder: PathBuf,
}

impl HostDevice {
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

    /// Returns the device's folder in sysfs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns whether it is a zoned block device.
    #[must_use]
    pub fn has_zones(&self) -> bool {
        let zoned = self.attribute("queue/zoned");
        zoned.is_some_and(|zoned| zoned != "none")
    }

    /// Reads one sysfs attribute, without trailing white space.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.folder.join(name)).ok()?;
        Some(text.trim_end().to_owned())
    }

    /// Returns whether this is a whole disk that takes SCSI commands.
    #[must_use]
    pub fn is_scsi_disk(&self) -> bool {
        // Partitions have no `device`.
        let bus = fs::read_link(self.folder.join("device/subsystem"));
        bus.is_ok_and(|bus| bus.file_name().is_some_and(|name| name == "scsi"))
    }

    /// Returns the disk of a partition; for other devices the device itself.
    #[must_use]
    pub fn whole_disk(&self) -> Self {
        if !self.folder.join("partition").exists() {
            return self.clone();
        }
        let disk = self.folder.parent().map(Path::to_path_buf);
        disk.and_then(Self::at).unwrap_or_else(|| self.clone())
    }

    /// Lists the device's partitions.
    #[must_use]
    pub fn partitions(&self) -> Vec<Self> {
        let inside = names_in(&self.folder)
            .into_iter()
            .map(|name| self.folder.join(name));
        let partitions = inside.filter(|folder| folder.join("partition").exists());
        partitions.filter_map(Self::at).collect()
    }

    /// Lists the stacked devices built on this one.
    #[must_use]
    pub fn holders(&self) -> Vec<Self> {
        self.linked("holders")
    }

    /// Lists the devices that back this one.
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

/// A mount, from one line of `mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Device number; major 0 if the file system is not on a single device.
    pub device: DeviceNumber,
    /// Mount point.
    pub point: PathBuf,
    /// Type: `ext4`, `tmpfs`.
    pub filesystem: String,
    /// Source: `/dev/sda1`, or a name of the file system's choice.
    pub source: String,
    /// Options of the superblock; an overlay's layers are among them.
    pub options: String,
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
            options: unescape(right.next().unwrap_or_default()),
        })
    }

    /// Returns the number of the device below, also where the file system shows an anonymous number
    /// of its own (btrfs).
    #[must_use]
    pub fn device_number(&self) -> DeviceNumber {
        if self.device.major != 0 || !self.source.starts_with("/dev/") {
            return self.device;
        }
        let node = fs::metadata(&self.source).ok();
        let node = node.filter(|node| FileKind::of(node) == FileKind::Block);
        node.map_or(self.device, |node| DeviceNumber::from_raw(node.rdev()))
    }
}

/// Returns the mount of an absolute path without symbolic links: the longest mount point that is a
/// prefix of it; of mounts stacked on one point, the last.
#[must_use]
pub fn mount_of<'a>(path: &Path, mounts: &'a [Mount]) -> Option<&'a Mount> {
    let leading = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    leading.max_by_key(|mount| mount.point.components().count())
}

/// Lists the names in a folder, sorted; empty if the folder is missing.
fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

/// Decodes the kernel's octal escapes of space, tab, line feed and backslash.
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
mod tests;
