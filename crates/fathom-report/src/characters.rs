//! Characters that act on those around them.

/// Returns whether a character acts on a terminal, or turns the direction of writing: a name could
/// move the figures beside it.
#[must_use]
pub fn acts_on_terminal(one: char) -> bool {
    let marks = [
        '\u{61c}'..='\u{61c}',
        '\u{200b}'..='\u{200f}',
        '\u{2028}'..='\u{202e}',
        '\u{2066}'..='\u{2069}',
    ];
    one.is_control() || marks.iter().any(|marks| marks.contains(&one))
}

/// Writes out characters that act on a terminal.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for one in text.chars() {
        match acts_on_terminal(one) {
            true => out.extend(one.escape_default()),
            false => out.push(one),
        }
    }
    out
}

/// Writes out such characters, apart from ends of lines.
#[must_use]
pub fn printable_lines(text: &str) -> String {
    let lines = text.split('\n').map(printable);
    lines.collect::<Vec<_>>().join("\n")
}
