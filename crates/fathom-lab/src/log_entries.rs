//! Effect of an I/O log on the latencies it records: reads of two priorities with a log that grows,
//! a preallocated log, and Fathom's.

mod rows;

use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_run::SchedulerGuard;
use serde_json::Value;

use crate::command::output;
use crate::counted::counted;
use crate::error::{CommandError, LabError};
use crate::median::note;
use crate::readable;
use crate::table::{Experiment, Table};
use crate::work_folder::WorkFolder;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "log-entries",
    about: "completion latency with every op logged: libaio, random reads of 128 KiB at depth 32, \
            30 % of them at high priority",
    origin: "fio mailing list, \"Introduce the log_entries option\" (v2): a SATA disk with NCQ \
             priority",
    has_plot: true,
};

/// Parameters of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntries {
    /// Block device, or a file on one; only read.
    pub target: PathBuf,
    /// Duration per run.
    pub seconds: u32,
    /// Repeats of each run.
    pub repeats: u32,
    /// Path of this program.
    pub fathom: PathBuf,
    /// Path of fio, which may be missing.
    pub fio: PathBuf,
}

/// Runs the experiment. `tell` is called with the name of each run before it begins; `stops`
/// returns the number of interrupts so far.
///
/// # Errors
/// The target cannot be measured.
pub fn log_entries(
    config: &LogEntries,
    tell: &mut dyn FnMut(&str),
    stops: &dyn Fn() -> u32,
) -> Result<Table, LabError> {
    readable::check(&config.target)?;
    // Restores the scheduler on drop.
    let mut schedulers = SchedulerGuard::under(&config.target);
    schedulers.set(SCHEDULER)?;
    let folder = WorkFolder::new(NAME)?;
    let runs = runs(config);
    let mut perform = |at: usize, repeat: u32| {
        let (name, program, entries) = runs[at];
        tell(&format!("{name} ({repeat} of {})", config.repeats));
        run(config, program, entries, folder.path(), stops)
    };
    let mut notes = notes(config, &runs, stops);
    let measured = take_turns(config.repeats, &mut perform, stops, &mut notes)?;
    drop(schedulers);
    Ok(rows::table(&measured, notes))
}

/// One of the compared runs: name, program, `log_entries` if set.
type Run<'a> = (&'static str, &'a Path, Option<u32>);

fn runs(config: &LogEntries) -> [Run<'_>; PROGRAMS] {
    [
        (NAMES[0], &config.fio, Some(1024)),
        (NAMES[1], &config.fio, Some(65_536)),
        (NAMES[FATHOM], &config.fathom, None),
    ]
}

/// Performs all runs once, then all again, so that a change of the disk or its load affects all of
/// them. A run of fio that fails is not repeated.
fn take_turns(
    repeats: u32,
    perform: &mut dyn FnMut(usize, u32) -> Result<Value, CommandError>,
    stops: &dyn Fn() -> u32,
    notes: &mut Vec<String>,
) -> Result<[Vec<Value>; PROGRAMS], LabError> {
    let mut measured = [const { Vec::new() }; PROGRAMS];
    let mut has_failed = [false; PROGRAMS];
    for repeat in 1..=repeats {
        for (at, reports) in measured.iter_mut().enumerate() {
            if stops() > 0 || has_failed[at] {
                continue;
            }
            match perform(at, repeat) {
                Ok(report) => reports.push(report),
                Err(_) if stops() > 0 => {}
                Err(source) if at == FATHOM => {
                    let name = NAMES[at];
                    return Err(LabError::Run { name, source });
                }
                Err(why) => {
                    has_failed[at] = true;
                    notes.push(format!("{}: not measured: {why}", NAMES[at]));
                }
            }
        }
    }
    if stops() > 0 {
        notes.push("interrupted; the remaining runs are missing".into());
    }
    Ok(measured)
}

/// Returns the conditions, with the versions of both programs.
fn notes(config: &LogEntries, runs: &[Run<'_>], stops: &dyn Fn() -> u32) -> Vec<String> {
    let version = |program: &Path| {
        let mut command = Command::new(program);
        command.arg("--version");
        let printed = output(command, stops);
        printed.map(|text| text.lines().next().unwrap_or("of no version").to_owned())
    };
    let ours = version(runs[FATHOM].1).unwrap_or_else(|_| "fathom".into());
    let mut notes = vec![format!(
        "measured: {}, {SCHEDULER}, {} of {} s of each in turn",
        config.target.display(),
        counted(config.repeats, "repeat"),
        config.seconds,
    )];
    notes.push(match version(runs[0].1) {
        Ok(fio) => format!(
            "{fio}, from PATH, and {ours}; the published figures are of another version of fio"
        ),
        Err(why) => format!(
            "fio is not measured: {}: {why}; {ours}",
            runs[0].1.display()
        ),
    });
    notes.push(note(config.repeats));
    notes
}

/// Performs one run and returns its report.
fn run(
    config: &LogEntries,
    program: &Path,
    entries: Option<u32>,
    folder: &Path,
    stops: &dyn Fn() -> u32,
) -> Result<Value, CommandError> {
    let mut command = Command::new(program);
    if program == config.fathom {
        command.arg("run");
    }
    let log = folder.join("log");
    command.args(JOB);
    command.arg(format!("--filename={}", config.target.display()));
    command.arg(format!("--ioscheduler={SCHEDULER}"));
    command.arg(format!("--runtime={}", config.seconds));
    command.arg(format!("--write_lat_log={}", log.display()));
    command.arg(format!("--percentile_list={}", rows::percents().join(":")));
    command.args(entries.map(|entries| format!("--log_entries={entries}")));
    let text = output(command, stops)?;
    // fio may print a note before the document.
    let from = text.find('{').unwrap_or(0);
    serde_json::from_str(&text[from..]).map_err(CommandError::NotJson)
}

/// Prefix of directory names, followed by a number.
const NAME: &str = "fathom-log-entries-";

/// Options of both programs.
const JOB: [&str; 12] = [
    "--name=log-entries",
    "--rw=randread",
    "--bs=128k",
    "--direct=1",
    "--ioengine=libaio",
    "--iodepth=32",
    "--cmdprio_percentage=30",
    "--log_prio=1",
    "--time_based",
    "--readonly",
    "--thread",
    "--output-format=json",
];

/// Scheduler that honours I/O priorities.
const SCHEDULER: &str = "mq-deadline";

/// Names of the compared runs.
const NAMES: [&str; PROGRAMS] = [
    "fio with log_entries=1024",
    "fio with log_entries=65536",
    "fathom",
];
const PROGRAMS: usize = 3;
/// Fathom's place among them.
const FATHOM: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_take_turns() {
        let mut order = Vec::new();
        let mut notes = Vec::new();
        let mut perform = |at: usize, repeat: u32| {
            order.push((repeat, at));
            Ok(Value::from(repeat))
        };
        let measured = take_turns(2, &mut perform, &|| 0, &mut notes).unwrap();
        assert_eq!(order, [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]);
        assert!(measured.iter().all(|reports| *reports == [1, 2]));
        assert!(notes.is_empty());
    }

    #[test]
    fn without_fio_the_table_has_fathom_alone() {
        let mut tries = [0; PROGRAMS];
        let mut notes = Vec::new();
        let mut perform = |at: usize, _: u32| {
            tries[at] += 1;
            match at {
                FATHOM => Ok(Value::Null),
                _ => Err(CommandError::Failed("no such program".into())),
            }
        };
        let measured = take_turns(3, &mut perform, &|| 0, &mut notes).unwrap();
        assert_eq!(measured.map(|reports| reports.len()), [0, 0, 3]);
        assert_eq!(tries, [1, 1, 3]);
        assert_eq!(notes.len(), 2, "{notes:?}");
        let mut fails = |_: usize, _: u32| Err(CommandError::Failed("gone".into()));
        take_turns(3, &mut fails, &|| 0, &mut Vec::new()).unwrap_err();
    }

    #[test]
    fn a_missing_fio_is_named() {
        let config = LogEntries {
            target: "/dev/null".into(),
            seconds: 1,
            repeats: 5,
            fathom: "/nowhere/fathom".into(),
            fio: "/nowhere/fio".into(),
        };
        let notes = notes(&config, &runs(&config), &|| 0);
        assert!(
            notes[1].starts_with("fio is not measured: /nowhere/fio: "),
            "{notes:?}"
        );
        assert!(notes[2].contains("largest of the repeats"), "{notes:?}");
    }
}
