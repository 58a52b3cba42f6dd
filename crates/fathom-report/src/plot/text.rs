//! Estimated widths of texts: SVG neither wraps nor reports them.

/// Returns the estimated width of a text in pixels, at a font size in pixels.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(ems).sum::<f64>() * size
}

/// Breaks a text at spaces into lines of at most `width` pixels; a longer word has its own line.
pub(crate) fn wrapped(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if self::width(&format!("{line} {word}"), size) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Breaks a text into as few lines as [`wrapped`], of about the same width.
pub(crate) fn balanced(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines = wrapped(text, size, width);
    let mut narrower = width - size;
    while narrower > 0.0 {
        let more = wrapped(text, size, narrower);
        if more.len() > lines.len() {
            break;
        }
        lines = more;
        narrower -= size;
    }
    lines
}

/// Returns a name, or as much of it as fits into `most` characters.
pub(crate) fn shortened(name: &str, most: usize) -> String {
    match name.char_indices().nth(most) {
        None => name.into(),
        Some(_) => name.chars().take(most - 1).chain(['…']).collect(),
    }
}

/// Cuts a text that is wider than `width` pixels.
pub(crate) fn cut(text: &str, size: f64, width: f64) -> String {
    if self::width(text, size) <= width {
        return text.to_owned();
    }
    let mut left = width - self::width("…", size);
    let kept = text.chars().take_while(|character| {
        left -= ems(*character) * size;
        left >= 0.0
    });
    kept.chain(['…']).collect()
}

/// Returns the advance of a character in ems, rounded up from DejaVu Sans. A viewer substitutes
/// its own `sans-serif`; DejaVu and Verdana are the widest in use, so the estimate is an upper
/// bound for the others.
const fn ems(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | '\'' => 0.29,
        ' ' | '.' | ',' | ':' | ';' | 'I' | '/' | '|' => 0.36,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' => 0.42,
        'm' | 'M' | 'W' | '%' | '@' | '…' => 1.0,
        'w' | '+' | '=' | '<' | '>' | '÷' | '–' => 0.84,
        'A'..='Z' => 0.79,
        _ => 0.65,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrapped("aa bb cc", 10.0, 34.0), ["aa bb", "cc"]);
        assert_eq!(wrapped("aaaaaaaa b", 10.0, 20.0), ["aaaaaaaa", "b"]);
        assert!(wrapped("", 10.0, 20.0).is_empty());
    }

    #[test]
    fn no_word_is_left_alone_on_the_last_line() {
        assert_eq!(wrapped("aa bb cc dd", 10.0, 60.0), ["aa bb cc", "dd"]);
        assert_eq!(balanced("aa bb cc dd", 10.0, 60.0), ["aa bb", "cc dd"]);
        assert_eq!(balanced("aa", 10.0, 60.0), ["aa"]);
        assert!(balanced("", 10.0, 60.0).is_empty());
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(shortened("äbc", 3), "äbc");
        assert_eq!(shortened("äbcd", 3), "äb…");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(cut("abc", 10.0, 30.0), "abc");
        assert_eq!(cut("abcdef", 10.0, 30.0), "abc…");
        assert_eq!(cut("abc", 10.0, 1.0), "…");
    }

    #[test]
    fn wide_letters_take_more_room() {
        assert!(width("WWW", 12.0) > width("iii", 12.0) * 3.0);
        assert!((width("ab", 10.0) - 13.0).abs() < 1e-9);
    }
}
