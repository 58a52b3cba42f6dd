//! A machine file's tables, read key by key: each value within its bounds, each key known, and
//! whatever is wrong told with its place.

use std::cell::RefCell;
use std::ops::{Range, RangeInclusive};

use fathom_block::Parameters;
use fathom_core::Nanos;
use fathom_job::{Origin, closest};
use fathom_setup::{ProblemKind, RunProblem};
use toml::de::{DeTable, DeValue};

/// A machine file and what was found wrong with it.
pub(super) struct Source<'a> {
    file: &'a str,
    text: &'a str,
    /// With where each stands.
    problems: RefCell<Vec<(usize, RunProblem)>>,
}

impl<'a> Source<'a> {
    pub(super) const fn new(file: &'a str, text: &'a str) -> Self {
        Self {
            file,
            text,
            problems: RefCell::new(Vec::new()),
        }
    }

    /// Something is wrong at these bytes.
    pub(super) fn problem(
        &self,
        at: &Range<usize>,
        kind: ProblemKind,
        why: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let mut problem = RunProblem::new(kind, why);
        problem.origin = self.origin(at);
        let hint = hint.into();
        if !hint.is_empty() {
            problem = problem.hint(hint);
        }
        self.problems.borrow_mut().push((at.start, problem));
    }

    pub(super) fn origin(&self, at: &Range<usize>) -> Origin {
        Origin::in_text(self.file, self.text, at.clone())
    }

    pub(super) fn has_problems(&self) -> bool {
        !self.problems.borrow().is_empty()
    }

    /// All that is wrong, from top to bottom.
    pub(super) fn into_problems(self) -> Vec<RunProblem> {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(|(at, _)| *at);
        problems.into_iter().map(|(_, problem)| problem).collect()
    }
}

/// One table. Keys are told as known by being asked for; [`Fields::finish`] refuses the others.
pub(super) struct Fields<'a> {
    source: &'a Source<'a>,
    table: &'a DeTable<'a>,
    /// Where it stands, and how it is called: `device.ssd`.
    pub(super) span: Range<usize>,
    name: String,
    known: RefCell<Vec<&'static str>>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(
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
        }
    }

    /// A whole number; `default` where the key may be left out.
    pub(super) fn whole(
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

    /// The same, for what is counted in 32 bits.
    pub(super) fn count(
        &self,
        key: &'static str,
        bounds: RangeInclusive<u32>,
        default: Option<u32>,
    ) -> u32 {
        let parameters: &dyn Parameters = self;
        parameters.count(key, bounds, default)
    }

    /// A number with or without a fraction.
    pub(super) fn number(
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

    /// A time that is written in units of `unit`.
    pub(super) fn time(
        &self,
        key: &'static str,
        unit: Nanos,
        bounds: RangeInclusive<f64>,
        default: Option<f64>,
    ) -> Nanos {
        let parameters: &dyn Parameters = self;
        parameters.time(key, unit, bounds, default)
    }

    /// Yes or no.
    pub(super) fn flag(&self, key: &'static str, default: bool) -> bool {
        match self.find(key, true) {
            None => default,
            Some((DeValue::Boolean(flag), _)) => *flag,
            Some((_, span)) => {
                self.out_of_bounds(key, &span, "`true` or `false`");
                default
            }
        }
    }

    /// One of several words; the first where the key may be left out.
    pub(super) fn choice(
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

    /// A text, with where it stands.
    pub(super) fn text(
        &self,
        key: &'static str,
        optional: bool,
    ) -> Option<(&'a str, Range<usize>)> {
        let (value, span) = self.find(key, optional)?;
        match value {
            DeValue::String(text) => Some((text, span)),
            _ => {
                self.out_of_bounds(key, &span, "a text in quotes");
                None
            }
        }
    }

    /// A list of texts that is not empty, with where each stands.
    pub(super) fn texts(&self, key: &'static str) -> Vec<(&'a str, Range<usize>)> {
        let Some((value, span)) = self.find(key, false) else {
            return Vec::new();
        };
        let items = value.as_array().into_iter().flatten();
        let texts: Vec<_> = items
            .filter_map(|item| Some((item.get_ref().as_str()?, item.span())))
            .collect();
        let whole = value.as_array().map_or(0, |items| items.len());
        if texts.is_empty() || texts.len() != whole {
            self.out_of_bounds(key, &span, "a list of texts, as in `[\"/dev/sdb\"]`");
        }
        texts
    }

    /// A list of whole numbers; `None` if it is something else, which is told.
    pub(super) fn wholes(&self, key: &'static str) -> Option<Vec<u64>> {
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

    /// A table in this one.
    pub(super) fn table(&self, key: &'static str, optional: bool) -> Option<Self> {
        let name = self.name_of(key);
        if !optional && !self.has(key) {
            let why = format!("{} has no table `{key}`", self.name_of_table());
            let hint = format!("write `[{name}]`; docs/MACHINE_FILES.md says what stands in it");
            self.source
                .problem(&self.span, ProblemKind::MachineMissingKey, why, hint);
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

    /// A list of tables in this one; empty where there is none.
    pub(super) fn tables(&self, key: &'static str) -> Vec<Self> {
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
        if tables.is_empty() {
            self.out_of_bounds(key, &span, &format!("tables: `[[{name}]]`"));
        }
        tables
    }

    /// Returns true if a key is present, known or not.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.keys().any(|name| name.get_ref() == key)
    }

    /// Something is wrong with the value of `key`, or with the table where it has none.
    pub(super) fn refuse(&self, key: &'static str, why: impl Into<String>, hint: &str) {
        let found = self.find(key, true).map(|(_, span)| span);
        let span = found.unwrap_or_else(|| self.span.clone());
        self.source
            .problem(&span, ProblemKind::MachineMakesNoSense, why, hint);
    }

    /// Refuses the keys that nobody asked for.
    pub(super) fn finish(&self) {
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
            let why = format!("`{name}` is no key of {}", self.name_of_table());
            self.source
                .problem(&key.span(), ProblemKind::MachineUnknownKey, why, hint);
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
            let hint = "write it; docs/MACHINE_FILES.md says what it means";
            self.source
                .problem(&self.span, ProblemKind::MachineMissingKey, why, hint);
        }
        None
    }

    fn out_of_bounds(&self, key: &str, span: &Range<usize>, wanted: &str) {
        let why = format!("`{key}` must be {wanted}");
        let hint = "docs/MACHINE_FILES.md says what it means";
        self.source
            .problem(span, ProblemKind::MachineBadValue, why, hint);
    }

    fn name_of(&self, key: &str) -> String {
        match self.name.as_str() {
            "" => key.to_owned(),
            name => format!("{name}.{key}"),
        }
    }

    fn name_of_table(&self) -> String {
        match self.name.as_str() {
            "" => "a machine file".to_owned(),
            name => format!("`{name}`"),
        }
    }
}

/// The same for models and layers, which read their own keys.
impl Parameters for Fields<'_> {
    fn whole(&self, key: &'static str, bounds: RangeInclusive<u64>, default: Option<u64>) -> u64 {
        self.whole(key, bounds, default)
    }

    fn number(&self, key: &'static str, bounds: RangeInclusive<f64>, default: Option<f64>) -> f64 {
        self.number(key, bounds, default)
    }

    fn flag(&self, key: &'static str, default: bool) -> bool {
        self.flag(key, default)
    }

    fn text(&self, key: &'static str) -> Option<&str> {
        self.text(key, false).map(|(text, _)| text)
    }

    fn wholes(&self, key: &'static str) -> Option<Vec<u64>> {
        self.wholes(key)
    }

    fn table(&self, key: &'static str, optional: bool) -> Option<Box<dyn Parameters + '_>> {
        let table = self.table(key, optional)?;
        Some(Box::new(table))
    }

    fn tables(&self, key: &'static str) -> Vec<Box<dyn Parameters + '_>> {
        let tables = self.tables(key).into_iter();
        tables.map(|table| Box::new(table) as _).collect()
    }

    fn has(&self, key: &str) -> bool {
        self.has(key)
    }

    fn refuse(&self, key: &'static str, why: &str, hint: &str) {
        self.refuse(key, why, hint);
    }

    fn finish(&self) {
        self.finish();
    }
}
