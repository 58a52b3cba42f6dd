//! The benchmarked programs and their command lines.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::machine;
use crate::process;

/// Installed programs, ready to run.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) fio: Option<PathBuf>,
    pub(crate) valgrind: Option<PathBuf>,
    /// fio's `t/io_uring`, which no package ships: looked up in the path as `t_io_uring`.
    pub(crate) ring_loop: Option<PathBuf>,
    pub(crate) fathom: PathBuf,
    /// Bare loops of NVMe/TCP, if a row needs them.
    bare_nvme: Option<PathBuf>,
    taskset: Option<PathBuf>,
    /// Cores in this process's affinity mask, ascending.
    pub(crate) cores: Vec<u32>,
}

/// Program, with the first words of its command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Fio,
    FathomRun,
    FathomPeak,
    FathomTarget,
    RingLoop,
    BareNvme,
}

impl Programs {
    /// Builds Fathom in release mode unless a program is given, and the bare loops of NVMe/TCP if
    /// they are needed, and looks up the others: fio, too, unless one is given.
    pub(crate) fn find(
        fathom: Option<&Path>,
        fio: Option<&Path>,
        needs_nvme: bool,
    ) -> Result<Self> {
        let fathom = match fathom {
            Some(path) => path.to_owned(),
            None => build()?,
        };
        let bare_nvme =
            needs_nvme.then(|| release(&["--package", "xtask", "--bin", "bare-nvme"], "bare-nvme"));
        let taskset = process::find("taskset");
        if taskset.is_none() {
            println!("bench: not pinned: no taskset");
        }
        Ok(Self {
            fio: fio.map(Path::to_owned).or_else(process::find_fio),
            valgrind: process::find("valgrind"),
            ring_loop: process::find("t_io_uring"),
            fathom,
            bare_nvme: bare_nvme.transpose()?,
            taskset,
            cores: machine::allowed_cores(),
        })
    }

    /// Returns fio's version.
    pub(crate) fn fio_version(&self) -> Result<String> {
        let Some(fio) = &self.fio else {
            return Ok("none".into());
        };
        let text = process::capture(Command::new(fio).arg("--version"))?;
        Ok(text.trim().to_owned())
    }

    /// Returns whether programs can be bound to cores.
    pub(crate) fn can_pin(&self) -> bool {
        self.taskset.is_some() && !self.cores.is_empty()
    }

    /// Returns the core of single-core rows: the last, because the first serves most interrupts.
    pub(crate) fn core(&self) -> Option<u32> {
        self.cores.last().copied().filter(|_| self.can_pin())
    }

    /// Returns Fathom's command, pinned to a core if possible.
    pub(crate) fn fathom_on(&self, core: u32) -> Command {
        match &self.taskset {
            Some(taskset) if self.can_pin() => {
                let mut command = Command::new(taskset);
                command.args(["--cpu-list", &core.to_string()]);
                command.arg(&self.fathom);
                command
            }
            _ => Command::new(&self.fathom),
        }
    }

    /// Builds the start of a command line, pinned to cores if possible.
    pub(crate) fn command(&self, program: Program, cores: &[u32]) -> Result<Command> {
        let path = match program {
            Program::Fio => self.fio.as_deref().context("no fio")?,
            Program::FathomRun | Program::FathomPeak | Program::FathomTarget => &self.fathom,
            Program::BareNvme => self.bare_nvme.as_deref().context("no bare-nvme")?,
            Program::RingLoop => self.ring_loop.as_deref().context("no t_io_uring")?,
        };
        let mut command = match &self.taskset {
            Some(taskset) if !cores.is_empty() => {
                let list: Vec<String> = cores.iter().map(u32::to_string).collect();
                // Servers do not end by themselves.
                let mut command = match program {
                    Program::FathomTarget | Program::BareNvme => {
                        process::tied(&taskset.to_string_lossy())
                    }
                    _ => Command::new(taskset),
                };
                command.args(["--cpu-list", &list.join(",")]).arg(path);
                command
            }
            _ => Command::new(path),
        };
        match program {
            Program::Fio | Program::RingLoop | Program::BareNvme => {}
            Program::FathomTarget => {
                command.arg("target");
            }
            Program::FathomRun => {
                command.arg("run");
            }
            Program::FathomPeak => {
                command.args(["peak", "--json"]);
            }
        }
        Ok(command)
    }
}

/// Runs a command to its end and returns its output and its duration, seconds.
pub(crate) fn timed(command: &mut Command) -> Result<(String, f64)> {
    let start = process::now();
    let text = process::capture(command)?;
    Ok((text, start.elapsed().as_secs_f64()))
}

/// Returns the peak resident memory of the process, MiB. The kernel keeps the high-water mark, so
/// only growth after the last poll is missed.
pub(crate) fn peak_memory(command: &mut Command) -> Result<f64> {
    let line = process::shown(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start `{line}`"))?;
    let mut peak = 0;
    loop {
        peak = peak_rss_kib(&child).unwrap_or(0).max(peak);
        if let Some(status) = child.try_wait()? {
            if !status.success() {
                bail!("`{line}` failed: {status}");
            }
            break;
        }
        process::pause(POLL_INTERVAL);
    }
    #[expect(clippy::cast_precision_loss, reason = "a size in KiB is far below 2⁵²")]
    Ok(peak as f64 / 1024.0)
}

/// Reads VmHWM of a running process, KiB.
fn peak_rss_kib(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Builds Fathom in release mode and returns the path of the program.
///
/// The package is not named: features would then be chosen for it alone, not as for `cargo run
/// --release`, and the program would be built and linked a second time.
pub(crate) fn build() -> Result<PathBuf> {
    release(&["--bin", "fathom"], "fathom")
}

/// Builds Fathom and the program of its ranks beside it, and returns the path of the first.
pub(crate) fn build_with_ranks() -> Result<PathBuf> {
    release(&WITH_RANKS, "fathom")
}

fn release(program_of: &[&str], program: &str) -> Result<PathBuf> {
    let mut command = process::cargo();
    command.args(["build", "--release"]).args(program_of);
    process::run(command.current_dir(process::root()?))?;
    Ok(target_folder()?.join("release").join(program))
}

/// Returns cargo's target directory.
pub(crate) fn target_folder() -> Result<PathBuf> {
    let metadata = process::metadata()?;
    let folder = metadata["target_directory"]
        .as_str()
        .context("cargo names no target folder")?;
    Ok(PathBuf::from(folder))
}

/// Arguments of cargo for Fathom with the program of its ranks.
pub(crate) const WITH_RANKS: [&str; 6] = [
    "--features",
    "fathom-cli/mpi",
    "--bin",
    "fathom",
    "--bin",
    "fathom-mpi",
];
/// Interval between polls of a child's memory.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
