//! Lab files: experiments in TOML, with the job file, machine file and figures that they name.

use std::io;

use fathom_core::EngineInfo;
use fathom_engine::Registry;
use fathom_job::{Diagnostic, Diagnostics, Environment, Severity};
use fathom_lab::{LabPlan, order};

use super::machine::words_of;
use crate::target::Verdict;

/// Decodes a lab file, draws a round of it and makes the texts of its runs.
pub(crate) fn decode(input: &[u8]) -> Result<Verdict, String> {
    let Ok(text) = std::str::from_utf8(input) else {
        return Ok(Verdict::Refused("not UTF-8".to_owned()));
    };
    let host = Host(Registry::built_in());
    let arguments = [("DEV".to_owned(), "/dev/disk".to_owned())];
    let plan = match LabPlan::parse("l.toml", text, &arguments, &host) {
        Ok(plan) => plan,
        Err(problems) if problems.is_empty() => {
            return Err("refused without a problem".to_owned());
        }
        Err(problems) => {
            let mut diagnostics = Diagnostics::default();
            for problem in problems {
                let severity = Severity::Error;
                let (message, origin) = (problem.message, problem.origin);
                let found = Diagnostic::new(severity, "lab", message, origin, "");
                diagnostics.push(found.with_hint(problem.hint));
            }
            return Ok(Verdict::Refused(diagnostics.render("fathom", false)));
        }
    };
    check(&plan)?;
    if plan.overview(&host, &[]).is_empty() {
        return Err("an empty overview".to_owned());
    }
    Ok(Verdict::Accepted)
}

/// Checks that a round has each run once, and makes the texts of its first and last one.
fn check(plan: &LabPlan) -> Result<(), String> {
    let slots = order(plan, 1);
    let mut runs: Vec<_> = slots.iter().map(|slot| (slot.cell, slot.variant)).collect();
    runs.sort_unstable();
    runs.dedup();
    if runs.is_empty() || runs.len() != plan.cells.len() * plan.variants.len() {
        return Err(format!("{} runs in a round", runs.len()));
    }
    for slot in slots.iter().take(1).chain(slots.last()) {
        let run = plan.run_of(slot.cell, slot.variant, slot.seed);
        if run.job.is_none() && run.peak.is_none() {
            return Err("a run without jobs".to_owned());
        }
    }
    Ok(())
}

/// Keys and table heads of the examples.
pub(crate) fn words() -> Vec<String> {
    words_of(&EXAMPLES)
}

/// Host of 4 CPUs and 8 GiB; no input reaches the real one.
struct Host(Registry);

impl Environment for Host {
    fn engines(&self) -> &[&'static EngineInfo] {
        self.0.infos()
    }

    fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        let text = match path.rsplit_once('.') {
            Some((_, "toml")) => include_str!("../../../examples/machines/hdd.toml"),
            Some((_, "fio")) => "[a]\nrw=read\nsize=1m\n",
            Some((_, "csv")) => "numjobs,plain_mib_s,fair_mib_s\n1,2.5,3\n8,,1e999\n",
            _ => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(text.as_bytes().to_vec())
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn variable(&self, _name: &str) -> Option<String> {
        None
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

const EXAMPLES: [&str; 4] = [
    include_str!("../../../examples/lab/aio-submit.toml"),
    include_str!("../../../examples/lab/hdd-tags.toml"),
    include_str!("../../../examples/lab/io-pacing.toml"),
    include_str!("../../../examples/lab/snia-iops.toml"),
];
