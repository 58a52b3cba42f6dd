//! Runs of an embedded lab, as its view reads them.

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

    /// Returns notes on what is missing and what was disturbed.
    pub(crate) fn notes(&self) -> Vec<String> {
        let failed = self.failures.iter().zip(&self.plan.cells);
        let failed = failed.filter_map(|(why, cell)| match (why, cell.label.as_str()) {
            (Some(why), "") => Some(format!("not complete: {why}")),
            (Some(why), label) => Some(format!("{label}: not measured: {why}")),
            (None, _) => None,
        });
        let mut notes: Vec<String> = failed.collect();
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

/// Returns the value of a metric as a whole number; missing if the run has none, as of percentiles
/// beyond which fewer than ten ops lie.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive number of ops, bytes or ns"
)]
pub(crate) fn whole(run: &RunDone, metric: &str) -> Cell {
    let name = MetricName::parse(metric).ok();
    let value = name.and_then(|name| run.value(&name));
    value.map_or(Cell::Missing, |value| Cell::Count(value.round() as u64))
}
