//! Words of the command line as text.

use std::ffi::OsString;

/// Converts the words to text; job files and options are UTF-8.
///
/// # Errors
/// A message that names the first word that is not UTF-8, by its number.
pub(crate) fn to_text(words: &[OsString]) -> Result<Vec<String>, String> {
    let text = |(number, word): (usize, &OsString)| {
        word.clone().into_string().map_err(|word| {
            let shown = word.to_string_lossy().escape_debug().to_string();
            format!("command line, argument {number}: `{shown}` is not UTF-8 text")
        })
    };
    (1..).zip(words).map(text).collect()
}
