//! `cargo xtask dist`: what a release consists of, for x86-64 Linux.
//!
//! ```text
//! release build, stripped ─┬─ manual pages, completions, documents ─► Debian package
//! static build, stripped ──┴──────────────────────────────────────► archive
//! ```
//!
//! The program of the package uses the system's glibc: it looks up hosts as the system does, and
//! loads the libraries of engines where they are installed. The one of the archive runs on any
//! Linux.

mod clean_root;
mod debian;
mod files;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use self::files::{Layout, Programs};
use crate::bench::programs::target_folder;
use crate::{process, static_build};

/// Runs `cargo xtask dist`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut tries = false;
    for arg in args {
        match arg.as_str() {
            "--try" => tries = true,
            other => bail!("dist has no option `{other}`: only --try"),
        }
    }
    let tools = ["strip", "tar", "gzip", "dpkg-deb", "dpkg-shlibdeps"];
    if let Some(tool) = tools.into_iter().find(|tool| process::find(tool).is_none()) {
        println!("dist: skipped: no {tool}");
        return Ok(());
    }
    let folder = target_folder()?.join("dist");
    // A file of an earlier version would be taken for one of this.
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let release = Release::of_workspace(folder)?;
    let archive = release.archive(&static_build::build(true)?)?;
    let package = release.package(&release_build()?)?;
    release.checksums(&[&archive, &package])?;
    if tries {
        clean_root::try_package(&release, &package)?;
        clean_root::try_archive(&release, &archive)?;
    }
    for made in [archive, package] {
        println!("dist: {}", made.display());
    }
    Ok(())
}

/// A version, and the folder of its files.
#[derive(Debug)]
struct Release {
    version: String,
    /// Seconds since the epoch: the time of the commit, which is that of all packed files.
    time: String,
    folder: PathBuf,
}

impl Release {
    fn of_workspace(folder: PathBuf) -> Result<Self> {
        let metadata = process::metadata()?;
        let mut packages = metadata["packages"].as_array().into_iter().flatten();
        let version = packages.find_map(|package| {
            (package["name"] == "fathom-cli").then(|| package["version"].as_str())?
        });
        let mut log = Command::new("git");
        log.args(["log", "-1", "--format=%ct"]);
        let time = process::capture(log.current_dir(process::root()?))?;
        Ok(Self {
            version: version.context("no package fathom-cli")?.to_owned(),
            time: time.trim().to_owned(),
            folder,
        })
    }

    /// Packs the static program into an archive.
    fn archive(&self, program: &Path) -> Result<PathBuf> {
        let name = format!("fathom-{}-x86_64-linux", self.version);
        let staged = self.folder.join(&name);
        let programs = Programs::new(program, &staged.join("bin"))?;
        programs.stage(&staged, &Layout::ARCHIVE)?;
        let archive = self.folder.join(format!("{name}.tar.gz"));
        let mut tar = Command::new("tar");
        tar.args(["--create", "--gzip", "--sort=name", "--owner=0"])
            .args(["--group=0", "--numeric-owner", "--mode=go-w"])
            .arg(format!("--mtime=@{}", self.time))
            .arg("--file")
            .arg(&archive)
            .arg("--directory")
            .args([&self.folder, Path::new(&name)]);
        process::run(&mut tar)?;
        fs::remove_dir_all(&staged).with_context(|| staged.display().to_string())?;
        Ok(archive)
    }

    /// Packs the program into a Debian package.
    fn package(&self, program: &Path) -> Result<PathBuf> {
        let staged = self.folder.join("package");
        let programs = Programs::new(program, &staged.join("usr/bin"))?;
        programs.stage(&staged, &Layout::DEBIAN)?;
        let package = debian::pack(self, &staged)?;
        fs::remove_dir_all(&staged).with_context(|| staged.display().to_string())?;
        Ok(package)
    }

    fn checksums(&self, files: &[&Path]) -> Result<()> {
        let names = files.iter().filter_map(|file| file.file_name());
        let mut sum = Command::new("sha256sum");
        let text = process::capture(sum.args(names).current_dir(&self.folder))?;
        let path = self.folder.join("SHA256SUMS");
        fs::write(&path, text).with_context(|| path.display().to_string())
    }
}

/// Builds the program with what users can expect of a package: all engines, and the live view.
fn release_build() -> Result<PathBuf> {
    let mut cargo = process::cargo();
    cargo.args(["build", "--release", "--package", "fathom-cli"]);
    cargo.args(["--bin", "fathom", "--features", PACKAGE_FEATURES]);
    process::run(cargo.current_dir(process::root()?))?;
    Ok(target_folder()?.join("release/fathom"))
}

/// `mpi` is not among them: its program is bound to one MPI library.
const PACKAGE_FEATURES: &str = "http,live";
