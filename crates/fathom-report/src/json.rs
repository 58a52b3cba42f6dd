//! JSON in fio's layout: `"key" : value`, two spaces per level, floats with six decimals.
//!
//! Scripts find the document in mixed output by its layout: the outer braces are alone on their
//! lines, and there is no empty line between them.

use std::fmt::Write as _;

/// JSON value; objects keep the order of their keys.
pub(crate) enum Value {
    Integer(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(String),
    Array(Vec<Self>),
    /// Array on one line: for additions to fio's schema, which has none.
    Row(Vec<Self>),
    Object(Object),
}

impl Value {
    /// Returns an array that is printed on one line.
    pub(crate) fn row<V: Into<Self>>(values: impl IntoIterator<Item = V>) -> Self {
        Self::Row(values.into_iter().map(Into::into).collect())
    }
}

/// JSON object: keys and values in order.
#[derive(Default)]
pub(crate) struct Object(Vec<(String, Value)>);

impl Object {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Appends a key.
    pub(crate) fn set(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        self.0.push((key.into(), value.into()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Formats the object as a document, with a line feed at its end.
    pub(crate) fn into_document(self) -> String {
        let mut out = String::new();
        print(&mut out, &Value::Object(self), 0);
        out.push('\n');
        out
    }
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Object {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter();
        Self(
            pairs
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Integer(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Signed(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Integer(u64::from(value))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<Object> for Value {
    fn from(value: Object) -> Self {
        Self::Object(value)
    }
}

impl<V: Into<Self>> From<Vec<V>> for Value {
    fn from(values: Vec<V>) -> Self {
        Self::Array(values.into_iter().map(Into::into).collect())
    }
}

fn print(out: &mut String, value: &Value, level: usize) {
    match value {
        Value::Integer(value) => out.push_str(&value.to_string()),
        Value::Signed(value) => out.push_str(&value.to_string()),
        // JSON has neither infinity nor NaN, and neither means anything in a report.
        Value::Float(value) if !value.is_finite() => out.push_str("0.000000"),
        Value::Float(value) => out.push_str(&format!("{value:.6}")),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Text(value) => print_text(out, value),
        Value::Array(values) => print_list(out, "[]", values, level, |out, value| {
            print(out, value, level + 1);
        }),
        Value::Row(values) => {
            out.push('[');
            for (index, value) in values.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                print(out, value, level);
            }
            out.push(']');
        }
        Value::Object(object) => print_list(out, "{}", &object.0, level, |out, (key, value)| {
            print_text(out, key);
            out.push_str(" : ");
            print(out, value, level + 1);
        }),
    }
}

/// Prints items between brackets, each on its own line; only the brackets if there are none.
fn print_list<T>(
    out: &mut String,
    brackets: &str,
    items: &[T],
    level: usize,
    print_item: impl Fn(&mut String, &T),
) {
    let (open, close) = brackets.split_at(1);
    out.push_str(open);
    for (index, item) in items.iter().enumerate() {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        indent(out, level + 1);
        print_item(out, item);
    }
    if !items.is_empty() {
        out.push('\n');
        indent(out, level);
    }
    out.push_str(close);
}

fn indent(out: &mut String, level: usize) {
    for _ in 0..level {
        out.push_str("  ");
    }
}

fn print_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if control.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_fios() {
        let mut inner = Object::new();
        inner.set("N", 3_u64);
        inner.set("mean", 24.079_994_4);
        let mut document = Object::new();
        document.set("fio version", "fio-3.42");
        document.set("jobs", vec![inner]);
        document.set("list", vec![1.0, 2.5]);
        document.set(
            "row",
            Value::row([Value::row([1_u64, 2]), Value::row([3_u64])]),
        );
        document.set("none", Vec::<u64>::new());
        document.set("empty", Object::new());
        document.set("ok", true);
        let want = r#"{
  "fio version" : "fio-3.42",
  "jobs" : [
    {
      "N" : 3,
      "mean" : 24.079994
    }
  ],
  "list" : [
    1.000000,
    2.500000
  ],
  "row" : [[1, 2], [3]],
  "none" : [],
  "empty" : {},
  "ok" : true
}
"#;
        assert_eq!(document.into_document(), want);
    }

    #[test]
    fn any_text_is_read_back() {
        let text = "a\"b\\c\n\r\t\u{8}\u{c}\u{1}\u{7f}\u{85}ü😀/";
        let mut document = Object::new();
        document.set(text, text);
        document.set("nan", f64::NAN);
        document.set("huge", 1e300);
        let document = document.into_document();
        assert_eq!(document.lines().count(), 5);
        let read: serde_json::Value = serde_json::from_str(&document).unwrap();
        assert_eq!(read[text], text);
        assert_eq!(read["nan"], 0.0);
    }
}
