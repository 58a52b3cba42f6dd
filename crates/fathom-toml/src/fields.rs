//! Table of a file, read key by key.

use std::cell::{Cell, RefCell};
use std::ops::{Range, RangeInclusive};

use fathom_block::Parameters;
use fathom_core::Nanos;
use fathom_job::closest;
use toml::de::{DeTable, DeValue};

use crate::{Entry, Source, TomlProblemKind, Value};

/// Table of a file. A key is known by being asked for; [`Fields::finish`] refuses the others.
#[derive(Debug)]
pub struct Fields<'a> {
    source: &'a Source<'a>,
    table: &'a DeTable<'a>,
    span: Range<usize>,
    /// Path, as in `device.ssd`.
    name: String,
    known: RefCell<Vec<&'static str>>,
    /// All keys are known, since the reader took them all.
    open: Cell<bool>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(
        source: &'a Source<'a>,
        table: &'a DeTable<'a>,
        span: Range<usize>,
        name: impl Into<String>,
    ) -> Self {
        Self {
            source,
            table,
            span,
            name: name.into(),
            known: RefCell::default(),
            open: Cell::new(false),
        }
    }

    /// Returns the place of the table.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Returns a whole number; `default` where the key may be left out.
    pub fn whole(
        &self,
        key: &'static str,
        bounds: RangeInclusive<u64>,
        default: Option<u64>,
    ) -> u64 {
        let Some((value, span)) = self.find(key, default.is_some()) else {
            return default.unwrap_or(*bounds.end());
        };
        let number = match value {
            DeValue::Integer(written) => {
                i128::from_str_radix(&written.as_str().replace('_', ""), written.radix()).ok()
            }
            _ => None,
        };
        let allowed = i128::from(*bounds.start())..=i128::from(*bounds.end());
        match number.filter(|number| allowed.contains(number)) {
            Some(number) => u64::try_from(number).unwrap_or(u64::MAX),
            None => {
                let (from, to) = (bounds.start(), bounds.end());
                self.out_of_bounds(key, &span, &format!("a whole number from {from} to {to}"));
                *bounds.end()
            }
        }
    }

    /// Returns a whole number of 32 bits.
    pub fn count(
        &self,
        key: &'static str,
        bounds: RangeInclusive<u32>,
        default: Option<u32>,
    ) -> u32 {
        let parameters: &dyn Parameters = self;
        parameters.count(key, bounds, default)
    }

    /// Returns a number with or without a fraction.
    pub fn number(
        &self,
        key: &'static str,
        bounds: RangeInclusive<f64>,
        default: Option<f64>,
    ) -> f64 {
        let Some((value, span)) = self.find(key, default.is_some()) else {
            return default.unwrap_or(*bounds.end());
        };
        let text = match value {
            DeValue::Integer(written) if written.radix() == 10 => written.as_str(),
            DeValue::Float(written) => written.as_str(),
            _ => "",
        };
        let number = text.replace('_', "").parse().ok();
        number
            .filter(|number| bounds.contains(number))
            .unwrap_or_else(|| {
                let (from, to) = (bounds.start(), bounds.end());
                self.out_of_bounds(key, &span, &format!("a number from {from} to {to}"));
                *bounds.end()
            })
    }

    /// Returns a time that is written in units of `unit`.
    pub fn time(
        &self,
        key: &'static str,
        unit: Nanos,
        bounds: RangeInclusive<f64>,
        default: Option<f64>,
    ) -> Nanos {
        let parameters: &dyn Parameters = self;
        parameters.time(key, unit, bounds, default)
    }

    /// Returns true or false.
    pub fn flag(&self, key: &'static str, default: bool) -> bool {
        match self.find(key, true) {
            None => default,
            Some((DeValue::Boolean(flag), _)) => *flag,
            Some((_, span)) => {
                self.out_of_bounds(key, &span, "`true` or `false`");
                default
            }
        }
    }

    /// Returns one of several words; the first where the key may be left out.
    pub fn choice(
        &self,
        key: &'static str,
        words: &[&'static str],
        optional: bool,
    ) -> &'static str {
        let Some((text, span)) = self.text(key, optional) else {
            return words[0];
        };
        let known = words.iter().find(|word| **word == text);
        known.copied().unwrap_or_else(|| {
            self.out_of_bounds(key, &span, &format!("one of: {}", words.join(", ")));
            words[0]
        })
    }

    /// Returns a text with its place.
    pub fn text(&self, key: &'static str, optional: bool) -> Option<(&'a str, Range<usize>)> {
        let (value, span) = self.find(key, optional)?;
        match value {
            DeValue::String(text) => Some((text, span)),
            _ => {
                self.out_of_bounds(key, &span, "a text in quotes");
                None
            }
        }
    }

    /// Returns a list of texts that is not empty, each with its place.
    pub fn texts(&self, key: &'static str) -> Vec<(&'a str, Range<usize>)> {
        let Some((value, span)) = self.find(key, false) else {
            return Vec::new();
        };
        let items = value.as_array().into_iter().flatten();
        let texts: Vec<_> = items
            .filter_map(|item| Some((item.get_ref().as_str()?, item.span())))
            .collect();
        let whole = value.as_array().map_or(0, |items| items.len());
        if texts.is_empty() || texts.len() != whole {
            self.out_of_bounds(key, &span, "a non-empty list of strings");
        }
        texts
    }

    /// Returns a value that is written as a text or a whole number and that `read` understands;
    /// `None` if it is left out, or refused as not `wanted`.
    pub fn parsed<T>(
        &self,
        key: &'static str,
        optional: bool,
        wanted: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let (value, span) = self.find(key, optional)?;
        let read = written(value).and_then(read);
        if read.is_none() {
            self.out_of_bounds(key, &span, wanted);
        }
        read
    }

    /// Returns a list of values as of [`parsed`](Self::parsed), each with its place; a single value
    /// is a list of one. `None` if the key is left out; values that are refused are missing.
    pub fn list<T>(
        &self,
        key: &'static str,
        optional: bool,
        wanted: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<Vec<(T, Range<usize>)>> {
        let (value, span) = self.find(key, optional)?;
        let items: Vec<_> = match value.as_array() {
            Some(items) => items
                .iter()
                .map(|item| (item.get_ref(), item.span()))
                .collect(),
            None => vec![(value, span.clone())],
        };
        if items.is_empty() {
            self.out_of_bounds(key, &span, &format!("{wanted}, or a list of some"));
        }
        let mut list = Vec::new();
        for (item, span) in items {
            match written(item).and_then(&read) {
                Some(value) => list.push((value, span)),
                None => self.out_of_bounds(key, &span, wanted),
            }
        }
        Some(list)
    }

    /// Returns a list of whole numbers; `None` if it is something else, which is noted.
    pub fn wholes(&self, key: &'static str) -> Option<Vec<u64>> {
        let (value, span) = self.find(key, false)?;
        let number = |value: &DeValue<'_>| value.as_integer()?.as_str().parse().ok();
        let items = value.as_array().into_iter().flatten();
        let numbers: Vec<u64> = items.filter_map(|item| number(item.get_ref())).collect();
        if numbers.len() != value.as_array().map_or(usize::MAX, |items| items.len()) {
            self.out_of_bounds(key, &span, "a list of whole numbers from 0 on");
            return None;
        }
        Some(numbers)
    }

    /// Returns a table inside this one.
    pub fn table(&self, key: &'static str, optional: bool) -> Option<Self> {
        let name = self.name_of(key);
        if !optional && !self.has(key) {
            let document = self.source.kind().document;
            let why = format!("{} has no table `{key}`", self.name_of_table());
            let hint = format!("add `[{name}]`; see {document}");
            self.source
                .problem(&self.span, TomlProblemKind::MissingKey, why, hint);
        }
        let (value, span) = self.find(key, true)?;
        match value {
            DeValue::Table(table) => Some(Fields::new(self.source, table, span, name)),
            _ => {
                self.out_of_bounds(key, &span, &format!("a table: `[{name}]`"));
                None
            }
        }
    }

    /// Returns a list of tables inside this one; empty where there is none.
    pub fn tables(&self, key: &'static str) -> Vec<Self> {
        let Some((value, span)) = self.find(key, true) else {
            return Vec::new();
        };
        let name = self.name_of(key);
        let items = value.as_array().into_iter().flatten();
        let tables: Vec<_> = items
            .filter_map(|item| {
                let table = item.get_ref().as_table()?;
                Some(Fields::new(self.source, table, item.span(), name.clone()))
            })
            .collect();
        let whole = value.as_array().map_or(0, |items| items.len());
        if tables.is_empty() || tables.len() != whole {
            self.out_of_bounds(key, &span, &format!("tables: `[[{name}]]`"));
        }
        tables
    }

    /// Returns all entries that no other method asked for, in the order of the file; their keys are
    /// known from now on.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry<'a>> {
        self.open.set(true);
        let known = self.known.borrow();
        let rest = self.table.iter();
        let rest = rest.filter(|(key, _)| !known.contains(&key.get_ref().as_ref()));
        let mut entries: Vec<_> = rest
            .map(|(key, value)| Entry {
                key: key.get_ref(),
                key_span: key.span(),
                value: Value::new(self.source, value.get_ref(), value.span()),
            })
            .collect();
        entries.sort_by_key(|entry| entry.key_span.start);
        entries
    }

    /// Returns the value of a key, whatever it is.
    #[must_use]
    pub fn value(&self, key: &'static str) -> Option<Value<'a>> {
        let (value, span) = self.find(key, true)?;
        Some(Value::new(self.source, value, span))
    }

    /// Returns the path of the table, as in `device.ssd`; empty for the outermost.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if a key is present, known or not.
    pub fn has(&self, key: &str) -> bool {
        self.table.keys().any(|name| name.get_ref() == key)
    }

    /// Notes that the value of `key` makes no sense, or the table where it has none.
    pub fn refuse(&self, key: &'static str, why: impl Into<String>, hint: &str) {
        let found = self.find(key, true).map(|(_, span)| span);
        let span = found.unwrap_or_else(|| self.span.clone());
        self.source
            .problem(&span, TomlProblemKind::MakesNoSense, why, hint);
    }

    /// Notes that the value at `span` makes no sense.
    pub fn refuse_at(&self, span: &Range<usize>, why: impl Into<String>, hint: impl Into<String>) {
        self.source
            .problem(span, TomlProblemKind::MakesNoSense, why, hint);
    }

    /// Notes the keys that were not asked for.
    pub fn finish(&self) {
        if self.open.get() {
            return;
        }
        let known = self.known.borrow();
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if known.contains(&name) {
                continue;
            }
            let hint = match closest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("keys here: {}", known.join(", ")),
            };
            let why = format!("unknown key `{name}` in {}", self.name_of_table());
            self.source
                .problem(&key.span(), TomlProblemKind::UnknownKey, why, hint);
        }
    }

    fn find(&self, key: &'static str, optional: bool) -> Option<(&'a DeValue<'a>, Range<usize>)> {
        let mut known = self.known.borrow_mut();
        if !known.contains(&key) {
            known.push(key);
        }
        let mut entries = self.table.iter();
        if let Some((_, value)) = entries.find(|(name, _)| name.get_ref() == key) {
            return Some((value.get_ref(), value.span()));
        }
        if !optional {
            let why = format!("{} has no `{key}`", self.name_of_table());
            let hint = format!("add it; see {}", self.source.kind().document);
            self.source
                .problem(&self.span, TomlProblemKind::MissingKey, why, hint);
        }
        None
    }

    fn out_of_bounds(&self, key: &str, span: &Range<usize>, wanted: &str) {
        let why = format!("`{key}` must be {wanted}");
        let hint = format!("see {}", self.source.kind().document);
        self.source
            .problem(span, TomlProblemKind::BadValue, why, hint);
    }

    fn name_of(&self, key: &str) -> String {
        match self.name.as_str() {
            "" => key.to_owned(),
            name => format!("{name}.{key}"),
        }
    }

    fn name_of_table(&self) -> String {
        match self.name.as_str() {
            "" => self.source.kind().noun.to_owned(),
            name => format!("`{name}`"),
        }
    }
}

/// Returns a text, or a whole number as it is written.
fn written<'a>(value: &'a DeValue<'_>) -> Option<&'a str> {
    match value {
        DeValue::String(text) => Some(text),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str()),
        _ => None,
    }
}
