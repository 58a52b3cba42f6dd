//! Environment of invented files and machine facts.

#![allow(dead_code, reason = "not every test file uses all of it")]

use std::collections::HashMap;
use std::io;

use fathom_core::EngineInfo;
use fathom_engine::Registry;
use fathom_job::{Diagnostics, Dialect, Environment, Invocation, Job, Options, Plan, parse};

/// Files and variables set by the test; 4 CPUs, 8 GiB of memory.
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

    /// Parses a command line under the name `fathom`, split at blanks.
    #[track_caller]
    pub(crate) fn plan_of_fathom(&self, line: &str) -> Plan {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match parse(&args, Dialect::Fathom, self) {
            Ok(Invocation::Run { plan, .. }) => plan,
            Ok(other) => panic!("{line}: {other:?}"),
            Err(refusal) => panic!("{line}: {}", refusal.diagnostics.render("fathom", false)),
        }
    }

    /// Accepts texts that only fio accepts, with fio's reading, instead of refusing them.
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

    /// Returns the codes and places of all errors.
    #[track_caller]
    pub(crate) fn errors(&self, line: &str) -> Vec<String> {
        match self.parse(line) {
            Err(errors) => codes(&errors),
            Ok(_) => panic!("{line}: accepted"),
        }
    }

    /// Returns the codes and places of all notes.
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

/// Returns an environment with a job file called `j.fio`.
pub(crate) fn file(text: &str) -> World {
    World::default().with_file("j.fio", text)
}

/// Returns the jobs of a job file.
#[track_caller]
pub(crate) fn jobs(text: &str) -> Vec<Job> {
    file(text).plan("j.fio").jobs
}

/// Returns the job of a command line with a name and these options.
#[track_caller]
pub(crate) fn job(options: &str) -> Job {
    let mut plan = World::default().plan(&format!("--name=x {options}"));
    assert_eq!(plan.jobs.len(), 1);
    plan.jobs.remove(0)
}

/// Checks a job with these options.
#[track_caller]
pub(crate) fn check(options: &str, has: impl FnOnce(&Options) -> bool) {
    let job = job(options);
    assert!(has(&job.options), "{options}: {:?}", job.options);
}

/// Checks that the options are refused with this code.
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

    fn host_name(&self) -> String {
        "node-7".into()
    }
}

/// Checks that the options are accepted with this note.
#[track_caller]
pub(crate) fn note(options: &str, code: &str) {
    let notes = World::default().notes(&format!("--name=x {options}"));
    let codes: Vec<_> = notes
        .iter()
        .filter_map(|note| note.split(' ').nth(1))
        .collect();
    assert_eq!(codes, [code], "{options}");
}

/// Returns the arguments of a small job with these options.
pub(crate) fn words(text: &str) -> Vec<String> {
    let all = format!("--name=x --ioengine=null --size=64k {text}");
    all.split_whitespace().map(str::to_owned).collect()
}
