//! View of the lab `log-entries`, the effect of an I/O log on the latencies it records: reads of
//! two priorities with a log that grows, a preallocated log, and Fathom's.

mod rows;

use std::path::PathBuf;

use fathom_run::SchedulerGuard;

use crate::counted::counted;
use crate::embedded::{EmbeddedLab, Measured, TableContext};
use crate::error::LabError;
use crate::installed_fio::{InstalledFio, version};
use crate::lab::RunDone;
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
}

/// Runs the experiment, without fio if that is missing or fails.
///
/// # Errors
/// The target cannot be measured.
pub fn log_entries(asked: &LogEntries, context: &mut TableContext<'_>) -> Result<Table, LabError> {
    readable::check(&asked.target)?;
    // Restores the scheduler on drop, which fio does not.
    let mut schedulers = SchedulerGuard::under(&asked.target);
    schedulers.set(SCHEDULER)?;
    let folder = WorkFolder::new(NAME)?;
    let read = |context: &TableContext<'_>, fio: Option<&InstalledFio>| -> Result<_, LabError> {
        let lab = lab(asked, &folder, context)?;
        Ok(match fio {
            Some(fio) => with_fio(lab, fio),
            None => without_fio(lab),
        })
    };
    let fio = InstalledFio::find(&context.fathom, context.stops);
    let mut notes = vec![conditions(asked), versions(&fio, context)];
    notes.push(note(asked.repeats));
    let fio = fio.ok();
    let measured = match read(context, fio.as_ref())?.run(context) {
        Err(why) if fio.is_some() && (context.stops)() == 0 => {
            notes.push(format!("fio is not measured: {why}"));
            read(context, None)?.run(context)?
        }
        measured => measured?,
    };
    drop(schedulers);
    notes.extend(measured.notes());
    Ok(rows::table(&by_program(&measured), notes))
}

/// Reads the lab, with its logs in a folder of their own.
fn lab(
    asked: &LogEntries,
    folder: &WorkFolder,
    context: &TableContext<'_>,
) -> Result<EmbeddedLab, LabError> {
    let arguments = [("DEV", asked.target.as_path())];
    let mut lab = EmbeddedLab::read(EXPERIMENT.name, &arguments, context.environment)?;
    lab.set("runtime", &asked.seconds.to_string());
    lab.set(
        "write_lat_log",
        &folder.path().join("log").to_string_lossy(),
    );
    // The folder goes as a whole.
    lab.plan.run.after.clear();
    lab.repeat(asked.repeats);
    Ok(lab)
}

/// Runs the variants of fio with this one.
fn with_fio(mut lab: EmbeddedLab, fio: &InstalledFio) -> EmbeddedLab {
    let variants = lab.plan.variants.iter_mut();
    let settings = variants.flat_map(|variant| &mut variant.settings);
    for setting in settings.filter(|setting| setting.key == "program") {
        setting.value = fio.path.to_string_lossy().into_owned();
    }
    lab
}

/// Leaves the variants of fio out.
fn without_fio(mut lab: EmbeddedLab) -> EmbeddedLab {
    lab.plan
        .variants
        .retain(|variant| variant.name == VARIANTS[FATHOM]);
    lab.plan.judge.baseline = 0;
    lab
}

/// Returns the runs of each program, repeat by repeat.
fn by_program(measured: &Measured) -> [Vec<&RunDone>; PROGRAMS] {
    VARIANTS.map(|name| {
        let mut variants = measured.plan.variants.iter();
        let at = variants.position(|variant| variant.name == name);
        at.map_or_else(Vec::new, |at| measured.of(0, at).collect())
    })
}

fn conditions(asked: &LogEntries) -> String {
    format!(
        "measured: {}, {SCHEDULER}, {} of {} s of each in turn",
        asked.target.display(),
        counted(asked.repeats, "repeat"),
        asked.seconds,
    )
}

/// Returns a note with the versions of both programs, or the reason why fio is not measured.
fn versions(fio: &Result<InstalledFio, String>, context: &TableContext<'_>) -> String {
    let ours = version(&context.fathom, context.stops).unwrap_or_else(|_| "fathom".into());
    match fio {
        Ok(fio) => format!(
            "{}, from {}, and {ours}; the published figures are of another version of fio",
            fio.version,
            fio.path.display()
        ),
        Err(why) => format!("fio is not measured: {why}; {ours}"),
    }
}

/// Prefix of directory names, followed by a number.
const NAME: &str = "fathom-log-entries-";

/// Scheduler that honours I/O priorities.
const SCHEDULER: &str = "mq-deadline";

/// Variants of the lab, in the order of the columns.
const VARIANTS: [&str; PROGRAMS] = ["growing", "preallocated", "fathom"];
const PROGRAMS: usize = 3;
/// Fathom's place among them.
const FATHOM: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::tests::{measured, read};

    fn lab() -> EmbeddedLab {
        read(EXPERIMENT.name, &[("DEV", "/dev/x")])
    }

    #[test]
    fn runs_are_those_of_their_columns() {
        let run = |name: &str| RunDone {
            program: Some(name.into()),
            ..RunDone::default()
        };
        let all = measured(lab(), &|_, variant| Some(run(["a", "b", "c"][variant])));
        let programs = by_program(&all).map(|runs| runs[0].program.clone().unwrap());
        assert_eq!(programs, ["a", "b", "c"]);
        let alone = measured(without_fio(lab()), &|_, _| Some(run("c")));
        assert_eq!(by_program(&alone).map(|runs| runs.len()), [0, 0, 1]);
    }

    #[test]
    fn programs_are_told_by_their_versions() {
        let context = TableContext {
            environment: &crate::lab_file::tests::Files::new(&[]),
            fathom: "/nowhere/fathom".into(),
            tell: &mut |_| {},
            stops: &|| 0,
        };
        let fio = InstalledFio {
            path: "/usr/bin/fio".into(),
            version: "fio-3.33".into(),
        };
        let programs = with_fio(lab(), &fio).plan.variants.into_iter();
        let programs = programs.flat_map(|variant| variant.settings);
        let programs = programs.filter(|setting| setting.key == "program");
        let programs: Vec<String> = programs.map(|setting| setting.value).collect();
        assert_eq!(programs, ["/usr/bin/fio", "/usr/bin/fio"]);
        let want = "fio-3.33, from /usr/bin/fio, and fathom; the published figures are of another \
                    version of fio";
        assert_eq!(versions(&Ok(fio), &context), want);
        let want = "fio is not measured: no fio in PATH; fathom";
        assert_eq!(versions(&Err("no fio in PATH".into()), &context), want);
        let asked = LogEntries {
            target: "/dev/x".into(),
            seconds: 2,
            repeats: 3,
        };
        let want = "measured: /dev/x, mq-deadline, 3 repeats of 2 s of each in turn";
        assert_eq!(conditions(&asked), want);
    }
}
