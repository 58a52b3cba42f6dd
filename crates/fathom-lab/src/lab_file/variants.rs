//! `[variants]`: the sides of the comparison.

use std::ops::Range;

use fathom_toml::{Fields, Value};

use super::names;
use super::reader::Reader;
use super::{settings, subject};
use crate::lab_plan::{LabCell, LabPlan, LabVariant, Requirement, RunText, Setting, Subject};

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

/// Notes variants that run the same as an earlier one.
pub(super) fn refuse_equal(reader: &Reader<'_>, plan: &LabPlan) {
    let runs: Vec<(RunText, &[Requirement])> = plan
        .variants
        .iter()
        .map(|variant| (text(plan, variant), &variant.requires[..]))
        .collect();
    for (at, variant) in plan.variants.iter().enumerate() {
        let Some(earlier) = runs[..at].iter().position(|other| *other == runs[at]) else {
            continue;
        };
        let other = &plan.variants[earlier].name;
        let why = format!(
            "variant `{}` runs the same as `{other}`: it changes nothing",
            variant.name
        );
        let hint = "change a value, or remove it; `--a-a` compares runs that are the same";
        let span: Range<usize> = variant.span.clone();
        reader.refuse(&span, why, hint);
    }
}

/// Returns a variant's run of the first cell.
fn text(plan: &LabPlan, variant: &LabVariant) -> RunText {
    let of_cell = plan.cells.iter().take(1).flat_map(LabCell::settings);
    let all: Vec<&Setting> = of_cell.chain(&variant.settings).collect();
    plan.run_with(variant.job.as_ref(), &all, 0)
}
