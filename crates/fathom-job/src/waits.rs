//! Whether a job waits for one that there is.

use crate::build::{Builder, Layer};
use crate::problem::Problem;
use crate::source::Spot;

/// The job that `wait_for` names must stand before the one that waits, and be the only one of
/// its name, as in fio.
pub(crate) fn check(builder: &mut Builder<'_>, name: &str, layer: &Layer, header: &Spot) {
    let Some(waits_for) = &layer.options.lifecycle.wait_for else {
        return;
    };
    let named = builder
        .plan
        .jobs
        .iter()
        .filter(|job| &job.name == waits_for);
    let (why, fix) = match named.count() {
        _ if waits_for == name => (
            "the job waits for itself".to_owned(),
            "name a job defined before it",
        ),
        0 => (
            format!("no job `{waits_for}` is defined before this one"),
            "name a job defined before it",
        ),
        1 => return,
        count => (
            format!("{count} jobs are named `{waits_for}`; `wait_for` needs a unique name"),
            "give each job a unique name",
        ),
    };
    let place = layer
        .find("wait_for")
        .or_else(|| builder.globals.find("wait_for"))
        .map_or(header, |written| {
            written.value.as_ref().unwrap_or(&written.name)
        })
        .clone();
    let problem = Problem::new("bad-wait", 0..place.range.len(), why);
    builder.job_error(&place, problem.fix(fix));
}
