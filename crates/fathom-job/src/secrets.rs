//! Secrets in excerpts of the user's text: passwords, keys and tokens are shown as stars.

use std::ops::Range;

/// Returns a line of a job file or a command line with stars for the values of options that have
/// secrets. It has as many bytes, so that places in it stay.
///
/// The name alone decides, in letters of any case, so that it also holds for a misspelt option: one
/// that has a word of [`WORDS`]. A value ends before the next option of a command line, or with the
/// line.
pub(crate) fn masked(line: &str, is_command: bool) -> String {
    let mut shown = line.as_bytes().to_vec();
    for value in values(line, is_command) {
        for byte in &mut shown[value] {
            if !byte.is_ascii_whitespace() {
                *byte = b'*';
            }
        }
    }
    // Whole characters were replaced, each byte of them by a star.
    String::from_utf8(shown).unwrap_or_default()
}

/// Returns the ranges of the values of secret options.
fn values(line: &str, is_command: bool) -> impl Iterator<Item = Range<usize>> {
    options(line, is_command).filter_map(move |option| {
        let text = &line[option.clone()];
        let name = text.trim_start_matches('-');
        // A colon is a mistake for `=`.
        let end = name.find(|letter: char| "=:".contains(letter) || letter.is_whitespace())?;
        let word = name[..end].to_ascii_lowercase();
        let is_secret = WORDS.iter().any(|secret| word.contains(secret));
        // `http_host=USER:PASSWORD@HOST` is refused, but shown.
        let is_host = word == "http_host" && name.contains('@');
        let from = option.end - name.len() + end + 1;
        (is_secret || is_host).then_some(from..option.end)
    })
}

/// Returns the ranges of the options of a line: a line of a job file has one.
fn options(line: &str, is_command: bool) -> impl Iterator<Item = Range<usize>> {
    let first = line.len() - line.trim_start().len();
    let others = line.match_indices(" -").map(|(at, _)| at + 1);
    let others = others.filter(|at| is_command && *at > first);
    let starts: Vec<usize> = std::iter::once(first).chain(others).collect();
    let ends: Vec<usize> = starts[1..].iter().copied().chain([line.len()]).collect();
    starts.into_iter().zip(ends).map(|(start, end)| start..end)
}

/// Words that are in the names of options with secrets, and in those of no others.
const WORDS: [&str; 4] = ["key", "pas", "token", "secret"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::known;

    #[track_caller]
    fn check(line: &str, want: &str) {
        assert_eq!(masked(line, line.contains("--")), want);
    }

    #[test]
    fn values_of_secret_options_are_stars() {
        check("http_s3_key=abc", "http_s3_key=***");
        check("  http_pass = a b\n", "  http_pass * * *\n");
        check("http_s3_key abc", "http_s3_key ***");
        check("http_pass=ü", "http_pass=**");
        check("HTTP_PASS=ab", "HTTP_PASS=**");
        check("http_pass:ab", "http_pass:**");
        check("--Http_Pass:ab --bs=4k", "--Http_Pass:** --bs=4k");
        check("bs=4k", "bs=4k");
        check("", "");
        check(
            "--name=x --http_s3_keyy=a b --bs=4k --http_pass c",
            "--name=x --http_s3_keyy=* * --bs=4k --http_pass *",
        );
        check("job.fio --http_pass=c", "job.fio --http_pass=*");
        check("--http_host=u:p@h --bs=4k", "--http_host=***** --bs=4k");
        check("--http_host=h --bs=4k@", "--http_host=h --bs=4k@");
        let line = "exec_prerun=a --http_pass=b";
        assert_eq!(masked(line, false), line);
    }

    #[test]
    fn names_alone_say_which_options_have_secrets() {
        for name in known::all().iter().flat_map(known::Known::names) {
            let has_word = WORDS.iter().any(|word| name.contains(word));
            let is_secret = name.starts_with("http_") || name == "rbd_encryption_passphrase";
            assert!(!has_word || is_secret, "{name}");
        }
    }
}
