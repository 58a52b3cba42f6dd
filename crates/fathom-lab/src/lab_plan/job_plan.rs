//! Jobs of a run, as the job language reads them.

use std::io;

use fathom_core::EngineInfo;
use fathom_job::{Diagnostic, Dialect, Environment, Invocation, Plan, parse};

use super::job_values::character_of;

/// Reads the jobs of `text`, the content of the job file `file`.
///
/// # Errors
/// All findings of the job language.
pub(crate) fn job_plan(
    environment: &dyn Environment,
    file: &str,
    text: &str,
) -> Result<Plan, Vec<Diagnostic>> {
    let environment = WithJob {
        other: environment,
        file,
        text,
    };
    match parse(&[file.to_owned()], Dialect::Fathom, &environment) {
        Ok(Invocation::Run { plan, .. }) => Ok(plan),
        Ok(_) => Ok(Plan::default()),
        Err(refused) => Err(refused.diagnostics.iter().cloned().collect()),
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

    fn is_same_file(&self, a: &str, b: &str) -> bool {
        self.other.is_same_file(a, b)
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    fn variable(&self, name: &str) -> Option<String> {
        let character = character_of(name).map(str::to_owned);
        character.or_else(|| self.other.variable(name))
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
