//! Text inside HTML and SVG.

/// Escapes a text between tags. Control characters, which neither allows, become visible.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\n' | '\t' => out.push(character),
            control if control.is_control() => {
                out.push_str(&format!("\\u{{{:x}}}", u32::from(control)));
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

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
