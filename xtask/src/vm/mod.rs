//! Virtual machines with a stock Debian kernel and devices that few machines have.
//!
//! ```text
//! Debian packages ─► root folder ─► initramfs (busybox, nvme-cli, modules, a script) ─► QEMU
//!                 devices of the arguments ──────┴───────────────────────────────────────┘
//! ```
//!
//! Kernel and tools are unpacked into the target directory, never installed. The processor is
//! emulated, which works on every machine: a guest is up after some seconds. `cargo xtask vm` runs
//! one machine, `cargo xtask qemu` those of all tests.

mod archive;
mod devices;
mod folder;
mod image;
mod machine;
mod modules;
mod outside;
mod packages;
mod script;
mod spec;
mod suite;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use self::folder::RunFolder;
use self::image::Image;
use self::machine::Machine;
use self::packages::Root;
use self::script::Script;
use self::spec::{Spec, Words};
use crate::bench::programs::{self, target_folder};
use crate::process;

pub(crate) use self::suite::run as run_tests;

/// Runs `cargo xtask vm`: a script, whose exit code is that of the command, or a shell.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let (mut fathom, mut kernel) = (None, None);
    let mut words = Words::new(args);
    let mut script = None;
    let mut spec = Spec::default();
    while let Some(arg) = words.next() {
        match arg {
            "--fathom" => fathom = Some(PathBuf::from(words.value(arg)?)),
            "--dev" => fathom = Some(build_dev()?),
            "--kernel" => kernel = Some(PathBuf::from(words.value(arg)?)),
            // The machine that the script describes, with what the arguments add.
            word if !word.starts_with('-') && script.is_none() && spec == Spec::default() => {
                let found = Script::find(word)?;
                spec = found.spec.clone();
                script = Some(found);
            }
            word if spec.take(word, &mut words)? => {}
            word if word.starts_with('-') => {
                bail!("vm has no option `{word}`: `cargo xtask help` lists them")
            }
            word => bail!("`{word}`: name one script, before the options of the machine"),
        }
    }
    if let Some(why) = machine::obstacle(&spec.qemu) {
        bail!("no machine can run here: {why}");
    }
    let root = Root::prepare(kernel)?;
    let fathom = fathom.map_or_else(programs::build, Ok)?;
    let folder = RunFolder::create(&target_folder()?.join("vm"))?;
    let code = match script {
        Some(script) => run_script(&root, &spec, &fathom, &script, &folder, |line| {
            println!("{line}");
        })?,
        None => {
            let image = Image::build(&root, &spec, &fathom, None, folder.path())?;
            machine::interact(&image, &spec, folder.path())?;
            0
        }
    };
    Ok(ExitCode::from(code))
}

/// Runs a script in a machine and returns its exit code.
fn run_script(
    root: &Root,
    spec: &Spec,
    fathom: &Path,
    script: &Script,
    folder: &RunFolder,
    show: impl Fn(&str),
) -> Result<u8> {
    let image = Image::build(root, spec, fathom, Some(&script.text), folder.path())?;
    let mut machine = Machine::boot(&image, spec, folder.path(), fathom)?;
    machine
        .serve(show)
        .with_context(|| script.path.display().to_string())
}

/// Builds Fathom without optimisations and returns the path of the program.
fn build_dev() -> Result<PathBuf> {
    let mut command = process::cargo();
    command.args(["build", "--bin", "fathom"]);
    process::run(command.current_dir(process::root()?))?;
    Ok(target_folder()?.join("debug/fathom"))
}
