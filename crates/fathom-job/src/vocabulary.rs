//! Everything that an option's name can mean: the table, and the options that engines bring along.

use fathom_core::{EngineInfo, OptionKind, OptionValue};

use crate::table::{self, Row, ValueKind};

/// The options and engines of one invocation.
///
/// The table is the same for all; the engines are those of the program that parses, which the
/// table cannot know: an engine of another crate has options of its own.
#[derive(Clone, Copy)]
pub(crate) struct Vocabulary<'a> {
    engines: &'a [&'static EngineInfo],
}

impl<'a> Vocabulary<'a> {
    pub(crate) const fn new(engines: &'a [&'static EngineInfo]) -> Self {
        Self { engines }
    }

    /// Returns all engines.
    pub(crate) fn engines(self) -> impl Iterator<Item = &'static EngineInfo> + Clone + 'a {
        self.engines.iter().copied()
    }

    /// Returns the engine that this name means.
    pub(crate) fn engine(self, name: &str) -> Option<&'static EngineInfo> {
        let exact = self.engines().find(|info| info.name == name);
        exact.or_else(|| self.engines().find(|info| info.is_called(name)))
    }

    /// Returns the engine of a job that names none: as in fio `psync`, if it is registered.
    pub(crate) fn default_engine(self) -> &'static EngineInfo {
        let default = self.engine(DEFAULT.name);
        default
            .or_else(|| self.engines().next())
            .unwrap_or(&DEFAULT)
    }

    /// Returns the option of this name or alias: of every job, of a job with this engine, or of a
    /// job with another one.
    pub(crate) fn find(self, name: &str, engine: &EngineInfo) -> Option<Row> {
        let own = || engine.option(name);
        let others = || self.engines().find_map(|info| info.option(name));
        let of_engine = || own().or_else(others).map(Row::of_engine);
        table::find(name).copied().or_else(of_engine)
    }

    /// Returns the option of this name or alias, whichever engine it belongs to.
    pub(crate) fn find_any(self, name: &str) -> Option<Row> {
        self.find(name, self.default_engine())
    }

    /// Returns the options that belong to engines, one for each name.
    pub(crate) fn engine_rows(self) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        for option in self.engines().flat_map(|info| info.options) {
            if rows.iter().all(|row| row.name != option.name) {
                rows.push(Row::of_engine(option));
            }
        }
        rows
    }

    /// Returns all options.
    pub(crate) fn rows(self) -> impl Iterator<Item = Row> + use<> {
        table::rows().copied().chain(self.engine_rows())
    }

    /// Returns the engines with which a job can have an option; none for all.
    pub(crate) fn engines_of(self, row: &Row) -> Vec<&'static str> {
        if row.is_general() {
            return Vec::new();
        }
        let engines = self.engines().filter(|info| row.belongs_to(info));
        engines.map(|info| info.name).collect()
    }
}

impl Row {
    /// Returns the row of an engine's own option.
    fn of_engine(option: &'static fathom_core::EngineOption) -> Self {
        let kind = match option.kind {
            OptionKind::Flag => {
                ValueKind::Flag(|o, v| o.engine_values.set(UNNAMED, number(v.into())))
            }
            OptionKind::Bool => {
                ValueKind::Bool(|o, v| o.engine_values.set(UNNAMED, number(v.into())))
            }
            OptionKind::Int { min, max } => ValueKind::Int {
                min,
                max,
                set: |o, v| o.engine_values.set(UNNAMED, number(v)),
            },
            OptionKind::Choice(words) => ValueKind::Words(words, |o, word| {
                o.engine_values
                    .set(UNNAMED, OptionValue::Text(word.to_owned()));
            }),
            OptionKind::Mix(words) => ValueKind::Mix(words, |o, value| {
                o.engine_values.set(UNNAMED, value);
            }),
            OptionKind::Text => ValueKind::Text(|o, text| {
                o.engine_values
                    .set(UNNAMED, OptionValue::Text(text.to_owned()));
            }),
        };
        let row = Self::new(
            option.name,
            option.default,
            option.help,
            option.example,
            kind,
        );
        Self {
            different: option.different,
            is_secret: option.is_secret,
            ..row.engine_own()
        }
    }
}

const fn number(value: u64) -> OptionValue {
    OptionValue::Number(value)
}

/// Name under which a value stands until [`Row::apply`] keeps it under its option's: a setter does
/// not know which of an engine's options it serves.
pub(crate) const UNNAMED: &str = "";

/// Stands for fio's default engine in options that no job was read into; a parsed job has the
/// engine of that name which the program brings along.
pub(crate) static DEFAULT: EngineInfo = EngineInfo::new("psync", "");
