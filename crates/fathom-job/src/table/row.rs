//! Type of the rows of the option table.

use std::borrow::Cow;

use fathom_core::{EngineInfo, Nanos, OptionValue, OptionWord, PerDirection};

use crate::findings::Findings;
use crate::plan::{Options, Size};
use crate::problem::Problem;
use crate::reading::EffectiveEntry;
use crate::time::Bare;

use super::verify;

/// One option: name, syntax, setter, help, and its relation to fio.
///
/// A row is a constant built with [`Row::new`] and the methods below. It holds texts and function
/// pointers only, so the table costs no start-up time. [`Row::apply`] reads a value and sets the
/// option; everything else describes.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    /// fio's name.
    pub(crate) name: &'static str,
    /// Alternative names.
    pub(crate) aliases: &'static [&'static str],
    /// Syntax of its value, with the setter.
    pub(crate) kind: ValueKind,
    /// Default value, in words if it depends on other options; empty for none.
    pub(crate) default: &'static str,
    /// Help text: `Noun phrase or imperative[; value: meaning]`, one line, no full stop.
    pub(crate) help: &'static str,
    /// An example that a test parses.
    pub(crate) example: &'static str,
    /// Jobs that can have it, by their engines.
    pub(crate) reach: Reach,
    /// fio's limits, if they are wider than those of `kind`.
    pub(crate) fio: Option<(u64, u64)>,
    /// The value that fio uses if several are given.
    pub(crate) counts: EffectiveEntry,
    /// Set if a [`ValueKind::Special`] value is a number, so that arithmetic on keywords applies.
    pub(crate) numeric: bool,
    /// fio's handling of an empty value in a job file; `None` if it refuses one.
    pub(crate) empty: Option<EmptyValue>,
    /// Values that Fathom flags and fio accepts silently; empty if none.
    pub(crate) stricter: &'static str,
    /// Differences in effect from fio; empty if none.
    pub(crate) different: &'static str,
    /// No output shows its value.
    pub(crate) is_secret: bool,
}

/// fio's handling of an empty value in a job file, where it accepts one.
#[derive(Clone, Copy)]
pub(crate) enum EmptyValue {
    /// The option stays unchanged.
    Ignored,
    /// The value has this meaning, and the function sets it.
    Means(&'static str, fn(&mut Options)),
    /// The job is refused when it is about to run.
    RefusedWhenRun,
}

/// Jobs that can have an option, by their engines.
#[derive(Clone, Copy)]
pub(crate) enum Reach {
    /// All.
    All,
    /// Those whose engine has a property.
    With(fn(&EngineInfo) -> bool),
    /// Those whose engine declares an option of this name.
    Own,
}

/// Syntax of the value of an option, with the setter.
#[derive(Clone, Copy)]
pub(crate) enum ValueKind {
    /// Bare, `=0` or `=1`.
    Flag(fn(&mut Options, bool)),
    /// Accepts `0` or `1`.
    Bool(fn(&mut Options, bool)),
    /// An integer.
    Int {
        min: u64,
        max: u64,
        set: fn(&mut Options, u64),
    },
    /// An integer that may be negative.
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
    /// Numbers for reads, writes and trims; `None` if not given.
    PerDirection {
        min: u64,
        max: u64,
        set: fn(&mut Options, PerDirection<Option<u64>>),
    },
    /// One of several words.
    Choice(&'static [Choice]),
    /// One of the words of an engine's own option.
    Words(&'static [OptionWord], fn(&mut Options, &'static str)),
    /// One of the words of an engine's own option, or several with percentages.
    Mix(&'static [OptionWord], fn(&mut Options, OptionValue)),
    /// Any text.
    Text(fn(&mut Options, &str)),
    /// Any text; in a job file it may be empty.
    OptionalText(fn(&mut Options, &str)),
    /// A syntax of its own.
    Special {
        /// Description of the syntax.
        form: &'static str,
        read: fn(&mut Options, &str, &mut Findings) -> Result<(), Problem>,
    },
    /// The name of an engine.
    Engine,
    /// A method of verification.
    Verify,
    /// Accepted without effect, as in fio; with the reason, to follow the name.
    Ignored(&'static str),
}

/// Reason to ignore an option that fio no longer uses.
pub(crate) const UNUSED_IN_FIO: &str = "has no effect, as in fio";

/// One word of an option with a fixed set of values.
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
            reach: Reach::All,
            fio: None,
            counts: EffectiveEntry::First,
            numeric: false,
            empty: None,
            stricter: "",
            different: "",
            is_secret: false,
        }
    }

    pub(crate) const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// Restricts the option to jobs whose engine has a property.
    pub(crate) const fn only_with(self, property: fn(&EngineInfo) -> bool) -> Self {
        let reach = Reach::With(property);
        Self { reach, ..self }
    }

    /// Restricts the option to jobs whose engine declares it.
    pub(crate) const fn engine_own(self) -> Self {
        let reach = Reach::Own;
        Self { reach, ..self }
    }

    pub(crate) const fn fio(self, min: u64, max: u64) -> Self {
        let fio = Some((min, max));
        Self { fio, ..self }
    }

    pub(crate) const fn last_counts(self) -> Self {
        let counts = EffectiveEntry::Last;
        Self { counts, ..self }
    }

    pub(crate) const fn numeric(self) -> Self {
        let numeric = true;
        Self { numeric, ..self }
    }

    pub(crate) const fn empty(self, empty: EmptyValue) -> Self {
        let empty = Some(empty);
        Self { empty, ..self }
    }

    pub(crate) const fn stricter(self, stricter: &'static str) -> Self {
        Self { stricter, ..self }
    }

    pub(crate) const fn different(self, different: &'static str) -> Self {
        Self { different, ..self }
    }

    /// Returns its name and aliases.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Returns whether a job with this engine can have it.
    pub(crate) fn belongs_to(&self, engine: &EngineInfo) -> bool {
        match self.reach {
            Reach::All => true,
            Reach::With(property) => property(engine),
            Reach::Own => engine.option(self.name).is_some(),
        }
    }

    /// Returns whether every job can have it, whatever its engine.
    pub(crate) const fn is_general(&self) -> bool {
        matches!(self.reach, Reach::All)
    }

    /// Returns whether it needs no value.
    pub(crate) const fn is_flag(&self) -> bool {
        matches!(self.kind, ValueKind::Flag(_))
    }

    /// Returns whether its value is a number, so that arithmetic on keywords applies.
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
            || matches!(
                self.name,
                "filename" | "directory" | "opendir" | "read_iolog"
            )
    }

    /// Returns whether its value is 0 or 1.
    pub(crate) const fn is_boolean(&self) -> bool {
        matches!(self.kind, ValueKind::Flag(_) | ValueKind::Bool(_))
    }

    /// Returns whether a repeated option adds to the earlier ones instead of replacing them.
    pub(crate) fn adds(&self) -> bool {
        self.name == "filename"
    }

    /// Returns its rank: options of a section are applied in the order of their ranks.
    pub(crate) fn rank(&self) -> u8 {
        match self.name {
            "kb_base" | "unit_base" | "cpus_allowed_policy" => 0,
            "filename" | "filename_format" => 2,
            _ if !self.is_general() => 3,
            _ => 1,
        }
    }
}

impl ValueKind {
    /// Returns the words to choose from, each with its meaning.
    pub(crate) fn choices(&self) -> Vec<(&'static str, Cow<'static, str>)> {
        let described = |word, help| (word, Cow::Borrowed(help));
        match *self {
            Self::Choice(words) => words.iter().map(|w| described(w.word, w.help)).collect(),
            Self::Words(words, _) | Self::Mix(words, _) => {
                words.iter().map(|w| described(w.word, w.help)).collect()
            }
            Self::Verify => verify::methods().map(|m| (m.word, m.help)).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the type of its value, as fio names it.
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
            Self::Choice(_) | Self::Words(..) | Self::Verify => "one of the words below",
            Self::Mix(..) => "one of the words below, or several with percentages (opt=a/70:b/30)",
            Self::Text(_) | Self::OptionalText(_) => "string (opt=bla)",
            Self::Special { form, .. } => form,
            Self::Engine => "engine name (opt=psync)",
            Self::Ignored(_) => "ignored",
        }
    }
}
