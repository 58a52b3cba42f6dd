//! Runs that are tried when a lab file is read.

use std::collections::BTreeSet;

use crate::lab_plan::{JobText, LabCell, LabPlan, LabVariant, Setting, Subject, Target};

/// Run of a cell and a variant whose jobs are read.
#[derive(Clone, Copy)]
pub(super) struct Trial<'a> {
    pub(super) cell: &'a LabCell,
    pub(super) variant: &'a LabVariant,
}

/// Runs to try.
pub(super) struct Trials<'a> {
    /// The runs, no two of them with the same jobs on the same machine.
    pub(super) runs: Vec<Trial<'a>>,
    /// No run of the lab has other jobs or another machine.
    pub(super) are_all: bool,
}

impl<'a> Trial<'a> {
    /// Returns the jobs before settings.
    pub(super) fn job(&self, plan: &'a LabPlan) -> Option<&'a JobText> {
        match &plan.subject {
            Subject::Job(job) => Some(self.variant.job.as_ref().unwrap_or(job)),
            Subject::Peak(_) => None,
        }
    }

    /// Returns the settings of cell and variant.
    pub(super) fn settings(&self) -> impl Iterator<Item = &'a Setting> {
        self.cell.settings().chain(&self.variant.settings)
    }

    /// Returns the name of the run: `bs=4k of `fast``; empty for the only one.
    pub(super) fn place(&self) -> String {
        match (self.cell.label.as_str(), self.variant.name.as_str()) {
            ("", "") => String::new(),
            ("", variant) => format!("`{variant}`"),
            (cell, "") => format!("`{cell}`"),
            (cell, variant) => format!("`{cell}` of `{variant}`"),
        }
    }
}

impl<'a> Trials<'a> {
    /// Chooses the runs: first such that each value of each axis is in one, and each variant; then
    /// all others, as far as reading them takes no more than moments.
    pub(super) fn of(plan: &'a LabPlan) -> Self {
        let everywhere = plan.cells.iter().flat_map(|cell| {
            let variants = plan.variants.iter();
            variants.map(move |variant| Trial { cell, variant })
        });
        let mut bytes = 0;
        let mut known = BTreeSet::new();
        let mut trials = Self {
            runs: Vec::new(),
            are_all: true,
        };
        let first = each_value(plan).into_iter().map(|trial| (trial, true));
        for (trial, is_needed) in first.chain(everywhere.map(|trial| (trial, false))) {
            let of_job = trial.settings();
            let of_job = of_job.filter(|setting| setting.target == Target::Job);
            let options: Vec<_> = of_job.map(|one| (&*one.key, &*one.value)).collect();
            let own_job = trial.variant.job.as_ref().map(|_| &*trial.variant.name);
            let machine = of_machine(trial.settings());
            if known.contains(&(own_job, options.clone(), machine.clone())) {
                continue;
            }
            if !is_needed && (trials.runs.len() >= RUNS_MAX || bytes >= BYTES_MAX) {
                trials.are_all = false;
                break;
            }
            known.insert((own_job, options, machine));
            bytes += trial.job(plan).map_or(0, |job| job.text.len());
            trials.runs.push(trial);
        }
        trials
    }
}

/// Returns runs such that each value of each axis is in one of them, and each variant.
pub(super) fn each_value(plan: &LabPlan) -> Vec<Trial<'_>> {
    let cells = cells_to_try(plan);
    let of_cells = cells.iter().map(|cell| (*cell, &plan.variants[0]));
    let of_variants = plan.variants[1..]
        .iter()
        .map(|variant| (&plan.cells[0], variant));
    let both = of_cells.chain(of_variants);
    both.map(|(cell, variant)| Trial { cell, variant })
        .collect()
}

/// Returns cells and variants no two of which change the machine alike: each machine of the lab is
/// that of one of these cells with one of these variants.
pub(super) fn different_machines(plan: &LabPlan) -> (Vec<&LabCell>, Vec<&LabVariant>) {
    let mut known = BTreeSet::new();
    let mut cells: Vec<&LabCell> = plan.cells.iter().collect();
    cells.retain(|cell| known.insert(of_machine(cell.settings())));
    known.clear();
    let mut variants: Vec<&LabVariant> = plan.variants.iter().collect();
    variants.retain(|variant| known.insert(of_machine(variant.settings.iter())));
    (cells, variants)
}

/// Returns keys and values of the changes of a machine.
fn of_machine<'a>(settings: impl Iterator<Item = &'a Setting>) -> Vec<(&'a str, &'a str)> {
    let changes = settings.filter(|setting| setting.target == Target::Machine);
    changes
        .map(|one| (one.key.as_str(), one.literal.as_str()))
        .collect()
}

/// Returns cells such that each value of each axis is in one of them.
pub(super) fn cells_to_try(plan: &LabPlan) -> Vec<&LabCell> {
    let mut numbers = BTreeSet::from([0]);
    let mut stride = plan.cells.len();
    for axis in &plan.axes {
        stride /= axis.values.len().max(1);
        numbers.extend((0..axis.values.len()).map(|value| value * stride));
    }
    let cells = numbers.into_iter();
    cells.map(|number| &plan.cells[number]).collect()
}

/// Most runs that are tried: reading the jobs of one takes 0.1 ms.
const RUNS_MAX: usize = 2_000;

/// Length of the job files of all of them, about.
const BYTES_MAX: usize = 1 << 20;
