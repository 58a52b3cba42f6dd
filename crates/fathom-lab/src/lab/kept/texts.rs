//! Lab file, arguments and other files from the stored text of a lab, which has them one after the
//! other:
//!
//! ```text
//! the lab file
//! # DEV=/dev/sdb
//! # machine: m.toml
//! the machine file
//! # job: j.fio
//! the job file
//! ```
//!
//! All of these may have such lines themselves. So each place where the lab file may end is tried,
//! and there each division of the rest: at every such line, or only at those that name files for
//! which the lab asks. A plan counts only if its stored text would be the same again.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use fathom_core::EngineInfo;
use fathom_job::Environment;

use crate::lab::stored::text;
use crate::lab_plan::LabPlan;
use crate::store::LabEntry;

/// Reads the plan of a lab.
///
/// # Errors
/// No part of the text is a lab file; a sentence with the first problem.
pub(super) fn plan(entry: &LabEntry, environment: &dyn Environment) -> Result<LabPlan, String> {
    let mut first = None;
    // Comments in a text may be many, and few of them read like what follows a lab file.
    let divisions = divisions(&entry.text).filter_map(|(lab, rest)| {
        let parsed = Rest::parse(rest, None).or_else(|| Rest::parse(rest, Some(&BTreeSet::new())));
        Some((lab, rest, parsed?))
    });
    for (lab, rest, mut parsed) in divisions.take(DIVISIONS_MAX) {
        for _ in 0..ATTEMPTS {
            let files = Files::new(parsed.files.clone(), environment);
            match LabPlan::parse(&entry.file, lab, &parsed.arguments, &files) {
                Ok(plan) if text(&plan) == entry.text => return Ok(plan),
                Ok(_) => {}
                Err(problems) => {
                    let problem = problems.into_iter().next();
                    let problem =
                        problem.map(|one| format!("line {}: {}", one.origin.line, one.message));
                    first = first.or(problem);
                }
            }
            // Lines that look like the begin of another file may be comments.
            match Rest::parse(rest, Some(&files.asked.into_inner())) {
                Some(again) if again != parsed => parsed = again,
                _ => break,
            }
        }
    }
    Err(first.unwrap_or_else(|| "it cannot be divided into its files".into()))
}

/// Returns the divisions into the lab file and what follows it: the shortest lab file first, since
/// a longer one has the arguments as comments.
fn divisions(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let ends = text.match_indices("\n# ").map(|(at, _)| at);
    let ends = ends.chain([text.len()]);
    ends.map(|at| text.split_at(at))
}

/// Part of the text after the lab file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rest {
    arguments: Vec<(String, String)>,
    files: BTreeMap<String, String>,
}

impl Rest {
    /// Reads the part; `None` if it is another text. A job begins at each line that says so, or
    /// only if its file is one of these.
    fn parse(mut text: &str, jobs: Option<&BTreeSet<String>>) -> Option<Self> {
        let mut rest = Self::default();
        while !text.is_empty() {
            text = text.strip_prefix("\n# ")?;
            let (line, below) = match text.find('\n') {
                Some(at) => text.split_at(at),
                None => (text, ""),
            };
            let file = ["machine: ", "job: "].into_iter();
            let Some(path) = file.filter_map(|kind| line.strip_prefix(kind)).next() else {
                let (name, value) = line.split_once('=')?;
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                if name.is_empty() || !name.chars().all(is_name) {
                    return None;
                }
                rest.arguments.push((name.into(), value.into()));
                text = below;
                continue;
            };
            // Jobs follow the machine, and each other.
            let below = below.strip_prefix('\n')?;
            let end = next_job(below, jobs).unwrap_or(below.len());
            let (content, after) = below.split_at(end);
            rest.files.insert(path.into(), content.into());
            text = after;
        }
        Some(rest)
    }
}

/// Returns where the next job begins: any, or one of these files.
fn next_job(text: &str, jobs: Option<&BTreeSet<String>>) -> Option<usize> {
    let begins = text.match_indices(JOB);
    let mut jobs_here = begins.filter(|(at, _)| {
        let rest = &text[at + JOB.len()..];
        let name = rest.split('\n').next().unwrap_or_default();
        jobs.is_none_or(|jobs| jobs.contains(name) && name.len() < rest.len())
    });
    jobs_here.next().map(|(at, _)| at)
}

/// Files of a stored text, before those of another environment.
struct Files<'a> {
    files: BTreeMap<String, String>,
    /// Files that were asked for.
    asked: RefCell<BTreeSet<String>>,
    other: &'a dyn Environment,
}

impl<'a> Files<'a> {
    const fn new(files: BTreeMap<String, String>, other: &'a dyn Environment) -> Self {
        Self {
            files,
            asked: RefCell::new(BTreeSet::new()),
            other,
        }
    }
}

impl Environment for Files<'_> {
    fn engines(&self) -> &[&'static EngineInfo] {
        self.other.engines()
    }

    fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        self.asked.borrow_mut().insert(path.to_owned());
        match self.files.get(path) {
            Some(text) => Ok(text.clone().into()),
            None => self.other.read_file(path),
        }
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        self.other.read_stdin()
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

/// Begin of a job file.
const JOB: &str = "\n# job: ";

/// Most places at which a lab file is tried to end: of those at which what follows reads like
/// arguments and files.
const DIVISIONS_MAX: usize = 256;

/// Most divisions of the rest: each shows more of the files that the lab asks for.
const ATTEMPTS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_files_are_found_again() {
        let text = "\n# DEV=/dev/a=b\n# machine: m.toml\n# a machine\nx = 1\n\n# job: j.fio\n[a]\n\
                    # job: k.fio\n[b]";
        let rest = Rest::parse(text, None).unwrap();
        assert_eq!(rest.arguments, [("DEV".into(), "/dev/a=b".into())]);
        let files: Vec<(&str, &str)> = rest
            .files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        assert_eq!(
            files,
            [
                ("j.fio", "[a]"),
                ("k.fio", "[b]"),
                ("m.toml", "# a machine\nx = 1\n")
            ]
        );
        let jobs = BTreeSet::from(["k.fio".to_owned()]);
        let rest = Rest::parse(text, Some(&jobs)).unwrap();
        assert_eq!(
            rest.files["m.toml"],
            "# a machine\nx = 1\n\n# job: j.fio\n[a]"
        );
        assert_eq!(rest.files["k.fio"], "[b]");
        assert_eq!(Rest::parse("", None), Some(Rest::default()));
        for other in ["\n# words", "\n# =x", "x", "\n# job: j.fio"] {
            assert_eq!(Rest::parse(other, None), None, "{other}");
        }
    }
}
