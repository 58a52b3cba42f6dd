//! `[warm_up]`, `[rounds]`, `[curve]` and `[search]`.

use fathom_core::Nanos;
use fathom_toml::{Fields, Value};

use super::judge::share_of;
use super::metrics;
use super::reader::Reader;
use crate::lab_plan::{Curve, LabPlan, Repeats, Rounds, Search, Stop, Subject, duration_of};

/// Reads `[warm_up]`.
pub(super) fn warm_up(
    reader: &Reader<'_>,
    top: &Fields<'_>,
    subject: Option<&Subject>,
) -> Option<Nanos> {
    let fields = top.table("warm_up", true)?;
    if let Some(Subject::Peak(_)) = subject {
        reader.refuse(
            &fields.span(),
            "`fathom peak` has no warm-up",
            "remove `[warm_up]`",
        );
    }
    let seconds = duration(reader, &fields, "seconds");
    if seconds.is_none() && !fields.has("seconds") {
        reader.refuse(
            &fields.span(),
            "`warm_up` has no `seconds`",
            "add `seconds = 10`",
        );
    }
    fields.finish();
    seconds
}

fn duration(reader: &Reader<'_>, fields: &Fields<'_>, key: &'static str) -> Option<Nanos> {
    let value = fields.value(key)?;
    let read = value.scalar().and_then(|text| duration_of(&text));
    if read.is_none() {
        let why = format!("`{key}` must be a duration in seconds or with a unit");
        reader.refuse(&value.span(), why, "write it as `10`, or as `\"500ms\"`");
    }
    read
}

fn share(reader: &Reader<'_>, fields: &Fields<'_>, key: &'static str, default: f64) -> f64 {
    let Some(value) = fields.value(key) else {
        return default;
    };
    share_in(reader, &value, key).unwrap_or(default)
}

fn share_in(reader: &Reader<'_>, value: &Value<'_>, key: &str) -> Option<f64> {
    let read = value.scalar().and_then(|text| share_of(&text));
    let read = read.filter(|share| *share > 0.0);
    if read.is_none() {
        let why = format!("`{key}` must be a percentage above 0");
        reader.refuse(&value.span(), why, "write it as `\"20%\"`");
    }
    read
}

/// Sets the number of repeats to that of the rounds, which decide instead of `[judge] repeats`.
pub(super) fn repeats_of_rounds(reader: &Reader<'_>, top: &Fields<'_>, plan: &mut LabPlan) {
    let Some(rounds) = &plan.rounds else {
        return;
    };
    plan.judge.repeats = Repeats {
        min: rounds.window,
        max: rounds.most,
        stop: Stop::Never,
    };
    let judge = top.value("judge").and_then(|judge| judge.fields("judge"));
    if let Some(repeats) = judge.and_then(|judge| judge.value("repeats")) {
        let why = "`repeats` has no effect beside `[rounds]`, which say when a lab ends";
        let hint = "remove it; `window` is the number of rounds that count, `most` the largest \
                    number of all";
        reader.refuse(&repeats.span(), why, hint);
    }
    for (name, is_there) in [
        ("curve", plan.curve.is_some()),
        ("search", plan.search.is_some()),
    ] {
        if let Some(part) = top.value(name).filter(|_| is_there) {
            let why = format!("a lab file has `[rounds]` or `[{name}]`, not both");
            reader.refuse(&part.span(), why, "remove one");
        }
    }
}

/// Refuses `requires` beside parts whose runs depend on each other, and need one boot.
pub(super) fn refuse_boots(reader: &Reader<'_>, plan: &LabPlan) {
    let parts = [
        ("rounds", plan.rounds.is_some()),
        ("curve", plan.curve.is_some()),
        ("search", plan.search.is_some()),
    ];
    let part = parts.into_iter().find(|(_, is_there)| *is_there);
    let waiting = plan.variants.iter().find(|one| !one.requires.is_empty());
    if let (Some(variant), Some((part, _))) = (waiting, part) {
        let why = format!(
            "`requires` takes one repeat of each boot, and the runs of `[{part}]` need one"
        );
        reader.refuse(&variant.span, why, "remove one of them");
    }
}

/// Reads `[rounds]`. `plan` has its axes and cells.
pub(super) fn rounds(reader: &Reader<'_>, top: &Fields<'_>, plan: &LabPlan) -> Option<Rounds> {
    let fields = top.table("rounds", true)?;
    let most = fields.count("most", 2..=1000, Some(25));
    let window = fields.count("window", 2..=100, Some(5));
    let range = share(reader, &fields, "range", 0.2);
    let slope = share(reader, &fields, "slope", 0.1);
    let metric = fields.text("metric", false);
    let cell = fields.value("cell");
    fields.finish();
    if window > most {
        let why = format!("`window` is {window}, more than `most`, {most}");
        reader.refuse(&fields.span(), why, "lower `window`");
    }
    let (name, span) = metric?;
    let metric = metrics::read_of_lab(reader, &plan.services, name, &span)?;
    let cell = match cell {
        Some(value) => cell_of(reader, plan, &value)?,
        None if plan.cells.len() == 1 => 0,
        None => {
            let why = "`rounds` does not say which cell is to be steady";
            reader.refuse(&fields.span(), why, "add `cell = { AXIS = VALUE }`");
            return None;
        }
    };
    Some(Rounds {
        most,
        window,
        range,
        slope,
        metric: metric.to_string(),
        cell,
    })
}

/// Returns the cell with these values of its axes.
fn cell_of(reader: &Reader<'_>, plan: &LabPlan, value: &Value<'_>) -> Option<usize> {
    let wanted = values_of(reader, plan, value)?;
    let mut found = plan.cells.iter().filter(|cell| cell.has(&wanted));
    let first = found.next();
    if found.next().is_some() {
        let hint = "name a value of each axis";
        reader.refuse(&value.span(), "several cells have these values", hint);
    }
    first.map(|cell| cell.number)
}

/// Reads `{ AXIS = VALUE }`: of each axis the index of the value, `None` for any.
pub(super) fn values_of(
    reader: &Reader<'_>,
    plan: &LabPlan,
    value: &Value<'_>,
) -> Option<Vec<Option<usize>>> {
    let Some(fields) = value.fields("cell") else {
        let hint = "write `cell = { AXIS = VALUE }`";
        reader.refuse(&value.span(), "`cell` must be a table", hint);
        return None;
    };
    let mut wanted: Vec<Option<usize>> = vec![None; plan.axes.len()];
    for entry in fields.entries() {
        let text = reader.scalar(&entry.value, entry.key)?;
        let axis = plan.axes.iter().position(|axis| axis.name == entry.key);
        let Some(axis) = axis else {
            let names: Vec<&str> = plan.axes.iter().map(|axis| axis.name.as_str()).collect();
            let why = format!("there is no axis `{}`", entry.key);
            reader.refuse(
                &entry.key_span,
                why,
                format!("axes here: {}", names.join(", ")),
            );
            return None;
        };
        let values = &plan.axes[axis].values;
        wanted[axis] = values.iter().position(|known| *known == text);
        if wanted[axis].is_none() {
            let why = format!("axis `{}` has no value `{text}`", entry.key);
            let hint = format!("one of: {}", values.join(", "));
            reader.refuse(&entry.value.span(), why, hint);
            return None;
        }
    }
    Some(wanted)
}

/// Reads `[curve]`.
pub(super) fn curve(reader: &Reader<'_>, top: &Fields<'_>, plan: &LabPlan) -> Option<Curve> {
    let fields = top.table("curve", true)?;
    let vary = vary(reader, &fields, plan);
    let loads = match fields.value("loads") {
        None => vec![0.1, 0.5, 0.7, 0.8, 0.9, 1.0],
        Some(value) => {
            let items = value.items().unwrap_or_default();
            if items.is_empty() {
                let hint = "write `loads = [\"10%\", \"50%\", \"90%\"]`";
                reader.refuse(&value.span(), "`loads` must be a list of percentages", hint);
            }
            let loads = items.iter();
            loads
                .filter_map(|value| share_in(reader, value, "loads"))
                .collect()
        }
    };
    fields.finish();
    Some(Curve { vary, loads })
}

/// Reads the option that sets the load.
fn vary(reader: &Reader<'_>, fields: &Fields<'_>, plan: &LabPlan) -> String {
    let (name, span) = fields
        .text("vary", true)
        .unwrap_or(("rate_iops", fields.span()));
    if !["rate_iops", "rate"].contains(&name) {
        let why = format!("`{name}` sets no load");
        reader.refuse(
            &span,
            why,
            "name `rate_iops`, or `rate` for bytes per second",
        );
    }
    let settings = plan.cells.iter().take(1).flat_map(|cell| cell.settings());
    let mut settings = settings.chain(plan.variants.iter().flat_map(|one| &one.settings));
    if settings.any(|setting| setting.key == name) {
        let why = format!("`{name}` is varied, and an axis or a variant sets it");
        reader.refuse(&span, why, "keep one of them");
    }
    if matches!(plan.subject, Subject::Peak(_)) {
        let hint = "describe a `[job]` instead of `[peak]`";
        reader.refuse(&span, "`fathom peak` has no load to vary", hint);
    }
    name.to_owned()
}

/// Reads `[search]`.
pub(super) fn search(reader: &Reader<'_>, top: &Fields<'_>, plan: &LabPlan) -> Option<Search> {
    let fields = top.table("search", true)?;
    let vary = vary(reader, &fields, plan);
    let keep = fields.texts("keep");
    let keep = keep
        .iter()
        .filter_map(|(text, span)| metrics::condition(reader, &plan.services, text, span));
    let keep = keep.collect();
    let precision = share(reader, &fields, "precision", 0.01);
    let probe_most = duration(reader, &fields, "probe_most");
    fields.finish();
    refuse_judgement(reader, top);
    if top.has("curve") {
        let why = "a lab file has `[curve]` or `[search]`, not both";
        reader.refuse(&fields.span(), why, "remove one");
    }
    Some(Search {
        vary,
        keep,
        precision,
        probe_most: probe_most.unwrap_or(PROBE_MOST),
    })
}

/// Notes metrics to judge and repeats: a search is done once, and proves no difference.
fn refuse_judgement(reader: &Reader<'_>, top: &Fields<'_>) {
    let judge = top.value("judge");
    let fields = judge.as_ref().and_then(|judge| judge.fields("judge"));
    for key in ["metrics", "repeats"] {
        let Some(value) = fields.as_ref().and_then(|fields| fields.value(key)) else {
            continue;
        };
        let why = format!("`{key}` beside `[search]`: a search is done once, and judges nothing");
        let hint = "remove it; `keep` has the conditions, and `show` the metrics to see";
        reader.refuse(&value.span(), why, hint);
    }
    if top.has("rounds") {
        let why = "a lab file has `[rounds]` or `[search]`, not both";
        let span = top.value("rounds").map_or(0..0, |rounds| rounds.span());
        reader.refuse(&span, why, "remove one");
    }
}

/// Longest duration of a probe if the file says nothing.
const PROBE_MOST: Nanos = Nanos::from_secs(60);
