//! Initiators of a row: one process of this program each.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use fathom_sys::child::{Child, Ended, end_with_parent};
use serde_json::Value;

use super::condition::Condition;
use super::outcome::Outcome;
use super::target::Namespaces;
use crate::error::CommandError;

/// Initiators to start.
pub(super) struct Initiators<'a> {
    /// Path of this program.
    pub(super) fathom: &'a Path,
    /// Number of processes.
    pub(super) count: u32,
    /// Duration, in seconds.
    pub(super) seconds: u32,
    /// CPUs of the processes, as fio's option takes them; `None`: any.
    pub(super) cpus: Option<&'a str>,
    /// Folder for reports.
    pub(super) folder: &'a Path,
}

impl Initiators<'_> {
    /// Runs all initiators and calls `sample` from time to time until they have ended.
    pub(super) fn run(
        &self,
        condition: &Condition,
        namespaces: &Namespaces,
        sample: &mut dyn FnMut(),
        stops: &dyn Fn() -> u32,
    ) -> Result<Outcome, CommandError> {
        let mut running = Vec::new();
        for number in 0..self.count {
            let files = Files::new(self.folder, number);
            let mut command = self.command(condition, namespaces);
            files.connect(&mut command).map_err(CommandError::System)?;
            end_with_parent(&mut command);
            let child = Child::spawn(&mut command).map_err(CommandError::System)?;
            running.push((child, files));
        }
        let sample = std::cell::RefCell::new(sample);
        let mut reports = Vec::new();
        for (mut child, files) in running {
            // The pauses of waiting are the intervals of the samples.
            let stops = || {
                (*sample.borrow_mut())();
                stops() > 0
            };
            let ended = child.wait_unless(&stops).map_err(CommandError::System)?;
            let Ended::ByItself(status) = ended else {
                return Err(CommandError::Interrupted);
            };
            if !status.success() {
                return Err(CommandError::Failed(files.first_error()));
            }
            reports.push(files.report()?);
        }
        Ok(outcome(&reports))
    }

    /// Returns the command of one initiator: a job on the devices that are not slow, and one on
    /// those that are.
    fn command(&self, condition: &Condition, namespaces: &Namespaces) -> Command {
        let mut command = Command::new(self.fathom);
        command.arg("run").args(JOB);
        command.arg(format!("--runtime={}", self.seconds));
        command.args(self.cpus.map(|cpus| format!("--cpus_allowed={cpus}")));
        let mut job = |name: &str, nsids: &[u32], depth: u32| {
            command.arg(format!("--name={name}"));
            command.arg(format!("--filename={}", namespaces.filename(nsids)));
            command.arg(format!("--iodepth={depth}"));
        };
        job(FAST, &namespaces.fast, condition.depth);
        if let Some(slow) = condition.slow.filter(|slow| slow.devices > 0) {
            job("slow", &namespaces.slow, slow.depth);
        }
        command
    }
}

/// Output files of one initiator.
struct Files {
    report: PathBuf,
    errors: PathBuf,
}

impl Files {
    fn new(folder: &Path, number: u32) -> Self {
        Self {
            report: folder.join(format!("initiator-{number}.json")),
            errors: folder.join(format!("initiator-{number}.err")),
        }
    }

    fn connect(&self, command: &mut Command) -> io::Result<()> {
        command.stdin(Stdio::null());
        command.stdout(fs::File::create(&self.report)?);
        command.stderr(fs::File::create(&self.errors)?);
        Ok(())
    }

    fn first_error(&self) -> String {
        let text = fs::read_to_string(&self.errors).unwrap_or_default();
        let line = text.lines().next().unwrap_or("exited with an error");
        line.to_owned()
    }

    fn report(&self) -> Result<Value, CommandError> {
        let text = fs::read_to_string(&self.report).map_err(CommandError::System)?;
        serde_json::from_str(&text).map_err(CommandError::NotJson)
    }
}

/// Sums up the reports of all initiators; the samples are left out.
fn outcome(reports: &[Value]) -> Outcome {
    let mut outcome = Outcome::default();
    let mut latencies = 0.0;
    for report in reports {
        let mut own_gbps = 0.0;
        for job in report["jobs"].as_array().into_iter().flatten() {
            let number = |value: &Value| value.as_f64().unwrap_or(0.0);
            let reads = &job["read"];
            let gbps = number(&reads["bw_bytes"]) * 8.0 / 1e9;
            own_gbps += gbps;
            outcome.iops += number(&reads["iops"]);
            latencies += number(&reads["iops"]) * number(&reads["lat_ns"]["mean"]);
            if job["jobname"] == FAST {
                outcome.fast_gbps += gbps;
            }
        }
        outcome.bw_gbps += own_gbps;
        outcome.initiator_gbps.push(own_gbps);
    }
    if outcome.iops > 0.0 {
        outcome.lat_us = latencies / outcome.iops / 1e3;
    }
    outcome
}

/// Job on the devices that are not slow.
const FAST: &str = "fast";

const JOB: [&str; 9] = [
    "--ioengine=nvme_tcp",
    "--rw=randread",
    "--bs=128k",
    "--time_based",
    "--norandommap",
    "--randrepeat=0",
    "--readonly",
    "--thread",
    "--output-format=json",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initiators_and_jobs_are_added_up() {
        let job = |name: &str, iops: f64, ns: f64| {
            serde_json::json!({"jobname": name, "read": {
                "iops": iops, "bw_bytes": iops * 131_072.0, "lat_ns": {"mean": ns}}})
        };
        let reports = [
            serde_json::json!({"jobs": [job(FAST, 3000.0, 1e5), job("slow", 1000.0, 1e6)]}),
            serde_json::json!({"jobs": [job(FAST, 4000.0, 1e5)]}),
        ];
        let outcome = outcome(&reports);
        assert!((outcome.iops - 8000.0).abs() < 1e-6);
        assert!((outcome.lat_us - (7.0 * 100.0 + 1000.0) / 8.0).abs() < 1e-6);
        let gbps = |iops: f64| iops * 131_072.0 * 8.0 / 1e9;
        assert!((outcome.fast_gbps - gbps(7000.0)).abs() < 1e-9);
        assert!((outcome.bw_gbps - gbps(8000.0)).abs() < 1e-9);
        assert_eq!(outcome.initiator_gbps.len(), 2);
    }
}
