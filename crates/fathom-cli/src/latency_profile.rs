//! `--save-distribution FILE`: the latencies of a run, as a machine file for `--machine`.

use anyhow::{Context, Result, anyhow};
use fathom_host::output_file::Stop;
use fathom_job::{Plan, Settings};
use fathom_record::Record;
use fathom_setup::RunError;
use fathom_virtual::{MachineModel, distribution_file, refuse_without_histograms};

use crate::failure::{NoReport, with_hint};
use crate::output::Data;

/// Checks before a long run that the file, if requested, can be written, and that the jobs keep
/// their latencies.
pub(crate) fn check(plan: &Plan, settings: &Settings) -> Result<(), NoReport> {
    let Some(file) = file(settings) else {
        return Ok(());
    };
    file.check().map_err(NoReport::NotReported)?;
    refuse_without_histograms(plan).map_err(NoReport::Refused)
}

/// Writes the file, if requested; `machine` is the modelled machine of a run in virtual time.
pub(crate) fn save(
    plan: &Plan,
    settings: &Settings,
    machine: Option<&MachineModel>,
    record: &Record,
    stop: &Stop,
) -> Result<()> {
    let Some(mut file) = file(settings) else {
        return Ok(());
    };
    let text = distribution_file(plan, machine, record).map_err(|error| nothing_to_save(&error))?;
    file.stop_when(stop);
    let written = file.add(&text).and_then(|()| file.finish());
    written.context("cannot save the latencies")
}

/// Returns the reasons why the record of a run has no latencies, for a run that was reported.
fn nothing_to_save(error: &RunError) -> anyhow::Error {
    let told = error.problems.iter().map(|problem| {
        let job = match problem.job.as_str() {
            "" => String::new(),
            job => format!("job `{job}`: "),
        };
        let hint = problem.hint.as_deref();
        with_hint(format!("{job}{}", problem.message), hint).to_string()
    });
    anyhow!(told.collect::<Vec<_>>().join("\n"))
}

fn file(settings: &Settings) -> Option<Data> {
    let path = settings.save_distribution.as_deref()?;
    Some(Data::file(OPTION, path))
}

const OPTION: &str = "--save-distribution";
