//! `cargo xtask bench history`: commands on a history of 10,000 runs with their records.
//!
//! ```text
//! a modelled run of 8 s ─► its record, N times at other moments ─► import ─► list, show, trend
//! ```
//!
//! Times are those of whole processes, the least of five: what a user waits for. A figure fails
//! only if it is not reached, so that the command can stand in a script.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::programs::Programs;
use crate::process;

/// Runs `cargo xtask bench history`.
pub(super) fn run(args: &[String]) -> Result<()> {
    let (fathom, runs) = parse(args)?;
    let bench = HistoryBench {
        fathom: Programs::find(fathom.as_deref(), None, false)?.fathom,
        folder: Scratch::new()?,
    };
    let figures = bench.measure(runs)?;
    for figure in &figures {
        println!(
            "bench: history of {runs} runs: {}: {:.1} {} (at most {})",
            figure.what, figure.value, figure.unit, figure.most
        );
    }
    let short: Vec<&str> = figures
        .iter()
        .filter(|figure| figure.value > figure.most)
        .map(|figure| figure.what)
        .collect();
    match short.is_empty() {
        true => Ok(()),
        false => bail!("bench: {} fell short", short.join(", ")),
    }
}

fn parse(args: &[String]) -> Result<(Option<PathBuf>, u32)> {
    let (mut fathom, mut runs) = (None, 10_000);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--fathom" => fathom = Some(value()?.into()),
            "--runs" => runs = value()?.parse().context("--runs")?,
            _ => bail!("bench history has no option `{arg}`: --fathom PROGRAM, --runs N"),
        }
    }
    Ok((fathom, runs))
}

/// Measured figure, and its bound.
struct Figure {
    what: &'static str,
    value: f64,
    unit: &'static str,
    most: f64,
}

struct HistoryBench {
    fathom: PathBuf,
    folder: Scratch,
}

impl HistoryBench {
    fn measure(&self, runs: u32) -> Result<Vec<Figure>> {
        let record = self.record()?;
        let mut filled_ms = 0.0;
        for first in (0..runs).step_by(RUNS_IN_A_FILE as usize) {
            self.write_records(&record, first..runs.min(first + RUNS_IN_A_FILE))?;
            filled_ms += self.time(&["history", "import", "runs.json"])?;
        }
        let size = fs::metadata(self.folder.0.join("history.db"))?.len();
        let per_run = |whole: f64| whole / f64::from(runs);
        let middle = (runs / 2).max(1).to_string();
        let figure = |what, value, unit, most| Figure {
            what,
            value,
            unit,
            most,
        };
        #[expect(clippy::cast_precision_loss, reason = "a size in KiB")]
        let size_kib = size as f64 / 1024.0;
        Ok(vec![
            figure("read and add one", per_run(filled_ms), "ms", 10.0),
            figure("size of one", per_run(size_kib), "KiB", 12.0),
            figure("list", self.least(&["history", "list"])?, "ms", 100.0),
            figure(
                "show",
                self.least(&["history", "show", &middle])?,
                "ms",
                100.0,
            ),
            figure(
                "trend",
                self.least(&["history", "trend", "read.iops"])?,
                "ms",
                100.0,
            ),
        ])
    }

    /// Returns the record of a run.
    fn record(&self) -> Result<Value> {
        let machine = process::root()?.join("examples/machines/ssd.toml");
        let mut run = self.command(&["run", "--record", "run.json", "--machine"]);
        run.arg(machine).args(JOB.split_whitespace());
        process::capture(&mut run)?;
        let text = fs::read_to_string(self.folder.0.join("run.json"))?;
        serde_json::from_str(&text).context("run.json")
    }

    /// Writes the record as runs of these numbers.
    fn write_records(&self, record: &Value, numbers: Range<u32>) -> Result<()> {
        let mut record = record.clone();
        let mut file = BufWriter::new(File::create(self.folder.0.join("runs.json"))?);
        for number in numbers {
            record["timestamp_ms"] = json!(FIRST_MS + u64::from(number) * 10_000);
            writeln!(file, "{record}")?;
        }
        Ok(file.flush()?)
    }

    fn least(&self, words: &[&str]) -> Result<f64> {
        let times = (0..5).map(|_| self.time(words));
        let times = times.collect::<Result<Vec<f64>>>()?;
        Ok(times.into_iter().fold(f64::INFINITY, f64::min))
    }

    /// Returns the wall time of a command, ms.
    fn time(&self, words: &[&str]) -> Result<f64> {
        let begun = process::now();
        let status = self
            .command(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let took = begun.elapsed().as_secs_f64() * 1e3;
        if !status.context("fathom")?.success() {
            bail!("fathom {} failed", words.join(" "));
        }
        Ok(took)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.fathom);
        command.args(words).current_dir(&self.folder.0);
        command.env("FATHOM_HISTORY", self.folder.0.join("history.db"));
        command
    }
}

/// Directory that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let name = format!("fathom-bench-history-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

/// Both directions and three latencies each, as most records have.
const JOB: &str = "--name=j --filename=/dev/nvme0n1 --ioengine=libaio --direct=1 --rw=randrw \
                   --bs=4k --iodepth=16 --runtime=8 --time_based --size=1g";

/// A record has some 200 KB.
const RUNS_IN_A_FILE: u32 = 250;

/// Some moment of 2026.
const FIRST_MS: u64 = 1_780_000_000_000;
