//! Verdicts from repeated runs.
//!
//! ```text
//! value per (cell, variant, repeat, metric)
//!   └► pairs with the baseline of the same repeat ─► signed-rank test, ratio and its interval
//!                                                     └► Holm over all comparisons ─► verdict
//! ```
//!
//! The unit is the run: each gives one number per metric, and only repeats show how much that
//! number varies. Variants of a repeat run back to back in a drawn order, so the test is exact
//! whatever the noise.

mod values;

#[cfg(test)]
mod tests;

use fathom_stats::{Improves, RatioInterval, Verdict, holm, repeats_to_prove, unstable};

pub use values::Values;

/// Rule by which a metric is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JudgeRule {
    /// Direction in which the metric improves.
    pub improves: Improves,
    /// Relative change that is too small to matter, above 0.
    pub tolerance: f64,
}

/// Comparison of a variant with the baseline in one cell, by one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Cell.
    pub cell: usize,
    /// Variant, not the baseline.
    pub variant: usize,
    /// Index of the metric.
    pub metric: usize,
    /// Repeats in which both sides have a value.
    pub repeats: usize,
    /// Estimated ratio to the baseline; `None` with fewer than five repeats, or if it has no
    /// bounds: values are 0.
    pub ratio: Option<RatioInterval>,
    /// p value of the signed-rank test; 1 without values.
    pub p: f64,
    /// The p value after Holm's correction for all comparisons.
    pub p_adjusted: f64,
    /// Verdict.
    pub verdict: Verdict,
    /// Number of repeats that would settle an unclear one, if the estimate stays; `None` if it
    /// cannot be said, or none would.
    pub settled_by: Option<u32>,
    /// The interval is at least five times as wide as that of the median cell.
    pub is_unstable: bool,
}

/// Compares each variant with the baseline, in each cell and by each metric. Comparisons without
/// values, as of a failed cell, are unclear; they count as comparisons nevertheless, since dropping
/// them after the fact would make the others look more certain. What was [ruled
/// out](Values::rule_out) before the first run is not a comparison.
#[must_use]
pub fn judge(values: &Values, baseline: usize, rules: &[JudgeRule]) -> Vec<Judgement> {
    let mut judgements = Vec::new();
    for (cell, variant) in values.sides() {
        if variant == baseline {
            continue;
        }
        for metric in (0..rules.len()).filter(|metric| !values.is_ruled_out(cell, *metric)) {
            judgements.push(compare(values, baseline, (cell, variant, metric)));
        }
    }
    let p_values: Vec<f64> = judgements.iter().map(|one| one.p).collect();
    for (one, p_adjusted) in judgements.iter_mut().zip(holm(&p_values)) {
        let rule = &rules[one.metric];
        one.p_adjusted = p_adjusted;
        // A change from 0 is an infinite one, beyond any tolerance: it has a verdict, and no ratio.
        let Some(ratio) = one.ratio.take() else {
            continue;
        };
        one.verdict = Verdict::of(&ratio, p_adjusted, rule.tolerance, rule.improves);
        one.ratio = Some(ratio).filter(RatioInterval::is_bounded);
        if let (Verdict::Unclear, Some(ratio)) = (one.verdict, &one.ratio) {
            let repeats = u32::try_from(one.repeats).unwrap_or(u32::MAX);
            let all = p_values.len();
            let least = repeats_to_prove(all);
            one.settled_by = ratio.repeats_to_settle(repeats, rule.tolerance, all, least);
        }
    }
    for metric in 0..rules.len() {
        mark_unstable(&mut judgements, metric);
    }
    judgements
}

/// Returns whether a cell needs no more repeats: the interval of each comparison is narrow enough.
/// Without an interval, or with one that reaches to 0 or to infinity, it needs more.
#[must_use]
pub fn is_narrow(values: &Values, baseline: usize, rules: &[JudgeRule], cell: usize) -> bool {
    let variants = (0..values.variants()).filter(|variant| *variant != baseline);
    let mut comparisons = variants.flat_map(|variant| {
        let rules = rules.iter().enumerate();
        let rules = rules.filter(|(metric, _)| !values.is_ruled_out(cell, *metric));
        rules.map(move |(metric, rule)| (variant, metric, rule))
    });
    comparisons.all(|(variant, metric, rule)| {
        let pairs = values.pairs(cell, (variant, baseline), metric);
        let ratio = RatioInterval::of_pairs_with_zeros(&pairs);
        ratio.is_some_and(|ratio| ratio.is_bounded() && ratio.is_narrow(rule.tolerance))
    })
}

/// Marks the comparisons by one metric whose intervals are far wider than most.
fn mark_unstable(judgements: &mut [Judgement], metric: usize) {
    let width = |one: &Judgement| one.ratio.map(|ratio| ratio.half_width());
    let of_metric = |one: &&mut Judgement| one.metric == metric && one.ratio.is_some();
    let mut measured: Vec<&mut Judgement> = judgements.iter_mut().filter(of_metric).collect();
    let widths: Vec<f64> = measured.iter().filter_map(|one| width(one)).collect();
    for (one, is_unstable) in measured.iter_mut().zip(unstable(&widths)) {
        one.is_unstable = is_unstable;
    }
}

/// Compares without a verdict, which takes the other comparisons.
fn compare(
    values: &Values,
    baseline: usize,
    (cell, variant, metric): (usize, usize, usize),
) -> Judgement {
    let pairs = values.pairs(cell, (variant, baseline), metric);
    Judgement {
        cell,
        variant,
        metric,
        repeats: pairs.len(),
        ratio: RatioInterval::of_pairs_with_zeros(&pairs),
        p: RatioInterval::p_of_pairs(&pairs).unwrap_or(1.0),
        p_adjusted: 1.0,
        verdict: Verdict::Unclear,
        settled_by: None,
        is_unstable: false,
    }
}
