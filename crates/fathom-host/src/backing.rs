//! Storage that backs a file, found by descending overlays, loop devices and stacked devices.

use std::fs;
use std::path::{Path, PathBuf};

use fathom_sys::files::{DeviceNumber, FileKind};

use crate::block_tree::{BlockTree, HostDevice, Mount, mount_of};
use crate::storage::{is_in_memory, nearest_existing};

/// Findings of a descent from a file to its storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackingStorage {
    /// Path to the layer that keeps data in memory: `tmpfs`, `overlay on tmpfs`, `loop0 on tmpfs`.
    pub memory: Option<String>,
    /// First loop device that uses the page cache of its backing file (no direct I/O).
    pub cached_loop: Option<String>,
    /// Every device passed, partitions with their disks.
    pub devices: Vec<HostDevice>,
}

/// Storage that backs the files of one job.
#[derive(Clone, Debug, Default)]
pub struct JobBacking {
    /// Number of files.
    pub files: u32,
    /// Number of files in memory, and the layer that holds the first.
    pub memory: Option<(u32, String)>,
    /// First loop device that uses the page cache of its backing file.
    pub cached_loop: Option<String>,
    /// Every device below any file.
    pub devices: Vec<HostDevice>,
}

impl JobBacking {
    /// Adds the storage of one more file.
    pub fn add(&mut self, found: &BackingStorage) {
        self.files += 1;
        if let Some(memory) = &found.memory {
            self.memory.get_or_insert_with(|| (0, memory.clone())).0 += 1;
        } else if let Some(device) = &found.cached_loop {
            self.cached_loop.get_or_insert_with(|| device.clone());
        }
        for device in &found.devices {
            if !self.devices.contains(device) {
                self.devices.push(device.clone());
            }
        }
    }

    /// Returns the disks at the bottom, which are not made of others.
    pub fn bottom_disks(&self) -> impl Iterator<Item = &HostDevice> {
        self.devices.iter().filter(|device| {
            device.whole_disk() == **device
                && device.attribute("loop/backing_file").is_none()
                && device.slaves().is_empty()
        })
    }

    /// Returns whether all files are in memory.
    pub fn is_memory(&self) -> bool {
        self.memory
            .as_ref()
            .is_some_and(|(count, _)| *count == self.files)
    }
}

/// Descends from `path`. A missing file is assumed to be where its directory is.
pub fn backing_storage(path: &Path, tree: &BlockTree, mounts: &[Mount]) -> BackingStorage {
    let mut descent = Descent {
        tree,
        mounts,
        found: BackingStorage::default(),
        above: Vec::new(),
    };
    descent.path(path);
    descent.found
}

struct Descent<'a> {
    tree: &'a BlockTree,
    mounts: &'a [Mount],
    found: BackingStorage,
    /// Layers above the current one, from the top.
    above: Vec<String>,
}

impl Descent<'_> {
    fn path(&mut self, path: &Path) {
        let Some(there) = nearest_existing(path) else {
            return;
        };
        let Ok(metadata) = fs::metadata(&there) else {
            return;
        };
        match FileKind::of(&metadata) {
            FileKind::Block => return self.number(DeviceNumber::of_node(&metadata)),
            FileKind::Regular | FileKind::Directory => {}
            FileKind::Character | FileKind::Other => return,
        }
        let mount = mount_of(&there, self.mounts);
        match mount {
            Some(mount) if is_in_memory(&mount.filesystem) => self.memory(&mount.filesystem),
            Some(mount) if mount.filesystem == "overlay" => {
                if let Some(layer) = layer(mount, &there) {
                    self.through("overlay", |descent| descent.path(&layer));
                }
            }
            _ => {
                let direct = DeviceNumber::under(&metadata);
                let known = self.tree.device(direct).is_some();
                let number = mount.filter(|_| !known).map(Mount::device_number);
                self.number(number.unwrap_or(direct));
            }
        }
    }

    fn number(&mut self, number: DeviceNumber) {
        if let Some(device) = self.tree.device(number) {
            self.device(&device);
        }
    }

    fn device(&mut self, device: &HostDevice) {
        let disk = device.whole_disk();
        for passed in [device, &disk] {
            if !self.found.devices.contains(passed) {
                self.found.devices.push(passed.clone());
            }
        }
        if IN_MEMORY.iter().any(|name| is_numbered(&disk.name, name)) {
            return self.memory(&disk.name);
        }
        if let Some(file) = disk.attribute("loop/backing_file") {
            if disk.attribute("loop/dio").as_deref() != Some("1") {
                self.found.cached_loop.get_or_insert(disk.name.clone());
            }
            return self.through(&disk.name, |descent| descent.path(Path::new(&file)));
        }
        for part in disk.slaves() {
            self.through(&disk.name, |descent| descent.device(&part));
        }
    }

    /// Descends one layer below `name`, up to `LAYERS_MAX` layers.
    fn through(&mut self, name: &str, go: impl FnOnce(&mut Self)) {
        if self.above.len() < LAYERS_MAX {
            self.above.push(name.to_owned());
            go(self);
            self.above.pop();
        }
    }

    fn memory(&mut self, name: &str) {
        let mut words = self.above.clone();
        words.push(name.to_owned());
        self.found.memory.get_or_insert_with(|| words.join(" on "));
    }
}

/// Returns the file of an overlay's layers that `path` resolves to; for a new file, its place in
/// the upper layer.
fn layer(mount: &Mount, path: &Path) -> Option<PathBuf> {
    let inside = path.strip_prefix(&mount.point).ok()?;
    let option = |name: &str| {
        let mut options = mount.options.split(',');
        options.find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    };
    let upper = option("upperdir");
    let lower = option("lowerdir").unwrap_or_default().split(':');
    let layers = upper
        .into_iter()
        .chain(lower.filter(|layer| !layer.is_empty()));
    let mut layers = layers.map(|layer| Path::new(layer).join(inside));
    let there = layers.find(|path| path.is_file());
    there.or_else(|| Some(PathBuf::from(upper?)))
}

/// Returns whether `name` is `of` followed by a number.
fn is_numbered(name: &str, of: &str) -> bool {
    let number = name.strip_prefix(of).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Drivers whose disks are in memory.
const IN_MEMORY: [&str; 2] = ["ram", "zram"];
/// Higher than the kernel's own limits for nested overlays and loop devices.
const LAYERS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::FakeHost;

    /// Looks beneath a file in the temporary folder, with these lines of mountinfo.
    fn look(fake: &FakeHost, mounts: &str) -> BackingStorage {
        let file = fake.file("file");
        fake.mountinfo(mounts);
        let tree = fake.tree();
        backing_storage(&file, &tree, &tree.mounts())
    }

    fn number_of_temp() -> String {
        let metadata = fs::metadata(std::env::temp_dir()).expect("a folder");
        DeviceNumber::under(&metadata).to_string()
    }

    #[test]
    fn file_systems_in_memory_are_told() {
        let fake = FakeHost::new("beneath-memory");
        let found = look(&fake, "1 0 0:9 / / rw - tmpfs tmpfs rw\n");
        assert_eq!(found.memory.as_deref(), Some("tmpfs"));
    }

    #[test]
    fn an_overlay_lies_where_its_layer_does() {
        let fake = FakeHost::new("beneath-overlay");
        let upper = fake.file("upper").parent().unwrap().join("proc");
        let at = fs::canonicalize(std::env::temp_dir()).unwrap();
        let mounts = format!(
            "1 0 0:8 / {} rw - overlay overlay rw,lowerdir=/no,upperdir={},workdir=/w\n\
             2 0 0:9 / {} rw - tmpfs tmpfs rw\n",
            at.display(),
            upper.display(),
            upper.display(),
        );
        let found = look(&fake, &mounts);
        assert_eq!(found.memory.as_deref(), Some("overlay on tmpfs"));
    }

    #[test]
    fn a_loop_device_lies_where_the_file_behind_it_does() {
        let fake = FakeHost::new("beneath-loop");
        let number = number_of_temp();
        fake.device("loop7", &number).device("zram0", "252:0");
        fake.device("dm-0", "253:0").stack("dm-0", "zram0");
        let mounts = "1 0 8:1 / / rw - ext4 /dev/x rw\n";
        fake.attribute("loop7", "loop/backing_file", "/proc/self/stat\n");
        fake.attribute("loop7", "loop/dio", "0\n");
        let found = look(&fake, mounts);
        assert_eq!(found.cached_loop.as_deref(), Some("loop7"));
        assert_eq!(found.memory, None);
        fake.attribute("loop7", "loop/dio", "1\n");
        assert_eq!(look(&fake, mounts).cached_loop, None);
        let tree = fake.tree();
        let mut descent = Descent {
            tree: &tree,
            mounts: &tree.mounts(),
            found: BackingStorage::default(),
            above: Vec::new(),
        };
        descent.device(&tree.named("dm-0").unwrap());
        assert_eq!(descent.found.memory.as_deref(), Some("dm-0 on zram0"));
        let names: Vec<_> = descent
            .found
            .devices
            .iter()
            .map(|d| d.name.as_str())
            .collect();
        assert_eq!(names, ["dm-0", "zram0"]);
    }
}
