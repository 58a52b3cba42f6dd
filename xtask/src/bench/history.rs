//! `cargo xtask bench history`: commands on a history of 10,000 runs with their records.
//!
//! ```text
//! a modelled run of 8 s ─► its record, N times ─► import ─► list, show, trend
//! ```
//!
//! The runs differ in their moments and, by 2 % of noise and a few steps, in their rates: a series
//! of one value has no change to look for.
//!
//! Times are those of whole processes, the least of five: what a user waits for. A figure fails
//! only if it is not reached, so that the command can stand in a script.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use fathom_core::Taus258;
use serde_json::{Value, json};

use super::figure::Figure;
use super::programs::Programs;
use super::scratch::Scratch;
use super::series::normal;
use crate::process;

/// Runs `cargo xtask bench history`.
pub(super) fn run(args: &[String]) -> Result<()> {
    let (fathom, runs) = parse(args)?;
    let program = Programs::find(fathom.as_deref(), None, false)?.fathom;
    let bench = HistoryBench::new(program)?;
    let figures = bench.measure(runs)?;
    for figure in &figures {
        println!("bench: history of {runs} runs: {figure}");
    }
    let short: Vec<&str> = figures
        .iter()
        .filter(|figure| !figure.is_met())
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

/// A program, and the history that it fills.
pub(super) struct HistoryBench {
    fathom: PathBuf,
    folder: Scratch,
}

impl HistoryBench {
    pub(super) fn new(fathom: PathBuf) -> Result<Self> {
        Ok(Self {
            fathom,
            folder: Scratch::new("history")?,
        })
    }

    fn measure(&self, runs: u32) -> Result<Vec<Figure>> {
        let filled_ms = self.fill(runs)?;
        let size = fs::metadata(self.file("history.db"))?.len();
        let per_run = |whole: f64| whole / f64::from(runs);
        let middle = (runs / 2).max(1).to_string();
        #[expect(clippy::cast_precision_loss, reason = "a size in KiB")]
        let size_kib = size as f64 / 1024.0;
        let least = |what, words: &[&str]| {
            let took = self.least(words)?;
            Ok::<_, anyhow::Error>(Figure::at_most(what, took, "ms", 100.0))
        };
        Ok(vec![
            Figure::at_most("read and add one", per_run(filled_ms), "ms", 10.0),
            Figure::at_most("size of one", per_run(size_kib), "KiB", 12.0),
            least("list", &["history", "list"])?,
            least("show", &["history", "show", &middle])?,
            least("trend", &["history", "trend", "read.iops"])?,
        ])
    }

    /// Adds runs; returns the time that it took, ms.
    pub(super) fn fill(&self, runs: u32) -> Result<f64> {
        let record = self.record()?;
        let mut random = Taus258::new(1);
        let mut filled_ms = 0.0;
        for first in (0..runs).step_by(RUNS_IN_A_FILE as usize) {
            let numbers = first..runs.min(first + RUNS_IN_A_FILE);
            self.write_records(&record, numbers, &mut random)?;
            filled_ms += self.time(&["history", "import", "runs.json"])?;
        }
        Ok(filled_ms)
    }

    /// Returns the record of a run.
    fn record(&self) -> Result<Value> {
        let machine = process::root()?.join("examples/machines/ssd.toml");
        let mut run = self.command(&["run", "--record", "run.json", "--machine"]);
        run.arg(machine).args(JOB.split_whitespace());
        process::capture(&mut run)?;
        let text = fs::read_to_string(self.file("run.json"))?;
        serde_json::from_str(&text).context("run.json")
    }

    /// Writes the record as runs of these numbers.
    fn write_records(
        &self,
        record: &Value,
        numbers: Range<u32>,
        random: &mut Taus258,
    ) -> Result<()> {
        let mut record = record.clone();
        let directions = record["jobs"][0]["directions"].clone();
        let mut file = BufWriter::new(File::create(self.file("runs.json"))?);
        for number in numbers {
            record["timestamp_ms"] = json!(FIRST_MS + u64::from(number) * 10_000);
            let level = if (number / LEVEL_RUNS).is_multiple_of(2) {
                1.0
            } else {
                0.95
            };
            let factor = level * (1.0 + 0.02 * normal(random));
            for direction in ["read", "write"] {
                for key in ["ios", "bytes"] {
                    let whole = directions[direction][key].as_f64();
                    let whole = whole.with_context(|| format!("no {direction} {key}"))?;
                    let scaled = (whole * factor).round();
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "a count, scaled by about 1"
                    )]
                    let scaled = scaled as u64;
                    record["jobs"][0]["directions"][direction][key] = json!(scaled);
                }
            }
            writeln!(file, "{record}")?;
        }
        Ok(file.flush()?)
    }

    /// Returns the least wall time of five, ms.
    pub(super) fn least(&self, words: &[&str]) -> Result<f64> {
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
        command.args(words).current_dir(self.folder.path());
        command.env("FATHOM_HISTORY", self.file("history.db"));
        command
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Both directions and three latencies each, as most records have.
const JOB: &str = "--name=j --filename=/dev/nvme0n1 --ioengine=libaio --direct=1 --rw=randrw \
                   --bs=4k --iodepth=16 --runtime=8 --time_based --size=1g";

/// A record has some 200 KB.
const RUNS_IN_A_FILE: u32 = 250;

/// Some moment of 2026.
const FIRST_MS: u64 = 1_780_000_000_000;

/// Runs of a level: a history has a step of 5 % now and then.
const LEVEL_RUNS: u32 = 700;
