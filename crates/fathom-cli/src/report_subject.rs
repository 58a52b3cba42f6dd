//! Subjects of `fathom report`: what the words after the command name.
//!
//! | words | subject |
//! |---|---|
//! | two sides, as `fathom compare` takes them | the comparison |
//! | a file of that name | the run in it, or the lab of a lab file (`.toml`) |
//! | a number | the run of the history |
//! | `lab:NAME`, `trend:METRIC` | the lab of the history, the trend |

use std::path::Path;

use anyhow::{Result, bail};
use fathom_lab::{Comparison, ImportError, PageRun, compare_page, page_run};
use fathom_report::{LogReduction, Page};

use crate::compare::{self, RuleArguments};
use crate::failure::with_hint;
use crate::history::SeriesArguments;
use crate::report_history;
use crate::saved_runs;

/// Subject of a page.
pub(crate) enum Subject {
    /// One run.
    Run {
        /// Title of the page: the name of its file, or the words.
        title: String,
        /// The run.
        run: Box<PageRun>,
    },
    /// Two sides.
    Comparison(Box<Comparison>),
    /// Something of the history whose page is there already.
    Page(Box<Page>),
}

/// Words and options that select a subject.
pub(crate) struct Wanted<'a> {
    pub(crate) what: &'a [String],
    pub(crate) rules: &'a RuleArguments,
    pub(crate) series: SeriesArguments,
}

/// Finds the subject that the user names.
pub(crate) fn resolve(wanted: &Wanted<'_>) -> Result<Subject> {
    refuse_other_options(wanted)?;
    match wanted.what {
        [what] => one(what, wanted),
        [before, after] => {
            let comparison = compare::compared((before, after), wanted.rules)?;
            Ok(Subject::Comparison(Box::new(comparison)))
        }
        _ => bail!("more than two words\nhint: one names a subject, two the sides of a comparison"),
    }
}

fn one(what: &str, wanted: &Wanted<'_>) -> Result<Subject> {
    let path = Path::new(what);
    if !path.exists()
        && let Some(subject) = of_history(what, wanted)?
    {
        return Ok(subject);
    }
    if path.is_dir() {
        let hint = "name one of its files, or two directories to compare them";
        return Err(with_hint(format!("{what}: a directory"), Some(hint)));
    }
    if path.extension().is_some_and(|end| end == "toml") {
        return Ok(Subject::Page(Box::new(report_history::lab_of_file(what)?)));
    }
    let text = saved_runs::text(path)?;
    // A complete log would have been recognised.
    if text.starts_with("PAR1") {
        bail!("{what}: a Parquet file that is truncated, or no I/O log");
    }
    let run = page_run(&text);
    let run = run.map_err(|error| with_hint(format!("{what}: {error}"), hint(&error)))?;
    let name = path.file_name();
    let name = name.map(|name| name.to_string_lossy().into_owned());
    Ok(Subject::Run {
        title: name.unwrap_or_else(|| what.to_owned()),
        run: Box::new(run),
    })
}

/// Finds a subject in the history; `None` if the words do not name one.
fn of_history(what: &str, wanted: &Wanted<'_>) -> Result<Option<Subject>> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number(what) {
        return Ok(Some(Subject::Run {
            title: format!("run {what}"),
            run: Box::new(report_history::run(what)?),
        }));
    }
    if let Some(name) = what.strip_prefix("lab:") {
        let page = report_history::lab_named(name)?;
        return Ok(Some(Subject::Page(Box::new(page))));
    }
    if let Some(metric) = what.strip_prefix("trend:") {
        let page = report_history::trend(metric, wanted.series)?;
        return Ok(Some(Subject::Page(Box::new(page))));
    }
    let is_range = what.contains([',', '-']) && what.split([',', '-']).all(is_number);
    if what.starts_with("tag:") || is_range {
        let hint = "name the other side, too, or the number of one run";
        return Err(with_hint(
            format!("{what}: one side of a comparison"),
            Some(hint),
        ));
    }
    Ok(None)
}

/// Refuses options that the subject has no use for.
fn refuse_other_options(wanted: &Wanted<'_>) -> Result<()> {
    let is_comparison = wanted.what.len() == 2;
    if wanted.rules.are_given() && !is_comparison {
        bail!("--metric and --accept-drift are rules of a comparison\nhint: name two sides");
    }
    let is_trend = matches!(wanted.what, [what] if what.starts_with("trend:"));
    if (wanted.series.plan.is_some() || wanted.series.machine.is_some()) && !is_trend {
        bail!("--plan and --machine choose series of a trend\nhint: name a trend:METRIC");
    }
    Ok(())
}

impl Subject {
    /// Returns its page, with I/O logs if there are any.
    ///
    /// # Errors
    /// There are logs, but the subject is not a run.
    pub(crate) fn page(self, logs: Option<&LogReduction>) -> Result<Page> {
        match self {
            Self::Run { title, run } => Ok(run.page(&title, logs)),
            Self::Comparison(_) | Self::Page(_) if logs.is_some() => {
                bail!("I/O logs go with a run alone\nhint: write a page of the logs")
            }
            Self::Comparison(comparison) => Ok(compare_page(&comparison)),
            Self::Page(page) => Ok(*page),
        }
    }
}

const fn hint(error: &ImportError) -> Option<&'static str> {
    match error {
        ImportError::Several(_) => Some("give each run a file of its own"),
        ImportError::NoDocument | ImportError::Unknown { .. } => {
            Some("`fathom run --record FILE` makes a record, `fio --output-format=json+` a report")
        }
        _ => None,
    }
}
