//! A release in roots that have nothing else: a new Debian for the package, an empty folder for the
//! static program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Release, debian};
use crate::process;

/// Installs the package in a new Debian, uses it, and removes it.
pub(super) fn try_package(release: &Release, package: &Path) -> Result<()> {
    if let Some(why) = obstacle(Some("debootstrap"))? {
        println!("dist: package not tried: skipped: {why}");
        return Ok(());
    }
    let root = Root::new(&release.folder)?;
    let mut bootstrap = Command::new("debootstrap");
    bootstrap.args(["--variant=minbase", SUITE]).arg(&root.path);
    process::capture(&mut bootstrap)?;
    let before = root.files()?;
    fs::copy(package, root.path.join("tmp/package.deb"))?;
    root.run("dpkg --install /tmp/package.deb")?;
    let version = root.run("fathom --version")?;
    ensure!(
        version.starts_with(&format!("fathom {}", release.version)),
        "the installed program says: {version}"
    );
    for words in [RUN, MODELLED, COMPLETED] {
        root.run(words).with_context(|| words.to_owned())?;
    }
    root.run("dpkg --verify fathom-storage")?;
    root.run(&format!("dpkg --purge {}", debian::NAME))?;
    let after = root.files()?;
    let left: Vec<_> = after.iter().filter(|file| !before.contains(file)).collect();
    ensure!(left.is_empty(), "after its removal there are {left:?}");
    println!("dist: package installed, used and removed in a new Debian {SUITE}");
    Ok(())
}

/// Runs the program of the archive in a folder that holds nothing else.
pub(super) fn try_archive(release: &Release, archive: &Path) -> Result<()> {
    if let Some(why) = obstacle(None)? {
        println!("dist: archive not tried: skipped: {why}");
        return Ok(());
    }
    let root = Root::new(&release.folder)?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--strip-components=1", "--file"])
        .arg(archive)
        .arg("--directory")
        .arg(&root.path);
    process::run(&mut tar)?;
    let jobs = [
        "/bin/fathom --version",
        "/bin/fathom run --name=a --ioengine=psync --rw=randrw --size=1m --verify=crc32c",
        "/bin/fathom run --machine /share/doc/fathom/examples/machines/hdd.toml --name=a \
         --rw=randread --size=1g --time_based --runtime=5",
    ];
    for job in jobs {
        let mut chroot = Command::new("chroot");
        chroot.arg(&root.path).args(job.split_whitespace());
        process::capture(&mut chroot)?;
    }
    println!("dist: static program used in an empty root");
    Ok(())
}

/// Returns the reason why a root cannot be made here, if any.
fn obstacle(tool: Option<&str>) -> Result<Option<String>> {
    let user = process::capture(Command::new("id").arg("-u"))?;
    if user.trim() != "0" {
        return Ok(Some("needs root".into()));
    }
    let missing = tool.filter(|tool| process::find(tool).is_none());
    Ok(missing.map(|tool| format!("no {tool}")))
}

/// Root folder, removed when it is dropped. Nothing is mounted in it.
#[derive(Debug)]
struct Root {
    path: PathBuf,
}

impl Root {
    fn new(folder: &Path) -> Result<Self> {
        let path = folder.join("root");
        fs::create_dir(&path).with_context(|| path.display().to_string())?;
        Ok(Self { path })
    }

    /// Runs a line of shell in it.
    fn run(&self, line: &str) -> Result<String> {
        let mut chroot = Command::new("chroot");
        chroot.arg(&self.path).args(["/bin/sh", "-ec", line]);
        process::capture(chroot.env("PATH", PATH).env("HOME", "/root"))
    }

    /// Returns the files that packages install.
    fn files(&self) -> Result<Vec<String>> {
        let mut find = Command::new("find");
        find.args(["usr", "etc"]).current_dir(&self.path);
        let text = process::capture(&mut find)?;
        Ok(text.lines().map(str::to_owned).collect())
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _left = fs::remove_dir_all(&self.path);
    }
}

/// A package works with the glibc that built it, and later ones.
const SUITE: &str = "bookworm";

const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// A job with verification, and its report for programs.
const RUN: &str = "cd /tmp; fathom run --name=a --ioengine=psync --rw=randrw --size=1m \
                   --verify=crc32c --output-format=json | grep '\"jobname\"'";

/// A modelled disk.
const MODELLED: &str = "cd /usr/share/doc/fathom-storage/examples; \
                        fathom run --machine machines/hdd.toml hdd-concurrent-writes.fio";

/// Files that shells and man look for.
const COMPLETED: &str = "bash -n /usr/share/bash-completion/completions/fathom; \
                         zcat /usr/share/man/man1/fathom-run.1.gz | grep -q 'fathom'";
