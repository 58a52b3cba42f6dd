//! Numbers that a service reports of itself.

use std::collections::BTreeMap;

use fathom_record::{Measure, OF_SERVICE};
use serde_json::Value;

/// Returns the numbers of a JSON document. The keys on the way to a number are its name, with dots
/// between them; the elements of a list count from 0.
pub(super) fn measures(service: &str, json: &[u8]) -> Result<Vec<Measure>, String> {
    let value: Value =
        serde_json::from_slice(json).map_err(|error| format!("printed no JSON: {error}"))?;
    let mut numbers = BTreeMap::new();
    add(&mut numbers, String::new(), &value)?;
    if numbers.is_empty() {
        return Err("printed no number".into());
    }
    let measure = |(metric, value)| Measure {
        group: service.into(),
        direction: OF_SERVICE,
        metric,
        value,
        low: None,
        high: None,
    };
    Ok(numbers.into_iter().map(measure).collect())
}

/// Adds the numbers of a value. Depth is limited by the reader of the JSON.
fn add(numbers: &mut BTreeMap<String, f64>, key: String, value: &Value) -> Result<(), String> {
    let below = |name: &str| match key.as_str() {
        "" => name.to_owned(),
        key => format!("{key}.{name}"),
    };
    match value {
        Value::Number(number) => {
            if numbers.len() >= NUMBERS_MAX {
                return Err(format!("printed more than {NUMBERS_MAX} numbers"));
            }
            numbers.extend(number.as_f64().map(|number| (key, number)));
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                add(numbers, below(&index.to_string()), value)?;
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                add(numbers, below(name), value)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
    Ok(())
}

/// Most numbers of a service: each is a row of the history, for each run.
const NUMBERS_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, want: &[(&str, f64)]) {
        let found = measures("t", json.as_bytes()).unwrap();
        let found: Vec<(&str, f64)> = found
            .iter()
            .map(|one| (one.metric.as_str(), one.value))
            .collect();
        assert_eq!(found, want);
    }

    #[test]
    fn nested_keys_are_joined() {
        check(
            r#"{"a": 1, "b": {"c": -2.5, "d": [3, {"e": 4}]}, "f": "5", "g": true, "h": null}"#,
            &[("a", 1.0), ("b.c", -2.5), ("b.d.0", 3.0), ("b.d.1.e", 4.0)],
        );
        // Two ways to the same name are one number: names are keys in the history.
        check(r#"{"a.b": 1, "a": {"b": 1}}"#, &[("a.b", 1.0)]);
        check("7", &[("", 7.0)]);
    }

    #[track_caller]
    fn refuse(json: &str, want: &str) {
        let why = measures("t", json.as_bytes()).unwrap_err();
        assert!(why.contains(want), "{why}");
    }

    #[test]
    fn what_is_no_number_is_refused() {
        refuse("", "printed no JSON");
        refuse("{\"a\": NaN}", "printed no JSON");
        refuse("{}{}", "printed no JSON");
        refuse("{\"a\": \"1\"}", "printed no number");
        refuse(&"[".repeat(1000), "printed no JSON");
        refuse(&format!("[{}0]", "0,".repeat(10_000)), "more than 10000");
    }
}
