//! JSON documents among other text.

/// A document, and where it begins.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Document {
    /// Line of its first brace, from 1.
    pub(crate) line: usize,
    /// Its text, in which words that are not JSON are `null`.
    pub(crate) json: String,
}

/// Finds the documents of a text: from a `{` that begins a line to the brace that closes it.
///
/// Reads each byte once or twice: a brace that is never closed ends the search.
pub(crate) fn documents(text: &str) -> Vec<Document> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(start) = start(rest) {
        line += newlines(&rest[..start]);
        let (json, length) = document(&rest[start..]);
        found.push(Document { line, json });
        line += newlines(&rest[start..start + length]);
        rest = &rest[start + length..];
    }
    found
}

/// Returns the place of the first `{` that begins a line or follows the end of a document.
fn start(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        if line.trim_start().starts_with('{') {
            return Some(at + indent);
        }
        at += line.len();
    }
    None
}

/// Copies a document up to the brace that closes it, and returns the length of what was read.
fn document(text: &str) -> (String, usize) {
    let bytes = text.as_bytes();
    let mut json = String::new();
    let (mut at, mut depth, mut copied) = (0, 0_usize, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(bytes, at),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            byte if byte.is_ascii_alphabetic() || byte == b'-' => {
                let end = word_end(bytes, at);
                if is_not_a_number(&text[at..end]) {
                    json.push_str(&text[copied..at]);
                    json.push_str("null");
                    copied = end;
                }
                at = end - 1;
            }
            _ => {}
        }
        at = (at + 1).min(bytes.len());
        if depth == 0 {
            break;
        }
    }
    // A string that is not closed may end within a character.
    while !text.is_char_boundary(at) {
        at += 1;
    }
    json.push_str(&text[copied..at]);
    (json, at)
}

/// Returns the place of the quote that closes a string, or of the last byte.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'"' => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len() - 1
}

/// Returns the end of a word or of a sign with what follows it.
fn word_end(bytes: &[u8], start: usize) -> usize {
    let rest = bytes[start + 1..].iter();
    let length = rest.take_while(|byte| byte.is_ascii_alphanumeric()).count();
    start + 1 + length
}

fn is_not_a_number(word: &str) -> bool {
    let word = word.trim_start_matches('-');
    ["nan", "inf", "infinity"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &[(usize, &str)]) {
        let found = documents(text);
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.line, one.json.as_str()))
            .collect();
        assert_eq!(found, want);
    }

    #[test]
    fn notes_around_documents_are_skipped() {
        check(
            "fio: note {x}\n{\"a\": 1}\nmore\n{\n}\n",
            &[(2, "{\"a\": 1}"), (4, "{\n}")],
        );
        let nested = "{\"a\":{\"b\":[1,2]}}";
        check(&format!("{nested}{{}}"), &[(1, nested), (1, "{}")]);
        check("nothing here", &[]);
        check("", &[]);
    }

    #[test]
    fn braces_in_strings_do_not_count() {
        check(r#"{"a": "}\"{"}"#, &[(1, r#"{"a": "}\"{"}"#)]);
    }

    #[test]
    fn words_that_are_no_json_are_null() {
        check(
            "{\"nan\": -nan, \"b\": NaN, \"c\": -1, \"d\": [inf], \"e\": true}",
            &[(
                1,
                "{\"nan\": null, \"b\": null, \"c\": -1, \"d\": [null], \"e\": true}",
            )],
        );
    }

    #[test]
    fn what_is_not_closed_ends_the_text() {
        check("{\"a\": \"é", &[(1, "{\"a\": \"é")]);
        check("{\"a\\", &[(1, "{\"a\\")]);
        check("{{{", &[(1, "{{{")]);
    }
}
