//! Exported runs: one JSON document each, as `fathom history export` writes them.

use fathom_record::{Measure, known_direction};
use serde_json::Value;
#[cfg(any(test, feature = "history"))]
use serde_json::{Map, json};

use super::ImportedRun;
use crate::finished::{FinishedRun, RunEnd};

/// Returns an ended run as a document.
#[cfg(any(test, feature = "history"))]
pub(crate) fn to_value(uuid: Option<&str>, begun_ms: Option<u64>, run: &FinishedRun) -> Value {
    let parsed = |text: &str| serde_json::from_str(text).unwrap_or(Value::Null);
    let measures = run.measures.iter().map(|one| {
        json!([
            one.group,
            one.direction,
            one.metric,
            one.value,
            one.low,
            one.high
        ])
    });
    let tags = run
        .tags
        .iter()
        .map(|(key, value)| (key.clone(), json!(value)));
    let mut value = json!({
        KEY: VERSION,
        "uuid": uuid,
        "begun_ms": begun_ms,
        "wall_ms": run.wall_ms,
        "plan": run.plan,
        "machine": parsed(&run.machine),
        "subject": parsed(&run.subject),
        "note": run.note,
        "tags": tags.collect::<Map<_, _>>(),
        "measures": measures.collect::<Vec<_>>(),
        "record": run.record.as_deref().map(parsed),
    });
    // Left out otherwise: imported files are known by a digest of their documents, which had none.
    if run.end != RunEnd::Done {
        value["state"] = run.end.word().into();
    }
    value
}

/// Returns the version of an exported run that this program does not read.
pub(crate) fn unknown_version(value: &Value) -> Option<u64> {
    value
        .get(KEY)?
        .as_u64()
        .filter(|&version| version != VERSION)
}

/// Reads a document; `None` if it is another one.
pub(crate) fn from_value(value: &Value) -> Option<ImportedRun> {
    if value.get(KEY)?.as_u64()? != VERSION {
        return None;
    }
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    let compact = |key: &str| match &value[key] {
        Value::Null => "{}".to_owned(),
        other => other.to_string(),
    };
    let tags = value["tags"].as_object().into_iter().flatten();
    let tags = tags.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    let measures = value["measures"].as_array().into_iter().flatten();
    let run = FinishedRun {
        wall_ms: value["wall_ms"].as_u64().unwrap_or(0),
        end: RunEnd::of(value["state"].as_str().unwrap_or_default()),
        plan: text("plan").unwrap_or_default(),
        machine: compact("machine"),
        subject: compact("subject"),
        note: text("note"),
        measures: measures.filter_map(measure).collect(),
        record: value["record"]
            .is_object()
            .then(|| value["record"].to_string()),
        tags: tags.collect(),
    };
    Some(ImportedRun {
        uuid: text("uuid"),
        begun_ms: value["begun_ms"].as_u64().filter(|&ms| ms > 0),
        repeat: None,
        run,
        notes: Vec::new(),
    })
}

fn measure(value: &Value) -> Option<Measure> {
    let direction = value.get(1)?.as_str()?;
    Some(Measure {
        group: value.get(0)?.as_str()?.to_owned(),
        direction: known_direction(direction)?,
        metric: value.get(2)?.as_str()?.to_owned(),
        value: value.get(3)?.as_f64()?,
        low: value.get(4).and_then(Value::as_f64),
        high: value.get(5).and_then(Value::as_f64),
    })
}

/// Key of the document's version.
const KEY: &str = "fathom_run";

/// Version of the document.
pub(super) const VERSION: u64 = 1;
