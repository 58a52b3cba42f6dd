//! Runs on this machine, each in a process of its own: memory layout varies from run to run, too.

mod commands;
mod measured;
mod peak;
mod service_process;
mod services;
mod stats;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_job::Environment;
use fathom_run::SchedulerGuard;
use fathom_sys::child::guard_commands;
use fathom_sys::clock::Clock;
use fathom_sys::system;

use self::commands::{Commands, search_path};
use self::measured::Measured;
use self::services::Services;
use super::executor::{Boot, Executor, Repeat, RunDone, RunFailure, RunOutcome, RunStep};
use crate::lab_plan::{LabPlan, Precondition, RunText};
use crate::order::Slot;
use crate::work_folder::WorkFolder;

/// Executor of runs on this machine. Whatever it started ends with this process, also if that is
/// killed.
pub struct Real<'a> {
    plan: &'a LabPlan,
    /// This program.
    fathom: PathBuf,
    environment: &'a dyn Environment,
    search_path: OsString,
    folder: WorkFolder,
    stops: &'a dyn Fn() -> u32,
    clock: Clock,
}

impl<'a> Real<'a> {
    /// Creates an executor; `fathom` is the program to run, unless the lab names another one.
    ///
    /// # Errors
    /// There is no room for the files of a run, or no process can be started.
    pub fn new(
        plan: &'a LabPlan,
        fathom: PathBuf,
        environment: &'a dyn Environment,
        stops: &'a dyn Fn() -> u32,
    ) -> Result<Self, String> {
        guard_commands().map_err(|error| format!("sh: {error}"))?;
        Ok(Self {
            plan,
            search_path: search_path(&fathom),
            fathom,
            environment,
            folder: WorkFolder::new("fathom-lab-").map_err(|error| error.to_string())?,
            stops,
            clock: Clock::monotonic(),
        })
    }

    fn run(&self, slot: &Slot) -> RunOutcome {
        let text = self.plan.run_of_slot(slot);
        let commands = self.commands(&text);
        commands.pause(text.run.pause)?;
        let from = self.clock.now();
        if text.run.drop_caches {
            drop_caches()?;
        }
        let schedulers = schedulers(&text)?;
        let before = || text.run.before.iter();
        let prepared = before().try_for_each(|line| commands.execute(line));
        let done = prepared.and_then(|()| self.beside_services(&text, &commands));
        // Whatever happened: a mount has to go.
        let mut after = Ok(());
        for line in &text.run.after {
            after = after.and(commands.execute_always(line));
        }
        drop(schedulers);
        let wall_ms = (self.clock.now() - from).get() / 1_000_000;
        // The first failure is the cause.
        let done = done.and_then(|done| after.map(|()| done))?;
        Ok(RunDone { wall_ms, ..done })
    }

    /// Starts the services, runs the job and asks the services for their numbers.
    fn beside_services(&self, text: &RunText, commands: &Commands<'_>) -> RunOutcome {
        let measured = self.measured(text);
        let services = Services::start(&text.services, commands)?;
        let outcome = measured.run(commands, &|| services.is_one_over());
        let outcome = services.judge(outcome).and_then(|mut done| {
            done.measures.extend(services.measures(commands)?);
            Ok(done)
        });
        services.stop();
        outcome
    }

    const fn commands<'b>(&'b self, text: &'b RunText) -> Commands<'b> {
        Commands {
            run: &text.run,
            search_path: &self.search_path,
            stops: self.stops,
            clock: &self.clock,
        }
    }

    fn measured<'b>(&'b self, text: &'b RunText) -> Measured<'b> {
        Measured {
            fathom: &self.fathom,
            folder: self.folder.path(),
            text,
            writes: &self.plan.writes,
        }
    }
}

impl Executor for Real<'_> {
    fn boot(&self) -> Result<Boot, String> {
        let id = fs::read_to_string(BOOT_ID).map_err(|error| format!("{BOOT_ID}: {error}"))?;
        Ok(Boot {
            id: id.trim().into(),
            kernel: system::kernel().release,
        })
    }

    fn prepare(&mut self, job: &str, file: &str) -> RunOutcome {
        if let Some(why) = Precondition::other_file_of(self.environment, job, file) {
            return Err(RunFailure::Hopeless(why));
        }
        let text = RunText {
            job: Some(job.to_owned()),
            ..RunText::default()
        };
        self.measured(&text).run(&self.commands(&text), &|| false)
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

/// Sets the scheduler of a job that another program runs: those that are returned restore it. fio
/// leaves it as the job has it, and the next variant would run with it.
fn schedulers(text: &RunText) -> Result<Vec<SchedulerGuard>, RunFailure> {
    let scheduler = text
        .option("ioscheduler")
        .filter(|_| text.run.program.is_some());
    let (Some(scheduler), Some(files)) = (scheduler, text.file()) else {
        return Ok(Vec::new());
    };
    let set = |file: &str| {
        let mut guard = SchedulerGuard::under(Path::new(file));
        guard.set(&scheduler).map(|()| guard)
    };
    let guards = files.split(':').map(set).collect::<Result<_, _>>();
    guards.map_err(|error| RunFailure::Hopeless(format!("ioscheduler: {error}")))
}

/// Writes back what is dirty and empties the page cache.
fn drop_caches() -> Result<(), RunFailure> {
    let failed = |why: String| RunFailure::Hopeless(format!("drop_caches: {why}"));
    write_back(&mut Command::new("sync")).map_err(failed)?;
    fs::write(DROP_CACHES, "3").map_err(|error| failed(format!("{DROP_CACHES}: {error}")))
}

/// Runs a command that writes back what is dirty. Pages that it leaves would stay in the cache.
fn write_back(sync: &mut Command) -> Result<(), String> {
    let program = sync.get_program().to_string_lossy().into_owned();
    match sync.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program}: {status}")),
        Err(error) => Err(format!("{program}: {error}")),
    }
}

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_that_fails_is_no_sync() {
        assert_eq!(write_back(&mut Command::new("true")), Ok(()));
        let failed = write_back(&mut Command::new("false"));
        assert_eq!(failed, Err("false: exit status: 1".into()));
    }
}
