//! `cargo xtask qemu`: the tests of `tests/vm`, each in a machine of its own.
//!
//! A machine that cannot run one says why and passes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::machine::KernelPanic;
use super::{Root, RunFolder, Script, machine, run_script};
use crate::bench::programs::{self, target_folder};
use crate::process;

/// Runs `cargo xtask qemu`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut only = String::new();
    let (mut long, mut list) = (false, false);
    let (mut fathom, mut qemu, mut kernel) = (None, None, None);
    let mut words = super::Words::new(args);
    while let Some(arg) = words.next() {
        match arg {
            "--only" => words.value(arg)?.clone_into(&mut only),
            "--fathom" => fathom = Some(PathBuf::from(words.value(arg)?)),
            "--qemu" => qemu = Some(PathBuf::from(words.value(arg)?)),
            "--kernel" => kernel = Some(PathBuf::from(words.value(arg)?)),
            "--long" => long = true,
            "--list" => list = true,
            other => bail!("qemu has no option `{other}`: `cargo xtask help` lists them"),
        }
    }
    let mut tests = Script::all()?;
    tests.retain(|script| script.test.is_some() && script.name.contains(&only));
    if tests.is_empty() {
        bail!("no test's name contains `{only}`: --list shows them");
    }
    if list {
        for script in &tests {
            let what = script.test.as_deref().unwrap_or_default();
            let long = if script.is_long { " (--long)" } else { "" };
            println!("{:16} {what}{long}", script.name);
        }
        return Ok(());
    }
    // A long test that is named runs.
    tests.retain(|script| long || !script.is_long || script.name == only);
    let qemu = qemu.unwrap_or_else(|| super::Spec::default().qemu);
    tests
        .iter_mut()
        .for_each(|script| script.spec.qemu.clone_from(&qemu));
    let root = match machine::obstacle(&qemu) {
        Some(why) => Err(why),
        None => Root::prepare(kernel).map_err(|error| format!("{error:#}")),
    };
    let root = match root {
        Ok(root) => root,
        Err(why) => {
            println!("qemu: skipped: {why}");
            return Ok(());
        }
    };
    let fathom = fathom.map_or_else(programs::build, Ok)?;
    let ends = tests.iter().map(|script| {
        let end = test(&root, script, &fathom);
        end.with_context(|| format!("qemu: {} failed", script.name))
    });
    // One failure does not hide the next.
    let failures: Vec<_> = ends.filter_map(Result::err).collect();
    for failure in &failures {
        println!("{failure:#}");
    }
    match failures.len() {
        0 => Ok(()),
        count => bail!("{count} of {} tests failed", tests.len()),
    }
}

/// Runs one script.
fn test(root: &Root, script: &Script, fathom: &Path) -> Result<()> {
    let name = &script.name;
    println!(
        "qemu: {name}: {}",
        script.test.as_deref().unwrap_or_default()
    );
    let version = machine::qemu_version(&script.spec.qemu)?;
    if version < script.qemu_min {
        println!(
            "qemu: {name}: skipped: QEMU {version}, and it needs {}",
            script.qemu_min
        );
        return Ok(());
    }
    let version = root.kernel_version()?;
    if version < script.kernel_min {
        println!(
            "qemu: {name}: skipped: Linux {version}, and it needs {}",
            script.kernel_min
        );
        return Ok(());
    }
    let start = process::now();
    let boot = || {
        let folder = RunFolder::create(&target_folder()?.join("vm"))?;
        let show = |line: &str| println!("qemu:   {line}");
        run_script(root, &script.spec, fathom, script, &folder, show)
    };
    // Linux 6.1 crashes now and then when polled NVMe commands fail: once may be bad luck.
    let end = boot().or_else(|error| match error.is::<KernelPanic>() {
        true => {
            println!("qemu: {name}: {error:#}: booting it once more");
            boot()
        }
        false => Err(error),
    });
    match end? {
        0 => {}
        code => bail!("exit code {code}"),
    }
    println!(
        "qemu: {name}: passed in {:.1} s",
        start.elapsed().as_secs_f64()
    );
    Ok(())
}
