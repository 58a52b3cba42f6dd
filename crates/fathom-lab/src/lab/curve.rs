//! Loads of a curve: shares of the closed-loop maximum, which is measured first.
//!
//! ```text
//! all repeats of the cells at `max` ─► median rate of the baseline ─► shares of it ─► other cells
//! ```
//!
//! A load follows from the runs at the maximum alone, so a curve that is resumed has the same ones.

use std::collections::BTreeMap;

use fathom_record::{MetricName, MetricNameError};
use fathom_stats::median;

use super::executor::RunDone;
use crate::lab_plan::{CurveLoad, LabPlan, Load};
use crate::order::Slot;

/// Rates of a lab's closed-loop maxima; empty without a curve.
pub(super) struct Maxima<'a> {
    plan: &'a LabPlan,
    metric: MetricName,
    /// Rates of the baseline, by cell.
    rates: BTreeMap<usize, Vec<f64>>,
}

impl<'a> Maxima<'a> {
    /// Creates maxima without values.
    ///
    /// # Errors
    /// The metric of the load has no such name.
    pub(super) fn new(plan: &'a LabPlan) -> Result<Self, MetricNameError> {
        Ok(Self {
            plan,
            metric: MetricName::parse(plan.load_metric().0)?,
            rates: BTreeMap::new(),
        })
    }

    /// Returns whether a cell is run at the maximum of a curve.
    pub(super) fn has(&self, cell: usize) -> bool {
        self.plan.curve_load(cell) == Some(CurveLoad::Max)
    }

    /// Returns a sentence about the rate that a run at the maximum has not. Judged metrics may be
    /// missing there: a closed loop has no time at which an op was due.
    pub(super) fn missing(&self, done: &RunDone) -> Option<String> {
        let rate = done.value(&self.metric).filter(|rate| *rate > 0.0);
        rate.is_none().then(|| {
            format!(
                "the run has no `{}`, of which loads are shares: nothing was done",
                self.metric
            )
        })
    }

    /// Adds a run.
    pub(super) fn add(&mut self, slot: &Slot, done: &RunDone) {
        if !self.has(slot.cell) || slot.variant != self.plan.judge.baseline {
            return;
        }
        if let Some(rate) = done.value(&self.metric) {
            let rates = self.rates.entry(slot.cell).or_default();
            rates.push(rate);
            rates.sort_by(f64::total_cmp);
        }
    }

    /// Returns the load of a cell's jobs in a variant: that of their closed loop at the maximum,
    /// and without a curve.
    pub(super) fn load(&self, cell: usize, variant: usize) -> Option<Load> {
        let CurveLoad::Share(share) = self.plan.curve_load(cell)? else {
            return None;
        };
        let maximum = median(self.rates.get(&self.plan.max_cell(cell))?);
        let jobs = self.plan.open_loop(cell, variant);
        Some(Load {
            rate: Some(jobs.nearest(maximum * share)),
            length: None,
        })
    }
}
