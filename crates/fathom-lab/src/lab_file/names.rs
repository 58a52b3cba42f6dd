//! Names that users give: of the lab, of axes, variants and services.

use std::ops::Range;

use fathom_toml::Fields;

use super::reader::Reader;

/// Reads the name under `key`; `None` if it is missing or refused.
pub(super) fn read(reader: &Reader<'_>, fields: &Fields<'_>, key: &'static str) -> Option<String> {
    let (name, span) = fields.text(key, false)?;
    check(reader, name, &span).then(|| name.to_owned())
}

/// Notes a name that no table can show, and returns whether it is a name.
///
/// Any other text is one, markup and quotes too: what prints it escapes it.
pub(super) fn check(reader: &Reader<'_>, name: &str, span: &Range<usize>) -> bool {
    let letters = name.chars().count();
    if name.trim().is_empty() {
        reader.refuse(span, "a name is empty", "write a name");
    } else if letters > LENGTH_MAX {
        let why = format!("a name is {letters} characters long, and the limit is {LENGTH_MAX}");
        reader.refuse(span, why, "shorten it");
    } else if let Some(control) = name.chars().find(|letter| letter.is_control()) {
        let why = format!("a name contains the control character {control:?}");
        reader.refuse(span, why, "remove it");
    } else {
        return true;
    }
    false
}

/// Longest name, in characters: tables show it in a column.
const LENGTH_MAX: usize = 100;
