//! Debian packages of the guest, unpacked and not installed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use fathom_sys::kernel_version::KernelVersion;

use crate::bench::programs::target_folder;
use crate::process;

/// Unpacked packages: kernel, modules and programs.
#[derive(Debug)]
pub(crate) struct Root {
    programs: PathBuf,
    /// Folder of the kernel and its modules.
    kernel: PathBuf,
}

impl Root {
    /// Returns the packages, of which the kernel's may be one that was unpacked by hand.
    ///
    /// An error says that this machine cannot have them.
    pub(crate) fn prepare(kernel: Option<PathBuf>) -> Result<Self> {
        let programs = Self::unpacked()?;
        let kernel = kernel.unwrap_or_else(|| programs.clone());
        Ok(Self { programs, kernel })
    }

    /// Returns the folder of the packages unpacked earlier, or downloads and unpacks them.
    fn unpacked() -> Result<PathBuf> {
        let folder = target_folder()?.join("vm");
        let root = folder.join("root");
        // Unpacked for other programs or another kernel, it lacks what is needed now.
        let (contents, wanted) = (
            root.join(CONTENTS),
            [&[KERNEL], &PROGRAMS[..]].concat().join("\n"),
        );
        if fs::read_to_string(&contents).is_ok_and(|had| had == wanted) {
            return Ok(root);
        }
        let names = closure()?;
        let partial = folder.join(format!("unpacking-{}", std::process::id()));
        fs::create_dir_all(&partial).with_context(|| partial.display().to_string())?;
        let unpacked = download(&partial, &names).and_then(|()| unpack(&partial));
        if unpacked.is_ok() {
            fs::write(partial.join("root").join(CONTENTS), wanted)?;
            if root.is_dir() {
                fs::remove_dir_all(&root)?;
            }
            // Renamed when complete, so that a run that was killed leaves no half of a folder.
            fs::rename(partial.join("root"), &root)?;
        }
        fs::remove_dir_all(&partial)?;
        unpacked.map(|()| root)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.programs
    }

    /// Returns the kernel's image.
    pub(crate) fn kernel(&self) -> Result<PathBuf> {
        let kernel = only(&self.kernel.join("boot"), |name| {
            name.starts_with("vmlinuz-")
        });
        kernel.context("the kernel package has no vmlinuz")
    }

    /// Returns the folder that is named after the kernel's release.
    fn release(&self) -> Result<PathBuf> {
        // The second is where releases with a merged /usr have it.
        let folders = ["lib/modules", "usr/lib/modules"];
        let mut found = folders.iter().map(|folder| self.kernel.join(folder));
        let found = found.find_map(|folder| only(&folder, |_| true));
        found.context("the kernel package has no modules")
    }

    /// Returns the folder of the kernel's modules.
    pub(crate) fn modules(&self) -> Result<PathBuf> {
        Ok(self.release()?.join("kernel"))
    }

    /// Returns the kernel's version.
    pub(crate) fn kernel_version(&self) -> Result<KernelVersion> {
        let folder = self.release()?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        KernelVersion::of_release(&name).with_context(|| format!("no version of Linux: {name}"))
    }

    /// Returns a file in one of these places.
    pub(crate) fn file(&self, places: &[&str]) -> Result<PathBuf> {
        let mut paths = places.iter().map(|place| self.programs.join(place));
        let found = paths.find(|path| path.exists());
        found.with_context(|| format!("no package has {}", places.join(" or ")))
    }
}

/// Returns the names of the kernel's package, of the programs' and of all libraries below them.
fn closure() -> Result<BTreeSet<String>> {
    let kernel = dependencies(KERNEL)?
        .into_iter()
        .find(|name| name.starts_with("linux-image-"))
        .with_context(|| format!("package {KERNEL} names no kernel"))?;
    let mut names = BTreeSet::from([kernel]);
    let mut left: Vec<String> = PROGRAMS.map(str::to_owned).into();
    while let Some(name) = left.pop() {
        let below = dependencies(&name)?;
        // Only libraries: the guest needs none of the scripts that come with the others.
        left.extend(below.into_iter().filter(|name| is_library(name)));
        left.retain(|name| !names.contains(name));
        names.insert(name);
    }
    Ok(names)
}

fn is_library(name: &str) -> bool {
    name.starts_with("lib") || name.starts_with("zlib")
}

/// Returns the packages that a package depends on, of alternatives the first.
fn dependencies(name: &str) -> Result<Vec<String>> {
    let text = process::capture(Command::new("apt-cache").args(["depends", "--important", name]))
        .with_context(|| format!("no package {name}"))?;
    let mut names = Vec::new();
    let mut is_alternative = false;
    for line in text.lines() {
        let line = line.trim_start();
        let (first, other) = (
            line.strip_prefix("Depends: "),
            line.strip_prefix("|Depends: "),
        );
        // Names in brackets are virtual, and followed by what provides them.
        if let Some(name) = first.or(other)
            && !is_alternative
            && !name.starts_with('<')
        {
            names.push(name.to_owned());
        }
        is_alternative = other.is_some();
    }
    Ok(names)
}

/// Downloads packages; with old lists, which name files that no longer exist, updates them once.
fn download(folder: &Path, names: &BTreeSet<String>) -> Result<()> {
    let get = || {
        let mut command = Command::new("apt-get");
        // As root, apt would change to a user who cannot write here.
        let options = ["-qq", "-o", "APT::Sandbox::User=root", "download"];
        command.args(options).args(names).current_dir(folder);
        process::capture(&mut command)
    };
    if get().is_err() {
        process::capture(Command::new("apt-get").args(["-qq", "update"]))?;
        get()?;
    }
    Ok(())
}

fn unpack(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "deb") {
            let mut command = Command::new("dpkg-deb");
            command.arg("--extract").arg(&path).arg(folder.join("root"));
            process::capture(&mut command)?;
        }
    }
    Ok(())
}

/// Returns the first entry of a folder whose name fits.
fn only(folder: &Path, fits: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let mut entries = fs::read_dir(folder).ok()?.flatten();
    let entry = entries.find(|entry| fits(&entry.file_name().to_string_lossy()))?;
    Some(entry.path())
}

/// Its dependency is the package of the current kernel.
const KERNEL: &str = "linux-image-amd64";
const PROGRAMS: [&str; 3] = ["busybox-static", "nvme-cli", "dmsetup"];
/// File in the folder that says which packages it was unpacked for.
const CONTENTS: &str = "packages";
