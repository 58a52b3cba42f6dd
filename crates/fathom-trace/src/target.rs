//! Event filters of a device: the kernel's events carry the number of the whole disk.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use fathom_host::block_tree::{BlockTree, HostDevice};
use fathom_host::storage;
use fathom_sys::files::{DeviceNumber, FileKind};

use crate::error::TraceError;

/// A device to trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TracedDevice {
    /// Name without `/dev/`.
    pub(crate) name: String,
    /// Number of the whole disk.
    disk: DeviceNumber,
    /// Numbers of the disk and its partitions, any of which a merge event may carry.
    numbers: Vec<DeviceNumber>,
    /// First sector of a partition, and the one after its last.
    sectors: Option<(u64, u64)>,
    /// The disk has a queue of requests; otherwise it is given bios (zram, device mapper).
    pub(crate) has_requests: bool,
}

impl TracedDevice {
    /// Examines the device at `path`, which must have requests.
    pub(crate) fn at(path: &Path, tree: &BlockTree) -> Result<Self, TraceError> {
        let device = device_at(path, tree)?;
        let target = Self::of(&device);
        match target.has_requests {
            true => Ok(target),
            false => Err(no_queue(&device.whole_disk())),
        }
    }

    /// Examines the device at `path`, with requests or without.
    pub(crate) fn with_bios(path: &Path, tree: &BlockTree) -> Result<Self, TraceError> {
        device_at(path, tree).map(|device| Self::of(&device))
    }

    /// Examines a known device, with requests or without.
    pub(crate) fn of(device: &HostDevice) -> Self {
        let disk = device.whole_disk();
        let mut numbers = vec![disk.number];
        numbers.extend(disk.partitions().iter().map(|partition| partition.number));
        let number = |name: &str| device.attribute(name)?.parse::<u64>().ok();
        let sectors = match (*device != disk, number("start"), number("size")) {
            (true, Some(start), Some(size)) => Some((start, start.saturating_add(size))),
            _ => None,
        };
        Self {
            name: device.name.clone(),
            disk: disk.number,
            numbers,
            sectors,
            has_requests: disk.folder().join("mq").is_dir(),
        }
    }

    /// Returns the first sector on the disk.
    pub(crate) fn first_sector(&self) -> u64 {
        self.sectors.map_or(0, |(first, _end)| first)
    }

    /// Returns whether both are on one disk.
    pub(crate) fn is_same_disk(&self, other: &Self) -> bool {
        self.disk == other.disk
    }

    /// Returns the whole disk.
    pub(crate) fn whole(&self) -> Self {
        Self {
            sectors: None,
            ..self.clone()
        }
    }

    /// Iterates over the numbers of disk and partitions as they are in the kernel's records.
    pub(crate) fn raw_numbers(&self) -> impl Iterator<Item = u64> {
        self.numbers.iter().map(|&number| raw(number).into())
    }

    /// Returns the kernel's event filter, for events about requests or (`of_parts`) about bios that
    /// are merged into one.
    pub(crate) fn filter(&self, of_parts: bool) -> String {
        let numbers = match of_parts {
            true => &self.numbers[..],
            false => std::slice::from_ref(&self.disk),
        };
        let numbers = numbers
            .iter()
            .map(|&number| format!("dev == {}", raw(number)));
        let mut filter = format!("({})", numbers.collect::<Vec<_>>().join(" || "));
        if let Some((first, end)) = self.sectors {
            // Writing to a string cannot fail.
            let _written = write!(filter, " && sector >= {first} && sector < {end}");
        }
        filter
    }
}

/// Looks up the block device whose node is at `path`.
fn device_at(path: &Path, tree: &BlockTree) -> Result<HostDevice, TraceError> {
    let owned = || path.to_path_buf();
    let metadata = fs::metadata(path).map_err(|source| TraceError::Missing {
        path: owned(),
        source,
    })?;
    if FileKind::of(&metadata) != FileKind::Block {
        return Err(no_block_device(path, tree));
    }
    let number = DeviceNumber::of_node(&metadata);
    tree.device(number)
        .ok_or_else(|| TraceError::UnknownDevice {
            path: owned(),
            number,
        })
}

/// Encodes a device number as the kernel does internally (`MKDEV`), and so in its records.
const fn raw(number: DeviceNumber) -> u32 {
    number.major << 20 | number.minor
}

fn no_block_device(path: &Path, tree: &BlockTree) -> TraceError {
    let disks = storage::disks_under([path], tree);
    TraceError::NotABlockDevice {
        path: path.to_path_buf(),
        disk: disks.first().map(|disk| disk.name.clone()),
    }
}

/// Returns the error for devices that remap bios and have no requests: RAID, device mapper, zram.
fn no_queue(disk: &HostDevice) -> TraceError {
    TraceError::NoQueue {
        disk: disk.name.clone(),
        slaves: disk.slaves().into_iter().map(|slave| slave.name).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_host::fixture::FakeHost;

    #[test]
    fn a_partition_is_a_span_of_its_disk() {
        let fake = FakeHost::new("trace-target");
        fake.device("sda", "8:0")
            .device("sda/sda1", "8:1")
            .device("sda/sda2", "8:2")
            .attribute("sda", "mq/0/cpu_list", "0")
            .attribute("sda/sda2", "start", "2048\n")
            .attribute("sda/sda2", "size", "1000\n");
        let tree = fake.tree();
        let filters = |name: &str| {
            let target = TracedDevice::of(&tree.named(name).unwrap());
            assert!(target.has_requests);
            [target.filter(false), target.filter(true)]
        };
        let all = "(dev == 8388608 || dev == 8388609 || dev == 8388610)";
        assert_eq!(filters("sda"), ["(dev == 8388608)", all]);
        let span = " && sector >= 2048 && sector < 3048";
        let want = ["(dev == 8388608)", all].map(|filter| format!("{filter}{span}"));
        assert_eq!(filters("sda2"), want);
    }

    #[test]
    fn what_has_no_requests_is_refused_with_what_is_below() {
        let fake = FakeHost::new("trace-stacked");
        fake.device("sda", "8:0")
            .device("dm-0", "253:0")
            .device("zram0", "252:0")
            .stack("dm-0", "sda");
        let refusal = |name: &str| {
            let device = fake.tree().named(name).unwrap();
            assert!(!TracedDevice::of(&device).has_requests);
            no_queue(&device)
        };
        assert!(refusal("dm-0").hint().unwrap().contains("/dev/sda"));
        assert!(refusal("zram0").to_string().contains("/dev/zram0"));
    }

    #[test]
    fn a_path_that_is_no_device_is_refused() {
        let tree = BlockTree::default();
        let error = |path: &str| {
            TracedDevice::at(Path::new(path), &tree)
                .unwrap_err()
                .to_string()
        };
        assert!(error("/dev/null").contains("not a block device"));
        assert!(error("/").contains("not a block device"));
        assert!(error("/dev/no-such-disk").contains("No such file"));
    }
}
