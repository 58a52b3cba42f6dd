//! The measured program of a run: `fathom`, another build of it, or fio.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fathom_record::{Record, Validity};

use super::super::executor::{RunDone, RunFailure, RunOutcome};
use super::commands::{Commands, first_line};
use crate::import::import;
use crate::lab_plan::{RunText, VARIABLES, has_whole_comment};
use crate::throttle::Throttle;

/// Program and files of a run.
pub(super) struct Measured<'a> {
    /// This program.
    pub(super) fathom: &'a Path,
    /// Folder for job file and record.
    pub(super) folder: &'a Path,
    pub(super) text: &'a RunText,
    /// Block devices that may be written.
    pub(super) writes: &'a [String],
}

impl Measured<'_> {
    /// Runs the job and reads what it leaves, unless it is over before.
    pub(super) fn run(&self, commands: &Commands<'_>, is_over: &dyn Fn() -> bool) -> RunOutcome {
        if let Some(peak) = &self.text.peak {
            return self.run_peak(peak, commands, is_over);
        }
        let Some(job) = &self.text.job else {
            return Err(RunFailure::Hopeless("the run has no job".into()));
        };
        let (job_file, record) = (self.folder.join("run.fio"), self.folder.join("record.json"));
        fs::write(&job_file, job).map_err(|error| {
            RunFailure::Failed(format!("cannot write {}: {error}", job_file.display()))
        })?;
        let _none_of_before = fs::remove_file(&record);
        let program = self.program();
        let is_fio = self.text.run.is_fio();
        if is_fio && has_whole_comment(job) {
            let why = "fio would cut a value of the job at `#` or `;`";
            return Err(RunFailure::Hopeless(why.into()));
        }
        let throttle = self.throttle()?;
        let mut command = self.command(commands, &program, throttle.as_ref());
        command.envs(VARIABLES);
        match is_fio {
            true => command.arg("--output-format=json+"),
            false => command
                .arg("run")
                .arg("--output-format=json")
                .arg("--record")
                .arg(&record),
        };
        command.arg(&job_file);
        let output = commands.wait(&mut command, "the run", is_over)?;
        let outcome = match is_fio {
            true => of_fio(&output),
            false => of_fathom(
                &output,
                fs::read_to_string(&record).ok(),
                throttle.is_some(),
            ),
        };
        outcome.map_err(|failure| match failure {
            RunFailure::Failed(why) => RunFailure::Failed(without_place(&why, &job_file)),
            other => other,
        })
    }

    pub(super) fn program(&self) -> PathBuf {
        let program = self.text.run.program.as_ref().map(PathBuf::from);
        program.unwrap_or_else(|| self.fathom.to_owned())
    }

    pub(super) fn throttle(&self) -> Result<Option<Throttle>, RunFailure> {
        let Some(iops) = self.text.run.throttle_iops else {
            return Ok(None);
        };
        let Some(file) = self.text.file() else {
            let why = "throttle_iops: the job has no `filename`";
            return Err(RunFailure::Hopeless(why.into()));
        };
        let iops = u32::try_from(iops).unwrap_or(u32::MAX);
        let mut file = Path::new(&*file);
        if !file.exists() {
            // The run lays it out.
            let folder = file
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            file = folder.unwrap_or(Path::new("."));
        }
        let throttle = Throttle::new(file, iops);
        throttle
            .map(Some)
            .map_err(|error| RunFailure::Hopeless(format!("throttle_iops: {error}")))
    }

    /// Returns the command of a program, on its CPUs and in its control group.
    pub(super) fn command(
        &self,
        commands: &Commands<'_>,
        program: &Path,
        throttle: Option<&Throttle>,
    ) -> Command {
        let cpus = self.text.run.cpus.as_ref();
        let first = cpus.map_or(program, |_| Path::new("taskset"));
        let mut command = match throttle {
            Some(throttle) => throttle.command(first),
            None => Command::new(first),
        };
        if let Some(cpus) = cpus {
            command.args(["-c", cpus]).arg(program);
        }
        commands.equip(&mut command);
        // The lab records its runs itself.
        command.env_remove("FATHOM_HISTORY");
        command
    }
}

/// Reads the result of a run of `fathom`, whose device the lab may have limited.
fn of_fathom(output: &Output, record: Option<String>, is_limited: bool) -> RunOutcome {
    let failed = |why: String| RunFailure::Failed(why);
    let Some(text) = record.filter(|_| output.status.code().is_some_and(|code| code < 2)) else {
        return Err(failed(ended_badly(output)));
    };
    let record = Record::from_json(&text).map_err(|error| failed(error.to_string()))?;
    if let Some(job) = record.jobs.iter().find(|job| job.error != 0) {
        let why = job.error_text.as_deref().unwrap_or("an op failed");
        return Err(failed(format!("job `{}`: {why}", job.name)));
    }
    if !output.status.success() {
        return Err(failed(ended_badly(output)));
    }
    Ok(RunDone {
        disturbance: disturbance(&record, is_limited),
        ..RunDone::of_record(record)
    })
}

/// Reads the result of a run of fio.
fn of_fio(output: &Output) -> RunOutcome {
    if !output.status.success() {
        return Err(RunFailure::Failed(ended_badly(output)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let runs = import(&text).map_err(|error| RunFailure::Failed(error.to_string()))?;
    let Some(run) = runs.into_iter().next_back() else {
        return Err(RunFailure::Failed("fio printed no report".into()));
    };
    // Without histograms there is no record: percentiles of all repeats together are missing then.
    let record = run.run.record.as_deref().map(Record::from_json);
    let record = record.transpose();
    Ok(RunDone {
        record: record.map_err(|error| RunFailure::Failed(error.to_string()))?,
        program: crate::subject::program_of(&run.run.subject),
        measures: run.run.measures,
        ..RunDone::default()
    })
}

/// Returns why a program failed: its message, or else its exit status or signal. fio writes its
/// messages before the report.
fn ended_badly(output: &Output) -> String {
    let is_message = |text: &&[u8]| !text.trim_ascii().is_empty() && !text.starts_with(b"{");
    let mut texts = [&output.stderr[..], &output.stdout[..]].into_iter();
    match texts.find(is_message) {
        Some(text) => first_line(text),
        None => format!("the program ended with {}", output.status),
    }
}

/// Removes the place in a job file that the user never sees from a message.
fn without_place(message: &str, job_file: &Path) -> String {
    let prefix = format!("{}:", job_file.display());
    let Some((before, place)) = message.split_once(&prefix) else {
        return message.to_owned();
    };
    let is_place = |c: char| c.is_ascii_digit() || c == ':' || c == ' ';
    format!("{before}{}", place.trim_start_matches(is_place))
}

/// Returns the events on the machine that may have changed a run's numbers. A limit on the device
/// that the lab has set itself is none.
fn disturbance(record: &Record, is_limited: bool) -> Option<String> {
    let counts = |one: &&Validity| one.job.is_empty() && !(is_limited && one.check == LIMIT);
    let checks = record.validity.iter().filter(|check| !check.ok);
    let failed = checks.filter(counts);
    let sentences: Vec<&str> = failed.map(|check| check.sentence.as_str()).collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// Check of a limit on the I/O to the run's devices.
const LIMIT: &str = "io_limit";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_do_not_name_the_generated_job_file() {
        let file = Path::new("/tmp/lab/run.fio");
        let message = "/tmp/lab/run.fio:2:10: job `a`: /dev/loop0: will not be written";
        let shown = without_place(message, file);
        assert_eq!(shown, "job `a`: /dev/loop0: will not be written");
        assert_eq!(without_place("no space left", file), "no space left");
    }

    #[test]
    fn a_limit_of_the_lab_disturbs_nothing() {
        let failed = |name: &str| Validity {
            check: name.into(),
            sentence: name.into(),
            ..Validity::default()
        };
        let record = Record {
            validity: vec![failed(LIMIT), failed("stolen_time")],
            ..Record::default()
        };
        assert_eq!(disturbance(&record, true).as_deref(), Some("stolen_time"));
        let both = "io_limit; stolen_time";
        assert_eq!(disturbance(&record, false).as_deref(), Some(both));
    }
}
