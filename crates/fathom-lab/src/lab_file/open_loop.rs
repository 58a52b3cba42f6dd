//! Parts of `[curve]` and `[search]` that depend on cells and jobs: the axis of loads, and the
//! division of a load among the jobs.

use std::ops::Range;

use fathom_toml::Fields;

use super::axes::CELLS_MAX;
use super::reader::Reader;
use crate::lab_plan::{
    LabAxis, LabCell, LabPlan, Limit, OpenLoop, Search, SearchCondition, Subject, job_plan,
};

/// Appends the axis of loads to the cells of a curve: the maximum, then the shares of it.
pub(super) fn add_axis(reader: &Reader<'_>, top: &Fields<'_>, plan: &mut LabPlan) {
    let Some(curve) = &plan.curve else {
        return;
    };
    let span = span(top);
    if plan.axes.iter().any(|axis| axis.name == LOAD) {
        let why = "an axis is called `load`, as that of the curve";
        reader.refuse(&span, why, "give it another name");
    }
    let percent = |load: &f64| format!("{}%", (load * 1e6).round() / 1e4);
    let mut values = vec!["max".to_owned()];
    values.extend(curve.loads.iter().map(percent));
    if let Some(at) = (1..values.len()).find(|at| values[..*at].contains(&values[*at])) {
        let why = format!("`loads` has {} twice", values[at]);
        reader.refuse(&span, why, "remove one");
    }
    if plan.cells.len() * values.len() > CELLS_MAX {
        let why = format!(
            "{} cells with {} loads are more than {CELLS_MAX}",
            plan.cells.len(),
            values.len()
        );
        reader.refuse(&span, why, "shorten the axes, or `loads`");
        return;
    }
    let cells = plan.cells.iter().flat_map(|cell| {
        let loads = values.iter().enumerate();
        loads.map(|(at, value)| with_load(cell, (at, value), values.len()))
    });
    plan.cells = cells.collect();
    plan.axes.push(LabAxis {
        name: LOAD.to_owned(),
        values,
    });
}

fn with_load(cell: &LabCell, (at, value): (usize, &str), loads: usize) -> LabCell {
    let mut cell = cell.clone();
    cell.number = cell.number * loads + at;
    cell.values.push(at);
    if !cell.label.is_empty() {
        cell.label.push_str(", ");
    }
    cell.label.push_str(&format!("{LOAD}={value}"));
    cell
}

/// Finds the jobs that share a load in each cell and variant, and notes those that cannot.
pub(super) fn find_jobs(reader: &Reader<'_>, top: &Fields<'_>, plan: &mut LabPlan) {
    let varies = plan.curve.is_some() || plan.search.is_some();
    if !varies || !matches!(plan.subject, Subject::Job(_)) {
        return;
    }
    if !reader.is_sound() || reader.is_incomplete() {
        return;
    }
    let loads = plan.curve.as_ref().map_or(1, |curve| curve.loads.len() + 1);
    let mut found = Vec::new();
    for cell in (0..plan.cells.len()).step_by(loads) {
        for variant in 0..plan.variants.len() {
            let text = plan.run_of(cell, variant, 0).job.unwrap_or_default();
            let Ok(jobs) = job_plan(reader.environment, &plan.file, &text) else {
                let why = format!("the jobs of {} cannot be read", plan.cells[cell].label);
                reader.refuse(&span(top), why, "run them without this table to see why");
                return;
            };
            match OpenLoop::of(&jobs, plan.vary()) {
                Ok(jobs) => found.push(jobs),
                Err(problem) => return reader.refuse(&span(top), problem.why, problem.hint),
            }
        }
    }
    plan.open_loops = found;
    if let Some(search) = &plan.search {
        check_search(reader, top, plan, search);
    }
}

/// Notes what a search cannot do.
fn check_search(reader: &Reader<'_>, top: &Fields<'_>, plan: &LabPlan, search: &Search) {
    let span = span(top);
    if plan.open_loops.iter().any(|jobs| jobs.length.is_none()) {
        let why = "a search needs jobs with the same `runtime`: it makes runs longer where it must";
        let hint = "add `runtime = 2` and `time_based = true` to `[job]`";
        return reader.refuse(&span, why, hint);
    }
    let mut lengths = plan.open_loops.iter().filter_map(|jobs| jobs.length);
    if lengths.any(|length| length > search.probe_most) {
        let why = "`probe_most` is shorter than one run";
        return reader.refuse(&span, why, "raise it, or lower `runtime`");
    }
    for condition in &search.keep {
        if let Some((why, hint)) = condition_problem(plan, condition) {
            reader.refuse(&span, why, hint);
        }
    }
}

/// Returns why a condition on a share of the load has no meaning, and the remedy.
fn condition_problem(
    plan: &LabPlan,
    condition: &SearchCondition,
) -> Option<(String, &'static str)> {
    let Limit::OfAsked(_) = condition.limit else {
        return None;
    };
    let (load, _) = plan.load_metric();
    let wanted = load.trim_start_matches("all.");
    let (direction, metric) = condition.metric.split_once('.')?;
    let share = plan.open_loops.iter().map(|jobs| jobs.share_of(direction));
    if metric != wanted || direction.contains('/') {
        let why = format!(
            "`{}`: `{}` is asked for, of all jobs together",
            condition.text, wanted
        );
        return Some((why, "name `read.`, `write.` or `all.` with that metric"));
    }
    let mut share = share;
    if share.any(|share| share.is_none_or(|share| share <= 0.0)) {
        let why = format!("`{}`: no job does that", condition.text);
        return Some((why, "name the direction of the jobs"));
    }
    None
}

fn span(top: &Fields<'_>) -> Range<usize> {
    let table = top.value("curve").or_else(|| top.value("search"));
    table.map_or(0..0, |table| table.span())
}

/// Name of the axis of a curve's loads.
const LOAD: &str = "load";
