//! Results of a lab's runs, as they come in.

use super::executor::RunDone;
use super::levels::{RunTimes, half_width};
use super::merged::Merged;
use super::observed::Observed;
use super::steady::metric_of;
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
    /// Half the width of each metric's interval within each run, relative to its value; those of
    /// A/A experiments, which report none, are left out.
    pub within: Values,
    /// Time of the runs.
    pub(crate) times: RunTimes,
    /// State of each cell.
    pub cells: Vec<CellState>,
    /// Latencies of all repeats together, by cell, variant and metric, of percentiles.
    merged: Merged,
    /// First round that counts; later than the first one in rounds until steady.
    pub first_round: u32,
    /// Runs that were disturbed.
    pub disturbed: Vec<Disturbance>,
    /// Number of repeats that were done again after an error.
    pub retried: u32,
    baseline: usize,
    is_a_a: bool,
    /// Cell and metric that have to be steady.
    steady: Option<(usize, usize)>,
}

/// State of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellState {
    /// Complete repeats.
    pub repeats: u32,
    /// Rate that a curve asks of all jobs of the baseline together, ops or bytes per second.
    pub asked: Option<u64>,
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
        let values = Values::new(plan.cells.len(), plan.variants.len(), metrics.len());
        let mut results = Self {
            within: values.clone(),
            values,
            metrics,
            times: RunTimes::default(),
            cells: vec![CellState::default(); plan.cells.len()],
            merged: Merged::new(plan.rounds.as_ref().map(|rounds| rounds.window)),
            first_round: 0,
            disturbed: Vec::new(),
            retried: 0,
            baseline: plan.judge.baseline,
            is_a_a: plan.a_a,
            steady: None,
        };
        for (metric, judged) in plan.judge.metrics.iter().enumerate() {
            for cell in (0..plan.cells.len()).filter(|cell| !plan.can_have(*cell, &judged.metric)) {
                results.values.rule_out(cell, metric);
            }
        }
        results.steady = plan.rounds.as_ref().and_then(|rounds| {
            let metric = metric_of(rounds, &results)?;
            Some((rounds.cell, metric))
        });
        results
    }

    /// Returns a sentence about the first judged metric, or the one that has to be steady, that a
    /// run of a cell has no value of: such a run has failed.
    #[must_use]
    pub fn missing(&self, cell: usize, run: &RunDone) -> Option<String> {
        let judged = self.metrics.iter().filter(|metric| metric.rule.is_some());
        let steady = self.steady.filter(|(of_cell, _)| *of_cell == cell);
        let steady = steady.map(|(_, metric)| &self.metrics[metric]);
        let mut needed = judged.chain(steady);
        let lacking = needed.find(|metric| run.value(&metric.name).is_none())?;
        if lacking.name.is_of_service() {
            let name = &lacking.name;
            return Some(format!("`stats` of the service printed no number `{name}`"));
        }
        Some(format!(
            "the run has no `{}`: nothing was done in that direction, the latency is not kept, or \
             fewer than ten ops are beyond the percentile",
            lacking.name
        ))
    }

    /// Adds a complete repeat.
    pub fn add(&mut self, runs: &[(Slot, RunDone)]) {
        for (slot, run) in runs {
            self.times.add(run);
            for (at, metric) in self.metrics.iter().enumerate() {
                let side = (slot.cell, slot.variant);
                if let Some(value) = run.value(&metric.name) {
                    self.values.add(side, at, slot.repeat, value);
                }
                if !self.is_a_a
                    && let Some(half) = half_width(run, metric)
                {
                    self.within.add(side, at, slot.repeat, half);
                }
                if metric.name.row.is_percentile
                    && let Some(record) = &run.record
                    && let Some(latency) = metric.name.latency(record)
                {
                    let key = (slot.cell, slot.variant, at);
                    self.merged.add(key, slot.repeat, &latency);
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

    /// Ends those of the cells whose intervals are narrow.
    pub(crate) fn stop_narrow_cells(&mut self, cells: impl Iterator<Item = usize>) {
        let rules = self.rules();
        for number in cells {
            let cell = &mut self.cells[number];
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
        self.merged.percentile((cell, variant, metric), percent)
    }

    /// Leaves out the rounds before this one: their values are kept, and no longer count.
    pub(crate) fn count_from(&mut self, round: u32) {
        self.first_round = round;
        self.values.count_from(round);
        self.within.count_from(round);
    }

    /// Returns the number of complete repeats of a cell that count.
    #[must_use]
    pub fn repeats(&self, cell: usize) -> u32 {
        self.cells[cell].repeats.saturating_sub(self.first_round)
    }

    fn rules(&self) -> Vec<JudgeRule> {
        self.metrics
            .iter()
            .filter_map(|metric| metric.rule)
            .collect()
    }
}
