//! Subset of JSON Schema that the published schema uses.

use serde_json::Value;

/// Returns the deviations of `document` from `schema`, each with its position.
pub(crate) fn faults(schema: &Value, document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let check = Check { root: schema };
    check.value(schema, document, "", &mut found);
    found
}

struct Check<'a> {
    root: &'a Value,
}

impl Check<'_> {
    fn value(&self, schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
        let schema = self.resolved(schema);
        if let Some(kind) = schema["type"].as_str()
            && !is_of(kind, value)
        {
            return found.push(format!("{path}: not of type {kind}"));
        }
        if let (Some(least), Some(number)) = (schema["minimum"].as_i64(), value.as_i64())
            && number < least
        {
            found.push(format!("{path}: below {least}"));
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            self.value(&schema["items"], item, &format!("{path}[{index}]"), found);
        }
        if value.is_object() {
            self.object(schema, value, path, found);
        }
    }

    fn object(&self, schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
        let inside = |name: &str| match path {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        for name in schema["required"].as_array().into_iter().flatten() {
            let name = name.as_str().expect("names are strings");
            if value.get(name).is_none() {
                found.push(format!("{}: missing", inside(name)));
            }
        }
        for (name, field) in value.as_object().into_iter().flatten() {
            match (
                schema["properties"].get(name),
                &schema["additionalProperties"],
            ) {
                (Some(schema), _) => self.value(schema, field, &inside(name), found),
                (None, Value::Bool(false)) => {
                    found.push(format!("{}: not in the schema", inside(name)));
                }
                (None, schema) => self.value(schema, field, &inside(name), found),
            }
        }
    }

    /// Returns the schema that a `$ref` names.
    fn resolved<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let Some(name) = schema["$ref"].as_str() else {
            return schema;
        };
        let pointer = name
            .strip_prefix('#')
            .expect("references stay in the document");
        self.root
            .pointer(pointer)
            .expect("a reference leads somewhere")
    }
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("the check does not know the type {other}"),
    }
}
