//! The modelled machine, and trials of its changes.

use std::collections::BTreeSet;

use fathom_toml::Fields;
use fathom_virtual::{MachineChange, MachineModel};

use super::reader::Reader;
use super::trials::each_value;
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
    let mut told = BTreeSet::new();
    for trial in each_value(plan) {
        let of_machine = trial.settings().filter(|one| one.target == Target::Machine);
        let settings: Vec<&Setting> = of_machine.collect();
        let Some(machine) = &plan.machine else {
            if let Some(setting) = settings.first()
                && told.insert((setting.span.start, String::new()))
            {
                let why = "a machine is changed, and `[lab]` names no machine file";
                reader.refuse(
                    &setting.span,
                    why,
                    "add `machine = \"MACHINE.toml\"` to `[lab]`",
                );
            }
            continue;
        };
        let changes: Vec<_> = settings
            .iter()
            .map(|setting| change(reader, setting))
            .collect();
        let result = MachineModel::changed_text(&machine.path, &machine.text, &changes);
        for problem in result.err().into_iter().flatten() {
            let place = problem.origin.column as usize + ((problem.origin.line as usize) << 16);
            if told.insert((place, problem.message.clone())) {
                reader.source.push(problem);
            }
        }
    }
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
