//! The modelled machine, and trials of its changes.

use std::collections::BTreeSet;

use fathom_toml::{Fields, TomlProblem};
use fathom_virtual::{MachineChange, MachineModel};

use super::reader::Reader;
use super::told::Told;
use super::trials::{Trial, different_machines, each_value};
use crate::lab_plan::{LabPlan, MachineSource, Setting, Target};

/// Reads the machine file that `[lab]` names.
pub(super) fn read(reader: &Reader<'_>, lab: &Fields<'_>) -> Option<MachineSource> {
    let (path, span) = lab.text("machine", true)?;
    let path = reader.path(&reader.substituted(path, &span)?);
    let text = reader.read(&path, &span)?;
    Some(MachineSource { path, text })
}

/// Notes everything that the machine file refuses, at its place in the lab file.
pub(super) fn check(reader: &Reader<'_>, plan: &LabPlan) {
    let Some(machine) = &plan.machine else {
        return refuse_changes(reader, plan);
    };
    let plainly = |_: &Trial<'_>| String::new();
    if tell_problems(reader, machine, each_value(plan), plainly) > 0 {
        return;
    }
    // Values that are right, each by itself, may be wrong together.
    let (cells, variants) = different_machines(plan);
    let count = cells.len().saturating_mul(variants.len());
    let of_cell = |cell| {
        let variants = variants.iter();
        variants.map(move |&variant| Trial { cell, variant })
    };
    let mut trials = cells.iter().flat_map(|&cell| of_cell(cell));
    if count <= MACHINES_MAX {
        tell_problems(reader, machine, trials, |trial| {
            format!("{}: ", trial.place())
        });
    } else if let Some(setting) = trials.find_map(|trial| changes_of(&trial).next()) {
        let why = format!("the lab has {count} different machines: {MACHINES_MAX} is the limit");
        reader.refuse(&setting.span, why, "divide the lab, or change fewer values");
    }
}

/// Notes changes of a machine that the lab does not have.
fn refuse_changes(reader: &Reader<'_>, plan: &LabPlan) {
    let mut told = BTreeSet::new();
    for trial in each_value(plan) {
        if let Some(setting) = changes_of(&trial).next()
            && told.insert(setting.span.start)
        {
            let why = "a machine is changed, and `[lab]` names no machine file";
            let hint = "add `machine = \"MACHINE.toml\"` to `[lab]`";
            reader.refuse(&setting.span, why, hint);
        }
    }
}

/// Notes what is wrong with the machines of these runs, each problem once and with words in front
/// for its run; returns the number of problems, and gives up after some.
fn tell_problems<'a>(
    reader: &Reader<'_>,
    machine: &MachineSource,
    trials: impl IntoIterator<Item = Trial<'a>>,
    of_run: impl Fn(&Trial<'a>) -> String,
) -> usize {
    let mut told = Told::new(reader.source);
    for trial in trials {
        let result = machine_of(reader, machine, &trial);
        for problem in result.err().into_iter().flatten() {
            told.note(problem, &of_run(&trial));
        }
        if told.is_full() {
            break;
        }
    }
    told.count()
}

/// Returns the machine of a run; `None` if it is wrong, which [`check`] tells.
pub(super) fn model_of(
    reader: &Reader<'_>,
    machine: &MachineSource,
    trial: &Trial<'_>,
) -> Option<MachineModel> {
    let text = machine_of(reader, machine, trial).ok()?;
    MachineModel::parse(&machine.path, &text).ok()
}

/// Returns the text of a run's machine file, or what the machine refuses.
fn machine_of(
    reader: &Reader<'_>,
    machine: &MachineSource,
    trial: &Trial<'_>,
) -> Result<String, Vec<TomlProblem>> {
    let changes = changes_of(trial).map(|setting| change(reader, setting));
    let changes: Vec<_> = changes.collect();
    MachineModel::changed_text(&machine.path, &machine.text, &changes)
}

/// Returns the changes of a run's machine.
fn changes_of<'a>(trial: &Trial<'a>) -> impl Iterator<Item = &'a Setting> {
    let settings = trial.settings();
    settings.filter(|setting| setting.target == Target::Machine)
}

/// Notes parts that a modelled machine would not run.
pub(super) fn refuse_real_parts(reader: &Reader<'_>, top: &Fields<'_>, plan: &LabPlan) {
    if plan.machine.is_none() {
        return;
    }
    let hint = "remove it, or leave out `machine` and rehearse with `--rehearse`";
    for key in ["service", "precondition", "peak"] {
        if let Some(part) = top.value(key) {
            let why = format!("the machine is modelled: `{key}` has no part in it");
            reader.refuse(&part.span(), why, hint);
        }
    }
    let run = top.value("run").and_then(|run| run.fields("run"));
    for entry in run.iter().flat_map(Fields::entries) {
        if entry.key != "pause" {
            let why = format!("the machine is modelled: `run.{}` has no effect", entry.key);
            reader.refuse(&entry.key_span, why, hint);
        }
    }
    for variant in &plan.variants {
        let real = |target: &Target| matches!(target, Target::Run | Target::Service(_));
        let set = variant
            .settings
            .iter()
            .find(|setting| real(&setting.target));
        if let Some(setting) = set {
            let why = format!("the machine is modelled: `{}` has no effect", setting.key);
            reader.refuse(&setting.key_span, why, hint);
        }
        if !variant.requires.is_empty() {
            let why = "the machine is modelled: no boot of this one is required";
            reader.refuse(&variant.span, why, hint);
        }
    }
}

fn change(reader: &Reader<'_>, setting: &Setting) -> MachineChange {
    MachineChange {
        key: setting.key.clone(),
        literal: setting.literal.clone(),
        origin: reader.source.origin(&setting.span),
    }
}

/// Different machines that are tried: reading one takes 0.1 ms.
const MACHINES_MAX: usize = 10_000;
