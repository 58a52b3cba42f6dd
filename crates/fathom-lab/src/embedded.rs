//! Lab files in the program: what `fathom table` measures on this machine.
//!
//! ```text
//! lab file ─► options of the table ─► runs, kept in memory ─► view: the table's own columns
//! ```
//!
//! A table shows figures and judges none, so a run that lacks a metric does not fail.

mod files;
mod kept_runs;
mod measured;

use std::path::{Path, PathBuf};

use fathom_job::{Environment, file_names};

use crate::announced::announced;
use crate::error::LabError;
use crate::lab::{Real, run_lab};
use crate::lab_plan::{LabPlan, Repeats, Setting, Stop, Subject, Target, job_plan};
use crate::order::Slot;

use files::text_of;
use kept_runs::KeptRuns;
pub(crate) use measured::{Measured, value, whole};

/// Surroundings of a table's runs.
pub struct TableContext<'a> {
    /// Engines and machine.
    pub environment: &'a dyn Environment,
    /// Path of this program.
    pub fathom: PathBuf,
    /// Called with the name of each run before it begins.
    pub tell: &'a mut dyn FnMut(&str),
    /// Returns the number of interrupts so far.
    pub stops: &'a dyn Fn() -> u32,
}

/// Experiment of an embedded lab file.
pub(crate) struct EmbeddedLab {
    pub(crate) plan: LabPlan,
}

impl EmbeddedLab {
    /// Reads the lab file of this name, with the values that it asks for. It is to run once.
    pub(crate) fn read(
        name: &str,
        arguments: &[(&str, &Path)],
        environment: &dyn Environment,
    ) -> Result<Self, LabError> {
        let file = format!("{name}.toml");
        let text = text_of(&file).unwrap_or_default();
        let value = |(name, path): &(&str, &Path)| match path.to_str() {
            Some(path) => Ok(((*name).to_owned(), path.to_owned())),
            None => Err(LabError::Lab(format!("{}: not UTF-8", path.display()))),
        };
        let arguments: Vec<_> = arguments.iter().map(value).collect::<Result<_, _>>()?;
        let plan = LabPlan::parse(&file, text, &arguments, &files::Files(environment));
        let mut plan = plan.map_err(|problems| {
            let first = problems.into_iter().next();
            LabError::Lab(first.map_or_else(String::new, |problem| problem.message))
        })?;
        if let Some(why) = stray_file(&plan, &arguments, environment) {
            return Err(LabError::Lab(why));
        }
        plan.judge.metrics.clear();
        let mut lab = Self { plan };
        lab.repeat(1);
        Ok(lab)
    }

    /// Sets the number of repeats.
    pub(crate) const fn repeat(&mut self, repeats: u32) {
        self.plan.judge.repeats = Repeats {
            min: repeats,
            max: repeats,
            stop: Stop::Never,
        };
    }

    /// Sets an option of the jobs, or an argument of `fathom peak`.
    pub(crate) fn set(&mut self, key: &str, value: &str) {
        let (target, settings) = match &mut self.plan.subject {
            Subject::Job(job) => (Target::Job, &mut job.settings),
            Subject::Peak(settings) => (Target::Peak, settings),
        };
        settings.retain(|setting| setting.key != key);
        settings.push(Setting {
            target,
            ..Setting::of_job(key, value)
        });
    }

    /// Runs it.
    ///
    /// # Errors
    /// No run could be started, or none succeeded.
    pub(crate) fn run(self, context: &mut TableContext<'_>) -> Result<Measured, LabError> {
        let mut executor = Real::new(
            &self.plan,
            context.fathom.clone(),
            context.environment,
            context.stops,
        )
        .map_err(LabError::Lab)?;
        let runs = self.runs();
        (context.tell)(&announced(runs, self.seconds(), 0));
        let mut begun = 0;
        let mut kept = KeptRuns {
            runs: Vec::new(),
            tell: &mut |slot| {
                // A repeat that is done again is not one more.
                begun = (begun + 1).min(runs);
                (context.tell)(&format!("{begun} of {runs}: {}", self.name_of(slot)));
            },
        };
        let outcome = run_lab(&self.plan, &mut executor, &mut kept, &mut |_| {});
        let outcome = outcome.map_err(|error| LabError::Lab(error.to_string()))?;
        let runs = kept.runs;
        drop(executor);
        let cells = outcome.results.cells.into_iter();
        let measured = Measured {
            plan: self.plan,
            runs,
            failures: cells.map(|cell| cell.failure).collect(),
            is_interrupted: outcome.is_interrupted,
        };
        match measured.failures.iter().flatten().next() {
            Some(why) if measured.runs.is_empty() => Err(LabError::Lab(why.clone())),
            _ => Ok(measured),
        }
    }

    /// Returns the number of runs.
    fn runs(&self) -> u64 {
        self.plan.runs(self.plan.judge.repeats.max)
    }

    /// Returns the length of a run, in seconds, as `set`.
    fn seconds(&self) -> u64 {
        let (key, settings) = match &self.plan.subject {
            Subject::Job(job) => ("runtime", &job.settings),
            Subject::Peak(settings) => ("seconds", settings),
        };
        let set = settings.iter().find(|setting| setting.key == key);
        set.map_or(0, |set| set.value.parse().unwrap_or(0))
    }

    /// Returns the name of a run for people.
    fn name_of(&self, slot: &Slot) -> String {
        let mut parts = Vec::new();
        let cell = &self.plan.cells[slot.cell].label;
        let variant = &self.plan.variants[slot.variant].name;
        parts.extend([cell, variant].into_iter().filter(|part| !part.is_empty()));
        let name = parts.into_iter().cloned().collect::<Vec<_>>().join(", ");
        match self.plan.judge.repeats.max {
            1 => name,
            repeats => format!("{name} ({} of {repeats})", slot.repeat + 1),
        }
    }
}

/// Returns a sentence about the first file that the jobs have outside of the paths that were given:
/// the job language reads some letters of a path as something else.
fn stray_file(
    plan: &LabPlan,
    paths: &[(String, String)],
    environment: &dyn Environment,
) -> Option<String> {
    let is_given = |name: &str| {
        paths
            .iter()
            .any(|(_, path)| Path::new(name).starts_with(path))
    };
    let runs = (0..plan.cells.len())
        .flat_map(|cell| (0..plan.variants.len()).map(move |variant| (cell, variant)));
    for (cell, variant) in runs {
        let job = plan.run_of(cell, variant, 0).job.unwrap_or_default();
        let jobs = job_plan(environment, &plan.file, &job).unwrap_or_default();
        let mut names = jobs.jobs.iter().flat_map(|job| file_names(job, 0));
        if let Some(name) = names.find(|name| !is_given(name)) {
            let paths: Vec<&str> = paths.iter().map(|(_, path)| path.as_str()).collect();
            return Some(format!(
                "{}: cannot be named in a job file, where it is read as {name}; use another path, \
                 without `:` and `$`",
                paths.join(", ")
            ));
        }
    }
    None
}

#[cfg(test)]
pub(crate) mod tests;
