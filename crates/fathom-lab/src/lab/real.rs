//! Runs on this machine, each in a process of its own: memory layout varies from run to run, too.

mod peak;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fathom_core::Nanos;
use fathom_record::Record;
use fathom_sys::child::{Ended, output_unless};
use fathom_sys::clock::{self, Clock};

use super::executor::{Executor, Repeat, RunDone, RunFailure, RunOutcome, RunStep};
use crate::import::import;
use crate::lab_plan::{LabPlan, RunText};
use crate::order::Slot;
use crate::throttle::Throttle;
use crate::work_folder::WorkFolder;

/// Executor of runs on this machine.
pub struct Real<'a> {
    plan: &'a LabPlan,
    /// This program.
    fathom: PathBuf,
    folder: WorkFolder,
    stops: &'a dyn Fn() -> u32,
    clock: Clock,
}

impl<'a> Real<'a> {
    /// Creates an executor; `fathom` is the program to run, unless the lab names another one.
    ///
    /// # Errors
    /// There is no room for the files of a run.
    pub fn new(
        plan: &'a LabPlan,
        fathom: PathBuf,
        stops: &'a dyn Fn() -> u32,
    ) -> Result<Self, String> {
        Ok(Self {
            plan,
            fathom,
            folder: WorkFolder::new("fathom-lab-").map_err(|error| error.to_string())?,
            stops,
            clock: Clock::monotonic(),
        })
    }

    fn run(&self, slot: &Slot) -> RunOutcome {
        let text = self.plan.run_of_slot(slot);
        self.pause(text.run.pause)?;
        if text.run.drop_caches {
            drop_caches()?;
        }
        for command in &text.run.before {
            self.shell(command, &text)?;
        }
        let from = self.clock.now();
        let done = self.measure(&text);
        let wall_ms = (self.clock.now() - from).get() / 1_000_000;
        // Even after a failure: a mount has to go.
        for command in &text.run.after {
            self.shell(command, &text)?;
        }
        done.map(|done| RunDone { wall_ms, ..done })
    }

    /// Runs the job and reads what it leaves.
    fn measure(&self, text: &RunText) -> RunOutcome {
        if let Some(peak) = &text.peak {
            return self.measure_peak(text, peak);
        }
        let Some(job) = &text.job else {
            return Err(RunFailure::Hopeless("the run has no job".into()));
        };
        let path = |name: &str| self.folder.path().join(name);
        let (job_file, record) = (path("run.fio"), path("record.json"));
        fs::write(&job_file, job).map_err(|error| {
            RunFailure::Failed(format!("cannot write {}: {error}", job_file.display()))
        })?;
        let _none_of_before = fs::remove_file(&record);
        let program = text.run.program.as_ref().map(PathBuf::from);
        let program = program.unwrap_or_else(|| self.fathom.clone());
        let is_fio = program.file_name().is_some_and(|name| name == "fio");
        let throttle = self.throttle(text)?;
        let mut command = command(&program, text, throttle.as_ref());
        match is_fio {
            true => command.arg("--output-format=json+"),
            false => command
                .arg("run")
                .arg("--output-format=json")
                .arg("--record")
                .arg(&record),
        };
        command.arg(&job_file);
        let output = self.wait(&mut command, text)?;
        if is_fio {
            return of_fio(&output);
        }
        of_fathom(&output, fs::read_to_string(&record).ok())
    }

    fn throttle(&self, text: &RunText) -> Result<Option<Throttle>, RunFailure> {
        let Some(iops) = text.run.throttle_iops else {
            return Ok(None);
        };
        let Some(file) = text.file() else {
            let why = "throttle_iops: the job has no `filename`";
            return Err(RunFailure::Hopeless(why.into()));
        };
        let iops = u32::try_from(iops).unwrap_or(u32::MAX);
        let throttle = Throttle::new(Path::new(file), iops);
        throttle
            .map(Some)
            .map_err(|error| RunFailure::Hopeless(format!("throttle_iops: {error}")))
    }

    /// Waits for a command until it ends, the user stops the lab, or its time is up.
    fn wait(&self, command: &mut Command, text: &RunText) -> Result<Output, RunFailure> {
        let from = self.clock.now();
        let is_late = || {
            let taken = self.clock.now() - from;
            text.run.timeout.is_some_and(|timeout| taken > timeout)
        };
        let ended = output_unless(command, &|| (self.stops)() > 0 || is_late());
        let ended = ended.map_err(|error| {
            let program = command.get_program().display();
            RunFailure::Hopeless(format!("cannot run {program}: {error}"))
        })?;
        match ended {
            Ended::ByItself(_) | Ended::Stopped if (self.stops)() > 0 => {
                Err(RunFailure::Interrupted)
            }
            Ended::ByItself(output) => Ok(output),
            Ended::Stopped => Err(RunFailure::Failed(
                "the run did not end within `timeout`".into(),
            )),
        }
    }

    fn shell(&self, line: &str, text: &RunText) -> Result<(), RunFailure> {
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .envs(text.run.env.iter().cloned());
        let output = self.wait(&mut command, text)?;
        if output.status.success() {
            return Ok(());
        }
        let why = first_line(&output.stderr);
        Err(RunFailure::Failed(format!("`{line}` failed: {why}")))
    }

    fn pause(&self, pause: Nanos) -> Result<(), RunFailure> {
        let until = self.clock.now() + pause;
        while self.clock.now() < until && (self.stops)() == 0 {
            clock::sleep((until - self.clock.now()).min(STEP));
        }
        match (self.stops)() {
            0 => Ok(()),
            _ => Err(RunFailure::Interrupted),
        }
    }
}

impl Executor for Real<'_> {
    fn prepare(&mut self, job: String) -> RunOutcome {
        self.measure(&RunText {
            job: Some(job),
            ..RunText::default()
        })
    }

    fn execute(&mut self, repeats: &[Repeat], watch: &mut dyn FnMut(&Slot, RunStep)) {
        for repeat in repeats {
            for slot in &repeat.slots {
                watch(slot, RunStep::Begins);
                let outcome = self.run(slot);
                let is_error = outcome.is_err();
                let is_end = matches!(outcome, Err(RunFailure::Interrupted));
                watch(slot, RunStep::Ended(Box::new(outcome)));
                if is_end {
                    return;
                }
                if is_error {
                    break;
                }
            }
        }
    }
}

/// Returns the command of a program, in its environment.
fn command(program: &Path, text: &RunText, throttle: Option<&Throttle>) -> Command {
    let (first, cpus): (&Path, Vec<&str>) = match &text.run.cpus {
        Some(cpus) => (Path::new("taskset"), vec!["-c", cpus]),
        None => (program, Vec::new()),
    };
    let mut command = match throttle {
        Some(throttle) => throttle.command(first),
        None => Command::new(first),
    };
    if text.run.cpus.is_some() {
        command.args(cpus).arg(program);
    }
    command.envs(text.run.env.iter().cloned());
    // The lab records its runs itself.
    command.env_remove("FATHOM_HISTORY");
    command
}

/// Reads the result of a run of `fathom`.
fn of_fathom(output: &Output, record: Option<String>) -> RunOutcome {
    let failed = |why: String| RunFailure::Failed(why);
    let Some(text) = record.filter(|_| output.status.code().is_some_and(|code| code < 2)) else {
        return Err(failed(first_line(&output.stderr)));
    };
    let record = Record::from_json(&text).map_err(|error| failed(error.to_string()))?;
    if let Some(job) = record.jobs.iter().find(|job| job.error != 0) {
        let why = job.error_text.as_deref().unwrap_or("an op failed");
        return Err(failed(format!("job `{}`: {why}", job.name)));
    }
    if !output.status.success() {
        return Err(failed(first_line(&output.stderr)));
    }
    Ok(RunDone {
        disturbance: disturbance(&record),
        ..RunDone::of_record(record)
    })
}

/// Reads the result of a run of fio.
fn of_fio(output: &Output) -> RunOutcome {
    if !output.status.success() {
        return Err(RunFailure::Failed(first_line(&output.stderr)));
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

/// Returns the events on the machine that may have changed a run's numbers.
fn disturbance(record: &Record) -> Option<String> {
    let checks = record.validity.iter();
    let failed = checks.filter(|check| !check.ok && check.job.is_empty());
    let sentences: Vec<&str> = failed.map(|check| check.sentence.as_str()).collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// Writes back what is dirty and empties the page cache.
fn drop_caches() -> Result<(), RunFailure> {
    let synced = Command::new("sync").status();
    let dropped = synced.and_then(|_| fs::write("/proc/sys/vm/drop_caches", "3"));
    dropped.map_err(|error| RunFailure::Hopeless(format!("drop_caches: {error}")))
}

/// Returns the first line of an error output, without the program's name.
fn first_line(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or("it exited with an error");
    line.strip_prefix("fathom: ").unwrap_or(line).to_owned()
}

/// Longest sleep after which a stop request is noticed.
const STEP: Nanos = Nanos::new(50_000_000);
