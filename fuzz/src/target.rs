//! What is tried: a job file, or a command line.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use fathom_core::{Nanos, Tick};
use fathom_job::{Diagnostics, Dialect, Invocation, Surroundings, file_names, parse};
use fathom_sys::peak_allocation;
use fathom_sys::thread;

use crate::watchdog::Watchdog;

/// What an input is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A job file.
    File,
    /// A command line, an argument a line.
    Line,
}

/// What the parser made of an input: the codes of all it had to say.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Verdict {
    accepted: bool,
    codes: BTreeSet<&'static str>,
}

/// The high-water mark is that of the whole process, in which tests run side by side.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

impl Target {
    pub(crate) const ALL: [Self; 2] = [Self::File, Self::Line];

    /// The name of its folder in the corpus.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Line => "line",
        }
    }

    /// Tries an input; an error is the rule that it broke.
    pub(crate) fn try_with(self, input: &[u8], watchdog: &Watchdog) -> Result<Verdict, String> {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        watchdog.begin(self, input);
        let before = peak_allocation::in_use();
        peak_allocation::reset();
        let begun = processor_time();
        let answer = catch_unwind(AssertUnwindSafe(|| self.answer(input)));
        let took = processor_time() - begun;
        let bytes = peak_allocation::peak().saturating_sub(before);
        watchdog.end(took, bytes);
        let verdict = answer.map_err(|panic| format!("a panic: {}", text_of(&*panic)))??;
        if took > TIME_MAX {
            return Err(format!("it took {took}, and {TIME_MAX} is the limit"));
        }
        if bytes > BYTES_MAX {
            return Err(format!("it took {bytes} B, and {BYTES_MAX} is the limit"));
        }
        Ok(verdict)
    }

    fn answer(self, input: &[u8]) -> Result<Verdict, String> {
        match self {
            Self::File => {
                let words = ["j.fio".to_owned()];
                answer(&words, Dialect::Fathom, input)
            }
            Self::Line => {
                let text = String::from_utf8_lossy(input);
                let words: Vec<_> = text.split('\n').map(str::to_owned).collect();
                answer(&words, Dialect::Fio, b"[a]\nrw=read\n[b]\nsize=1m\n")
            }
        }
    }
}

/// What this thread has run: unlike the wall's, this time does not go by while others run.
fn processor_time() -> Tick {
    let usage = thread::usage();
    Tick::new((usage.user_us + usage.system_us) * 1000)
}

/// Parses, and uses what comes of it as the program does.
fn answer(words: &[String], dialect: Dialect, file: &[u8]) -> Result<Verdict, String> {
    let world = World { file };
    let (accepted, said) = match parse(words, dialect, &world) {
        Ok(Invocation::Run { plan, notes, .. }) => {
            for job in plan.jobs.iter().take(16) {
                // As many as a job of the run would have.
                let _names = file_names(job, 0);
            }
            (true, notes)
        }
        // Something to print, to try out, to unpack: nothing that would be run.
        Ok(_) => (true, Diagnostics::default()),
        Err(refusal) => {
            if !refusal.diagnostics.has_errors() {
                return Err("it was refused without an error".to_owned());
            }
            (false, refusal.diagnostics)
        }
    };
    let text = said.render("fathom", true);
    let silent = text.is_empty() && !accepted;
    let unprintable = |letter: char| letter.is_control() && letter != '\n' && letter != '\u{1b}';
    match text.chars().find(|&letter| unprintable(letter)) {
        _ if silent => Err("it was refused without a word".to_owned()),
        Some(letter) => Err(format!("the message has a {letter:?}")),
        None => Ok(Verdict {
            accepted,
            codes: said.iter().map(|found| found.code).collect(),
        }),
    }
}

/// A machine of 4 processors and 8 GiB with one job file, which all paths that end in `.fio` lead
/// to: including is including itself.
struct World<'a> {
    file: &'a [u8],
}

impl Surroundings for World<'_> {
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

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.accepted { "accepted" } else { "refused" };
        let codes: Vec<_> = self.codes.iter().copied().collect();
        write!(f, "{word} [{}]", codes.join(", "))
    }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    let text = owned.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("of no text")
}

/// What an input of 1 MiB may take; larger ones are not tried.
const BYTES_MAX: usize = 64 << 20;
/// A tenth of it is what the slowest takes on a slow machine; a hang never ends.
const TIME_MAX: Nanos = Nanos::from_secs(5);
