//! Probe of one load: runs until each condition is clear, or its time is up.

use fathom_core::Nanos;

use super::gathered::{Estimate, Gathered};
use crate::lab::RunDone;
use crate::lab_plan::{OpenLoop, Search};

/// Probe of a load.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Load that is asked for, per second.
    pub load: u64,
    /// Number of runs.
    pub runs: u32,
    /// Time of all runs.
    pub time: Nanos,
    /// Estimates of the conditions, in their order; `None` of what was not measured.
    pub estimates: Vec<Option<Estimate>>,
    /// Metrics that are only shown, of the last run.
    pub shown: Vec<Option<f64>>,
    /// Its end.
    pub decision: Option<Decision>,
    conditions: Vec<Gathered>,
}

/// End of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// All conditions are kept.
    pub passed: bool,
    /// The time was up while an interval still held its limit.
    pub by_estimate: bool,
}

impl Probe {
    pub(super) fn new(load: u64, search: &Search, jobs: &OpenLoop) -> Self {
        let conditions = search.keep.iter().filter_map(|condition| {
            let direction = condition.metric.split('.').next().unwrap_or_default();
            let share = jobs.share_of(direction).unwrap_or(1.0);
            Gathered::new(condition, load as f64 * share)
        });
        let conditions: Vec<Gathered> = conditions.collect();
        Self {
            load,
            runs: 0,
            time: Nanos::ZERO,
            estimates: vec![None; conditions.len()],
            shown: Vec::new(),
            decision: None,
            conditions,
        }
    }

    /// Returns the duration of the next run: as long as all before together, so that what a run
    /// loses to its start becomes less and less.
    pub(super) fn next_length(&self, first: Nanos, most: Nanos) -> Nanos {
        let left = Nanos::new(most.get().saturating_sub(self.time.get()));
        first.max(self.time).min(left)
    }

    /// Adds a run that took so long, and decides if it can.
    pub(super) fn add(&mut self, run: &RunDone, length: Nanos, most: Nanos) {
        self.runs += 1;
        self.time = Nanos::new(self.time.get().saturating_add(length.get()));
        for (gathered, estimate) in self.conditions.iter_mut().zip(&mut self.estimates) {
            gathered.add(run);
            *estimate = gathered.estimate();
        }
        self.decision = self.clear().or_else(|| self.by_estimate(most));
        if self.decision.is_some() {
            // Their windows are of no more use, and take most of the memory of a search.
            self.conditions.clear();
        }
    }

    /// Returns the decision if the intervals allow one: a single condition that is missed is
    /// enough to fail, all must be kept to pass.
    fn clear(&self) -> Option<Decision> {
        let each = self.conditions.iter().zip(&self.estimates);
        let kept: Vec<Option<bool>> = each
            .map(|(gathered, estimate)| gathered.is_kept(estimate.as_ref()?))
            .collect();
        let passed = match kept {
            kept if kept.contains(&Some(false)) => false,
            kept if kept.iter().all(|kept| *kept == Some(true)) => true,
            _ => return None,
        };
        Some(Decision {
            passed,
            by_estimate: false,
        })
    }

    /// Returns the decision at the end of the time. Something that was never measured is not kept.
    fn by_estimate(&self, most: Nanos) -> Option<Decision> {
        if self.time < most {
            return None;
        }
        let mut each = self.conditions.iter().zip(&self.estimates);
        let is_kept = |(gathered, estimate): (&Gathered, &Option<Estimate>)| {
            let estimate = estimate.as_ref();
            estimate.is_some_and(|estimate| gathered.is_kept_by(estimate))
        };
        Some(Decision {
            passed: each.all(is_kept),
            by_estimate: true,
        })
    }
}
