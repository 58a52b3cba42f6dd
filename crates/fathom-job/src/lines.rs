//! Lines of job files: sections, options and includes, each with its place, without their meaning.

use std::sync::Arc;

use crate::problem::Problem;
use crate::source::{Line, Spot, boundary};

/// Content of a line.
#[derive(Debug)]
pub(crate) enum Item {
    /// `[name]`.
    Section {
        name: String,
        spot: Spot,
        /// A problem that fio accepts.
        problem: Option<Problem>,
    },
    /// `name`, `name=value`.
    Option { name: Spot, value: Option<Spot> },
    /// `include file`.
    Include { file: Spot },
    /// A line that cannot be read.
    Bad { spot: Spot, problem: Problem },
}

/// Returns the items of a file in order, without blank lines and comments (`;` or `#` to the end of
/// the line).
pub(crate) fn items<'a>(file: &str, bytes: &'a [u8]) -> impl Iterator<Item = Item> + use<'a> {
    let file: Arc<str> = Arc::from(file);
    // Some editors prepend a byte order mark.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let lines = bytes.split(|byte| *byte == b'\n');
    lines
        .zip(1..)
        .filter_map(move |(line, number)| item(&file, number, line))
}

/// Returns the item in a line by itself; `None` for a blank line or a comment.
pub(crate) fn item_of(line: &str) -> Option<Item> {
    item(&Arc::from(""), 1, line.as_bytes())
}

/// Returns whether this is not text.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes.contains(&0)
}

fn item(file: &Arc<str>, number: u32, bytes: &[u8]) -> Option<Item> {
    if bytes.len() > LENGTH_MAX {
        let spot = line_spot(file, number, &bytes[..SHOWN]);
        let length = bytes.len();
        return Some(
            bad(
                spot,
                "long-line",
                format!("the line has {length} bytes; the limit is {LENGTH_MAX}"),
            )
            .map_fix("shorten the line; name many files with `opendir` instead"),
        );
    }
    let comment = bytes.iter().position(|byte| matches!(byte, b';' | b'#'));
    let code = &bytes[..comment.unwrap_or(bytes.len())];
    if code.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    if let Err(error) = std::str::from_utf8(code) {
        let mut spot = line_spot(file, number, code);
        let start = String::from_utf8_lossy(&code[..error.valid_up_to()]).len();
        spot.range.start = start;
        return Some(bad(
            spot,
            "not-utf-8",
            "the line is not UTF-8 text".to_owned(),
        ));
    }
    let text = String::from_utf8_lossy(bytes);
    let line = Arc::new(Line::new(Arc::clone(file), number, text.trim_end()));
    let text = &line.text[..code.len().min(line.text.len())];
    let start = text.len() - text.trim_start().len();
    let end = text.trim_end().len();
    let spot = Spot {
        range: start..end,
        line: Arc::clone(&line),
        argument: None,
    };
    Some(match spot.text().as_bytes().first() {
        Some(b'[') => section(spot),
        _ => option(spot),
    })
}

fn section(spot: Spot) -> Item {
    let text = spot.text();
    let (name, problem) = match text.rfind(']') {
        None => (between(text), Some(unclosed(text))),
        Some(close) if close + 1 < text.len() => {
            let why = "text after the section name";
            let problem = Problem::new("after-section", close + 1..text.len(), why);
            (
                between(text),
                Some(problem.fix("move it to a line of its own")),
            )
        }
        Some(close) => {
            let name = text[1..close].trim();
            (name, unnamed(name, text).or_else(|| too_long(name, text)))
        }
    };
    let name = name[..boundary(name, NAME_MAX)].to_owned();
    let problem = problem.map(|problem| problem.read_as(format!("the section `{name}`")));
    Item::Section {
        name,
        spot,
        problem,
    }
}

/// Returns fio's reading of a malformed section name: all but the first and the last character.
fn between(text: &str) -> &str {
    let last = text.char_indices().next_back().map_or(0, |(at, _)| at);
    text.get(1..last).unwrap_or_default().trim()
}

fn unclosed(text: &str) -> Problem {
    let why = "the section name has no closing `]`";
    Problem::new("unclosed-section", 0..text.len(), why).fix("close it, as in `[name]`")
}

fn unnamed(name: &str, text: &str) -> Option<Problem> {
    name.is_empty().then(|| {
        Problem::new("no-name", 0..text.len(), "the section has no name")
            .fix("write a name between `[` and `]`")
    })
}

fn too_long(name: &str, text: &str) -> Option<Problem> {
    let why = format!("the section name is longer than {NAME_MAX} bytes");
    (name.len() > NAME_MAX).then(|| Problem::new("long-name", 0..text.len(), why).fix("shorten it"))
}

fn option(spot: Spot) -> Item {
    let text = spot.text();
    if let Some(rest) = text.strip_prefix("include")
        && rest.starts_with([' ', '\t', '='])
    {
        // The name of the file may contain an `=`.
        let file = rest[1..].trim_start();
        return Item::Include {
            file: spot.part(text.len() - file.len()..text.len()),
        };
    }
    let (name, value) = match text.split_once('=') {
        Some((name, _)) => (name.trim_end(), Some(name.len() + 1..text.len())),
        None => (text, None),
    };
    if name.is_empty() {
        return bad(
            spot,
            "no-option",
            "no option name before the `=`".to_owned(),
        );
    }
    let value = value.map(|range| {
        let value = &text[range.clone()];
        let front = value.len() - value.trim_start().len();
        spot.part(range.start + front..range.end)
    });
    Item::Option {
        name: spot.part(0..name.len()),
        value,
    }
}

/// Returns the place of an entire line, which may not be text.
fn line_spot(file: &Arc<str>, number: u32, bytes: &[u8]) -> Spot {
    let text = String::from_utf8_lossy(bytes).trim_end().to_owned();
    Spot {
        range: 0..text.len(),
        line: Arc::new(Line::new(Arc::clone(file), number, text)),
        argument: None,
    }
}

fn bad(spot: Spot, code: &'static str, why: String) -> Item {
    let problem = Problem::new(code, 0..spot.range.len(), why);
    Item::Bad { spot, problem }
}

impl Item {
    fn map_fix(self, fix: &str) -> Self {
        match self {
            Self::Bad { spot, problem } => Self::Bad {
                spot,
                problem: problem.fix(fix),
            },
            other => other,
        }
    }
}

/// fio's limit.
const LENGTH_MAX: usize = 8192;

/// Number of bytes kept of a line that is too long.
const SHOWN: usize = 80;

/// fio's limit.
const NAME_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, want: &[&str]) {
        let got: Vec<_> = items("j.fio", text.as_bytes())
            .map(|item| match item {
                Item::Section {
                    spot,
                    problem: Some(problem),
                    ..
                } => {
                    let place = spot.part(problem.at.clone()).origin();
                    format!("{}:{} {}", place.line, place.column, problem.code)
                }
                Item::Section { name, spot, .. } => format!("{} [{name}]", spot.line.number),
                Item::Option { name, value } => {
                    let value = value.map_or("-".to_owned(), |value| format!("<{}>", value.text()));
                    format!("{} {}={value}", name.line.number, name.text())
                }
                Item::Include { file } => format!("{} include {}", file.line.number, file.text()),
                Item::Bad { problem, spot } => {
                    format!(
                        "{}:{} {}",
                        spot.line.number,
                        spot.origin().column,
                        problem.code
                    )
                }
            })
            .collect();
        assert_eq!(got, want);
    }

    #[test]
    fn lines_are_sections_options_and_includes() {
        check(
            "; comment\n[a b] # x\r\n  bs = 4k ; y\nthread\n\ninclude x=1.fio\ninclude=3\nsize=\n",
            &[
                "2 [a b]",
                "3 bs=<4k>",
                "4 thread=-",
                "6 include x=1.fio",
                "7 include 3",
                "8 size=<>",
            ],
        );
    }

    #[test]
    fn bad_lines_are_told_with_their_place() {
        check(
            "[abc\n[a]x\n[]\n=4k\n",
            &[
                "1:1 unclosed-section",
                "2:4 after-section",
                "3:1 no-name",
                "4:1 no-option",
            ],
        );
        check(&format!("a={}", "x".repeat(9000)), &["1:1 long-line"]);
    }

    #[test]
    fn a_comment_may_be_in_any_encoding() {
        let got = items("j.fio", b"[a]\nbs=4k # caf\xe9\n;\xff\nfilename=\xe9\n").count();
        assert_eq!(got, 3);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            for item in items("j.fio", &bytes) {
                if let Item::Option { name, .. } = item {
                    prop_assert!(!name.text().is_empty());
                }
            }
        }
    }
}
