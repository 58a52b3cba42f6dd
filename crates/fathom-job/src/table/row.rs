//! What the table knows about one option.

use fathom_core::{Nanos, PerDirection};

use crate::findings::Findings;
use crate::plan::{Options, Size};
use crate::problem::Problem;
use crate::reading::Counts;
use crate::time::Bare;

/// One option.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    /// fio's name for it.
    pub(crate) name: &'static str,
    /// Other names that mean the same.
    pub(crate) aliases: &'static [&'static str],
    /// How its value is read, and what it sets.
    pub(crate) kind: ValueKind,
    /// Its value when nobody says anything, in words where it depends on others; empty for none.
    pub(crate) default: &'static str,
    /// What it does, in a few words.
    pub(crate) help: &'static str,
    /// How it is written.
    pub(crate) example: &'static str,
    /// The engines that have it; empty for all.
    pub(crate) engines: &'static [&'static str],
    /// Values that fio knows and Fathom not yet.
    pub(crate) later: &'static [&'static str],
    /// fio's limits, where they are wider than those of the kind.
    pub(crate) fio: Option<(u64, u64)>,
    /// The value that fio keeps when several are given for one.
    pub(crate) counts: Counts,
    /// Its value is a number though its form is its own: arithmetic on keywords makes sense.
    pub(crate) numeric: bool,
    /// What Fathom refuses and fio takes for something else; empty where there is none.
    pub(crate) stricter: &'static str,
    /// What Fathom does in another way; empty where it does the same.
    pub(crate) different: &'static str,
}

/// How an option's value is read, and the setter for it.
#[derive(Clone, Copy)]
pub(crate) enum ValueKind {
    /// Bare, `=0` or `=1`.
    Flag(fn(&mut Options, bool)),
    /// `0` or `1`.
    Bool(fn(&mut Options, bool)),
    /// A whole number.
    Int {
        min: u64,
        max: u64,
        set: fn(&mut Options, u64),
    },
    /// A whole number that may be negative.
    Signed {
        min: i64,
        max: i64,
        set: fn(&mut Options, i64),
    },
    /// A number of bytes, or a percentage.
    Size {
        min: u64,
        set: fn(&mut Options, Size),
    },
    /// A time.
    Time {
        bare: Bare,
        set: fn(&mut Options, Nanos),
    },
    /// Numbers for reads, writes and trims; `None` where none was given.
    PerDirection {
        min: u64,
        max: u64,
        set: fn(&mut Options, PerDirection<Option<u64>>),
    },
    /// One of some words.
    Choice(&'static [Choice]),
    /// Any text.
    Text(fn(&mut Options, &str)),
    /// Any text; in a job file also none.
    OptionalText(fn(&mut Options, &str)),
    /// A form of its own.
    Special {
        /// What it looks like.
        form: &'static str,
        read: fn(&mut Options, &str, &mut Findings) -> Result<(), Problem>,
    },
    /// Taken and left alone, as in fio; why, behind its name.
    Ignored(&'static str),
}

/// Where fio knows any value that Fathom does not.
pub(crate) const ALL_OTHERS: &[&str] = &["all other values"];

/// Why an option does nothing that once did something.
pub(crate) const GIVEN_UP: &str = "has no effect, as in fio";

/// A word an option can have for its value.
#[derive(Clone, Copy)]
pub(crate) struct Choice {
    pub(crate) word: &'static str,
    pub(crate) help: &'static str,
    pub(crate) set: fn(&mut Options),
}

impl Row {
    pub(crate) const fn new(
        name: &'static str,
        default: &'static str,
        help: &'static str,
        example: &'static str,
        kind: ValueKind,
    ) -> Self {
        Self {
            name,
            aliases: &[],
            kind,
            default,
            help,
            example,
            engines: &[],
            later: &[],
            fio: None,
            counts: Counts::First,
            numeric: false,
            stricter: "",
            different: "",
        }
    }

    pub(crate) const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    pub(crate) const fn engines(self, engines: &'static [&'static str]) -> Self {
        Self { engines, ..self }
    }

    pub(crate) const fn later(self, later: &'static [&'static str]) -> Self {
        Self { later, ..self }
    }

    pub(crate) const fn fio(self, min: u64, max: u64) -> Self {
        let fio = Some((min, max));
        Self { fio, ..self }
    }

    pub(crate) const fn last_counts(self) -> Self {
        let counts = Counts::Last;
        Self { counts, ..self }
    }

    pub(crate) const fn numeric(self) -> Self {
        let numeric = true;
        Self { numeric, ..self }
    }

    pub(crate) const fn stricter(self, stricter: &'static str) -> Self {
        Self { stricter, ..self }
    }

    pub(crate) const fn different(self, different: &'static str) -> Self {
        Self { different, ..self }
    }

    /// Its name and aliases.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Whether a job with this engine can have it.
    pub(crate) fn belongs_to(&self, engine: &str) -> bool {
        self.engines.is_empty() || self.engines.contains(&engine)
    }

    /// Whether it needs no value.
    pub(crate) const fn is_flag(&self) -> bool {
        matches!(self.kind, ValueKind::Flag(_))
    }

    /// Whether its value is a number, so that arithmetic on keywords makes sense.
    pub(crate) const fn is_numeric(&self) -> bool {
        self.numeric
            || matches!(
                self.kind,
                ValueKind::Int { .. }
                    | ValueKind::Signed { .. }
                    | ValueKind::Size { .. }
                    | ValueKind::Time { .. }
                    | ValueKind::PerDirection { .. }
            )
    }

    /// Returns whether any text is a valid value.
    pub(crate) fn takes_any_text(&self) -> bool {
        matches!(self.kind, ValueKind::Text(_) | ValueKind::OptionalText(_))
            || matches!(self.name, "filename" | "directory" | "opendir")
    }

    /// Whether its value is 0 or 1.
    pub(crate) const fn is_boolean(&self) -> bool {
        matches!(self.kind, ValueKind::Flag(_) | ValueKind::Bool(_))
    }

    /// Returns whether a repeated option adds to the earlier ones instead of replacing them.
    pub(crate) fn adds(&self) -> bool {
        self.name == "filename"
    }

    /// Options of a lower rank in a section are read first, wherever they stand.
    pub(crate) fn rank(&self) -> u8 {
        match self.name {
            "kb_base" | "unit_base" | "cpus_allowed_policy" => 0,
            "filename" | "filename_format" => 2,
            _ if !self.engines.is_empty() => 3,
            _ => 1,
        }
    }
}

impl ValueKind {
    /// The kind of value, in fio's words.
    pub(crate) const fn words(&self) -> &'static str {
        match self {
            Self::Flag(_) => "empty or boolean value ([0|1])",
            Self::Bool(_) => "boolean value (opt=1)",
            Self::Int { .. } | Self::Signed { .. } => "integer value (opt=100)",
            Self::Size { .. } => "integer value with unit, or percentage (opt=4k, opt=50%)",
            Self::Time {
                bare: Bare::Seconds,
                ..
            } => "time, in seconds if it has no unit (opt=10s)",
            Self::Time { .. } => "time, in microseconds if it has no unit (opt=10ms)",
            Self::PerDirection { .. } => {
                "one to three integer values, for read,write,trim (opt=4k)"
            }
            Self::Choice(_) => "one of the words below",
            Self::Text(_) | Self::OptionalText(_) => "string (opt=bla)",
            Self::Special { form, .. } => form,
            Self::Ignored(_) => "ignored",
        }
    }
}
