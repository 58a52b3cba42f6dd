//! `cargo xtask hosts`: ranks on three hosts of one machine, over ssh and TCP.
//!
//! ```text
//! namespaces of processes, network, names and mounts: all end with their first process
//! ├─ user   10.77.0.1: a bridge, and this program, which starts the launchers
//! ├─ node1  10.77.0.2: sshd
//! ├─ node2  10.77.0.3: sshd
//! └─ node3  10.77.0.4: sshd
//! ```
//!
//! `/run` is in memory and shared, `/run/local` is in memory and each host's own. A machine that
//! cannot have such hosts says why and passes.

mod faults;
mod forms;
mod job;
mod lab;
mod starts;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::bench::programs::{self, target_folder};
use crate::process;
use lab::Lab;

/// A test on the hosts.
struct Case {
    /// Name, for `--only`.
    name: &'static str,
    /// Description, for the reader.
    what: &'static str,
    run: fn(&Lab) -> Result<()>,
}

/// Runs `cargo xtask hosts`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    let cases = options.cases();
    if cases.is_empty() {
        bail!("no test's name contains the word of --only: --list shows them");
    }
    if options.list {
        for case in cases {
            println!("{:20} {}", case.name, case.what);
        }
        return Ok(());
    }
    if options.inside {
        let program = options.fathom.context("--inside needs --fathom")?;
        return within(&cases, &program);
    }
    if let Some(why) = obstacle() {
        println!("hosts: skipped: {why}");
        return Ok(());
    }
    let fathom = match &options.fathom {
        Some(path) => path.clone(),
        None => build()?,
    };
    let mut command = namespaces();
    command.arg(std::env::current_exe()?).arg("hosts");
    // The last value of an option counts.
    command.args(args).arg("--inside");
    command.arg("--fathom").arg(fathom);
    process::run(&mut command)
}

/// Runs the tests inside of the namespaces; the first failure ends them.
fn within(cases: &[&Case], fathom: &Path) -> Result<()> {
    let lab = Lab::set_up(fathom).context("hosts: cannot set up the hosts")?;
    for case in cases {
        println!("hosts: {}: {}", case.name, case.what);
        let start = process::now();
        lab.clear()?;
        (case.run)(&lab).with_context(|| format!("hosts: {} failed", case.name))?;
        println!(
            "hosts: {}: passed in {:.1} s",
            case.name,
            start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

/// Returns the start of a command that runs in namespaces of its own. The kernel ends all processes
/// in them, removes the network and unmounts the folders when the command ends or is killed, or
/// when this process ends.
fn namespaces() -> Command {
    let mut command = process::tied("unshare");
    command.args(lab::NAMESPACES);
    command
}

/// Returns the reason why this machine cannot have the hosts, if any.
fn obstacle() -> Option<String> {
    let missing = PROGRAMS
        .into_iter()
        .find(|program| process::find(program).is_none());
    if let Some(program) = missing {
        return Some(format!("no {program}"));
    }
    let mut probe = namespaces();
    probe.args(["ip", "link", "add", "br0", "type", "bridge"]);
    let output = probe.stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!(
            "no namespaces with a bridge: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => Some(format!("no namespaces: {error}")),
    }
}

/// Builds both programs, as the tests of the ranks do, and returns the path of `fathom`.
fn build() -> Result<PathBuf> {
    let mut command = process::cargo();
    command.arg("build").args(programs::WITH_RANKS);
    process::run(command.current_dir(process::root()?))?;
    Ok(target_folder()?.join("debug/fathom"))
}

/// Options of the command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    /// Program to test instead of building one; `fathom-mpi` is beside it.
    fathom: Option<PathBuf>,
    only: Option<String>,
    /// Also start often, cut hosts off, and stop and kill ranks.
    faults: bool,
    /// This process is in the namespaces.
    inside: bool,
    list: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--fathom" => options.fathom = Some(value()?.into()),
                "--only" => options.only = Some(value()?.clone()),
                "--faults" => options.faults = true,
                "--inside" => options.inside = true,
                "--list" => options.list = true,
                other => bail!("hosts has no option `{other}`: `cargo xtask help` lists them"),
            }
        }
        Ok(options)
    }

    fn cases(&self) -> Vec<&'static Case> {
        let long = starts::CASES.iter().chain(faults::CASES);
        let long = long.filter(|_| self.faults || self.list);
        let all = forms::CASES.iter().chain(long);
        all.filter(|case| {
            self.only
                .as_ref()
                .is_none_or(|part| case.name.contains(part.as_str()))
        })
        .collect()
    }
}

/// Programs that the hosts and the tests need.
const PROGRAMS: [&str; 11] = [
    "sshd",
    "ssh",
    "ssh-keygen",
    "mpirun",
    "mpicc",
    "ip",
    "unshare",
    "nsenter",
    "mount",
    "setpriv",
    "hostname",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn faults_are_tested_on_demand() {
        let named = |line: &str, name: &str| {
            let options = parse(line).expect("good options");
            options.cases().iter().any(|case| case.name == name)
        };
        assert!(named("", "mpirun"));
        assert!(!named("", "cut-off"));
        assert!(named("--faults", "cut-off"));
        assert!(named("--list", "cut-off"));
        assert!(!named("--only cut", "mpirun"));
        for bad in ["--only", "--fathom", "--fast"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
