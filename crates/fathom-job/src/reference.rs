//! Reference of the job language as data, from which manual pages and completions are generated.

use std::borrow::Cow;

use fathom_core::EngineInfo;

use crate::help::range;
use crate::switches::{Action, Argument, NO_LETTER, SWITCHES};
use crate::table::{self, Row, ValueKind};
use crate::vocabulary::Vocabulary;

/// Everything that a command line or a job file can name.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Switches of the command line that have an effect.
    pub switches: Vec<SwitchReference>,
    /// Job options by subject.
    pub groups: Vec<(&'static str, Vec<OptionReference>)>,
    /// Engines: name and help.
    pub engines: Vec<(&'static str, &'static str)>,
}

/// Switch of the command line.
#[derive(Clone, Copy, Debug)]
pub struct SwitchReference {
    /// Name without hyphens.
    pub name: &'static str,
    /// One-letter name.
    pub short: Option<char>,
    /// Name of its argument.
    pub argument: Option<&'static str>,
    /// The argument can be left out.
    pub optional: bool,
    /// Help text: one line, no full stop.
    pub help: &'static str,
}

/// Job option.
#[derive(Clone, Debug)]
pub struct OptionReference {
    /// Name, followed by aliases.
    pub names: Vec<&'static str>,
    /// Type of the value, in words.
    pub value: &'static str,
    /// The value can be left out.
    pub is_flag: bool,
    /// Words to choose from, with their meanings.
    pub choices: Vec<(&'static str, Cow<'static, str>)>,
    /// Range of a number; empty for none.
    pub range: String,
    /// Default value; empty for none.
    pub default: &'static str,
    /// Help text: one line, no full stop.
    pub help: &'static str,
    /// Engines of the jobs that can have it; empty for all.
    pub engines: Vec<&'static str>,
    /// Differences from fio; empty for none.
    pub unlike_fio: &'static str,
    /// An example that parses.
    pub example: &'static str,
}

impl Reference {
    /// Collects the reference of a program with these engines.
    #[must_use]
    pub fn new(engines: &[&'static EngineInfo]) -> Self {
        let vocabulary = Vocabulary::new(engines);
        let mut groups: Vec<_> = table::groups()
            .iter()
            .map(|(title, rows)| (*title, options(rows, vocabulary)))
            .collect();
        groups.push((
            "Engine-specific",
            options(&vocabulary.engine_rows(), vocabulary),
        ));
        let own = SWITCHES
            .iter()
            .filter(|switch| !matches!(switch.action, Action::Refused(_) | Action::Ignored));
        let switches = own.map(|switch| SwitchReference {
            name: switch.name,
            short: (switch.short != NO_LETTER).then_some(switch.short),
            argument: match switch.argument {
                Argument::None => None,
                Argument::Optional(name) | Argument::Required(name) => Some(name),
            },
            optional: matches!(switch.argument, Argument::Optional(_)),
            help: switch.help,
        });
        Self {
            switches: switches.collect(),
            groups,
            engines: engines
                .iter()
                .map(|engine| (engine.name, engine.help))
                .collect(),
        }
    }

    /// Returns the options of all subjects.
    pub fn options(&self) -> impl Iterator<Item = &OptionReference> {
        self.groups.iter().flat_map(|(_, options)| options)
    }
}

/// Describes the options.
fn options(rows: &[Row], vocabulary: Vocabulary<'_>) -> Vec<OptionReference> {
    let option = |row: &Row| OptionReference {
        names: row.names().collect(),
        value: row.kind.words(),
        is_flag: row.is_flag(),
        choices: choices(row, vocabulary),
        range: range(&row.kind).unwrap_or_default(),
        default: row.default,
        help: row.help,
        engines: vocabulary.engines_of(row),
        unlike_fio: if row.different.is_empty() {
            row.stricter
        } else {
            row.different
        },
        example: row.example,
    };
    rows.iter().map(option).collect()
}

/// Returns the words that an option takes, for two also those that its syntax combines.
pub(crate) fn choices(
    row: &Row,
    vocabulary: Vocabulary<'_>,
) -> Vec<(&'static str, Cow<'static, str>)> {
    match row.name {
        "rw" => PATTERNS
            .map(|(word, help)| (word, Cow::Borrowed(help)))
            .to_vec(),
        "ioengine" => {
            let engines = vocabulary.engines();
            engines
                .map(|info| (info.name, Cow::Borrowed(info.help)))
                .collect()
        }
        _ => match row.kind {
            ValueKind::Special { form, .. } => words_of(form),
            _ => row.kind.choices(),
        },
    }
}

/// Returns the words of a form such as `malloc|mmap[:file]`; none of one that is more than that.
fn words_of(form: &'static str) -> Vec<(&'static str, Cow<'static, str>)> {
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    let word = |part: &'static str| {
        let (word, rest) = part.split_at(part.find(|c| !is_of_word(c)).unwrap_or(part.len()));
        let is_word = !word.is_empty() && (rest.is_empty() || rest.starts_with(['[', ':']));
        is_word.then_some((word, Cow::Borrowed("")))
    };
    let words: Option<Vec<_>> = form.split('|').map(word).collect();
    words.filter(|words| words.len() > 1).unwrap_or_default()
}

/// Values of `rw`.
const PATTERNS: [(&str, &str); 10] = [
    ("read", "Sequential reads"),
    ("write", "Sequential writes"),
    ("trim", "Sequential trims"),
    ("readwrite", "Sequential reads and writes"),
    ("trimwrite", "Sequential pairs of a trim and a write"),
    ("randread", "Random reads"),
    ("randwrite", "Random writes"),
    ("randtrim", "Random trims"),
    ("randrw", "Random reads and writes"),
    ("randtrimwrite", "Random pairs of a trim and a write"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_switches_without_effect_are_left_out() {
        let registry = fathom_engine::Registry::built_in();
        let reference = Reference::new(registry.infos());
        let names = |option: &OptionReference| option.names[0];
        let all: Vec<&str> = reference.options().map(names).collect();
        assert!(all.contains(&"rw") && all.contains(&"iodepth") && all.contains(&"sqthread_poll"));
        assert!(
            reference
                .switches
                .iter()
                .any(|switch| switch.name == "output-format")
        );
        assert!(
            reference
                .switches
                .iter()
                .all(|switch| switch.name != "server")
        );
        let rw = reference
            .options()
            .find(|option| option.names[0] == "rw")
            .unwrap();
        assert!(
            rw.choices.iter().any(|(word, _)| *word == "randread"),
            "{rw:?}"
        );
        assert!(rw.names.contains(&"readwrite"));
        for (word, _) in PATTERNS {
            let mut options = crate::Options::default();
            let read = table::find("rw").map(|row| match row.kind {
                ValueKind::Special { read, .. } => read(
                    &mut options,
                    word,
                    &mut crate::findings::Findings::default(),
                )
                .is_ok(),
                _ => false,
            });
            assert_eq!(read, Some(true), "{word}");
        }
        assert!(
            reference
                .engines
                .iter()
                .any(|(name, _)| *name == "io_uring")
        );
    }
}
