//! The page of a lab.
//!
//! From top to bottom: verdicts and what to know about them, the table, the comparisons as
//! intervals, each metric over the axes, latency against throughput, the runs in their order, how
//! this was measured. All numbers are there as text, too.

mod axes;
mod comparisons;
mod heat;
mod loads;
mod runs;
mod searches;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use fathom_report::Page;

use crate::counted::counted;
use crate::figure::shortened;
use crate::lab::{LabOutcome, Observed, Report, lab_table};
use crate::lab_plan::LabPlan;
use crate::table::Table;

pub(crate) use comparisons::{band, style};

/// Things that a lab's outcome does not tell of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabAbout {
    /// Time when the lab began, in UTC; empty if it is not known.
    pub begun: String,
    /// Facts about machines and subjects of the runs, each with the values that it had.
    pub circumstances: BTreeMap<String, Vec<String>>,
}

/// Returns the page of a lab.
#[must_use]
pub fn lab_page(plan: &LabPlan, outcome: &LabOutcome, about: &LabAbout) -> Page {
    let view = View {
        plan,
        outcome,
        report: Report::new(plan, outcome),
    };
    let table = lab_table(plan, outcome);
    let mut page = Page::new(&shortened(&table.head.about, TITLE_MAX));
    page.paragraph(&view.origin(about));
    caveats(&mut page, &table);
    comparisons::summary(&mut page, &view);
    results(&mut page, plan, &table);
    comparisons::intervals(&mut page, &view);
    match plan.search {
        Some(_) => searches::figures(&mut page, &view),
        None => {
            axes::figures(&mut page, &view);
            heat::tables(&mut page, &view);
            loads::figures(&mut page, &view);
        }
    }
    runs::figures(&mut page, &view);
    measured(&mut page, &view, &table, about);
    page
}

/// A lab and its outcome.
struct View<'a> {
    plan: &'a LabPlan,
    outcome: &'a LabOutcome,
    report: Report<'a>,
}

impl View<'_> {
    fn origin(&self, about: &LabAbout) -> String {
        let plan = self.plan;
        let cells = counted(plan.cells.len() as u64, "cell");
        let variants = counted(plan.variants.len() as u64, "variant");
        let begun = match about.begun.as_str() {
            "" => String::new(),
            time => format!("begun {time} UTC, "),
        };
        format!("{begun}{}; {cells}, {variants}", plan.place())
    }

    fn metrics(&self) -> impl Iterator<Item = (usize, &Observed)> {
        self.outcome.results.metrics.iter().enumerate()
    }

    /// Returns the metric with its unit, short enough for a figure.
    fn label(&self, metric: usize) -> String {
        let observed = &self.outcome.results.metrics[metric];
        shortened(&crate::lab::label(observed), NAME_MAX)
    }

    /// Returns the name of a cell and variant, short enough for a figure.
    fn name(&self, cell: usize, variant: usize) -> String {
        let label = &self.plan.cells[cell].label;
        joined(label, self.variant(variant))
    }

    fn variant(&self, variant: usize) -> &str {
        &self.plan.variants[variant].name
    }
}

/// Writes what to know about the numbers: the notes of the table that are more than conditions.
fn caveats(page: &mut Page, table: &Table) {
    page.heading(2, "What to know about these numbers");
    let notes: Vec<String> = table
        .notes
        .iter()
        .filter(|note| is_caveat(note))
        .cloned()
        .collect();
    match notes.is_empty() {
        true => page
            .paragraph("No run failed or was disturbed, and no comparison is unclear or unstable."),
        false => page.list("caveats", &notes),
    }
}

/// Returns whether a note says more than how the lab was measured.
fn is_caveat(note: &str) -> bool {
    CAVEATS.iter().any(|kind| note.starts_with(kind))
        || note.contains("were disturbed")
        || note.contains("were done again")
        || note.contains("waits for")
}

fn results(page: &mut Page, plan: &LabPlan, table: &Table) {
    page.heading(2, "Results");
    let (heads, rows) = table.shown();
    if rows.is_empty() {
        page.paragraph("There are no results.");
        return;
    }
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let caption = match plan.search {
        Some(_) => "Loads that were tried, by search",
        None => "Medians of the repeats",
    };
    page.table(caption, &heads, &rows);
}

/// Writes how the lab was measured, its file, and all numbers.
fn measured(page: &mut Page, view: &View<'_>, table: &Table, about: &LabAbout) {
    page.heading(2, "How this was measured");
    let conditions = table.notes.iter().filter(|note| !is_caveat(note)).cloned();
    let origin = Some(&table.head.origin).filter(|origin| !origin.is_empty());
    let origin = origin.map(|origin| format!("published figures: {origin}"));
    let arguments = view.plan.arguments.iter();
    let arguments = arguments.map(|(name, value)| format!("{name}={value}"));
    // The text of a model is that of the machine file.
    let facts = about.circumstances.iter();
    let facts = facts.filter(|(fact, _)| fact.as_str() != "model");
    let facts = facts.map(|(fact, values)| format!("{fact}: {}", values.join(" or ")));
    let all: Vec<String> = conditions
        .chain(origin)
        .chain(arguments)
        .chain(facts)
        .collect();
    page.list("facts", &all);
    page.details("Lab file", &view.plan.text);
    if let Some(machine) = &view.plan.machine {
        page.details("Machine file", &machine.text);
    }
    page.details("All numbers, as JSON", &table.json());
    runs::values(page, view);
}

/// Joins the name of a cell and of a variant.
fn joined(cell: &str, variant: &str) -> String {
    let parts = [cell, variant].into_iter().filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts.collect();
    shortened(&parts.join(", "), NAME_MAX)
}

/// Begins of notes that may change what a reader concludes.
const CAVEATS: [&str; 9] = [
    "failed",
    "disturbed",
    "unclear",
    "unstable",
    "order",
    "not steady",
    "interrupted",
    "A/A",
    "runs are left",
];

/// Most characters of a title and of a name in a figure.
const TITLE_MAX: usize = 200;
const NAME_MAX: usize = 60;
