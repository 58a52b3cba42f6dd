//! The modelled machine, and trials of its changes.

use std::collections::BTreeSet;

use fathom_toml::Fields;
use fathom_virtual::{MachineChange, MachineModel};

use super::jobs::trials;
use super::reader::Reader;
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
    for settings in trials(plan) {
        let of_machine = settings
            .into_iter()
            .filter(|one| one.target == Target::Machine);
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

fn change(reader: &Reader<'_>, setting: &Setting) -> MachineChange {
    MachineChange {
        key: setting.key.clone(),
        literal: setting.literal.clone(),
        origin: reader.source.origin(&setting.span),
    }
}
