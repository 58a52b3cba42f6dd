//! Options as written, and the layer of options of one section.

use fathom_core::EngineInfo;

use crate::plan::{Options, Typed};
use crate::source::Spot;

/// An option as written in a job file or on the command line.
#[derive(Clone, Debug)]
pub(crate) struct WrittenOption {
    pub(crate) name: Spot,
    /// Place of the value; `None` for a bare name.
    pub(crate) value: Option<Spot>,
    /// The value after substitution of variables and keywords, if that changed it.
    pub(crate) replaced: Option<String>,
    /// The value with the keywords of ranks as written, if there are any: all report one plan.
    pub(crate) of_any_rank: Option<String>,
    /// The full name, if an abbreviation was written.
    pub(crate) full_name: Option<String>,
}

impl WrittenOption {
    /// Returns the full name.
    pub(crate) fn option_name(&self) -> &str {
        self.full_name
            .as_deref()
            .unwrap_or_else(|| self.name.text())
    }

    /// Returns the place of the value, or of the name of a bare option.
    pub(crate) fn place(&self) -> &Spot {
        self.value.as_ref().unwrap_or(&self.name)
    }

    /// Returns the value after substitution; `None` for a bare option.
    pub(crate) fn text(&self) -> Option<&str> {
        let written = self.value.as_ref().map(Spot::text);
        self.replaced.as_deref().or(written)
    }

    /// Returns the value as reports show it, which is the same on all ranks.
    pub(crate) fn reported(&self) -> Option<&str> {
        self.of_any_rank.as_deref().or_else(|| self.text())
    }
}

/// An option that was accepted.
#[derive(Clone)]
pub(crate) struct Accepted {
    /// Its name in the table, whichever alias was written.
    pub(crate) name: &'static str,
    /// Set if it adds to earlier ones of its name instead of replacing them.
    pub(crate) adds: bool,
    /// Set if no output shows its value.
    pub(crate) is_secret: bool,
    pub(crate) written: WrittenOption,
}

/// The options of one section, applied on top of the inherited ones.
///
/// `options` is the effective result; `own` remembers what this section wrote, for places in
/// messages, for the report, and for rules that apply to options of one section only.
#[derive(Clone, Default)]
pub(crate) struct OptionLayer {
    pub(crate) options: Options,
    /// Accepted options of this section itself, in reading order.
    pub(crate) own: Vec<Accepted>,
    /// The value of a `name` option among them.
    pub(crate) name: Option<String>,
    /// Set if the engine was refused, so that options of engines cannot be judged.
    pub(crate) engine_refused: bool,
}

impl OptionLayer {
    /// Returns a layer without options, for jobs with this engine.
    pub(crate) fn of_engine(engine: &'static EngineInfo) -> Self {
        Self {
            options: Options {
                engine,
                ..Options::default()
            },
            ..Self::default()
        }
    }

    /// Returns the option of this name as this section wrote it last.
    pub(crate) fn find(&self, name: &str) -> Option<&WrittenOption> {
        let mut accepted = self.own.iter().rev();
        let found = accepted.find(|accepted| accepted.name == name);
        found.map(|accepted| &accepted.written)
    }

    /// Returns the options of this section as the plan keeps them.
    pub(crate) fn typed(&self) -> Vec<Typed> {
        let typed = |accepted: &Accepted| Typed {
            name: accepted.name.to_owned(),
            value: match accepted.is_secret {
                true => MASK.to_owned(),
                false => accepted
                    .written
                    .reported()
                    .unwrap_or_default()
                    .trim()
                    .to_owned(),
            },
            origin: accepted.written.place().origin(),
        };
        self.own.iter().map(typed).collect()
    }
}

/// Stands for a secret in reports. Its length says nothing of the secret's.
const MASK: &str = "***";
