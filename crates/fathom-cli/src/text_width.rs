//! Texts fitted to the terminal.

use fathom_sys::system::terminal_width;

/// Returns the width to print for: `COLUMNS`, else that of the terminal on standard output.
pub(crate) fn width() -> usize {
    let asked = std::env::var("COLUMNS").ok();
    let asked = asked
        .and_then(|text| text.parse().ok())
        .filter(|width| *width > 0);
    asked
        .or_else(|| terminal_width(std::io::stdout()).map(usize::from))
        .unwrap_or(WIDTH)
}

/// Breaks the lines of a text that are too long for the terminal; the rest of a description stands
/// below its beginning. Commands to copy stay whole.
///
/// clap breaks lines only with a further dependency, which would read the width once more.
pub(crate) fn fitted(text: &str) -> String {
    broken(text, width(), 0)
}

/// As [`fitted`], for lines that are sentences of their own: the rest of each is indented.
pub(crate) fn fitted_sentences(text: &str) -> String {
    broken(text, width(), 2)
}

/// As [`fitted_sentences`], for messages of `program`: excerpts of files between them stay whole.
pub(crate) fn fitted_messages(text: &str, program: &str) -> String {
    broken_messages(text, program, width())
}

fn broken_messages(text: &str, program: &str, width: usize) -> String {
    let is_message = |line: &str| {
        let mut rest = line.split(": ");
        let word = rest.next().unwrap_or_default();
        rest.next().is_some() && [program, "hint", "note"].contains(&word)
    };
    let line = |line| match is_message(line) {
        true => broken_line(line, width, 2),
        false => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

fn broken(text: &str, width: usize, hanging: usize) -> String {
    let line = |line| broken_line(line, width, hanging);
    text.lines().map(line).collect()
}

fn broken_line(line: &str, width: usize, hanging: usize) -> String {
    let is_command = ["fathom ", "fio "]
        .iter()
        .any(|program| line.trim_start().starts_with(program));
    if line.chars().count() <= width || is_command {
        return format!("{line}\n");
    }
    let indent = " ".repeat((indent(line) + hanging).min(width / 2));
    let (margin, rest) = line.split_at(line.len() - line.trim_start().len());
    let mut text = margin.to_owned();
    let mut length = margin.chars().count();
    let mut is_first = true;
    for word in rest.split(' ') {
        let needed = word.chars().count();
        if !is_first && length + 1 + needed > width {
            text.truncate(text.trim_end().len());
            text.push('\n');
            text.push_str(&indent);
            length = indent.len();
        } else if !is_first {
            text.push(' ');
            length += 1;
        }
        text.push_str(word);
        length += needed;
        is_first = false;
    }
    text.push('\n');
    text
}

/// Returns the column where a description begins: after the last gap of two or more spaces, else
/// where the line begins.
fn indent(line: &str) -> usize {
    let begin = line.len() - line.trim_start().len();
    let gap = line[begin..].rfind("  ").map(|at| begin + at + 2);
    let end = gap.unwrap_or(begin);
    line[..end].chars().count()
}

/// Width of output that goes to no terminal.
const WIDTH: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        assert_eq!(broken(text, 24, 0), want);
    }

    #[test]
    fn descriptions_stay_in_their_column() {
        check("short\n\nlines", "short\n\nlines\n");
        check(
            "  --seconds <N>  Duration of a row",
            "  --seconds <N>\n            Duration of\n            a row\n",
        );
        check(
            "  - usb:  One command at a time",
            "  - usb:  One command at\n          a time\n",
        );
        check(
            "    published: a list of mails",
            "    published: a list of\n    mails\n",
        );
    }

    #[test]
    fn sentences_hang() {
        let want = "  rate: a stall delayed\n    ops\nchanged: engine: libaio,\n  now sync\n";
        let text = "  rate: a stall delayed ops\nchanged: engine: libaio, now sync";
        assert_eq!(broken(text, 24, 2), want);
    }

    #[test]
    fn excerpts_of_messages_stay_whole() {
        let text = "fathom: a.toml:1:2: no difference\n  |\n1 | note: an excerpt that is long\n\
                    hint: set `max = 9`, or compare less\n";
        let want = "fathom: a.toml:1:2: no\n  difference\n  |\n1 | note: an excerpt that is long\n\
                    hint: set `max = 9`, or\n  compare less\n";
        assert_eq!(broken_messages(text, "fathom", 24), want);
    }

    #[test]
    fn commands_and_long_words_stay_whole() {
        let command = "  fathom table hdd-tags --markdown\n";
        check(command, command);
        let word = "/a/path/that/is/longer/than/a/line\n";
        check(word, word);
    }
}
