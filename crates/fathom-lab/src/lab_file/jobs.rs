//! Trial of the jobs: the job language reads what the runs will be given.

use std::collections::BTreeSet;
use std::io;

use fathom_core::EngineInfo;
use fathom_job::{Dialect, Environment, Origin, Severity, parse};
use fathom_toml::{TomlProblem, TomlProblemKind};

use super::reader::Reader;
use crate::lab_plan::{JobFile, JobText, LabPlan, LineOrigin, Setting, Subject, Target, job_with};

/// Notes everything that the job language refuses, at its place in the lab file.
///
/// Each value of each axis is tried once, and each variant, on the first cell: trying all cells
/// would take minutes where there are many, and options that only clash in one are refused by its
/// run.
pub(super) fn check(reader: &Reader<'_>, plan: &LabPlan) {
    let Subject::Job(job) = &plan.subject else {
        return;
    };
    let mut told = BTreeSet::new();
    for settings in trials(plan) {
        for problem in problems(reader, job, &settings) {
            let place = (problem.origin.file.clone(), problem.origin.line);
            if told.insert((place, problem.message.clone())) {
                reader.source.push(problem);
            }
        }
    }
}

/// Returns the settings of cells and variants such that each value is in one of them.
pub(super) fn trials(plan: &LabPlan) -> Vec<Vec<&Setting>> {
    let mut cells = BTreeSet::from([0]);
    let mut stride = plan.cells.len();
    for axis in &plan.axes {
        stride /= axis.values.len().max(1);
        cells.extend((0..axis.values.len()).map(|value| value * stride));
    }
    let first = &plan.variants[0];
    let of_cells = cells.iter().map(|&cell| (&plan.cells[cell], first));
    let of_variants = plan.variants[1..]
        .iter()
        .map(|variant| (&plan.cells[0], variant));
    let both = of_cells.chain(of_variants);
    both.map(|(cell, variant)| cell.settings.iter().chain(&variant.settings).collect())
        .collect()
}

/// Returns the errors of the job file of one run.
fn problems(reader: &Reader<'_>, job: &JobText, settings: &[&Setting]) -> Vec<TomlProblem> {
    let settings = settings.iter().copied();
    let of_job = settings.filter(|setting| setting.target == Target::Job);
    let settings: Vec<&Setting> = job.settings.iter().chain(of_job).collect();
    let file = job_with(job, &settings, None);
    let environment = WithJob {
        other: reader.environment,
        file: &job.file,
        text: &file.text,
    };
    let words = [job.file.clone()];
    let diagnostics = match parse(&words, Dialect::Fathom, &environment) {
        Err(refused) => refused.diagnostics,
        Ok(_) => return Vec::new(),
    };
    let errors = diagnostics
        .iter()
        .filter(|one| one.severity == Severity::Error);
    errors
        .map(|error| TomlProblem {
            kind: TomlProblemKind::BadValue,
            origin: origin_of(reader, job, &file, &error.origin),
            message: error.message.clone(),
            hint: error.hint.clone().unwrap_or_default(),
        })
        .collect()
}

/// Returns the place of a problem of a job file in the files that the user wrote.
fn origin_of(reader: &Reader<'_>, job: &JobText, file: &JobFile, origin: &Origin) -> Origin {
    if origin.file != job.file {
        return origin.clone();
    }
    match file.origin_of(origin.line) {
        // The option stands before the value.
        LineOrigin::Setting { key, value } => match origin.column == 1 {
            true => reader.source.origin(&key),
            false => reader.source.origin(&value),
        },
        LineOrigin::File(line) => {
            let mut origin = origin.clone();
            origin.line = line;
            origin
        }
    }
}

/// Environment in which the job file has the settings in it.
struct WithJob<'a> {
    other: &'a dyn Environment,
    file: &'a str,
    text: &'a str,
}

impl Environment for WithJob<'_> {
    fn engines(&self) -> &[&'static EngineInfo] {
        self.other.engines()
    }

    fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        match path == self.file {
            true => Ok(self.text.as_bytes().to_vec()),
            false => self.other.read_file(path),
        }
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.other.variable(name)
    }

    fn cpus(&self) -> u32 {
        self.other.cpus()
    }

    fn page_size(&self) -> u64 {
        self.other.page_size()
    }

    fn memory_mib(&self) -> u64 {
        self.other.memory_mib()
    }
}
