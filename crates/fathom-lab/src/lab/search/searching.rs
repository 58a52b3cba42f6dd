//! One search: which run is next, as a function of the runs so far.

use fathom_core::Nanos;
use fathom_record::MetricName;

use super::bracket::Bracket;
use super::probe::Probe;
use crate::lab::RunDone;
use crate::lab_plan::{LabPlan, Load, OpenLoop, Search};

/// Search for the highest load of a cell and variant. The same runs always lead to the same next
/// one, which is how an interrupted search goes on.
#[derive(Clone, Debug)]
pub struct Searching {
    /// Cell.
    pub cell: usize,
    /// Variant.
    pub variant: usize,
    /// Closed-loop maximum, per second.
    pub maximum: Option<f64>,
    /// Probes, in the order in which they began.
    pub probes: Vec<Probe>,
    /// Error that ended it.
    pub failure: Option<String>,
    /// Runs so far.
    pub(super) runs: u32,
    bracket: Bracket,
    search: Search,
    jobs: OpenLoop,
    load_metric: &'static str,
    /// Metrics that are only shown.
    shown: Vec<MetricName>,
}

impl Searching {
    pub(super) fn new(
        plan: &LabPlan,
        search: &Search,
        (cell, variant): (usize, usize),
        shown: Vec<MetricName>,
    ) -> Self {
        Self {
            cell,
            variant,
            maximum: None,
            probes: Vec::new(),
            failure: None,
            runs: 0,
            bracket: Bracket::default(),
            search: search.clone(),
            jobs: plan.open_loop(cell, variant).clone(),
            load_metric: plan.load_metric().0,
            shown,
        }
    }

    /// Returns the highest load that passed.
    #[must_use]
    pub const fn passed(&self) -> Option<u64> {
        self.bracket.passed
    }

    /// Returns the lowest load that failed.
    #[must_use]
    pub const fn failed(&self) -> Option<u64> {
        self.bracket.failed
    }

    /// Returns whether the loads that passed and failed are as near as they were to come.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.failure.is_none() && self.passed().is_some() && self.failed().is_some()
    }

    /// Returns the load of the next run; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Load> {
        if self.failure.is_some() {
            return None;
        }
        let first = self.jobs.length.unwrap_or(self.search.probe_most);
        let Some(maximum) = self.maximum else {
            return Some(Load {
                rate: None,
                length: Some(first),
            });
        };
        let is_open = |probe: &&Probe| probe.decision.is_none();
        if self.probes.last().filter(is_open).is_none() {
            let start = self.jobs.nearest(maximum);
            let load = self
                .bracket
                .next(start, self.search.precision, &self.jobs)?;
            self.probes.push(Probe::new(load, &self.search, &self.jobs));
        }
        let probe = self.probes.last()?;
        Some(Load {
            rate: Some(probe.load),
            length: Some(probe.next_length(first, self.search.probe_most)),
        })
    }

    /// Adds the run of this load, which was the next one.
    pub(super) fn add(&mut self, run: &RunDone, load: &Load) {
        self.runs += 1;
        if load.rate.is_none() {
            let name = MetricName::parse(self.load_metric).ok();
            let value = name.and_then(|name| run.value(&name));
            match value.filter(|value| *value >= 1.0) {
                Some(value) => self.maximum = Some(value),
                None => self.failure = Some("the closed-loop maximum is below 1 per second".into()),
            }
            return;
        }
        let (most, length) = (self.search.probe_most, load.length.unwrap_or(Nanos::ZERO));
        let Some(probe) = self.probes.last_mut() else {
            return;
        };
        probe.add(run, length, most);
        probe.shown = self.shown.iter().map(|name| run.value(name)).collect();
        if let Some(decision) = probe.decision {
            self.bracket.add(probe.load, decision.passed);
        }
    }
}
