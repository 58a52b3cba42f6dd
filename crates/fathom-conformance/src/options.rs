//! Options of an engine under test.

use fathom_core::{EngineInfo, EngineValues, OptionKind, OptionValue};

/// Reads options of an engine as a job file has them, separated by blanks: `port=1 listen`.
///
/// # Panics
/// The engine has no such option, or the value is not one of its kind.
#[must_use]
pub fn option_values(engine: &EngineInfo, text: &str) -> EngineValues {
    let mut values = EngineValues::default();
    for word in text.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap_or((word, "1"));
        let Some(option) = engine.option(name) else {
            panic!("engine `{}` has no option `{name}`", engine.name);
        };
        let value = match (option.kind, value.parse()) {
            (OptionKind::Text | OptionKind::Choice(_) | OptionKind::Mix(_), _) => {
                OptionValue::Text(value.to_owned())
            }
            (_, Ok(number)) => OptionValue::Number(number),
            (_, Err(error)) => panic!("{word}: {error}"),
        };
        values.set(option.name, value);
    }
    values
}
