//! A synthetic host for tests.
#![allow(clippy::unwrap_used, reason = "only tests use it")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::block_tree::BlockTree;

/// A synthetic /sys and /proc in a temporary folder, removed on drop.
pub struct FakeHost {
    root: PathBuf,
}

impl FakeHost {
    /// Creates a host without devices; `name` must be unique among the tests of a process.
    #[must_use]
    pub fn new(name: &str) -> Self {
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

    /// Returns the host's block devices.
    #[must_use]
    pub fn tree(&self) -> BlockTree {
        BlockTree::at(self.root.join("sys"), self.root.join("proc"))
    }

    /// Adds a block device; `path` is `sda`, or `sda/sda1` for a partition.
    pub fn device(&self, path: &str, number: &str) -> &Self {
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

    /// Adds a character device of a class.
    pub fn character(&self, name: &str, number: &str, class: &str) -> &Self {
        let folder = self.root.join("sys/devices").join(name);
        let (links, class) = (self.root.join("sys/dev/char"), self.root.join(class));
        for made in [&folder, &links, &class] {
            fs::create_dir_all(made).unwrap();
        }
        symlink(&folder, links.join(number)).unwrap();
        symlink(class, folder.join("subsystem")).unwrap();
        self
    }

    /// Puts a device on a bus.
    pub fn bus(&self, device: &str, bus: &str) -> &Self {
        let folder = self.root.join("sys/devices").join(device).join("device");
        let bus = self.root.join("sys/bus").join(bus);
        for made in [&folder, &bus] {
            fs::create_dir_all(made).unwrap();
        }
        symlink(bus, folder.join("subsystem")).unwrap();
        self
    }

    /// Stacks `upper` on `lower`.
    pub fn stack(&self, upper: &str, lower: &str) -> &Self {
        let devices = self.root.join("sys/devices");
        let name = |path: &str| Path::new(path).file_name().unwrap().to_owned();
        let holder = devices.join(lower).join("holders").join(name(upper));
        symlink(devices.join(upper), holder).unwrap();
        let slave = devices.join(upper).join("slaves").join(name(lower));
        symlink(devices.join(lower), slave).unwrap();
        self
    }

    /// Writes an attribute of a device: `queue/scheduler`.
    pub fn attribute(&self, device: &str, name: &str, text: &str) -> &Self {
        let file = self.root.join("sys/devices").join(device).join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        self
    }

    /// Creates a regular file that can back devices.
    pub fn file(&self, name: &str) -> PathBuf {
        let path = self.root.join(name);
        fs::write(&path, name).unwrap();
        path
    }

    /// Writes `/proc/swaps`.
    pub fn swaps(&self, text: &str) -> &Self {
        fs::write(self.root.join("proc/swaps"), text).unwrap();
        self
    }

    /// Writes `/proc/self/mountinfo`.
    pub fn mountinfo(&self, text: &str) -> &Self {
        fs::write(self.root.join("proc/self/mountinfo"), text).unwrap();
        self
    }
}

impl Drop for FakeHost {
    fn drop(&mut self) {
        let _gone_is_fine = fs::remove_dir_all(&self.root);
    }
}
