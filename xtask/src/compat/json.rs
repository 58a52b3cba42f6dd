//! Comparison of the form of two JSON reports: keys, their order and types.

use std::collections::BTreeMap;

use serde_json::Value;

use super::difference::Difference;

/// Returns keys that only one has, or that differ in type or order.
pub(crate) fn difference(fio: &Value, ours: &Value) -> Vec<Difference> {
    let shapes = [shape(fio), shape(ours)];
    let mut found = Vec::new();
    for path in shapes[0]
        .keys()
        .chain(shapes[1].keys().filter(|key| !shapes[0].contains_key(*key)))
    {
        let [fio, ours] = [&shapes[0], &shapes[1]].map(|shape| shape.get(path).copied());
        let inside = path
            .rsplit_once('.')
            .is_some_and(|(parent, _)| shapes.iter().any(|shape| !shape.contains_key(parent)));
        // Keys below a missing key are not reported again.
        if !inside || path.ends_with(".0") {
            let shown = |kind: Option<&str>| kind.unwrap_or("none").to_owned();
            found.extend(Difference::of(
                format!("json:{path}"),
                shown(fio),
                shown(ours),
            ));
        }
    }
    found.extend(order("", fio, ours));
    found
}

/// Types by path.
type Shape = BTreeMap<String, &'static str>;

/// Returns the path of every key, with the type of its value.
fn shape(value: &Value) -> Shape {
    let mut keys = BTreeMap::new();
    add(value, "", &mut keys);
    keys
}

fn add(value: &Value, path: &str, keys: &mut Shape) {
    if !path.is_empty() {
        keys.insert(path.to_owned(), kind(value));
    }
    for (name, inner) in children(value) {
        // Not compared by form: Fathom's additions, nested under its name; buckets, whose names are
        // measured values; options, which are compared as values.
        let free = ["bins", "job options", "global options"];
        let ours = name == "fathom";
        if !ours && !free.iter().any(|free| path.ends_with(free)) {
            add(inner, &join(path, &name), keys);
        }
    }
}

/// Returns the first object whose common keys are in a different order.
fn order(path: &str, fio: &Value, ours: &Value) -> Option<Difference> {
    if let (Value::Object(fio), Value::Object(ours)) = (fio, ours) {
        let of_fio: Vec<&str> = fio
            .keys()
            .filter(|key| ours.contains_key(*key))
            .map(String::as_str)
            .collect();
        let of_ours: Vec<&str> = ours
            .keys()
            .filter(|key| fio.contains_key(*key))
            .map(String::as_str)
            .collect();
        let free = path.ends_with("bins");
        if of_fio != of_ours && !free {
            return Difference::of(format!("order:{path}"), of_fio.join(" "), of_ours.join(" "));
        }
    }
    let ours: BTreeMap<_, _> = children(ours).into_iter().collect();
    children(fio)
        .into_iter()
        .find_map(|(name, inner)| order(&join(path, &name), inner, ours.get(&name)?))
}

fn children(value: &Value) -> Vec<(String, &Value)> {
    match value {
        Value::Array(items) => (0..)
            .map(|index: usize| index.to_string())
            .zip(items)
            .collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, inner)| (name.clone(), inner))
            .collect(),
        _ => Vec::new(),
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(fio: Value, ours: Value, wanted: &[&str]) {
        let places: Vec<_> = difference(&fio, &ours)
            .into_iter()
            .map(|one| one.place)
            .collect();
        assert_eq!(places, wanted);
    }

    #[test]
    fn keys_types_and_order_are_compared_and_values_are_not() {
        check(
            json!({"a": 1, "b": [{"c": 1.0}]}),
            json!({"a": 2, "b": [{"c": 2.5}]}),
            &[],
        );
        check(json!({"a": 1}), json!({"a": 1.0}), &["json:a"]);
        check(
            json!({"a": {"b": {"c": 1}}}),
            json!({"a": {}}),
            &["json:a.b"],
        );
        check(
            json!({"a": 1, "b": 2}),
            json!({"b": 2, "a": 1}),
            &["order:"],
        );
        check(
            json!({"x": {"bins": {"12": 1}}}),
            json!({"x": {"bins": {"13": 1}}}),
            &[],
        );
        check(json!([1, 2]), json!([1]), &["json:1"]);
        check(json!({"a": 1}), json!({"a": 1, "fathom": {"b": [1]}}), &[]);
    }
}
