//! Why an option's name is refused.

use crate::problem::Problem;
use crate::suggest;
use crate::table::{self, Row, known};

/// Why a job with this engine cannot have this option.
pub(crate) fn option(name: &str, row: Option<&Row>, engine: &str) -> Problem {
    let at = 0..name.len();
    if let Some(row) = row {
        return other_engine(name, row.engines.iter().copied(), engine);
    }
    if let Some(reason) = gone(name) {
        return Problem::new(
            "not-any-more",
            at,
            format!("`{name}` is refused by fio too: {reason}"),
        );
    }
    let Some(known) = known::find(name) else {
        return unknown(name);
    };
    if known.is_general() || known.engines().any(|other| other == engine) {
        return Problem::new(
            "not-yet",
            at,
            format!("`{name}` is known to fio, not yet to fathom"),
        )
        .fix("leave it out, if the job means the same without it");
    }
    let engines = known.engines().collect::<Vec<_>>().join(", ");
    Problem::new(
        "not-yet",
        at,
        format!("`{name}` is known to fio (for {engines}), not yet to fathom"),
    )
    .fix("leave it out")
}

fn other_engine<'a>(name: &str, engines: impl Iterator<Item = &'a str>, engine: &str) -> Problem {
    let list = engines.collect::<Vec<_>>().join(" or ");
    Problem::new(
        "other-engine",
        0..name.len(),
        format!("`{name}` is an option of {list}, and this job's engine is {engine}"),
    )
    .fix(format!(
        "set `ioengine={list}` first, or leave `{name}` out"
    ))
}

fn unknown(name: &str) -> Problem {
    let problem = Problem::new(
        "unknown-option",
        0..name.len(),
        format!("there is no option `{name}`"),
    );
    let own = table::rows().flat_map(Row::names);
    let known = known::all().iter().flat_map(known::Known::names);
    match suggest::closest(name, own.chain(known)) {
        Some(word) => problem.fix(format!("did you mean `{word}`?")),
        None => problem.fix("`--cmdhelp` lists all options"),
    }
}

fn gone(name: &str) -> Option<&'static str> {
    match name {
        "rwmixcycle" => Some("it was given up"),
        "percentage_sequential" => Some("use `percentage_random`"),
        _ => None,
    }
}
