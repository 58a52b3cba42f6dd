//! Text inside HTML and SVG.

use crate::characters::acts_on_terminal;

/// Escapes a text between tags. Control characters, which neither allows, become visible, and so do
/// those that turn the direction of writing: a name could move the figures beside it.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\n' | '\t' => out.push(character),
            acting if acts_on_terminal(acting) => {
                out.push_str(&format!("\\u{{{:x}}}", u32::from(acting)));
            }
            plain => out.push(plain),
        }
    }
    out
}

/// Escapes the value of an attribute.
pub(crate) fn attribute(text: &str) -> String {
    escaped(text).replace('"', "&quot;").replace('\n', " ")
}

/// Encodes bytes in base64, for `data:` addresses.
pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word = (three.iter()).fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - three.len()));
        for place in 0..4 {
            match place <= three.len() {
                true => out.push(DIGITS[(word >> (18 - 6 * place) & 63) as usize].into()),
                false => out.push('='),
            }
        }
    }
    out
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_the_vectors_of_its_standard() {
        let words = ["", "f", "fo", "foo", "foob", "fooba", "foobar"];
        let want = [
            "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy",
        ];
        assert_eq!(words.map(|word| base64(word.as_bytes())), want);
    }

    #[test]
    fn attributes_stay_between_their_quotes() {
        assert_eq!(attribute("a\" onload=\"b\nc"), "a&quot; onload=&quot;b c");
    }

    #[test]
    fn no_text_becomes_markup() {
        assert_eq!(
            escaped("</script><b> & \"x\" \u{1b}[2J\r"),
            "&lt;/script&gt;&lt;b&gt; &amp; \"x\" \\u{1b}[2J\\u{d}"
        );
        assert_eq!(escaped("a\u{202e}b\u{2066}ä"), "a\\u{202e}b\\u{2066}ä");
    }
}
