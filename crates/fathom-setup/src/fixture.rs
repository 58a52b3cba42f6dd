//! Test fixtures for this crate and those above it: plans parsed from command lines, and a table in
//! place of the file system.

use std::collections::HashMap;
use std::io;

use fathom_core::EngineInfo;
use fathom_host::target_kind::{FileSystemProbe, TargetKind};
use fathom_job::{Dialect, Environment, Invocation, Plan, Settings, parse};

/// Host without files, variables or a standard input.
struct Nowhere<'a> {
    engines: &'a [&'static EngineInfo],
}

impl Environment for Nowhere<'_> {
    fn engines(&self) -> &[&'static EngineInfo] {
        self.engines
    }
    fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        panic!("read {path}")
    }
    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        panic!("read stdin")
    }
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
    fn cpus(&self) -> u32 {
        2
    }
    fn page_size(&self) -> u64 {
        4096
    }
    fn memory_mib(&self) -> u64 {
        1024
    }
}

/// Fake file system: these files by name, all others missing.
#[derive(Debug, Default)]
pub struct FakeFiles(HashMap<&'static str, TargetKind>);

impl FakeFiles {
    /// Creates a table of these files.
    pub fn of(files: &[(&'static str, TargetKind)]) -> Self {
        Self(files.iter().copied().collect())
    }
}

impl FileSystemProbe for FakeFiles {
    fn kind(&self, path: &str) -> io::Result<TargetKind> {
        Ok(self.0.get(path).copied().unwrap_or(TargetKind::Missing))
    }
}

/// Parses a command line for these engines, on a host of which nothing is known.
///
/// # Panics
/// If it is not a run.
#[track_caller]
pub fn plan(words: &str, engines: &[&'static EngineInfo]) -> Plan {
    run_of(words, engines).0
}

/// Parses a command line into its plan and its settings.
///
/// # Panics
/// If it is not a run.
#[track_caller]
pub fn run_of(words: &str, engines: &[&'static EngineInfo]) -> (Plan, Settings) {
    let words: Vec<String> = words.split_whitespace().map(Into::into).collect();
    match parse(&words, Dialect::Fathom, &Nowhere { engines }) {
        Ok(Invocation::Run { plan, settings, .. }) => (plan, *settings),
        Ok(_) => panic!("nothing to run: {words:?}"),
        Err(why) => panic!("{words:?}: {}", why.diagnostics.render("fathom", false)),
    }
}
