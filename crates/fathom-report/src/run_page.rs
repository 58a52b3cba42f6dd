//! The page of a run.
//!
//! From top to bottom: what to know about the numbers, tables, figures, the machine and the job,
//! all numbers as JSON. Percentiles of single windows are in the figures alone.

mod devices;
mod figures;
mod heat;
mod priorities;
mod tables;

use fathom_record::Record;

use crate::document;
use crate::group::reported_jobs;
use crate::log_page::{LogReduction, add_logs};
use crate::page::Page;

/// Returns the page of a run. `name` is that of the record's file, for the title.
#[must_use]
pub fn run_page(record: &Record, name: &str) -> Page {
    run_page_with_logs(record, name, None)
}

/// Returns the page of a run and of its I/O logs.
#[must_use]
pub fn run_page_with_logs(record: &Record, name: &str, logs: Option<&LogReduction>) -> Page {
    let mut page = Page::new(name);
    page.paragraph(&origin(record));
    caveats(&mut page, record);
    let jobs = reported_jobs(record);
    tables::results(&mut page, &jobs);
    figures::percentiles(&mut page, &jobs);
    figures::shares(&mut page, &jobs);
    priorities::priorities(&mut page, &jobs);
    figures::course(&mut page, record);
    tables::stalls(&mut page, &jobs);
    devices::disks(&mut page, record);
    devices::seeks(&mut page, record);
    match logs {
        Some(logs) => add_logs(&mut page, logs),
        None => devices::logged_offsets(&mut page, record),
    }
    tables::machine(&mut page, record);
    tables::jobs(&mut page, record);
    page.details("All numbers, as JSON", &document::json(record, false));
    page
}

/// Returns the time and the place of the run.
fn origin(record: &Record) -> String {
    let place = match (&record.modelled, &record.machine) {
        (Some(model), _) => format!("modelled on {}, in virtual time", model.file),
        (None, Some(machine)) => format!("measured on {}, {}", machine.cpu, machine.kernel),
        (None, None) => "measured".into(),
    };
    format!("{}, {place}", record.time)
}

/// Writes failed checks and warnings, each with its hint.
fn caveats(page: &mut Page, record: &Record) {
    let failed = record.validity.iter().filter(|check| !check.ok);
    let failed = failed.map(|check| (&check.job, &check.sentence, ""));
    let warnings = record.warnings.iter();
    let warnings = warnings.map(|one| (&one.job, &one.message, one.hint.as_str()));
    let all = failed.chain(warnings).map(|(job, sentence, hint)| {
        let job = if job.is_empty() {
            String::new()
        } else {
            format!("{}: ", tables::named(job))
        };
        let hint = if hint.is_empty() {
            String::new()
        } else {
            format!(" Hint: {hint}")
        };
        format!("{job}{sentence}{hint}")
    });
    let all: Vec<String> = all.collect();
    page.heading(2, "What to know about these numbers");
    if all.is_empty() && record.validity.is_empty() {
        page.paragraph("The record has no checks of the run, and no warning.");
    } else if all.is_empty() {
        page.paragraph("All checks of this run passed, and it gave no warning.");
    } else {
        let shown = all.len().min(CAVEATS_MAX);
        page.list("caveats", &all[..shown]);
        if all.len() > shown {
            let left = all.len() - shown;
            page.paragraph(&format!("{left} more are in the numbers below."));
        }
    }
}

/// Most warnings and failed checks above the numbers.
const CAVEATS_MAX: usize = 100;

#[cfg(test)]
mod tests;
