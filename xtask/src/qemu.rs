//! `cargo xtask qemu`: tests with the kernel's NVMe/TCP, as host and as target.
//!
//! Each test is a script of `tests/qemu`, which runs in a guest. A machine that cannot run one says
//! why and passes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::bench::programs::{self, target_folder};
use crate::process;
use crate::vm::{Image, Machine, Root};

/// Runs `cargo xtask qemu`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut only = None;
    let mut fathom = None;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--only" => only = Some(value()?.clone()),
            "--fathom" => fathom = Some(PathBuf::from(value()?)),
            "--list" => {
                TESTS
                    .iter()
                    .for_each(|(name, what)| println!("{name:16} {what}"));
                return Ok(());
            }
            other => bail!("qemu has no option `{other}`: `cargo xtask help` lists them"),
        }
    }
    let wants = |name: &str| {
        only.as_ref()
            .is_none_or(|part| name.contains(part.as_str()))
    };
    let tests: Vec<_> = TESTS.iter().filter(|(name, _)| wants(name)).collect();
    if tests.is_empty() {
        bail!(
            "no test's name contains `{}`: --list shows them",
            only.unwrap_or_default()
        );
    }
    let root = match Machine::obstacle() {
        Some(why) => Err(why.to_owned()),
        None => Root::prepare().map_err(|error| format!("{error:#}")),
    };
    let root = match root {
        Ok(root) => root,
        Err(why) => {
            println!("qemu: skipped: {why}");
            return Ok(());
        }
    };
    let fathom = match fathom {
        Some(path) => path,
        None => programs::build()?,
    };
    for (name, what) in tests {
        println!("qemu: {name}: {what}");
        test(&root, name, &fathom).with_context(|| format!("qemu: {name}"))?;
    }
    Ok(())
}

/// Runs one script in a guest.
fn test(root: &Root, name: &str, fathom: &Path) -> Result<()> {
    let scripts = process::root()?.join("tests/qemu");
    let image = Image::build(root, &scripts, &format!("{name}.sh"))?;
    let start = process::now();
    let folder = target_folder()?.join("vm");
    let mut machine = Machine::boot(&image, &folder, fathom, LIMIT)?;
    machine.serve(|line| println!("qemu:   {line}"))?;
    println!(
        "qemu: {name}: passed in {:.1} s",
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

/// The scripts.
const TESTS: &[(&str, &str)] = &[
    (
        "both-ends",
        "the kernel's host and target in one guest, without Fathom",
    ),
    (
        "linux-host",
        "the kernel's host and nvme-cli with `fathom target`",
    ),
    (
        "linux-target",
        "the kernel's target with the engine nvme_tcp",
    ),
];

/// Time of one test.
const LIMIT: Duration = Duration::from_secs(240);
