//! Steady state by rounds: the last rounds, in which one metric of one cell is to be steady.
//!
//! A pure function of the runs that are done, so a lab that goes on decides as one that was never
//! interrupted.

use fathom_record::MetricName;
use fathom_stats::SteadyWindow;

use super::results::LabResults;
use crate::lab_plan::{LabPlan, Rounds};

/// Evaluation of the last rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Steadiness {
    /// First and last round of the window, from 1.
    pub rounds: (u32, u32),
    /// Each variant; all of them have to be steady.
    pub sides: Vec<SteadySide>,
}

/// Evaluation of one variant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadySide {
    /// Variant.
    pub variant: usize,
    /// Its last rounds; `None` if there are fewer than the window has.
    pub window: Option<SteadyWindow>,
    /// It is steady.
    pub is_steady: bool,
}

impl Steadiness {
    /// Evaluates the last of the `done` rounds; `None` without `[rounds]`.
    pub(crate) fn of(plan: &LabPlan, results: &LabResults, done: u32) -> Option<Self> {
        let rounds = plan.rounds.as_ref()?;
        let metric = metric_of(rounds, results)?;
        let sides = (0..plan.variants.len()).map(|variant| {
            let values = results.values.of_all(rounds.cell, variant, metric);
            side(rounds, variant, values)
        });
        Some(Self {
            rounds: (done.saturating_sub(rounds.window) + 1, done),
            sides: sides.collect(),
        })
    }

    /// Returns whether each variant is steady.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.sides.iter().all(|side| side.is_steady)
    }
}

/// Returns the index of the metric that has to be steady.
pub(crate) fn metric_of(rounds: &Rounds, results: &LabResults) -> Option<usize> {
    let name = MetricName::parse(&rounds.metric).ok()?;
    let mut metrics = results.metrics.iter();
    metrics.position(|metric| metric.name.is_same(&name))
}

fn side(rounds: &Rounds, variant: usize, values: &[(u32, f64)]) -> SteadySide {
    let from = values.len().checked_sub(rounds.window as usize);
    let last = from.map(|from| values[from..].iter().map(|(_, value)| *value));
    let window = last.and_then(|last| SteadyWindow::of(&last.collect::<Vec<_>>()));
    SteadySide {
        variant,
        window,
        is_steady: window.is_some_and(|window| window.is_steady(rounds.range, rounds.slope)),
    }
}
