//! `fathom merge` of many records of three jobs each.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::super::figure::Figure;
use super::super::programs::{peak_memory, timed};
use super::super::report::{Measured, Row, Setting};
use super::super::scratch::Scratch;
use crate::process;

pub(super) const THOUSAND: Row = Row {
    name: "merge-1000",
    what: "merge of 1,000 records of 3 jobs, a whole process",
    measure: |setting| {
        let folder = records(&setting.programs.fathom, 1000)?;
        let time = least_time(setting, folder.path())?;
        let memory = peak_memory(&mut merge(setting, folder.path()))?;
        Ok(Measured::Figures(vec![
            Figure::at_most("time", time, "s", 1.0),
            Figure::at_most("most memory", memory, "MiB", 128.0),
        ]))
    },
};

pub(super) const TEN_THOUSAND: Row = Row {
    name: "merge-10000",
    what: "merge of 10,000 records of 3 jobs, a whole process",
    measure: |setting| {
        let folder = records(&setting.programs.fathom, 10_000)?;
        let time = least_time(setting, folder.path())?;
        Ok(Measured::Figures(vec![Figure::at_most(
            "time", time, "s", 10.0,
        )]))
    },
};

fn merge(setting: &Setting, folder: &Path) -> Command {
    let mut command = Command::new(&setting.programs.fathom);
    command.arg("merge").arg(folder.join("out"));
    command
}

/// Returns the least time of some processes, seconds: whatever else runs makes them slower.
fn least_time(setting: &Setting, folder: &Path) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..PROCESSES {
        let (_, seconds) = timed(&mut merge(setting, folder))?;
        least = least.min(seconds);
    }
    Ok(least)
}

/// Makes `count` records of one run, under the names of as many hosts.
fn records(fathom: &Path, count: u64) -> Result<Scratch> {
    let folder = Scratch::new("merge")?;
    let mut run = Command::new(fathom);
    run.current_dir(folder.path());
    run.args([
        "run",
        "--rank=0/1",
        "--record=one",
        "--time_based",
        "--runtime=2",
    ]);
    run.args([
        "--ioengine=null",
        "--size=1g",
        "--bs=4k",
        "--rate_iops=20000",
    ]);
    run.args(["--name=a", "--rw=randread", "--name=b", "--rw=randwrite"]);
    run.args(["--name=c", "--rw=randrw"]);
    process::capture(&mut run)?;
    let text = fs::read_to_string(folder.path().join("one/rank-0000.json"))?;
    let mut record: Value = serde_json::from_str(&text)?;
    let out = folder.path().join("out");
    fs::create_dir(&out)?;
    let mut bytes = 0;
    for rank in 0..count {
        let host = record["hosts"]
            .get_mut(0)
            .context("a record without host")?;
        host["rank"] = json!(rank);
        host["ranks"] = json!(count);
        host["name"] = json!(format!("node{rank}"));
        let text = serde_json::to_string(&record)?;
        bytes += text.len();
        fs::write(out.join(format!("rank-{rank:05}.json")), text)?;
    }
    println!("bench:   {count} records: {} MB", bytes / 1_000_000);
    Ok(folder)
}

/// Processes timed.
const PROCESSES: usize = 5;
