//! Secrets in excerpts of the user's text: passwords, keys and tokens are shown as stars.

use std::ops::Range;

/// Returns a line of a job file with stars for the value of an option that has secrets. It has as
/// many bytes, so that places in it stay.
///
/// The name alone decides, in letters of any case, so that it also holds for a misspelt option: one
/// that has a word of [`WORDS`].
pub(crate) fn masked(line: &str) -> String {
    let first = line.len() - line.trim_start().len();
    with_stars(line, std::iter::once(first..line.len()))
}

/// Returns a command line with these arguments as [`masked`] a line. A value ends with its
/// argument, or is the argument after its option.
pub(crate) fn masked_command(line: &str, arguments: &[Range<usize>]) -> String {
    let options = arguments.iter().enumerate().map(|(number, argument)| {
        let text = &line[argument.clone()];
        let takes_next = text.starts_with('-') && !text.contains(['=', ':']);
        let next = arguments.get(number + 1).filter(|_| takes_next);
        argument.start..next.unwrap_or(argument).end
    });
    with_stars(line, options)
}

fn with_stars(line: &str, options: impl IntoIterator<Item = Range<usize>>) -> String {
    let mut shown = line.as_bytes().to_vec();
    for value in options
        .into_iter()
        .filter_map(|option| secret(line, option))
    {
        for byte in &mut shown[value] {
            if !byte.is_ascii_whitespace() {
                *byte = b'*';
            }
        }
    }
    // Whole characters were replaced, each byte of them by a star.
    String::from_utf8(shown).unwrap_or_default()
}

/// Returns the range of an option's value if it is secret.
fn secret(line: &str, option: Range<usize>) -> Option<Range<usize>> {
    let name = line[option.clone()].trim_start_matches('-');
    // A colon is a mistake for `=`.
    let end = name.find(|letter: char| "=:".contains(letter) || letter.is_whitespace())?;
    let word = name[..end].to_ascii_lowercase();
    let is_secret = WORDS.iter().any(|secret| word.contains(secret));
    // `http_host=USER:PASSWORD@HOST` is refused, but shown.
    let is_host = word == "http_host" && name.contains('@');
    let from = option.end - name.len() + end + 1;
    (is_secret || is_host).then_some(from..option.end)
}

/// Words that are in the names of options with secrets, and in those of no others.
const WORDS: [&str; 4] = ["key", "pas", "token", "secret"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::known;

    #[track_caller]
    fn check(line: &str, want: &str) {
        assert_eq!(masked(line), want);
    }

    #[track_caller]
    fn check_command(arguments: &[&str], want: &str) {
        let mut line = String::new();
        let mut ranges = Vec::new();
        for argument in arguments {
            ranges.push(line.len()..line.len() + argument.len());
            line.push_str(argument);
            line.push(' ');
        }
        assert_eq!(masked_command(&line, &ranges).trim_end(), want);
    }

    #[test]
    fn values_of_secret_options_are_stars() {
        check("http_s3_key=abc", "http_s3_key=***");
        check("  http_pass = a b\n", "  http_pass * * *\n");
        check("http_s3_key abc", "http_s3_key ***");
        check("http_pass=ü", "http_pass=**");
        check("HTTP_PASS=ab", "HTTP_PASS=**");
        check("http_pass:ab", "http_pass:**");
        check("bs=4k", "bs=4k");
        check("", "");
        check("exec_prerun=a --http_pass=b", "exec_prerun=a --http_pass=b");
    }

    #[test]
    fn values_end_with_their_arguments() {
        check_command(&["--Http_Pass:ab", "--bs=4k"], "--Http_Pass:** --bs=4k");
        check_command(
            &[
                "--name=x",
                "--http_s3_keyy=a b",
                "--bs=4k",
                "--http_pass",
                "c",
            ],
            "--name=x --http_s3_keyy=* * --bs=4k --http_pass *",
        );
        check_command(
            &["--http_pass=a -b --c=d", "--bs=4k"],
            "--http_pass=* ** ***** --bs=4k",
        );
        check_command(&["--http_pass", "-b -c", "x"], "--http_pass ** ** x");
        check_command(&["job.fio", "--http_pass=c"], "job.fio --http_pass=*");
        check_command(&["job.fio", "--http_pass"], "job.fio --http_pass");
        check_command(&["keys.fio", "b.fio"], "keys.fio b.fio");
        check_command(
            &["--http_host=u:p@h", "--bs=4k"],
            "--http_host=***** --bs=4k",
        );
        check_command(&["--http_host=h", "--bs=4k@"], "--http_host=h --bs=4k@");
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
