//! The Debian package. Its name is not that of the program: Debian has another `fathom`, of chess.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::Release;
use super::files::{files_below, gzip, write};
use crate::process;

/// Adds what Debian asks for to a folder of files, and packs it.
pub(super) fn pack(release: &Release, staged: &Path) -> Result<PathBuf> {
    let root = process::root()?;
    let documents = staged.join("usr/share/doc").join(NAME);
    let licence = fs::read_to_string(root.join("LICENSE-MIT"))?;
    write(&documents.join("copyright"), copyright(&licence).as_bytes())?;
    let changes = fs::read(root.join("CHANGELOG.md"))?;
    write(&documents.join("changelog.gz"), &gzip(&changes)?)?;

    let needs = libraries(&staged.join("usr/bin/fathom"), &release.folder)?;
    let kib = installed_kib(staged)?;
    let control = staged.join("DEBIAN");
    let text = control_file(&release.version, &needs, kib);
    write(&control.join("control"), text.as_bytes())?;
    write(&control.join("md5sums"), sums(staged)?.as_bytes())?;

    let package = release
        .folder
        .join(format!("{NAME}_{}_amd64.deb", release.version));
    let mut build = Command::new("dpkg-deb");
    build
        .args(["--root-owner-group", "--build"])
        .arg(staged)
        .arg(&package);
    // Times of files become that of the commit.
    process::capture(build.env("SOURCE_DATE_EPOCH", &release.time))?;
    Ok(package)
}

fn control_file(version: &str, needs: &str, kib: u64) -> String {
    format!(
        "Package: {NAME}\n\
         Version: {version}\n\
         Architecture: amd64\n\
         Maintainer: The Fathom authors <nobody@localhost>\n\
         Section: utils\n\
         Priority: optional\n\
         Installed-Size: {kib}\n\
         Depends: {needs}\n\
         Suggests: fio, openmpi-bin, openssh-client\n\
         Description: storage benchmark that runs fio's jobs\n \
         Fathom runs fio job files, uses less CPU time per I/O than fio, reports the\n \
         latency that clients see when the device stalls, and says when a number does\n \
         not mean what it seems to mean. It also serves devices over NVMe/TCP, and\n \
         runs jobs on modelled disks in virtual time.\n"
    )
}

fn copyright(licence: &str) -> String {
    let mut text = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
                    Upstream-Name: Fathom\n\n\
                    Files: *\n\
                    Copyright: The Fathom authors\n\
                    License: MIT or Apache-2.0\n\n\
                    License: Apache-2.0\n \
                    On Debian systems, see /usr/share/common-licenses/Apache-2.0.\n\n\
                    License: MIT\n"
        .to_owned();
    for line in licence.lines() {
        // An empty line would end the paragraph.
        text += &format!(" {}\n", if line.is_empty() { "." } else { line });
    }
    text
}

/// Returns the packages of the shared libraries that a program needs, with their least versions.
fn libraries(program: &Path, folder: &Path) -> Result<String> {
    // The tool wants a source package around it.
    let source = folder.join("source");
    let stub = "Source: fathom-storage\n\nPackage: fathom-storage\nArchitecture: amd64\n";
    write(&source.join("debian/control"), stub.as_bytes())?;
    let mut command = Command::new("dpkg-shlibdeps");
    command.arg("-O").arg(program).current_dir(&source);
    let text = process::capture(&mut command)?;
    fs::remove_dir_all(&source).with_context(|| source.display().to_string())?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("shlibs:Depends="));
    line.map(str::to_owned)
        .context("dpkg-shlibdeps names no packages")
}

/// Returns the sum of all files' sizes, each in whole KiB as on a disk.
fn installed_kib(staged: &Path) -> Result<u64> {
    let mut kib = 0;
    for file in files_below(staged)? {
        kib += fs::metadata(&file)?.len().div_ceil(1024);
    }
    Ok(kib)
}

/// Returns the sums with which `dpkg --verify` finds files that have changed.
fn sums(staged: &Path) -> Result<String> {
    let files = files_below(staged)?;
    let names = files
        .iter()
        .filter_map(|file| file.strip_prefix(staged).ok());
    let names = names.filter(|name| !name.as_os_str().as_bytes().starts_with(b"DEBIAN/"));
    let mut sum = Command::new("md5sum");
    process::capture(sum.args(names).current_dir(staged))
}

pub(super) const NAME: &str = "fathom-storage";
