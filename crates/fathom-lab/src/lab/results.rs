//! Results of a lab's runs, as they come in.

use std::collections::BTreeMap;

use fathom_stats::Latency;

use super::executor::RunDone;
use super::observed::Observed;
use crate::judge::{JudgeRule, Judgement, Values, is_narrow, judge};
use crate::lab_plan::LabPlan;
use crate::order::Slot;

/// Values of all runs that count, and the state of each cell.
#[derive(Clone, Debug)]
pub struct LabResults {
    /// Metrics; the judged ones first.
    pub metrics: Vec<Observed>,
    /// Value of each metric in each run.
    pub values: Values,
    /// State of each cell.
    pub cells: Vec<CellState>,
    /// Latencies of all repeats together, by cell, variant and metric, of percentiles.
    merged: BTreeMap<(usize, usize, usize), Latency>,
    /// Runs that were disturbed.
    pub disturbed: Vec<Disturbance>,
    /// Number of repeats that were done again after an error.
    pub retried: u32,
    baseline: usize,
}

/// State of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellState {
    /// Complete repeats.
    pub repeats: u32,
    /// Its intervals are narrow: it gets no more repeats.
    pub is_narrow: bool,
    /// Error that ended it.
    pub failure: Option<String>,
}

/// Run that was disturbed; it counts nevertheless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disturbance {
    /// Cell.
    pub cell: usize,
    /// Variant.
    pub variant: usize,
    /// Repeat.
    pub repeat: u32,
    /// Event, as a phrase.
    pub what: String,
}

impl LabResults {
    /// Creates results without values.
    #[must_use]
    pub fn new(plan: &LabPlan, metrics: Vec<Observed>) -> Self {
        Self {
            values: Values::new(plan.cells.len(), plan.variants.len(), metrics.len()),
            metrics,
            cells: vec![CellState::default(); plan.cells.len()],
            merged: BTreeMap::new(),
            disturbed: Vec::new(),
            retried: 0,
            baseline: plan.judge.baseline,
        }
    }

    /// Returns a sentence about the first judged metric that a run has no value of: such a run has
    /// failed.
    #[must_use]
    pub fn missing(&self, run: &RunDone) -> Option<String> {
        let mut judged = self.metrics.iter().filter(|metric| metric.rule.is_some());
        let lacking = judged.find(|metric| run.value(&metric.name).is_none())?;
        Some(format!(
            "the run has no `{}`: nothing was done in that direction, the latency is not kept, or \
             fewer than ten ops are beyond the percentile",
            lacking.name
        ))
    }

    /// Adds a complete repeat.
    pub fn add(&mut self, runs: &[(Slot, RunDone)]) {
        for (slot, run) in runs {
            for (at, metric) in self.metrics.iter().enumerate() {
                let side = (slot.cell, slot.variant);
                if let Some(value) = run.value(&metric.name) {
                    self.values.add(side, at, slot.repeat, value);
                }
                if metric.name.row.is_percentile
                    && let Some(record) = &run.record
                    && let Some(latency) = metric.name.latency(record)
                {
                    let key = (slot.cell, slot.variant, at);
                    self.merged.entry(key).or_default().merge(&latency);
                }
            }
            self.disturbed
                .extend(run.disturbance.as_ref().map(|what| Disturbance {
                    cell: slot.cell,
                    variant: slot.variant,
                    repeat: slot.repeat,
                    what: what.clone(),
                }));
        }
        if let Some((slot, _)) = runs.first() {
            self.cells[slot.cell].repeats += 1;
        }
    }

    /// Ends the cells whose intervals are narrow.
    pub(crate) fn stop_narrow_cells(&mut self) {
        let rules = self.rules();
        for (number, cell) in self.cells.iter_mut().enumerate() {
            let decides = !cell.is_narrow && cell.failure.is_none();
            if decides && is_narrow(&self.values, self.baseline, &rules, number) {
                cell.is_narrow = true;
            }
        }
    }

    /// Judges the variants by what there is.
    #[must_use]
    pub fn judgements(&self) -> Vec<Judgement> {
        judge(&self.values, self.baseline, &self.rules())
    }

    /// Returns a percentile of all repeats' ops together, in the unit in which values are kept.
    #[must_use]
    pub fn merged(&self, cell: usize, variant: usize, metric: usize) -> Option<f64> {
        let percent = self.metrics[metric].name.percent?;
        let latency = self.merged.get(&(cell, variant, metric))?;
        latency.interpolated(percent)
    }

    fn rules(&self) -> Vec<JudgeRule> {
        self.metrics
            .iter()
            .filter_map(|metric| metric.rule)
            .collect()
    }
}
