//! The guest's first and only file system.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::archive::Archive;
use super::modules::Modules;
use super::packages::Root;
use crate::process;

/// Kernel and initramfs, ready to boot.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) kernel: PathBuf,
    pub(crate) initramfs: Vec<u8>,
}

impl Image {
    /// Builds the image that runs a script of `scripts`, of which all can be sourced.
    pub(crate) fn build(root: &Root, scripts: &Path, script: &str) -> Result<Self> {
        let mut archive = Archive::default();
        for folder in FOLDERS {
            archive.folder(folder);
        }
        add_programs(&mut archive, root)?;
        add_modules(&mut archive, root)?;
        for (name, content) in IDENTITY {
            archive.file(&format!("etc/nvme/{name}"), content.as_bytes());
        }
        let read = |name: &str| {
            let path = scripts.join(name);
            fs::read(&path).with_context(|| path.display().to_string())
        };
        for entry in fs::read_dir(scripts)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".sh") {
                archive.file(&name, &read(&name)?);
            }
        }
        archive.file("init", &read("init.sh")?);
        archive.file("test.sh", &read(script)?);
        Ok(Self {
            kernel: root.kernel()?,
            initramfs: archive.finish(),
        })
    }
}

/// Adds busybox, nvme-cli and the libraries of the latter.
fn add_programs(archive: &mut Archive, root: &Root) -> Result<()> {
    let busybox = root.file(&["bin/busybox", "usr/bin/busybox"])?;
    archive.file("bin/busybox", &fs::read(busybox)?);
    let nvme = root.file(&["usr/sbin/nvme", "usr/bin/nvme"])?;
    archive.file("usr/sbin/nvme", &fs::read(&nvme)?);
    let loader = root.file(&[
        "lib64/ld-linux-x86-64.so.2",
        "usr/lib64/ld-linux-x86-64.so.2",
    ])?;
    let loader = loader.canonicalize().unwrap_or(loader);
    archive.file("lib64/ld-linux-x86-64.so.2", &fs::read(&loader)?);
    for library in libraries(root, &loader, &nvme)? {
        let name = library.file_name().context("a library without a name")?;
        archive.file(
            &format!("lib/{}", name.to_string_lossy()),
            &fs::read(&library)?,
        );
    }
    Ok(())
}

/// Asks the packages' own dynamic loader which libraries a program takes, so that those of this
/// machine have no part in it.
fn libraries(root: &Root, loader: &Path, program: &Path) -> Result<BTreeSet<PathBuf>> {
    let folders = ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"];
    let paths = folders.map(|folder| root.path().join(folder).to_string_lossy().into_owned());
    let mut command = Command::new(loader);
    command
        .args(["--library-path", &paths.join(":"), "--list"])
        .arg(program);
    let text = process::capture(&mut command)?;
    // libc.so.6 => /path/libc.so.6 (0x…)
    let targets = text.lines().filter_map(|line| line.split_once("=> "));
    let paths = targets.filter_map(|(_, rest)| rest.split(" (").next());
    Ok(paths.map(PathBuf::from).collect())
}

/// Adds the modules and a list in the order of loading.
fn add_modules(archive: &mut Archive, root: &Root) -> Result<()> {
    let modules = Modules::find(&root.modules()?)?;
    let mut order = String::new();
    for path in modules.in_order(MODULES)? {
        let name = path.file_name().context("a module without a name")?;
        let name = name.to_string_lossy();
        archive.file(&format!("modules/{name}"), &fs::read(&path)?);
        order.push_str(&name);
        order.push('\n');
    }
    archive.file("modules/order", order.as_bytes());
    Ok(())
}

const FOLDERS: &[&str] = &[
    "bin", "dev", "etc", "etc/nvme", "lib", "lib64", "modules", "proc", "run", "sys", "tmp", "usr",
    "usr/sbin",
];
/// The network, both ends of NVMe/TCP, and a disk in memory for the kernel's target.
const MODULES: &[&str] = &[
    "virtio_pci",
    "virtio_net",
    "crc32c_intel",
    "nvme_tcp",
    "nvmet_tcp",
    "brd",
];
/// Identity of the host, which nvme-cli reads.
const IDENTITY: [(&str, &str); 2] = [
    (
        "hostnqn",
        "nqn.2014-08.org.nvmexpress:uuid:6ba7b810-9dad-41d1-80b4-00c04fd430c8\n",
    ),
    ("hostid", "6ba7b810-9dad-41d1-80b4-00c04fd430c8\n"),
];
