//! A host with one job file, and a run on it.

use std::io;

use fathom_core::EngineInfo;
use fathom_engine::{Registration, Registry};
use fathom_job::{Dialect, Environment, Invocation, RefusedInvocation, parse};
use fathom_record::Record;
use fathom_run::run;
use fathom_setup::{RunError, Session};

/// A host with one job file and the registry of a program that brings the engine along.
pub(crate) struct Host {
    job_file: &'static str,
    pub(crate) engines: Registry,
}

impl Host {
    pub(crate) fn with(job_file: &'static str, engine: Registration) -> Self {
        Self {
            job_file,
            engines: Registry::built_in().with(engine),
        }
    }

    pub(crate) fn parse(&self, words: &str) -> Result<Invocation, Box<RefusedInvocation>> {
        let words: Vec<String> = words.split_whitespace().map(Into::into).collect();
        parse(&words, Dialect::Fathom, self)
    }
}

impl Environment for Host {
    fn engines(&self) -> &[&'static EngineInfo] {
        self.engines.infos()
    }

    fn read_file(&self, _path: &str) -> io::Result<Vec<u8>> {
        Ok(self.job_file.into())
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
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

/// Runs a command line with these engines.
#[track_caller]
pub(crate) fn run_with(host: &Host, engines: &Registry, words: &str) -> Result<Record, RunError> {
    let (plan, settings) = match host.parse(words) {
        Ok(Invocation::Run { plan, settings, .. }) => (plan, settings),
        Ok(other) => panic!("{words}: {other:?}"),
        Err(refusal) => panic!("{words}: {}", refusal.diagnostics.render("fathom", false)),
    };
    let mut session = Session {
        tell: &mut |_| {},
        stops: &|| 0,
        progress: None,
        report_every: None,
        reports_asked: &|| 0,
        jobs_fail_alone: false,
    };
    run(&plan, &settings, engines, &mut session)
}
