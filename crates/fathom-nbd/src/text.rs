//! Text of a server, for messages.

/// Returns text in a form fit for a message: one line, printable, shortened.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_matches(|letter: char| letter.is_control() || letter.is_whitespace());
    let plain = |letter: char| match letter.is_control() {
        true => ' ',
        false => letter,
    };
    text.chars().take(LETTERS_MAX).map(plain).collect()
}

/// Letters of a message that are shown.
pub(crate) const LETTERS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_server_cannot_garble_a_terminal() {
        assert_eq!(
            printable(b" no\x1b[2Jsuch\nexport \0 "),
            "no [2Jsuch export"
        );
        assert_eq!(printable(b"\xff"), "\u{fffd}");
        assert_eq!(printable(&[b'x'; 5000]).len(), LETTERS_MAX);
    }
}
