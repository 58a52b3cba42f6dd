//! The runs in their order: drift of the machine shows there.

use std::collections::BTreeSet;

use fathom_report::plot::{Axis, Panel, Plot, Point, Scale, Series, Shape};
use fathom_report::{Figure, Page, Picture};

use super::View;
use crate::order::{Part, Slot};

/// Draws each metric of all runs in their order, relative to the median of its cell and variant.
pub(super) fn figures(page: &mut Page, view: &View<'_>) {
    let order = order(view);
    if order.len() < 3 {
        return;
    }
    let disturbed = disturbed(view);
    page.heading(2, "Runs in their order");
    for (metric, _) in view.metrics() {
        let panel = panel(view, &order, &disturbed, metric);
        if panel.series.is_empty() {
            continue;
        }
        let title = format!("{}, runs in their order", view.label(metric));
        let plot = Plot {
            title: title.clone(),
            panels: vec![panel],
        };
        // The values of each run are at the end of the page.
        let figure = Figure::new(title, CAPTION, Picture::Plot(plot)).without_numbers();
        page.figure(figure);
    }
}

/// Writes the values of each run, for programs.
pub(super) fn values(page: &mut Page, view: &View<'_>) {
    let order = order(view);
    let disturbed = disturbed(view);
    let plan = view.plan;
    let names = view.metrics().map(|(_, one)| one.name.stored_name());
    let units = view.metrics().map(|(_, one)| one.name.row.unit);
    let metrics = names
        .zip(units)
        .map(|(name, unit)| format!("{name} ({unit})"));
    let heads = ["run", "repeat"].map(str::to_owned).into_iter();
    let axes = plan.axes.iter().map(|axis| axis.name.clone());
    let heads = heads.chain(axes).chain(["variant".into()]).chain(metrics);
    let mut text = line(heads.chain(["disturbed".into()]));
    for (number, slot) in order.iter().enumerate().take(ROWS_MAX) {
        let counts = [number + 1, slot.repeat as usize + 1].map(|one| one.to_string());
        let values = plan.cells[slot.cell].values.iter().zip(&plan.axes);
        let values = values.map(|(value, axis)| axis.values[*value].clone());
        let measured = (0..view.outcome.results.metrics.len()).map(|metric| {
            let value = value(view, slot, metric);
            value.map(|value| value.to_string()).unwrap_or_default()
        });
        let mark = match disturbed.contains(&key(slot)) {
            true => "yes",
            false => "",
        };
        let cells = counts.into_iter().chain(values);
        let cells = cells
            .chain([view.variant(slot.variant).to_owned()])
            .chain(measured);
        text.push_str(&line(cells.chain([mark.to_owned()])));
    }
    if order.len() > ROWS_MAX {
        let left = order.len() - ROWS_MAX;
        page.paragraph(&format!(
            "{left} more runs are in the history, and not on this page."
        ));
    }
    if !order.is_empty() {
        page.details("Values of each run, as CSV", &text);
    }
}

/// Returns the runs that have a value, in the order in which they were drawn.
fn order(view: &View<'_>) -> Vec<Slot> {
    let plan = view.plan;
    if plan.search.is_some() {
        return Vec::new();
    }
    let rounds = 0..plan.judge.repeats.max;
    let parts = Part::of(plan).iter();
    let slots = parts.flat_map(|part| {
        let rounds = rounds.clone();
        rounds.flat_map(move |round| part.order(plan, round))
    });
    let has_value = |slot: &Slot| {
        let mut metrics = view.metrics();
        metrics.any(|(metric, _)| value(view, slot, metric).is_some())
    };
    slots.filter(has_value).collect()
}

/// Returns a metric of a run, as it is stored; also of runs that do not count.
fn value(view: &View<'_>, slot: &Slot, metric: usize) -> Option<f64> {
    let values = view
        .outcome
        .results
        .values
        .of_all(slot.cell, slot.variant, metric);
    let at = values
        .binary_search_by_key(&slot.repeat, |(repeat, _)| *repeat)
        .ok()?;
    Some(values[at].1)
}

/// Returns the runs that were disturbed.
fn disturbed(view: &View<'_>) -> BTreeSet<Key> {
    let disturbed = view.outcome.results.disturbed.iter();
    disturbed
        .map(|run| (run.cell, run.variant, run.repeat))
        .collect()
}

const fn key(slot: &Slot) -> Key {
    (slot.cell, slot.variant, slot.repeat)
}

/// Cell, variant and repeat.
type Key = (usize, usize, u32);

fn panel(view: &View<'_>, order: &[Slot], disturbed: &BTreeSet<Key>, metric: usize) -> Panel {
    let mut points: Vec<Vec<Point>> = vec![Vec::new(); view.plan.variants.len()];
    let mut marked = Vec::new();
    for (number, slot) in order.iter().enumerate() {
        let Some(change) = change(view, slot, metric) else {
            continue;
        };
        #[expect(clippy::cast_precision_loss, reason = "a number of runs")]
        let point = Point::new((number + 1) as f64, Some(change));
        points[slot.variant].push(point);
        if disturbed.contains(&key(slot)) {
            marked.push(point);
        }
    }
    let series = points
        .into_iter()
        .enumerate()
        .map(|(variant, points)| Series {
            shape: Shape::Scatter,
            ..Series::measured(view.variant(variant), variant, points)
        });
    let marked = Series {
        shape: Shape::Scatter,
        ..Series::measured("disturbed", DISTURBED, marked)
    };
    let series = series.chain([marked]).filter(Series::has_values);
    Panel {
        across: Axis::new("number of the run", Scale::Linear),
        up: Axis::new(
            "change against the median of cell and variant, %",
            Scale::Linear,
        ),
        series: series.collect(),
    }
}

/// Returns the change of a run against the median of its cell and variant, %.
fn change(view: &View<'_>, slot: &Slot, metric: usize) -> Option<f64> {
    let name = &view.outcome.results.metrics[metric].name;
    let median = view.report.median(slot.cell, slot.variant, metric)?;
    let own = name.in_unit(value(view, slot, metric)?);
    let change = (own / median - 1.0) * 100.0;
    change.is_finite().then_some(change)
}

/// Formats a line of CSV.
fn line(cells: impl Iterator<Item = String>) -> String {
    let quoted = cells.map(|cell| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    });
    quoted.collect::<Vec<_>>().join(",") + "\n"
}

/// Style of disturbed runs: a cross, which no run beneath it hides.
const DISTURBED: usize = 6;
/// Most runs whose values are written.
const ROWS_MAX: usize = 10_000;
const CAPTION: &str = "Each run against the median of its own cell and variant, in the order in \
                       which the runs were drawn; a repeat that was done again stands where it was \
                       drawn. A slope or a step shows a drift of the machine, which variants of a \
                       repeat share; it does not show which variant is better.";
