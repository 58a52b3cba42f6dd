//! Runs of an embedded lab, as its view reads them.

use std::collections::BTreeMap;

use fathom_record::MetricName;

use crate::counted::counted;
use crate::lab::RunDone;
use crate::lab_plan::LabPlan;
use crate::order::Slot;
use crate::table::Cell;

/// Experiment and its runs.
pub(crate) struct Measured {
    pub(crate) plan: LabPlan,
    /// Runs of complete repeats.
    pub(crate) runs: Vec<(Slot, RunDone)>,
    /// Error that ended each cell.
    pub(crate) failures: Vec<Option<String>>,
    pub(crate) is_interrupted: bool,
}

impl Measured {
    /// Iterates over the runs of a cell and a variant.
    pub(crate) fn of(&self, cell: usize, variant: usize) -> impl Iterator<Item = &RunDone> {
        let runs = self.runs.iter();
        let runs = runs.filter(move |(slot, _)| (slot.cell, slot.variant) == (cell, variant));
        runs.map(|(_, done)| done)
    }

    /// Returns a value that the axes set in a cell; 0 without it.
    pub(crate) fn setting(&self, cell: usize, key: &str) -> u64 {
        let mut settings = self.plan.cells[cell].settings();
        let setting = settings.find(|setting| setting.key == key);
        setting.map_or(0, |setting| setting.value.parse().unwrap_or(0))
    }

    /// Returns the shown value of an axis in a cell.
    pub(crate) fn axis(&self, cell: usize, axis: usize) -> &str {
        &self.plan.axes[axis].values[self.plan.cells[cell].values[axis]]
    }

    /// Returns a note per reason for which cells have failed.
    fn failure_notes(&self) -> Vec<String> {
        let mut cells: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (why, cell) in self.failures.iter().zip(&self.plan.cells) {
            if let Some(why) = why {
                cells.entry(why).or_default().push(&cell.label);
            }
        }
        let note = |(why, cells): (&str, Vec<&str>)| match cells.join("; ").as_str() {
            "" => format!("not complete: {why}"),
            cells => format!("{cells}: not measured: {why}"),
        };
        cells.into_iter().map(note).collect()
    }

    /// Returns notes on what is missing and what was disturbed.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = self.failure_notes();
        let runs = self.runs.iter();
        let disturbed = runs.filter_map(|(_, done)| done.disturbance.as_deref());
        let disturbed: Vec<&str> = disturbed.collect();
        if let [first, ..] = disturbed[..] {
            let runs = counted(disturbed.len() as u64, "disturbed run");
            notes.push(format!("{runs}, the first: {first}"));
        }
        if self.is_interrupted {
            notes.push("interrupted; the remaining runs are missing".into());
        }
        notes
    }
}

/// Returns a metric of a run in the unit of its name; `None` of percentiles beyond which fewer than
/// ten ops lie.
pub(crate) fn value(run: &RunDone, metric: &str) -> Option<f64> {
    let name = MetricName::parse(metric).ok()?;
    run.value(&name).map(|stored| name.in_unit(stored))
}

/// Returns a value as a whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive number of ops, bytes or ns"
)]
pub(crate) fn whole(value: Option<f64>) -> Cell {
    value.map_or(Cell::Missing, |value| Cell::Count(value.round() as u64))
}
