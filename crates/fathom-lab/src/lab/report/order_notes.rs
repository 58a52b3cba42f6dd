//! Notes on effects of the order of runs, which is drawn: they widen the intervals of a lab, and
//! show what is missing in its runs.

use fathom_stats::{
    OrderEffect, OrderedRun, SIGNIFICANT, effect_of_place, effect_of_predecessor, holm,
};

use super::label;
use crate::figure::change;
use crate::lab::LabResults;
use crate::lab_plan::LabPlan;
use crate::order::Part;

/// Returns a note for each effect of place or predecessor on a judged metric that is significant
/// among all that are tested.
pub(super) fn order_notes(plan: &LabPlan, results: &LabResults) -> Vec<String> {
    let judged = (0..results.metrics.len()).filter(|at| results.metrics[*at].rule.is_some());
    let mut found: Vec<(String, OrderEffect)> = Vec::new();
    for metric in judged {
        let runs = ordered(plan, results, metric);
        let name = label(&results.metrics[metric]);
        let name = name.split(',').next().unwrap_or_default();
        found.extend(effect_of_place(&runs).map(|effect| {
            let place = effect.group + 1;
            (
                format!("{name} of runs in place {place} of a repeat"),
                effect,
            )
        }));
        found.extend(effect_of_predecessor(&runs).map(|effect| {
            let before = &plan.variants[effect.group].name;
            (format!("{name} of runs directly after `{before}`"), effect)
        }));
    }
    let p_values: Vec<f64> = found.iter().map(|(_, effect)| effect.p).collect();
    let effects = found.iter().zip(holm(&p_values));
    effects
        .filter(|(_, p)| *p <= SIGNIFICANT)
        .map(|((of, effect), _)| {
            format!(
                "order: {of}: {} against the mean; verdicts allow for it, but a pause or a \
                 warm-up would narrow the intervals",
                change(effect.ratio)
            )
        })
        .collect()
}

/// Returns the runs of a metric in the order in which they were drawn.
fn ordered(plan: &LabPlan, results: &LabResults, metric: usize) -> Vec<OrderedRun> {
    let mut runs: Vec<OrderedRun> = Vec::new();
    let mut after = None;
    let rounds = 0..plan.judge.repeats.max;
    let parts = Part::of(plan).iter();
    for (part, round) in parts.flat_map(|part| rounds.clone().map(move |round| (part, round))) {
        let (mut cell, mut place) = (None, 0);
        for slot in part.order(plan, round) {
            let values = results.values.of(slot.cell, slot.variant, metric);
            let Ok(at) = values.binary_search_by_key(&round, |(repeat, _)| *repeat) else {
                continue;
            };
            place = if cell == Some(slot.cell) {
                place + 1
            } else {
                0
            };
            cell = Some(slot.cell);
            runs.push(OrderedRun {
                repeat: round as usize * plan.cells.len() + slot.cell,
                treatment: slot.cell * plan.variants.len() + slot.variant,
                place,
                after,
                value: values[at].1,
            });
            after = Some(slot.variant);
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::observed;
    use crate::lab_file::tests::Files;

    const LAB: &str = r#"
[lab]
name = "t"
[job]
rw = "randread"
filename = "/dev/sdx"
runtime = "1s"
[variants]
one = {}
other = { job = { iodepth = 2 } }
[judge]
baseline = "one"
metrics = { "read.iops" = "2%" }
repeats = { min = 20, max = 20, stop = "never" }
"#;

    /// Returns the notes if the first run of each repeat is slower by this factor.
    fn notes(first: f64) -> Vec<String> {
        let files = Files::new(&[]);
        let plan = LabPlan::parse("t.toml", LAB, &[], &files).expect("a lab");
        let metrics = observed(&plan).expect("metrics");
        let mut results = LabResults::new(&plan, metrics);
        for round in 0..20 {
            for slot in Part::All.order(&plan, round) {
                let place = u32::try_from(slot.place).expect("a place of two");
                let wiggle = f64::from((round * 7 + place * 3) % 11) / 1000.0;
                let factor = if slot.place == 0 { first } else { 1.0 };
                let side = (slot.cell, slot.variant);
                results
                    .values
                    .add(side, 0, round, 1000.0 * factor * (1.0 + wiggle));
            }
        }
        order_notes(&plan, &results)
    }

    #[test]
    fn a_slow_first_run_is_told() {
        assert_eq!(notes(1.0), Vec::<String>::new());
        let notes = notes(0.9);
        assert!(
            notes[0].starts_with("order: read.iops of runs in place 1"),
            "{notes:?}"
        );
    }
}
