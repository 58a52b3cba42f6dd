//! Values of an engine's own options.

use crate::engine_info::EngineOption;

/// Values of an engine's own options, as a job gives them: what was not given is absent.
///
/// The job language fills it; an engine reads it once, when it starts, into a struct of its own.
/// Options are looked up by their [`EngineOption`], so a misspelt name does not compile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineValues {
    /// In the order they were first given; a handful at most, so a map would gain nothing.
    values: Vec<(&'static str, OptionValue)>,
}

/// Value of an engine's own option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// Of a flag or a boolean 0 or 1.
    Number(u64),
    /// Of a text, a choice, or a mix of one word.
    Text(String),
    /// Words of a mix and their percentages, which add up to 100.
    Shares(Vec<(&'static str, u8)>),
}

impl EngineValues {
    /// Sets an option; a later value replaces an earlier one.
    pub fn set(&mut self, name: &'static str, value: OptionValue) {
        self.values.retain(|(other, _)| *other != name);
        self.values.push((name, value));
    }

    /// Removes an option and returns its value.
    pub fn take(&mut self, name: &str) -> Option<OptionValue> {
        let index = self.values.iter().position(|(other, _)| *other == name)?;
        Some(self.values.remove(index).1)
    }

    /// Returns the values with this flag, boolean or number set.
    #[must_use]
    pub fn with(mut self, option: &EngineOption, number: u64) -> Self {
        self.set(option.name, OptionValue::Number(number));
        self
    }

    /// Returns whether a flag or boolean is on.
    #[must_use]
    pub fn flag(&self, option: &EngineOption) -> bool {
        matches!(self.get(option.name), Some(OptionValue::Number(1..)))
    }

    /// Returns the number given for an option.
    #[must_use]
    pub fn number(&self, option: &EngineOption) -> Option<u64> {
        match self.get(option.name)? {
            OptionValue::Number(number) => Some(*number),
            OptionValue::Text(_) | OptionValue::Shares(_) => None,
        }
    }

    /// Returns the text or word given for an option.
    #[must_use]
    pub fn text(&self, option: &EngineOption) -> Option<&str> {
        match self.get(option.name)? {
            OptionValue::Text(text) => Some(text),
            OptionValue::Number(_) | OptionValue::Shares(_) => None,
        }
    }

    /// Returns the words given for a mix, with their percentages; none if none was given.
    #[must_use]
    pub fn shares(&self, option: &EngineOption) -> Vec<(&str, u8)> {
        match self.get(option.name) {
            Some(OptionValue::Text(word)) => vec![(word, 100)],
            Some(OptionValue::Shares(shares)) => shares.clone(),
            Some(OptionValue::Number(_)) | None => Vec::new(),
        }
    }

    fn get(&self, name: &str) -> Option<&OptionValue> {
        let found = self.values.iter().find(|(other, _)| *other == name);
        found.map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_of_one_word_is_all_of_it() {
        const MODE: EngineOption = EngineOption::mix("mode", &[], "", "");
        let mut values = EngineValues::default();
        assert_eq!(values.shares(&MODE), []);
        values.set("mode", OptionValue::Text("a".into()));
        assert_eq!(values.shares(&MODE), [("a", 100)]);
        values.set("mode", OptionValue::Shares(vec![("a", 30), ("b", 70)]));
        assert_eq!(values.shares(&MODE), [("a", 30), ("b", 70)]);
        assert_eq!((values.text(&MODE), values.number(&MODE)), (None, None));
    }

    #[test]
    fn the_last_value_of_an_option_counts() {
        const DEPTH: EngineOption = EngineOption::int("depth", 0, 9, "", "");
        const NAME: EngineOption = EngineOption::text("name", "", "");
        let mut values = EngineValues::default().with(&DEPTH, 3).with(&DEPTH, 0);
        values.set("name", OptionValue::Text("x".into()));
        assert_eq!(values.number(&DEPTH), Some(0));
        assert!(!values.flag(&DEPTH));
        assert_eq!(
            (values.text(&NAME), values.number(&NAME)),
            (Some("x"), None)
        );
    }
}
