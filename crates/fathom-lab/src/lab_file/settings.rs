//! Settings: changed values with the things that they change.

use std::collections::HashSet;
use std::ops::Range;

use fathom_job::closest;
use fathom_toml::{Entry, Value};

use super::reader::Reader;
use super::trials::cells_to_try;
use crate::lab_plan::{
    LabPlan, RunSettings, Setting, Subject, Target, peak_argument, peak_names, peak_value_wanted,
};

/// Key of a setting with its value, which may be a list of values.
pub(super) struct Leaf<'a> {
    pub(super) target: Target,
    pub(super) key: String,
    pub(super) key_span: Range<usize>,
    pub(super) value: Value<'a>,
}

impl Leaf<'_> {
    /// Returns the setting of a single value; `None` if it is refused.
    pub(super) fn setting(&self, reader: &Reader<'_>) -> Option<Setting> {
        setting(reader, &self.target, &self.key, &self.key_span, &self.value)
    }
}

/// Returns the values of a table such as `{ machine = { "device.queue.policy" = "fair" } }`. A key
/// outside the tables `job`, `peak`, `run`, `service` and `machine` is an option of the subject.
pub(super) fn leaves<'a>(
    reader: &Reader<'_>,
    entries: Vec<Entry<'a>>,
    subject: Option<&Subject>,
) -> Vec<Leaf<'a>> {
    let usual = match subject {
        Some(Subject::Peak(_)) => Target::Peak,
        _ => Target::Job,
    };
    let mut found = Vec::new();
    for entry in entries {
        match (target(entry.key), entry.value.fields(entry.key)) {
            (Some(target), Some(inner)) => {
                for entry in inner.entries() {
                    flatten(reader, &target, "", entry, &mut found);
                }
            }
            (None, Some(_)) => refuse_target(reader, &entry),
            (_, None) => flatten(reader, &usual, "", entry, &mut found),
        }
    }
    found
}

fn target(key: &str) -> Option<Target> {
    match key {
        "job" => Some(Target::Job),
        "peak" => Some(Target::Peak),
        "run" => Some(Target::Run),
        // Its first key is the name of the service.
        "service" => Some(Target::Service(String::new())),
        "machine" => Some(Target::Machine),
        _ => None,
    }
}

fn refuse_target(reader: &Reader<'_>, entry: &Entry<'_>) {
    let why = format!("unknown table `{}`", entry.key);
    let hint = match closest(entry.key, TARGETS) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("tables here: {}", TARGETS.join(", ")),
    };
    reader.refuse(&entry.key_span, why, hint);
}

/// Joins the keys of nested tables with dots.
fn flatten<'a>(
    reader: &Reader<'_>,
    target: &Target,
    path: &str,
    entry: Entry<'a>,
    found: &mut Vec<Leaf<'a>>,
) {
    let key = match path {
        "" => entry.key.to_owned(),
        path => format!("{path}.{}", entry.key),
    };
    if let Some(inner) = entry.value.fields(key.as_str()) {
        if *target == Target::Job || *target == Target::Peak {
            let why = format!("option `{key}` is a table");
            return reader.refuse(&entry.key_span, why, "write one value");
        }
        for entry in inner.entries() {
            flatten(reader, target, &key, entry, found);
        }
        return;
    }
    let (target, key) = match (target, key.split_once('.')) {
        (Target::Service(_), Some((name, key))) => {
            (Target::Service(name.to_owned()), key.to_owned())
        }
        (Target::Service(_), None) => {
            let why = format!("`{key}` names no argument of a service");
            let hint = "write `service.NAME.ARGUMENT = …`";
            return reader.refuse(&entry.key_span, why, hint);
        }
        (target, _) => (target.clone(), key),
    };
    found.push(Leaf {
        target,
        key,
        key_span: entry.key_span,
        value: entry.value,
    });
}

/// Returns the setting of a key and one value; `None` if it is refused.
pub(super) fn setting(
    reader: &Reader<'_>,
    target: &Target,
    key: &str,
    key_span: &Range<usize>,
    value: &Value<'_>,
) -> Option<Setting> {
    if !is_word(key, target) {
        let why = format!("`{}` is no option", key.escape_debug());
        reader.refuse(key_span, why, "write the name of an option, as `bs`");
        return None;
    }
    let (text, literal) = match target {
        Target::Machine => {
            let literal = value.literal();
            let text = value.scalar().unwrap_or_else(|| literal.to_owned());
            (text, reader.substituted(literal, &value.span())?)
        }
        Target::Job | Target::Peak => {
            let text = reader.scalar(value, key)?;
            let text = value.flag().map_or(text, |flag| u8::from(flag).to_string());
            (text, value.literal().to_owned())
        }
        Target::Run | Target::Service(_) => {
            (reader.scalar(value, key)?, value.literal().to_owned())
        }
    };
    if *target == Target::Run {
        let mut run = RunSettings::default();
        if let Err(problem) = run.set(key, &text) {
            let span = if problem.is_of_key {
                key_span.clone()
            } else {
                value.span()
            };
            reader.refuse(&span, problem.message, problem.hint);
            return None;
        }
    }
    let key = match target {
        Target::Job => reader.option(key),
        Target::Peak => {
            let name = argument(reader, key, key_span)?;
            if let Some(wanted) = peak_value_wanted(name, &text) {
                let why = format!("`{key}` must be {wanted}");
                reader.refuse(&value.span(), why, "see `fathom peak --help`");
                return None;
            }
            name
        }
        _ => key,
    };
    Some(Setting {
        target: target.clone(),
        key: key.to_owned(),
        value: text,
        literal,
        span: value.span(),
        key_span: key_span.clone(),
    })
}

/// Notes values that an axis and a variant, or two axes, both set.
pub(super) fn refuse_set_twice(reader: &Reader<'_>, plan: &LabPlan) {
    let mut told = HashSet::new();
    let mut refuse = |setting: &Setting, why: String| {
        if told.insert(setting.span.start) {
            reader.refuse(&setting.span, why, "keep one of them");
        }
    };
    let line = |setting: &Setting| reader.source.origin(&setting.span).line;
    for cell in cells_to_try(plan) {
        for (at, one) in cell.settings().enumerate() {
            let mut earlier = cell.settings().take(at);
            if let Some(other) = earlier.find(|other| other.is_of_same(one)) {
                let (key, line) = (&one.key, line(other));
                let why = format!(
                    "`{key}` is set by two axes, in the cell `{}`: line {line} has the other",
                    cell.label
                );
                refuse(one, why);
            }
        }
        for variant in &plan.variants {
            for one in &variant.settings {
                if let Some(other) = cell.settings().find(|other| other.is_of_same(one)) {
                    let (key, name, line) = (&one.key, &variant.name, line(other));
                    let why = format!(
                        "`{key}` is set by the variant `{name}` and by an axis, in line {line}, \
                         as in the cell `{}`",
                        cell.label
                    );
                    refuse(one, why);
                }
            }
        }
    }
}

/// Returns the argument of `fathom peak` of this name; notes one that does not exist.
fn argument<'a>(reader: &Reader<'_>, key: &'a str, span: &Range<usize>) -> Option<&'a str> {
    let known = peak_argument(key);
    if known.is_none() {
        let hint = match closest(key, peak_names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("one of: {}", peak_names().collect::<Vec<_>>().join(", ")),
        };
        reader.refuse(span, format!("`fathom peak` has no `{key}`"), hint);
    }
    known
}

/// Returns whether a key can stand in a job file or on a command line.
fn is_word(key: &str, target: &Target) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    match target {
        Target::Machine => true,
        _ => !key.is_empty() && !key.starts_with('-') && key.chars().all(plain),
    }
}

const TARGETS: [&str; 5] = ["job", "peak", "run", "service", "machine"];
