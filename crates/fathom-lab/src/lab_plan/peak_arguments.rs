//! Arguments of `fathom peak` as a lab file has them, and their words on the command line.

use std::fmt::Write as _;

/// Arguments of a run of `fathom peak`: name without hyphens, and value; that of a switch is `0` or
/// `1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeakArguments(pub Vec<(String, String)>);

impl PeakArguments {
    /// Returns the value of an argument.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        let mut arguments = self.0.iter();
        let found = arguments.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns whether the run writes its target.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.value("write") == Some("1") && self.value("nop") != Some("1")
    }

    /// Returns the words of the command line.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (name, value) in &self.0 {
            match kind_of(name) {
                Some(Kind::Switch) if value == "1" => words.push(format!("--{name}")),
                Some(Kind::Switch | Kind::Target) | None => {}
                Some(_) => words.push(format!("--{name}={value}")),
            }
        }
        if let Some(target) = self.value("target") {
            words.extend(["--".into(), target.into()]);
        }
        words
    }

    /// Replaces the value of an argument, or adds it.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        super::run_text::replace(&mut self.0, name, value);
    }
}

/// Returns the argument of this name: hyphens may be underscores.
pub(crate) fn peak_argument(name: &str) -> Option<&'static str> {
    let name = name.replace('_', "-");
    peak_names().find(|known| *known == name)
}

/// Returns the names of the arguments.
pub(crate) fn peak_names() -> impl Iterator<Item = &'static str> {
    ARGUMENTS.iter().map(|(name, _)| *name)
}

/// Returns the values that an argument takes, if this is none of them.
pub(crate) fn peak_value_wanted(name: &str, value: &str) -> Option<String> {
    let (is_right, wanted) = match kind_of(name)? {
        Kind::Target => (!value.is_empty(), "a file or a device".into()),
        Kind::Count => (
            value.parse::<u32>().is_ok_and(|count| count > 0),
            "a whole number from 1".into(),
        ),
        Kind::Cpu => (
            value.parse::<u32>().is_ok(),
            "the number of a processor".into(),
        ),
        Kind::Seconds => (
            value
                .parse()
                .is_ok_and(|seconds: f64| (0.001..=1e6).contains(&seconds)),
            "a number of seconds, as `0.5`".into(),
        ),
        Kind::Size => (is_size(value), "a size, as `512` or `\"4k\"`".into()),
        Kind::Switch => (matches!(value, "0" | "1"), "`true` or `false`".into()),
        Kind::Engine => (ENGINES.contains(&value), one_of(&ENGINES)),
    };
    (!is_right).then_some(wanted)
}

/// Kind of the values of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Target,
    Count,
    Cpu,
    Seconds,
    Size,
    Switch,
    Engine,
}

fn kind_of(name: &str) -> Option<Kind> {
    let found = ARGUMENTS.iter().find(|(known, _)| *known == name);
    found.map(|(_, kind)| *kind)
}

fn is_size(text: &str) -> bool {
    let digits = text.find(|letter: char| !letter.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit = unit.to_ascii_lowercase();
    let is_unit = matches!(unit.as_str(), "" | "k" | "kib" | "m" | "mib");
    text == SECTOR || is_unit && number.parse::<u32>().is_ok_and(|number| number > 0)
}

fn one_of(words: &[&str]) -> String {
    let mut text = String::from("one of");
    for word in words {
        // Writing to a string cannot fail.
        let _ = write!(text, " `{word}`");
    }
    text
}

/// Arguments that a run can have. `sweep`, `against`, `repeats` and lists are left out: axes,
/// variants and repeats are their like in a lab.
const ARGUMENTS: [(&str, Kind); 19] = [
    ("target", Kind::Target),
    ("depth", Kind::Count),
    ("batch", Kind::Count),
    ("submit", Kind::Count),
    ("complete", Kind::Count),
    ("block", Kind::Size),
    ("threads", Kind::Count),
    ("polled", Kind::Switch),
    ("sequential", Kind::Switch),
    ("buffered", Kind::Switch),
    ("no-fixed", Kind::Switch),
    ("no-register", Kind::Switch),
    ("no-register-ring", Kind::Switch),
    ("nop", Kind::Switch),
    ("engine", Kind::Engine),
    ("write", Kind::Switch),
    ("cpu", Kind::Cpu),
    ("latency", Kind::Switch),
    ("seconds", Kind::Seconds),
];

const ENGINES: [&str; 3] = ["io_uring", "libaio", "sync"];

/// Size of the target's smallest op.
const SECTOR: &str = "sector";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_words_without_a_value_and_the_target_is_last() {
        let pairs = [
            ("target", "-x"),
            ("polled", "1"),
            ("latency", "0"),
            ("depth", "8"),
        ];
        let pairs = pairs.map(|(name, value)| (name.into(), value.into()));
        let arguments = PeakArguments(pairs.to_vec());
        assert_eq!(arguments.words(), ["--polled", "--depth=8", "--", "-x"]);
        assert!(!arguments.writes());
    }

    #[test]
    fn values_of_another_kind_are_told() {
        let is_right = |name, value| peak_value_wanted(name, value).is_none();
        assert!(is_right("block", "4k") && is_right("block", "512"));
        assert!(is_right("seconds", "0.5") && is_right("cpu", "0"));
        assert!(is_right("engine", "sync") && is_right("polled", "1"));
        assert!(!is_right("block", "4q") && !is_right("seconds", "1s"));
        assert!(!is_right("depth", "0") && !is_right("depth", "1,2"));
        assert!(!is_right("engine", "mmap") && !is_right("polled", "yes"));
    }
}
