//! The two programs, how a job is given to them, and what is read off a run.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::rows::{Before, Measure, Row};
use crate::process;

/// Both programs, ready to run, and the core that they share.
#[derive(Debug)]
pub(crate) struct Programs {
    fio: PathBuf,
    fathom: PathBuf,
    /// `taskset` and the core's number.
    pub(crate) pin: Option<(PathBuf, u32)>,
}

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Fio,
    Fathom,
}

impl Programs {
    /// Builds fathom in release and looks for a core to pin to.
    pub(crate) fn build(fio: PathBuf) -> Result<Self> {
        let mut command = process::cargo();
        command.args([
            "build",
            "--release",
            "--package",
            "fathom-cli",
            "--bin",
            "fathom",
        ]);
        process::run(command.current_dir(process::root()?))?;
        let fathom = target_folder()?.join("release/fathom");
        let pin = process::find("taskset").zip(last_core());
        if pin.is_none() {
            println!("bench: not pinned: no taskset");
        }
        Ok(Self { fio, fathom, pin })
    }

    /// What fio says its version is.
    pub(crate) fn fio_version(&self) -> Result<String> {
        let text = process::capture(Command::new(&self.fio).arg("--version"))?;
        Ok(text.trim().to_owned())
    }

    /// Runs a row's job once and reads its measure.
    pub(crate) fn measure(
        &self,
        program: Program,
        row: &Row,
        seconds: u32,
        file: &Path,
    ) -> Result<f64> {
        let mut command = self.command(program);
        command.args(["--name=bench", "--thread", "--output-format=json"]);
        for word in row.job {
            command.arg(word.replace("FILE", &file.to_string_lossy()));
        }
        if row.measure.is_timed() {
            command
                .arg("--time_based")
                .arg(format!("--runtime={seconds}s"));
        }
        match row.before {
            Before::Nothing => {}
            Before::ReadFile => read_through(file)?,
        }
        match row.measure {
            Measure::Iops => iops(&process::capture(&mut command)?),
            Measure::PeakMemory => peak_memory(&mut command),
            Measure::WholeRun => {
                let start = process::now();
                process::capture(&mut command)?;
                Ok(start.elapsed().as_secs_f64() * 1000.0)
            }
        }
    }

    /// The program with its first words, pinned where that is possible.
    fn command(&self, program: Program) -> Command {
        let path = match program {
            Program::Fio => &self.fio,
            Program::Fathom => &self.fathom,
        };
        let mut command = match &self.pin {
            Some((taskset, core)) => {
                let mut command = Command::new(taskset);
                command.args(["--cpu-list", &core.to_string()]).arg(path);
                command
            }
            None => Command::new(path),
        };
        if program == Program::Fathom {
            command.arg("run");
        }
        command
    }
}

/// Reads a file from end to end, so that it is in the page cache.
fn read_through(path: &Path) -> Result<()> {
    let file = File::open(path).and_then(|mut file| std::io::copy(&mut file, &mut std::io::sink()));
    file.map(drop)
        .with_context(|| format!("cannot read {}", path.display()))
}

/// Reads and writes per second, over all jobs of a JSON report.
fn iops(report: &str) -> Result<f64> {
    let open = report.find('{').context("the report holds no JSON")?;
    let report: Value = serde_json::from_str(&report[open..]).context("cannot read the report")?;
    let jobs = report["jobs"]
        .as_array()
        .context("the report has no jobs")?;
    let mut total = 0.0;
    for job in jobs {
        for direction in ["read", "write"] {
            total += job[direction]["iops"]
                .as_f64()
                .context("a job without iops")?;
        }
        if job["error"] != 0 {
            bail!("a job ended with error {}", job["error"]);
        }
    }
    Ok(total)
}

/// The largest resident memory of the process, MiB. The kernel keeps the high-water mark, so only
/// what the process takes after the last look is missed.
fn peak_memory(command: &mut Command) -> Result<f64> {
    let line = process::shown(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start `{line}`"))?;
    let mut peak = 0;
    loop {
        peak = high_water(&child).unwrap_or(0).max(peak);
        if let Some(status) = child.try_wait()? {
            if !status.success() {
                bail!("`{line}` failed: {status}");
            }
            break;
        }
        process::pause(LOOK);
    }
    #[expect(clippy::cast_precision_loss, reason = "a size in KiB is far below 2⁵²")]
    Ok(peak as f64 / 1024.0)
}

/// VmHWM of a running process, KiB.
fn high_water(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The last core that this process may use: the first one serves most interrupts.
fn last_core() -> Option<u32> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list.trim().rsplit([',', '-']).next()?.parse().ok()
}

/// Cargo's folder for what it builds.
pub(crate) fn target_folder() -> Result<PathBuf> {
    let metadata = process::metadata()?;
    let folder = metadata["target_directory"]
        .as_str()
        .context("cargo names no target folder")?;
    Ok(PathBuf::from(folder))
}

/// The file that the file rows read; removed when dropped.
#[derive(Debug)]
pub(crate) struct TestFile {
    path: PathBuf,
}

impl TestFile {
    /// Writes the file, so that no row lays one out.
    pub(crate) fn make(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let path = Self::place(folder);
        let made = Self { path };
        let what = || format!("cannot write {}", made.path.display());
        let mut file = File::create(&made.path).with_context(what)?;
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut chunk = Vec::with_capacity(CHUNK);
        for _ in 0..FILE_MIB {
            chunk.clear();
            while chunk.len() < CHUNK {
                state = super::statistics::next_random(state);
                chunk.extend_from_slice(&state.to_le_bytes());
            }
            file.write_all(&chunk).with_context(what)?;
        }
        file.sync_all().with_context(what)?;
        Ok(made)
    }

    /// Where it is, or would be.
    pub(crate) fn place(folder: &Path) -> PathBuf {
        folder.join("xtask-bench.data")
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        // Nothing depends on it being gone, and a drop cannot report.
        let _ = fs::remove_file(&self.path);
    }
}

/// Between two looks at a child's memory.
const LOOK: Duration = Duration::from_millis(5);
/// Larger than any processor's cache, small enough for every machine's page cache.
const FILE_MIB: u32 = 256;
const CHUNK: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iops_are_summed_over_jobs_and_errors_are_not_swallowed() {
        let job = |error: u32| {
            format!(r#"{{"error": {error}, "read": {{"iops": 2.5}}, "write": {{"iops": 1}}}}"#)
        };
        let report = |jobs: &str| format!("a note\n{{\n\"jobs\": [{jobs}]\n}}\n");
        assert_eq!(
            iops(&report(&format!("{},{}", job(0), job(0)))).ok(),
            Some(7.0)
        );
        assert!(iops(&report(&job(5))).is_err());
        assert!(iops("nothing").is_err());
    }
}
