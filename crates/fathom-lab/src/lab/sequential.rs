//! The design that an experiment is not: all runs of one variant before all of the next.
//!
//! ```text
//! as run      A B · B A · A B · B A      the order of each repeat is drawn
//! taken as    A A   A A   B B   B B      halves of the same runs: drift between them is a change
//! ```

use std::collections::BTreeMap;

use fathom_stats::{RatioInterval, Verdict, holm, rank_sum};

use super::results::LabResults;
use crate::lab_plan::LabPlan;
use crate::order::Part;

/// Returns whether an experiment of equal variants would claim a change if its runs, in the order
/// in which they were made, had been those of one variant after the other: by the rank-sum test,
/// Holm's correction and the tolerances of the experiment. The baseline comes first.
pub(super) fn claims(plan: &LabPlan, results: &LabResults) -> bool {
    let mut compared = Vec::new();
    for (at, metric) in results.metrics.iter().enumerate() {
        let Some(rule) = metric.rule else {
            continue;
        };
        for runs in by_time(plan, results, at).into_values() {
            let each = runs.len() / plan.variants.len().max(1);
            let mut blocks = runs.chunks_exact(each.max(1));
            let Some(first) = blocks.next() else {
                continue;
            };
            compared.extend(blocks.map(|block| {
                let ratio = RatioInterval::of_series_with_zeros(block, first);
                (rank_sum(block, first), ratio, rule)
            }));
        }
    }
    let p_values: Vec<f64> = compared.iter().map(|(p, ..)| *p).collect();
    let mut all = compared.iter().zip(holm(&p_values));
    all.any(|((_, ratio, rule), p)| {
        let verdict = ratio.map(|ratio| Verdict::of(&ratio, p, rule.tolerance, rule.improves));
        matches!(verdict, Some(Verdict::Better | Verdict::Worse))
    })
}

/// Returns the values of a metric in each cell, in the order of the runs.
fn by_time(plan: &LabPlan, results: &LabResults, metric: usize) -> BTreeMap<usize, Vec<f64>> {
    let mut runs: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for part in Part::of(plan) {
        for round in 0..plan.judge.repeats.max {
            for slot in part.order(plan, round) {
                let values = results.values.of(slot.cell, slot.variant, metric);
                let found = values.iter().find(|(repeat, _)| *repeat == round);
                if let Some((_, value)) = found {
                    runs.entry(slot.cell).or_default().push(*value);
                }
            }
        }
    }
    runs
}
