//! `--debug`: selection and format of debug output.

use crate::findings::Findings;
use crate::lifecycle::{SteadyFigure, SteadyState};
use crate::plan::{Options, Plan};
use crate::problem::{Piece, Problem};
use crate::reading;
use crate::suggest;
use crate::table;
use crate::vocabulary::Vocabulary;

/// Categories and job selected by `--debug`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebugOptions {
    kinds: Vec<&'static str>,
    /// `job:N`: only the job with this thread number.
    pub job: Option<u32>,
}

impl DebugOptions {
    /// Returns whether this category is enabled.
    #[must_use]
    pub fn includes(&self, kind: &str) -> bool {
        self.kinds
            .iter()
            .any(|known| *known == kind || *known == ALL)
    }

    /// Returns whether this category is enabled for a job, given by thread number.
    #[must_use]
    pub fn includes_for(&self, kind: &str, job: u32) -> bool {
        self.includes(kind) && self.job.is_none_or(|wanted| wanted == job)
    }

    /// Returns the lines printed first, one per category and job selected.
    #[must_use]
    pub fn announcement(&self, program: &str) -> String {
        let kind = |kind: &&str| match *kind {
            ALL => format!("{program}: set all debug options\n"),
            kind => format!("{program}: set debug option {kind}\n"),
        };
        let job = self
            .job
            .map(|job| format!("{program}: set debug jobno {job}\n"));
        self.kinds.iter().map(kind).chain(job).collect()
    }
}

/// Returns the lines of `--debug=parse` for a plan: each option as read, and steady-state
/// thresholds.
#[must_use]
pub fn option_lines(plan: &Plan, process: u32) -> String {
    let globals = plan.global_options.iter();
    let globals = globals.map(|(name, value)| (name.as_str(), value.as_str()));
    let jobs = plan.jobs.iter().flat_map(|job| &job.typed);
    let own = jobs.map(|typed| (typed.name.as_str(), typed.value.as_str()));
    let (mut read, none) = (Options::default(), Vocabulary::new(&[]));
    let mut lines = String::new();
    for (name, value) in globals.chain(own) {
        let told = format!("handle_option={name}, ptr={value}");
        lines.push_str(&debug_line("parse", process, &told));
        let row = table::find(name).filter(|_| matches!(name, "kb_base" | "steadystate"));
        let done = row.map(|row| row.apply(&mut read, Some(value), none, &mut Findings::new(true)));
        let steady = read.lifecycle.steady.filter(|_| name == "steadystate");
        if let (Some(Ok(())), Some(steady)) = (done, steady) {
            lines.push_str(&debug_line("parse", process, &steady_line(steady)));
        }
    }
    lines
}

/// Returns a steady-state threshold in fio's words; fio's own tests look for them.
fn steady_line(steady: SteadyState) -> String {
    let limit = steady.limit;
    match steady.figure {
        _ if steady.percent => format!("set steady state threshold to {limit:.6}%"),
        SteadyFigure::Iops => format!("set steady state IOPS threshold to {limit:.6}"),
        SteadyFigure::Bandwidth => format!("set steady state BW threshold to {limit:.0}"),
        SteadyFigure::Latency => format!("set steady state LAT threshold to {limit:.0}"),
    }
}

/// Formats one line as fio does.
#[must_use]
pub fn debug_line(kind: &str, process: u32, text: &str) -> String {
    format!("{kind:<8} {process:<5} {text}\n")
}

/// Adds the categories of a value of `--debug`. Returns `None` if the value asks for the list.
pub(crate) fn read(
    text: &str,
    options: &mut DebugOptions,
    findings: &mut Findings,
) -> Result<Option<()>, Problem> {
    if matches!(text, "help" | "?") {
        return Ok(None);
    }
    for piece in Piece::new(text).split(&[',']) {
        let word = piece.trim();
        if let Some(number) = word.text.strip_prefix("job:") {
            let job = number.parse().map_err(|_| {
                let why = format!("`{number}` is not a job number");
                Problem::new("bad-value", word.range(), why).fix("write it like `job:1`")
            })?;
            options.job = Some(job);
        } else {
            match find(word) {
                Ok(kind) if !options.kinds.contains(&kind) => options.kinds.push(kind),
                Ok(_) => {}
                Err(problem) => findings.misread(problem, reading::NOTHING)?,
            }
        }
    }
    Ok(Some(()))
}

fn find(word: Piece<'_>) -> Result<&'static str, Problem> {
    let known = KINDS.iter().find(|kind| **kind == word.text);
    known.copied().ok_or_else(|| {
        let why = format!("unknown debug category `{}`", word.text);
        let problem = Problem::new("unknown-debug", word.range(), why);
        match suggest::closest(word.text, KINDS.iter().copied()) {
            Some(near) => problem.fix(format!("did you mean `{near}`?")),
            None => problem.fix(format!("use one of {}", KINDS.join(", "))),
        }
    })
}

/// Returns the text of `--debug=help`.
pub(crate) fn help(program: &str) -> String {
    format!("{program}: dumping debug options:{}\n", KINDS.join(","))
}

const ALL: &str = "all";

/// fio's categories. Only `parse`, `file`, `random`, `process` and `io` print anything here.
const KINDS: [&str; 20] = [
    "process",
    "file",
    "io",
    "mem",
    "blktrace",
    "verify",
    "random",
    "parse",
    "diskutil",
    "job",
    "mutex",
    "profile",
    "time",
    "net",
    "rate",
    "compress",
    "steadystate",
    "helperthread",
    "zbd",
    ALL,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, tells: &[&str], job: Option<u32>) {
        let mut options = DebugOptions::default();
        assert_eq!(
            read(text, &mut options, &mut Findings::default()),
            Ok(Some(())),
            "{text}"
        );
        let told = KINDS.iter().filter(|kind| options.includes(kind)).copied();
        assert_eq!(told.collect::<Vec<_>>(), tells, "{text}");
        assert_eq!(options.job, job, "{text}");
    }

    #[test]
    fn kinds_are_a_list_with_perhaps_a_job() {
        check("io", &["io"], None);
        check("random, io", &["io", "random"], None);
        check("parse,job:2", &["parse"], Some(2));
        check("all", &KINDS, None);
        let mut options = DebugOptions::default();
        assert_eq!(read("?", &mut options, &mut Findings::default()), Ok(None));
        for wrong in ["job:x", "job:"] {
            let got = read(wrong, &mut options, &mut Findings::default());
            assert!(got.is_err(), "{wrong}");
        }
        for unknown in ["bogus", "", "io,"] {
            let mut findings = Findings::new(true);
            assert_eq!(read(unknown, &mut options, &mut findings), Ok(Some(())));
            assert_eq!(findings.found.len(), 1, "{unknown}");
        }
    }

    #[test]
    fn lines_have_fios_columns() {
        assert_eq!(debug_line("io", 398, "x"), "io       398   x\n");
        assert_eq!(debug_line("random", 31760, "x"), "random   31760 x\n");
        let mut options = DebugOptions::default();
        read("io,job:1", &mut options, &mut Findings::default()).expect("good");
        let said = options.announcement("fio");
        assert_eq!(said, "fio: set debug option io\nfio: set debug jobno 1\n");
        assert!(options.includes_for("io", 1) && !options.includes_for("io", 2));
    }
}
