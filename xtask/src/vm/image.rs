//! The guest's first and only file system.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::archive::Archive;
use super::modules::Modules;
use super::packages::Root;
use super::script;
use super::spec::Spec;
use crate::{features, process};

/// Kernel and initramfs, ready to boot.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) kernel: PathBuf,
    pub(crate) initramfs: Vec<u8>,
}

impl Image {
    /// Builds the image of a machine in which `fathom` is the program under test. It runs a script,
    /// or a shell if there is none. `folder` is for temporary files.
    pub(crate) fn build(
        root: &Root,
        spec: &Spec,
        fathom: &Path,
        script: Option<&str>,
        folder: &Path,
    ) -> Result<Self> {
        let mut archive = Archive::default();
        for folder in FOLDERS {
            archive.folder(folder);
        }
        let mut programs = Programs::default();
        programs.add_packages(&mut archive, root)?;
        let own = stripped(fathom, folder)?;
        programs.add_installed(&mut archive, "fathom", &own)?;
        for program in &spec.programs {
            let path = installed(program)?;
            let name = path.file_name().context("a program without a name")?;
            programs.add_installed(&mut archive, &name.to_string_lossy(), &path)?;
        }
        for test in &spec.tests {
            let path = stripped(&build_test(test)?, folder)?;
            programs.add_installed(&mut archive, &format!("{test}-tests"), &path)?;
        }
        programs.add_libraries(&mut archive)?;
        add_modules(&mut archive, root, spec)?;
        for (name, content) in IDENTITY {
            archive.file(&format!("etc/nvme/{name}"), content.as_bytes());
        }
        for (name, content) in script::library()? {
            let path = if name == "init.sh" { "init" } else { &name };
            archive.file(path, &content);
        }
        archive.file("machine.sh", spec.guest_script().as_bytes());
        match script {
            Some(script) => archive.file("script.sh", script.as_bytes()),
            None => archive.file("interactive", b""),
        }
        Ok(Self {
            kernel: root.kernel()?,
            initramfs: archive.finish(),
        })
    }
}

/// Libraries of the programs in an image, by name. Those of the packages are added first and win:
/// the loader is theirs, and must be of one build with their libc.
#[derive(Debug, Default)]
struct Programs {
    libraries: BTreeMap<String, PathBuf>,
}

impl Programs {
    /// Adds the programs of the packages and the loader.
    fn add_packages(&mut self, archive: &mut Archive, root: &Root) -> Result<()> {
        let busybox = root.file(&["bin/busybox", "usr/bin/busybox"])?;
        archive.file("bin/busybox", &fs::read(busybox)?);
        let loader = root.file(&[
            "lib64/ld-linux-x86-64.so.2",
            "usr/lib64/ld-linux-x86-64.so.2",
        ])?;
        let loader = loader.canonicalize().unwrap_or(loader);
        archive.file("lib64/ld-linux-x86-64.so.2", &fs::read(&loader)?);
        for name in ["nvme", "dmsetup"] {
            let places = ["usr/sbin", "sbin"].map(|folder| format!("{folder}/{name}"));
            let program = root.file(&places.each_ref().map(String::as_str))?;
            archive.file(&format!("usr/sbin/{name}"), &fs::read(&program)?);
            // The packages' own loader says what it takes, so that the libraries of this machine
            // have no part in it.
            let paths = ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"];
            let paths = paths.map(|path| root.path().join(path).to_string_lossy().into_owned());
            let mut list = Command::new(&loader);
            list.args(["--library-path", &paths.join(":"), "--list"])
                .arg(&program);
            self.add_listed(&process::capture(&mut list)?)?;
        }
        Ok(())
    }

    /// Adds a program of this machine, which may be static.
    fn add_installed(&mut self, archive: &mut Archive, name: &str, path: &Path) -> Result<()> {
        let content = fs::read(path).with_context(|| path.display().to_string())?;
        archive.file(&format!("bin/{name}"), &content);
        // Fails for programs without libraries.
        let listed = process::capture(Command::new("ldd").arg(path)).unwrap_or_default();
        self.add_listed(&listed)
    }

    /// Adds the libraries that a loader lists: `libc.so.6 => /path/libc.so.6 (0x…)`.
    fn add_listed(&mut self, text: &str) -> Result<()> {
        let targets = text.lines().filter_map(|line| line.split_once(" => "));
        for (name, target) in targets {
            let path = target.split(" (").next().unwrap_or(target);
            if path == "not found" {
                anyhow::bail!("no library {}", name.trim());
            }
            let name = name.trim().to_owned();
            self.libraries.entry(name).or_insert_with(|| path.into());
        }
        Ok(())
    }

    fn add_libraries(&self, archive: &mut Archive) -> Result<()> {
        for (name, path) in &self.libraries {
            let content = fs::read(path).with_context(|| path.display().to_string())?;
            archive.file(&format!("lib/{name}"), &content);
        }
        Ok(())
    }
}

/// Returns a copy of a program without what only a debugger needs, most of its size; the program
/// itself where there is no `strip`.
fn stripped(program: &Path, folder: &Path) -> Result<PathBuf> {
    if process::find("strip").is_none() {
        return Ok(program.to_owned());
    }
    let copy = folder.join("stripped");
    let mut strip = Command::new("strip");
    process::capture(strip.arg("--strip-debug").arg("-o").arg(&copy).arg(program))?;
    Ok(copy)
}

/// Builds an integration test and returns the path of its program.
fn build_test(name: &str) -> Result<PathBuf> {
    let mut cargo = process::cargo();
    // Of the whole workspace with all features, for which its dependencies have been built.
    cargo.args([
        "test",
        "--workspace",
        &features::all(),
        "--no-run",
        "--message-format=json",
        "--test",
        name,
    ]);
    let text = process::capture(cargo.current_dir(process::root()?))?;
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut paths = messages.filter_map(|message| Some(message["executable"].as_str()?.into()));
    paths
        .next_back()
        .with_context(|| format!("no test {name} in this workspace"))
}

/// Returns the path of a program given by name or by path.
fn installed(program: &Path) -> Result<PathBuf> {
    let found = match program.components().count() {
        1 => process::find(&program.to_string_lossy()),
        _ => program.is_file().then(|| program.to_owned()),
    };
    found.with_context(|| format!("no program {}", program.display()))
}

/// Adds the modules, and a list of them with their parameters in the order of loading.
fn add_modules(archive: &mut Archive, root: &Root, spec: &Spec) -> Result<()> {
    let modules = Modules::find(&root.modules()?)?;
    let wanted = spec.all_modules();
    let mut order = String::new();
    let names: Vec<&str> = wanted.iter().map(|(name, _)| name.as_str()).collect();
    for module in modules.in_order(&names)? {
        let name = &module.name;
        archive.file(&format!("modules/{name}.ko"), &module.bytes);
        let own = wanted.iter().find(|(wanted, _)| wanted == name);
        let parameters = own.map_or("", |(_, parameters)| parameters);
        order.push_str(&format!("{name}.ko {parameters}\n"));
    }
    archive.file("modules/order", order.as_bytes());
    Ok(())
}

const FOLDERS: &[&str] = &[
    "bin", "dev", "etc", "etc/nvme", "lib", "lib64", "modules", "proc", "run", "sys", "tmp", "usr",
    "usr/sbin",
];
/// Identity of the host, which nvme-cli reads.
const IDENTITY: [(&str, &str); 2] = [
    (
        "hostnqn",
        "nqn.2014-08.org.nvmexpress:uuid:6ba7b810-9dad-41d1-80b4-00c04fd430c8\n",
    ),
    ("hostid", "6ba7b810-9dad-41d1-80b4-00c04fd430c8\n"),
];
