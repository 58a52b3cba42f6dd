//! Just enough of Rust's lexical grammar to tell code from comments and literals.

/// Replaces every comment and every string and character literal with blanks. Line feeds remain, so
/// that lines and columns still match.
pub(crate) fn blank(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < chars.len() {
        let end = skip(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(
                chars[at..end]
                    .iter()
                    .map(|&c| if c == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        }
    }
    out
}

/// Returns the end of the comment or literal that begins at `at`; `at` itself if none does.
fn skip(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    match chars[at] {
        '/' if next == Some('/') => find(chars, at, |c| c == '\n'),
        '/' if next == Some('*') => block_comment(chars, at),
        '"' => quoted(chars, at),
        'r' if !follows_word(chars, at) => raw_string(chars, at).unwrap_or(at),
        '\'' => character(chars, at),
        _ => at,
    }
}

fn find(chars: &[char], from: usize, wanted: impl Fn(char) -> bool) -> usize {
    chars[from..]
        .iter()
        .position(|&c| wanted(c))
        .map_or(chars.len(), |index| from + index)
}

fn block_comment(chars: &[char], at: usize) -> usize {
    let mut depth = 0;
    let mut i = at;
    while i + 1 < chars.len() {
        match (chars[i], chars[i + 1]) {
            ('/', '*') => {
                depth += 1;
                i += 2;
            }
            ('*', '/') => {
                depth -= 1;
                i += 2;
                if depth == 0 {
                    return i;
                }
            }
            _ => i += 1,
        }
    }
    chars.len()
}

fn quoted(chars: &[char], at: usize) -> usize {
    let mut i = at + 1;
    while i < chars.len() {
        match chars[i] {
            '\\' => i += 2,
            '"' => return i + 1,
            _ => i += 1,
        }
    }
    chars.len()
}

/// Returns the end of `r"…"`, `r#"…"#`…; `None` for a raw identifier.
fn raw_string(chars: &[char], at: usize) -> Option<usize> {
    let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
    let open = at + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    let mut i = open + 1;
    while i < chars.len() {
        let closing = chars[i + 1..].iter().take(hashes);
        if chars[i] == '"' && closing.filter(|&&c| c == '#').count() == hashes {
            return Some(i + 1 + hashes);
        }
        i += 1;
    }
    Some(chars.len())
}

/// Returns the end of a character literal; `at` itself for a lifetime.
fn character(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), Some(_)) => find(chars, at + 3, |c| c == '\'').saturating_add(1),
        (Some(_), Some('\'')) => at + 3,
        _ => at,
    }
    .min(chars.len())
}

/// Returns whether the character before `at` belongs to a word: then `r` begins no raw string,
/// though `br` does.
fn follows_word(chars: &[char], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map(|index| chars[index]);
    match before(1) {
        Some('b') => before(2).is_some_and(is_word),
        Some(c) => is_word(c),
        None => false,
    }
}

/// Returns true for characters of identifiers.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns whether `line` contains `word` as a whole word; its own first and last characters decide
/// where a boundary is needed.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let starts_word = word.chars().next().is_some_and(is_word);
    let ends_word = word.chars().next_back().is_some_and(is_word);
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let in_front = starts_word && before.is_some_and(is_word);
        let behind = ends_word && after.is_some_and(is_word);
        !in_front && !behind
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, want: &str) {
        assert_eq!(blank(source), want);
    }

    #[test]
    fn comments_and_literals_are_blanked_and_code_is_not() {
        check("a // b\nc", "a     \nc");
        check("a /* b /* c */ d */ e", "a                   e");
        check(r#"f("a{\"}", 1)"#, "f(       , 1)");
        check("f(r#\"a\"{\"#)", "f(        )");
        check(r##"br"x{" y"##, "b      y");
        check("let r#fn = 1;", "let r#fn = 1;");
        check("var\"s\"", "var   ");
        check("'{' 'a", "    'a");
        check(r"'\'' + '\u{7b}'", "     +         ");
        check("x<'a>(\"}\")", "x<'a>(   )");
    }

    #[test]
    fn an_unclosed_literal_ends_with_the_text() {
        check("\"abc", "    ");
        check("/* abc", "      ");
        check("r#\"abc\"", "       ");
    }

    #[test]
    fn a_word_is_not_part_of_another() {
        assert!(has_word("an unsafe block", "unsafe"));
        assert!(!has_word("deny(unsafe_code)", "unsafe"));
        assert!(has_word("x.panic!()", "panic!"));
        assert!(!has_word("mypanic!()", "panic!"));
    }
}
