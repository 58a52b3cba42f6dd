//! `[variants]`: the sides of the comparison.

use std::ops::Range;

use fathom_toml::{Fields, Value};

use super::names;
use super::reader::Reader;
use super::{settings, subject};
use crate::lab_plan::{
    LabCell, LabPlan, LabVariant, Requirement, RunText, Setting, Subject, Target,
};

/// Reads the variants in the order of the file; without the table there is one without a name.
pub(super) fn read(
    reader: &Reader<'_>,
    top: &Fields<'_>,
    of_lab: Option<&Subject>,
) -> Vec<LabVariant> {
    let Some(fields) = top.table("variants", true) else {
        return vec![LabVariant::default()];
    };
    let mut variants = Vec::new();
    for entry in fields.entries() {
        names::check(reader, entry.key, &entry.key_span);
        let Some(table) = entry.value.fields(format!("variants.{}", entry.key)) else {
            let why = format!("variant `{}` must be a table of settings", entry.key);
            reader.refuse(
                &entry.value.span(),
                why,
                "write `NAME = { job = { bs = \"4k\" } }`",
            );
            continue;
        };
        let requires = table.value("requires");
        let requires = requires.map(|value| requirements(reader, &value));
        let job = table.text("file", true);
        let job = job.and_then(|(path, span)| subject::job_file(reader, path, &span));
        let leaves = settings::leaves(reader, table.entries(), of_lab);
        let settings = leaves.iter().filter_map(|leaf| leaf.setting(reader));
        variants.push(LabVariant {
            name: entry.key.to_owned(),
            job,
            settings: settings.collect(),
            requires: requires.unwrap_or_default(),
            span: entry.key_span,
        });
    }
    if variants.is_empty() {
        let hint = "add one: `NAME = { job = { bs = \"4k\" } }`, or leave out `[variants]`";
        reader.refuse(&fields.span(), "`variants` is empty", hint);
        variants.push(LabVariant::default());
    }
    variants
}

/// Reads `requires = { kernel = "*-patched" }`.
fn requirements(reader: &Reader<'_>, value: &Value<'_>) -> Vec<Requirement> {
    let hint = "write `requires = { kernel = \"*-patched\" }`, as `uname -r` prints it";
    let Some(fields) = value.fields("requires") else {
        reader.refuse(&value.span(), "`requires` must be a table", hint);
        return Vec::new();
    };
    let kernel = fields.text("kernel", true);
    fields.finish();
    let kernel = kernel.map(|(pattern, _)| Requirement {
        fact: "kernel".into(),
        pattern: pattern.to_owned(),
    });
    if kernel.is_none() {
        reader.refuse(&value.span(), "`requires` has no condition", hint);
    }
    kernel.into_iter().collect()
}

/// Notes variants that run the same as an earlier one: with the same texts or, in a file with other
/// problems, of which there may be no texts, with the same settings.
pub(super) fn refuse_equal(reader: &Reader<'_>, plan: &LabPlan) {
    let texts: Option<Vec<RunText>> = reader
        .is_sound()
        .then(|| plan.variants.iter().map(|one| text(plan, one)).collect());
    let is_equal = |one: usize, other: usize| {
        let [a, b] = [one, other].map(|at| &plan.variants[at]);
        a.requires == b.requires
            && match &texts {
                Some(texts) => texts[one] == texts[other],
                None => a.job == b.job && values(a) == values(b),
            }
    };
    for (at, variant) in plan.variants.iter().enumerate() {
        let Some(other) = (0..at).find(|other| is_equal(at, *other)) else {
            continue;
        };
        let other = &plan.variants[other];
        let (name, other) = (&variant.name, &other.name);
        let why = format!("variant `{name}` runs the same as `{other}`: it changes nothing");
        let hint = "change a value, or remove it; `--a-a` compares runs that are the same";
        let span: Range<usize> = variant.span.clone();
        reader.refuse(&span, why, hint);
    }
}

/// Returns what a variant sets.
fn values(variant: &LabVariant) -> Vec<(&Target, &str, &str)> {
    let settings = variant.settings.iter();
    settings
        .map(|one| (&one.target, one.key.as_str(), one.value.as_str()))
        .collect()
}

/// Returns a variant's run of the first cell.
fn text(plan: &LabPlan, variant: &LabVariant) -> RunText {
    let of_cell = plan.cells.iter().take(1).flat_map(LabCell::settings);
    let all: Vec<&Setting> = of_cell.chain(&variant.settings).collect();
    plan.run_with(variant.job.as_ref(), &all, 0)
}
