//! Reasons to refuse an option by its name.

use std::fmt;

use fathom_core::EngineInfo;

use crate::engines;
use crate::problem::Problem;
use crate::secrets::masked;
use crate::suggest;
use crate::table::known::Known;
use crate::table::{Row, known};
use crate::vocabulary::Vocabulary;

/// Returns the problem of an option that a job with this engine cannot have.
pub(crate) fn option(
    name: &str,
    row: Option<Row>,
    engine: &EngineInfo,
    vocabulary: Vocabulary<'_>,
) -> Problem {
    let at = 0..name.len();
    if let Some(row) = row {
        return other_engine(name, &vocabulary.engines_of(&row), engine.name);
    }
    let Some(known) = known::find(name) else {
        return unknown(name, vocabulary);
    };
    let reason = reason(known);
    let problem = Problem::new(reason.code(), at, format!("`{name}` {reason}"));
    match reason {
        Reason::NotYet(_) if known.is_general() => {
            problem.fix("remove it if the job does not depend on it")
        }
        _ => problem.fix("remove it"),
    }
}

/// Reason why an option of fio is not in Fathom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// fio refuses it, too.
    Gone(&'static str),
    /// Its purpose needs this library or device.
    Needs(&'static str),
    /// It belongs to these engines, which are not implemented.
    Engines(String),
    /// It belongs to this feature, which is not implemented.
    NotYet(&'static str),
}

impl Reason {
    const fn code(&self) -> &'static str {
        match self {
            Self::Gone(_) => "not-any-more",
            Self::Needs(_) => "not-in-fathom",
            Self::Engines(_) | Self::NotYet(_) => "not-yet",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(why) => write!(f, "is also refused by fio: {why}"),
            Self::Needs(what) => write!(f, "needs {what}, which Fathom does not support"),
            Self::Engines(list) => write!(f, "exists in fio (for {list}), but not yet in Fathom"),
            Self::NotYet(part) => write!(f, "exists in fio, but not yet in Fathom ({part})"),
        }
    }
}

/// Returns the reason to refuse an option that is not in the table.
pub(crate) fn reason(known: &Known) -> Reason {
    if let Some(why) = gone(known.name) {
        return Reason::Gone(why);
    }
    if known.is_general() {
        return match needs(known.name) {
            Some(what) => Reason::Needs(what),
            None => Reason::NotYet(part(known.name)),
        };
    }
    let missing = known.engines().filter_map(engines::needs).last();
    match missing.filter(|_| known.tier == "D") {
        Some(what) => Reason::Needs(what),
        None => Reason::Engines(known.engines().collect::<Vec<_>>().join(", ")),
    }
}

/// Returns the device that an engine-independent option needs.
fn needs(name: &str) -> Option<&'static str> {
    match name {
        "gpu_dev_id" => Some("a GPU"),
        _ => None,
    }
}

/// Returns the unimplemented feature that an option belongs to.
fn part(name: &str) -> &'static str {
    let begins = |with: &str| name.starts_with(with);
    if begins("verify") || begins("experimental_verify") {
        "verification"
    } else if begins("profile") {
        "built-in workloads"
    } else {
        "unclassified"
    }
}

fn other_engine(name: &str, engines: &[&str], engine: &str) -> Problem {
    let quoted: Vec<String> = engines.iter().map(|engine| format!("`{engine}`")).collect();
    let list = |word: &str| match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("{} {word} {last}", others.join(", "))
        }
        _ => quoted.concat(),
    };
    let (all, one) = (list("and"), list("or"));
    Problem::new(
        "other-engine",
        0..name.len(),
        format!("`{name}` applies to {all}, but the job's engine is `{engine}`"),
    )
    .fix(format!("set `ioengine` to {one} first, or remove `{name}`"))
}

fn unknown(name: &str, vocabulary: Vocabulary<'_>) -> Problem {
    let problem = Problem::new(
        "unknown-option",
        0..name.len(),
        format!("unknown option `{}`", masked(name)),
    );
    let own = vocabulary.rows().flat_map(|row| row.names());
    let known = known::all().iter().flat_map(Known::names);
    match suggest::closest(name, own.chain(known)) {
        Some(word) => problem.fix(format!("did you mean `{word}`?")),
        None => problem.fix("`--cmdhelp` lists all options"),
    }
}

fn gone(name: &str) -> Option<&'static str> {
    match name {
        "rwmixcycle" => Some("it was removed"),
        "percentage_sequential" => Some("use `percentage_random`"),
        _ => None,
    }
}
