//! `--save-distribution FILE`: the latencies of a run, as a machine file for `--machine`.

use anyhow::{Context, Result};
use fathom_host::output_file::Stop;
use fathom_job::{Plan, Settings};
use fathom_record::Record;
use fathom_virtual::{MachineModel, distribution_file};

use crate::failure::NoReport;
use crate::output::Data;

/// Checks before a long run that the file, if requested, can be written.
pub(crate) fn check(settings: &Settings) -> Result<()> {
    file(settings).map_or(Ok(()), |file| file.check())
}

/// Writes the file, if requested; `machine` is the modelled machine of a run in virtual time.
pub(crate) fn save(
    plan: &Plan,
    settings: &Settings,
    machine: Option<&MachineModel>,
    record: &Record,
    stop: &Stop,
) -> Result<(), NoReport> {
    let Some(mut file) = file(settings) else {
        return Ok(());
    };
    let text = distribution_file(plan, machine, record).map_err(NoReport::Refused)?;
    file.stop_when(stop);
    let written = file.add(&text).and_then(|()| file.finish());
    written
        .context("cannot save the latencies")
        .map_err(NoReport::NotReported)
}

fn file(settings: &Settings) -> Option<Data> {
    let path = settings.save_distribution.as_deref()?;
    Some(Data::file(OPTION, path))
}

const OPTION: &str = "--save-distribution";
