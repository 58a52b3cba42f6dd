//! Job files and command lines, read by fathom-job.

use std::fmt::Write as _;
use std::io;

use fathom_core::EngineInfo;
use fathom_engine::Registry;
use fathom_job::{Dialect, Environment, Invocation, file_names, option_examples, parse};

use crate::target::{Verdict, check_message};

/// Decodes a job file under Fathom's rules.
pub(crate) fn decode_file(input: &[u8]) -> Result<Verdict, String> {
    decode(&["j.fio".to_owned()], Dialect::Fathom, input)
}

/// Decodes a command line under fio's rules; each line of the input is an argument.
pub(crate) fn decode_line(input: &[u8]) -> Result<Verdict, String> {
    let text = String::from_utf8_lossy(input);
    let words: Vec<_> = text.split('\n').map(str::to_owned).collect();
    decode(&words, Dialect::Fio, b"[a]\nrw=read\n[b]\nsize=1m\n")
}

/// Option examples and the pieces that they do not contain.
pub(crate) fn words() -> Vec<String> {
    let pieces = PIECES.lines().chain(UNPRINTABLE.iter().copied());
    let examples = option_examples(Registry::built_in().infos());
    examples.chain(pieces).map(str::to_owned).collect()
}

fn decode(words: &[String], dialect: Dialect, file: &[u8]) -> Result<Verdict, String> {
    let engines = &Registry::built_in();
    match parse(words, dialect, &Host { file, engines }) {
        Ok(Invocation::Run { plan, notes, .. }) => {
            let mut names = String::new();
            for job in plan.jobs.iter().take(JOBS_MAX) {
                let _ = write!(names, "{:?}", file_names(job, 0));
            }
            let notes = notes.render("fathom", false);
            if !notes.is_empty() {
                check_message(&notes)?;
            }
            Ok(Verdict::Accepted)
        }
        // A request to print or unpack something: there is no plan to use.
        Ok(_) => Ok(Verdict::Accepted),
        Err(refusal) if !refusal.diagnostics.has_errors() => {
            Err("refused without an error".to_owned())
        }
        Err(refusal) => Ok(Verdict::Refused(
            refusal.diagnostics.render("fathom", false),
        )),
    }
}

/// A host of 4 CPUs and 8 GiB with one job file. Every path that ends in `.fio` leads to it, so a
/// file that includes another one includes itself.
struct Host<'a> {
    file: &'a [u8],
    engines: &'a Registry,
}

impl Environment for Host<'_> {
    fn engines(&self) -> &[&'static EngineInfo] {
        self.engines.infos()
    }

    fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        match path.ends_with(".fio") {
            true => Ok(self.file.to_vec()),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        Ok(self.file.to_vec())
    }

    fn variable(&self, name: &str) -> Option<String> {
        match name {
            "HOME" => Some("/home/a".to_owned()),
            "N" => Some("4k".to_owned()),
            _ => None,
        }
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

/// Jobs whose file names are formed: their cost per job is the same.
const JOBS_MAX: usize = 16;

/// Pieces of the job language that no example contains, one per line.
const PIECES: &str = include_str!("../../pieces.txt");

/// Pieces that no line of text can hold.
const UNPRINTABLE: &[&str] = &["\u{202e}", "\0", "\t", "\r\n"];
