//! Texts and JSON of `fathom history`.

use fathom_lab::{RunRow, SqlAnswer, aligned, figure, job_names, printable, shortened};
use fathom_record::{Measure, MetricName};
use serde_json::{Value, json};

/// Formats a list of runs.
pub(crate) fn list(runs: &[(RunRow, Vec<Measure>)]) -> String {
    let heading = [
        " run",
        "begun (UTC)",
        " took",
        "state",
        "jobs",
        "rates",
        "tags",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(runs.iter().map(|(run, measures)| {
        vec![
            run.id.0.to_string(),
            run.begun.clone().unwrap_or_default(),
            run.wall_ms.map(seconds).unwrap_or_default(),
            run.state.clone(),
            shortened(&jobs(run), JOBS_WIDTH),
            rates(measures),
            shortened(&tags(run), TAGS_WIDTH),
        ]
    }));
    aligned(&rows)
}

/// Formats one run.
pub(crate) fn show(run: &RunRow, measures: &[Measure]) -> String {
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let numbers = run.plan_id.zip(run.machine_id);
    let series = numbers.map(|(plan, machine)| format!("plan {plan}, machine {machine}"));
    let facts = [
        ("run", Some(run.id.0.to_string())),
        ("uuid", Some(run.uuid.clone())),
        ("lab", run.lab.clone()),
        ("cell", run.axes.clone()),
        ("variant", run.variant.clone()),
        ("repeat", run.repeat.map(|repeat| repeat.to_string())),
        ("state", Some(run.state.clone())),
        (
            "begun",
            run.begun.as_ref().map(|begun| format!("{begun} UTC")),
        ),
        ("took", run.wall_ms.map(seconds)),
        ("seed", number(run.seed)),
        ("series", series),
        ("subject", run.subject.clone()),
        ("machine", run.machine.clone()),
        ("tags", Some(tags(run)).filter(|tags| !tags.is_empty())),
        ("note", run.note.clone()),
    ];
    let facts = facts
        .into_iter()
        .filter_map(|(name, value)| Some(vec![name.to_owned(), value?]));
    let mut text = aligned(&facts.collect::<Vec<_>>());
    if let Some(plan) = &run.plan {
        text.push('\n');
        let lines = plan.lines().map(|line| format!("{}\n", printable(line)));
        text.extend(lines);
    }
    if measures.is_empty() {
        return text;
    }
    let mut rows = vec![vec![
        "metric".to_owned(),
        " value".to_owned(),
        "interval".to_owned(),
    ]];
    rows.extend(measures.iter().map(|one| {
        let name = one.name();
        let unit = MetricName::parse(&name).map_or("", |name| name.unit());
        let interval = one
            .low
            .zip(one.high)
            .map(|(low, high)| format!("{} to {}", figure(low, unit), figure(high, unit)));
        vec![name, figure(one.value, unit), interval.unwrap_or_default()]
    }));
    text + "\n" + &aligned(&rows)
}

/// Formats the answer to a query.
pub(crate) fn answer(answer: &SqlAnswer) -> String {
    let text = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut rows = vec![answer.columns.clone()];
    rows.extend(answer.rows.iter().map(|row| row.iter().map(text).collect()));
    aligned(&rows)
}

/// Returns a run as JSON.
pub(crate) fn json(run: &RunRow) -> Value {
    let parsed = |text: &Option<String>| {
        let text = text.as_deref()?;
        serde_json::from_str::<Value>(text).ok()
    };
    json!({
        "run": run.id.0,
        "uuid": run.uuid,
        "lab": run.lab,
        "axes": parsed(&run.axes),
        "variant": run.variant,
        "repeat": run.repeat,
        "role": run.role,
        "state": run.state,
        "seed": run.seed,
        "begun_ms": run.begun_ms,
        "wall_ms": run.wall_ms,
        "plan_id": run.plan_id,
        "machine_id": run.machine_id,
        "plan": run.plan,
        "machine": parsed(&run.machine),
        "subject": parsed(&run.subject),
        "note": run.note,
        "tags": parsed(&Some(run.tags.clone())),
    })
}

/// Returns a metric as JSON.
pub(crate) fn measure_json(one: &Measure) -> Value {
    json!({
        "group": one.group,
        "direction": one.direction,
        "metric": one.metric,
        "value": one.value,
        "low": one.low,
        "high": one.high,
    })
}

/// Returns the run's place in its lab, or the names of its jobs.
fn jobs(run: &RunRow) -> String {
    if let Some(lab) = &run.lab {
        let variant = run.variant.as_deref().unwrap_or_default();
        let axes = run.axes.as_deref().unwrap_or_default();
        return format!("{lab}/{variant} {axes}");
    }
    let names = run.plan.as_deref().map(job_names);
    names.unwrap_or_default().join(", ")
}

fn rates(measures: &[Measure]) -> String {
    let of = |direction: &'static str, metric: &str, unit: &str| {
        let is_it = |one: &&Measure| {
            one.group.is_empty() && one.direction == direction && one.metric == metric
        };
        measures
            .iter()
            .find(is_it)
            .map(|one| figure(one.value, unit))
    };
    let directions = ["read", "write", "trim"].into_iter();
    let rates = directions.filter_map(|direction| {
        let (iops, bw) = (of(direction, "iops", "IOPS")?, of(direction, "bw", "B/s")?);
        Some(format!("{direction} {iops}, {bw}"))
    });
    rates.collect::<Vec<_>>().join("; ")
}

fn tags(run: &RunRow) -> String {
    let tags = serde_json::from_str::<Value>(&run.tags).ok();
    let tags = tags
        .as_ref()
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let tags = tags.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    tags.collect::<Vec<_>>().join(" ")
}

#[expect(clippy::cast_precision_loss, reason = "printed with a decimal")]
fn seconds(ms: u64) -> String {
    format!("{:.1} s", ms as f64 / 1e3)
}

/// Widths of columns that may be long.
const JOBS_WIDTH: usize = 40;
const TAGS_WIDTH: usize = 40;
