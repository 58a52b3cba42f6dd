//! A made-up machine with made-up files.

#![allow(dead_code, reason = "not every test file uses all of it")]

use std::collections::HashMap;
use std::io;

use fathom_core::EngineInfo;
use fathom_engine::Registry;
use fathom_job::{Diagnostics, Dialect, Environment, Invocation, Job, Options, Plan, parse};

/// Files and variables as a test wants them; 4 processors, 8 GiB.
pub(crate) struct World {
    engines: Registry,
    files: HashMap<String, Vec<u8>>,
    variables: HashMap<String, String>,
    lenient: bool,
}

impl Default for World {
    fn default() -> Self {
        Self {
            engines: Registry::built_in(),
            files: HashMap::new(),
            variables: HashMap::new(),
            lenient: false,
        }
    }
}

impl World {
    pub(crate) fn with_file(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.to_owned(), content.into());
        self
    }

    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Texts that only fio reads are read as fio reads them: else they are errors.
    pub(crate) fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// Parses a command line, split at blanks.
    pub(crate) fn parse(&self, line: &str) -> Result<Invocation, Diagnostics> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&args, Dialect::Fio, self).map_err(|refusal| refusal.diagnostics)
    }

    #[track_caller]
    pub(crate) fn plan(&self, line: &str) -> Plan {
        match self.parse(line) {
            Ok(Invocation::Run { plan, .. }) => plan,
            Ok(other) => panic!("{line}: {other:?}"),
            Err(errors) => panic!("{line}: {}", errors.render("fio", false)),
        }
    }

    /// The codes and places of everything that is wrong.
    #[track_caller]
    pub(crate) fn errors(&self, line: &str) -> Vec<String> {
        match self.parse(line) {
            Err(errors) => codes(&errors),
            Ok(_) => panic!("{line}: accepted"),
        }
    }

    /// The codes and places of the notes.
    #[track_caller]
    pub(crate) fn notes(&self, line: &str) -> Vec<String> {
        match self.parse(line) {
            Ok(Invocation::Run { notes, .. }) => codes(&notes),
            Ok(other) => panic!("{line}: {other:?}"),
            Err(errors) => panic!("{line}: {}", errors.render("fio", false)),
        }
    }
}

fn codes(diagnostics: &Diagnostics) -> Vec<String> {
    let code = |found: &fathom_job::Diagnostic| {
        let origin = &found.origin;
        format!("{}:{} {}", origin.line, origin.column, found.code)
    };
    diagnostics.iter().map(code).collect()
}

/// A job file called `j.fio`.
pub(crate) fn file(text: &str) -> World {
    World::default().with_file("j.fio", text)
}

/// The jobs of one job file.
#[track_caller]
pub(crate) fn jobs(text: &str) -> Vec<Job> {
    file(text).plan("j.fio").jobs
}

/// The only job of a command line that has these options besides a name.
#[track_caller]
pub(crate) fn job(options: &str) -> Job {
    let mut plan = World::default().plan(&format!("--name=x {options}"));
    assert_eq!(plan.jobs.len(), 1);
    plan.jobs.remove(0)
}

/// A job with these options has what `has` looks for.
#[track_caller]
pub(crate) fn check(options: &str, has: impl FnOnce(&Options) -> bool) {
    let job = job(options);
    assert!(has(&job.options), "{options}: {:?}", job.options);
}

/// The options are refused, for this reason.
#[track_caller]
pub(crate) fn refuse(options: &str, code: &str) {
    let errors = World::default().errors(&format!("--name=x {options}"));
    let codes: Vec<_> = errors
        .iter()
        .filter_map(|error| error.split(' ').nth(1))
        .collect();
    assert_eq!(codes, [code], "{options}");
}

impl Environment for World {
    fn engines(&self) -> &[&'static EngineInfo] {
        self.engines.infos()
    }

    fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        let missing = || io::Error::from_raw_os_error(2);
        self.files.get(path).cloned().ok_or_else(missing)
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        self.read_file("-")
    }

    fn variable(&self, name: &str) -> Option<String> {
        let strict = !self.lenient && name == "FATHOM_STRICT";
        let value = self.variables.get(name).cloned();
        value.or_else(|| strict.then(|| "1".to_owned()))
    }

    fn cpus(&self) -> u32 {
        4
    }

    fn page_size(&self) -> u64 {
        4096
    }

    fn memory_mib(&self) -> u64 {
        8192
    }
}

/// The options are accepted, with this note.
#[track_caller]
pub(crate) fn note(options: &str, code: &str) {
    let notes = World::default().notes(&format!("--name=x {options}"));
    let codes: Vec<_> = notes
        .iter()
        .filter_map(|note| note.split(' ').nth(1))
        .collect();
    assert_eq!(codes, [code], "{options}");
}
