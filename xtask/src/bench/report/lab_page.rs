//! Page of a lab of 200 cells and two variants: its size, and the times to write and to show it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::super::figure::Figure;
use super::super::scratch::Scratch;
use super::{Measured, Row, Setting};
use crate::{browser, process};

/// A lab in virtual time, and its page by whole processes.
pub(super) const ROW: Row = Row {
    name: "lab-page",
    what: "report of a lab of 200 cells × 2 variants",
    measure,
};

/// The page in the distribution's browser.
pub(super) const SHOWN: Row = Row {
    name: "lab-shown",
    what: "report of a lab of 200 cells × 2 variants, in a browser",
    measure: shown,
};

fn measure(setting: &Setting) -> Result<Measured> {
    let folder = with_lab(setting)?;
    let run = |words: &[&str]| fathom(&setting.programs.fathom, folder.path(), words);
    let mut times = Vec::new();
    for _ in 0..PROCESSES {
        let begun = process::now();
        run(&["report", "lab.toml", "--html", "page.html"])?;
        times.push(begun.elapsed().as_secs_f64());
    }
    let least = times.into_iter().fold(f64::INFINITY, f64::min);
    let size = fs::metadata(folder.path().join("page.html"))?.len();
    #[expect(clippy::cast_precision_loss, reason = "a size in MB")]
    let size = size as f64 / 1e6;
    Ok(Measured::Figures(vec![
        Figure::at_most("size", size, "MB", 1.5),
        Figure::at_most("to write", least, "s", 1.0),
    ]))
}

fn shown(setting: &Setting) -> Result<Measured> {
    let folder = with_lab(setting)?;
    let words = ["report", "lab.toml", "--html", "page.html"];
    fathom(&setting.programs.fathom, folder.path(), &words)?;
    let page = folder.path().join("page.html").canonicalize()?;
    let mut times = match browser::times_ms(&page, LOADS)? {
        Ok(times) if times.is_empty() => bail!("no load was timed"),
        Ok(times) => times,
        Err(why) => return Ok(Measured::Skipped(why)),
    };
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    Ok(Measured::Figures(vec![Figure::at_most(
        "shown", median, "ms", 500.0,
    )]))
}

/// Runs the lab in a directory of its own.
fn with_lab(setting: &Setting) -> Result<Scratch> {
    let folder = Scratch::new("lab-page")?;
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text);
    write("m.toml", MACHINE)?;
    write("lab.toml", LAB)?;
    // A judged metric is worse: code 1.
    fathom(
        &setting.programs.fathom,
        folder.path(),
        &["lab", "lab.toml"],
    )?;
    Ok(folder)
}

/// Runs the program in a directory, with a history of its own.
fn fathom(program: &Path, folder: &Path, words: &[&str]) -> Result<()> {
    let mut command = Command::new(program);
    command.args(words).current_dir(folder);
    command.env("FATHOM_HISTORY", folder.join("history.db"));
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let output = command.output().context("fathom")?;
    match output.status.code() {
        Some(0 | 1) => Ok(()),
        _ => bail!("{words:?}: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// Processes of which the fastest counts.
const PROCESSES: u32 = 5;
/// Loads by a browser, of which the median counts.
const LOADS: u32 = 7;

const MACHINE: &str = r#"
[[device]]
names = ["*"]
model = "constant"
capacity_gib = 1
[device.constant]
latency_us = 100
[noise]
seed = 1
between_runs_percent = 1.0
"#;

const LAB: &str = r#"
[lab]
name = "wide"
machine = "m.toml"
[job]
rw = "randread"
filename = "/dev/modelled"
ioengine = "libaio"
number_ios = 1000
[axes]
bs = ["512", "1k", "2k", "4k", "8k", "16k", "32k", "64k", "128k", "256k"]
iodepth = [1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64, 96, 128]
[variants]
old = {}
new = { machine = { "device.constant.latency_us" = 103 } }
[judge]
baseline = "old"
metrics = { "read.iops" = "2%", "read.clat_p90" = "5%" }
repeats = { min = 14, max = 14, stop = "never" }
"#;
