//! Storage under a file: mount, file system, block device and the limits of its queue.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use fathom_record::StorageRecord;
use fathom_sys::files::{self, DeviceNumber, FileKind};

use crate::block_tree::{BlockTree, HostDevice, Mount, mount_of};

/// Describes the storage under `path`; for a missing file, under the folder it would be created
/// in. Unknown fields stay empty.
#[must_use]
pub fn storage_under(path: &Path, tree: &BlockTree) -> StorageRecord {
    describe(path, tree, &tree.mounts())
}

/// Describes the storage under these files: one entry per mount and device, named after its first
/// file, so that a job with ten thousand files does not fill its record.
#[must_use]
pub fn storages_under<'a>(
    paths: impl IntoIterator<Item = &'a Path>,
    tree: &BlockTree,
) -> Vec<StorageRecord> {
    let mounts = tree.mounts();
    let mut seen = HashSet::new();
    let mut all: Vec<StorageRecord> = Vec::new();
    for path in paths {
        if !seen.insert(number_under(path)) {
            continue;
        }
        let storage = describe(path, tree, &mounts);
        let same = |known: &StorageRecord| {
            (&known.mount, &known.device) == (&storage.mount, &storage.device)
        };
        if !all.iter().any(same) {
            all.push(storage);
        }
    }
    all
}

/// Returns whether `path` is on a file system that several hosts share; for a missing file, the
/// nearest folder above it decides. False where the system does not tell.
#[must_use]
pub fn is_shared_by_hosts(path: &Path) -> bool {
    let path = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => &Path::new(".").join(path),
        _ => path,
    };
    let mut there = path.ancestors();
    let kind = there.find_map(|path| files::filesystem_type(path).ok());
    kind.is_some_and(files::is_network)
}

/// Lists the whole disks under these files, each once, without the members of stacked devices.
pub fn disks_under<'a>(
    paths: impl IntoIterator<Item = &'a Path>,
    tree: &BlockTree,
) -> Vec<HostDevice> {
    let mounts = tree.mounts();
    let mut seen = HashSet::new();
    let mut disks = Vec::new();
    for path in paths {
        if !seen.insert(number_under(path)) {
            continue;
        }
        let disk = mount_and_device(path, tree, &mounts)
            .1
            .map(|device| device.whole_disk());
        disks.extend(disk.filter(|disk| !disks.contains(disk)));
    }
    disks
}

/// Returns the number of the device that a file is (`true`) or is stored on, with one `stat`.
/// Mounts share a number only if they are of one file system, so it identifies the storage well
/// enough.
pub fn number_under(path: &Path) -> Option<(bool, DeviceNumber)> {
    let metadata = fs::metadata(path).ok();
    let metadata = metadata.or_else(|| fs::metadata(nearest_existing(path)?).ok())?;
    let is_device = FileKind::of(&metadata) == FileKind::Block;
    let number = if is_device {
        DeviceNumber::of_node
    } else {
        DeviceNumber::under
    };
    Some((is_device, number(&metadata)))
}

fn describe(path: &Path, tree: &BlockTree, mounts: &[Mount]) -> StorageRecord {
    let mut storage = StorageRecord {
        path: path.display().to_string(),
        ..StorageRecord::default()
    };
    let (mount, device) = mount_and_device(path, tree, mounts);
    if let Some(mount) = mount {
        storage.mount = mount.point.display().to_string();
        storage.filesystem.clone_from(&mount.filesystem);
    }
    if let Some(device) = device {
        describe_queue(&device, &mut storage);
        storage.device = device.name;
    }
    storage
}

fn mount_and_device<'a>(
    path: &Path,
    tree: &BlockTree,
    mounts: &'a [Mount],
) -> (Option<&'a Mount>, Option<HostDevice>) {
    let Some(there) = nearest_existing(path) else {
        return (None, None);
    };
    let Ok(metadata) = fs::metadata(&there) else {
        return (None, None);
    };
    if FileKind::of(&metadata) == FileKind::Block {
        let number = DeviceNumber::of_node(&metadata);
        let mount = mounts.iter().rfind(|mount| mount.device_number() == number);
        return (mount, tree.device(number));
    }
    let mount = mount_of(&there, mounts);
    let direct = tree.device(DeviceNumber::under(&metadata));
    let device = direct.or_else(|| tree.device(mount?.device_number()));
    (mount, device)
}

/// Returns the path itself or its nearest existing ancestor, absolute and without symbolic links.
#[must_use]
pub fn nearest_existing(path: &Path) -> Option<PathBuf> {
    Some(resolved(path)?.0)
}

/// Returns the nearest existing ancestor of a path, or the path itself, absolute and without
/// symbolic links, and the rest of the path.
pub(crate) fn resolved(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let absolute = std::path::absolute(path).ok()?;
    absolute.ancestors().find_map(|part| {
        let real = fs::canonicalize(part).ok()?;
        let rest = absolute.strip_prefix(part).ok()?;
        Some((real, rest.to_path_buf()))
    })
}

/// Returns whether this file system type keeps its files in memory.
pub fn is_in_memory(filesystem: &str) -> bool {
    matches!(filesystem, "tmpfs" | "ramfs" | "hugetlbfs")
}

/// Fills in the queue's limits. A partition shares the queue of its disk.
fn describe_queue(device: &HostDevice, storage: &mut StorageRecord) {
    let disk = device.whole_disk();
    let number = |name: &str| {
        let text = disk.attribute(&format!("queue/{name}"));
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    let scheduler = disk.attribute("queue/scheduler").unwrap_or_default();
    storage.scheduler = scheduler_in_force(&scheduler).to_owned();
    storage.logical_block_bytes = number("logical_block_size");
    storage.physical_block_bytes = number("physical_block_size");
    storage.nr_requests = number("nr_requests");
    storage.max_sectors_kib = number("max_sectors_kb");
    storage.rotational = number("rotational") == 1;
}

/// Returns the bracketed scheduler of `mq-deadline kyber [none]`; without brackets the whole text.
pub fn scheduler_in_force(text: &str) -> &str {
    let bracketed = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(text, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::FakeHost;

    #[test]
    fn the_scheduler_in_brackets_is_in_force() {
        assert_eq!(scheduler_in_force("mq-deadline [none] kyber"), "none");
        assert_eq!(scheduler_in_force("none"), "none");
        assert_eq!(scheduler_in_force(""), "");
    }

    #[test]
    fn a_partition_has_the_queue_of_its_disk() {
        let fake = FakeHost::new("queue");
        fake.device("sda", "8:0").device("sda/sda1", "8:1");
        for (name, text) in [
            ("scheduler", "[mq-deadline] none\n"),
            ("logical_block_size", "512\n"),
            ("physical_block_size", "4096\n"),
            ("nr_requests", "256\n"),
            ("max_sectors_kb", "1280\n"),
            ("rotational", "1\n"),
        ] {
            fake.attribute("sda", &format!("queue/{name}"), text);
        }
        let mut storage = StorageRecord::default();
        describe_queue(&fake.tree().named("sda1").unwrap(), &mut storage);
        assert_eq!(storage.scheduler, "mq-deadline");
        assert_eq!(storage.logical_block_bytes, 512);
        assert_eq!(storage.physical_block_bytes, 4096);
        assert_eq!(storage.nr_requests, 256);
        assert_eq!(storage.max_sectors_kib, 1280);
        assert!(storage.rotational);
    }

    #[test]
    fn a_file_lies_on_the_device_of_its_number() {
        let here = std::env::temp_dir();
        let number = DeviceNumber::under(&fs::metadata(&here).unwrap());
        let fake = FakeHost::new("under");
        fake.device("vdz", &number.to_string());
        fake.mountinfo("1 0 8:1 / / rw - ext9 /dev/vdz rw\n");
        let storage = storage_under(&here.join("fathom/missing"), &fake.tree());
        assert_eq!(storage.device, "vdz");
        assert_eq!(storage.mount, "/");
        assert_eq!(storage.filesystem, "ext9");
    }

    #[test]
    fn files_of_one_mount_are_listed_once() {
        let here = std::env::temp_dir();
        let other = here.join("fathom-missing");
        let tree = BlockTree::default();
        let paths = [&*here, &*other, Path::new("/proc/self")];
        let all = storages_under(paths, &tree);
        let mounts: Vec<&str> = all
            .iter()
            .map(|storage| storage.filesystem.as_str())
            .collect();
        assert_eq!(mounts.len(), 2, "{mounts:?}");
        assert_eq!(mounts[1], "proc");
        assert_eq!(all[0].path, here.display().to_string());
        assert!(disks_under(paths, &tree).len() <= 1);
    }

    #[test]
    fn a_missing_file_is_judged_by_its_nearest_folder() {
        let here = fs::canonicalize(std::env::temp_dir()).unwrap();
        assert_eq!(
            nearest_existing(&here.join("fathom-no/such/file")),
            Some(here)
        );
    }
}
