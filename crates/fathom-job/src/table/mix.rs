//! Mixes of an engine option's words, with percentages: `write/70:zeroes/30`.

use fathom_core::{OptionValue, OptionWord};

use super::block_sizes::not_a_percentage;
use super::read::chosen;
use super::row::Row;
use crate::findings::Findings;
use crate::problem::{Piece, Problem};

/// Reads a word, or words with percentages that add up to 100.
pub(super) fn read(
    row: &Row,
    words: &'static [OptionWord],
    piece: Piece<'_>,
    findings: &mut Findings,
) -> Result<OptionValue, Problem> {
    if !piece.text.contains(['/', ':']) {
        let word = chosen(row, words, piece, findings)?;
        return Ok(OptionValue::Text(word.to_owned()));
    }
    let mut shares: Vec<(&'static str, u8)> = Vec::new();
    for entry in piece.split(&[':']) {
        let (word, percent) = share(row, words, entry, findings)?;
        if shares.iter().any(|(other, _)| *other == word) {
            let why = format!("`{word}` is given twice");
            return Err(Problem::new("bad-split", entry.range(), why).fix("remove one of them"));
        }
        shares.push((word, percent));
    }
    let total: u32 = shares.iter().map(|(_, percent)| u32::from(*percent)).sum();
    if total != 100 {
        let why = format!("the percentages add up to {total}");
        let problem = Problem::new("bad-split", piece.range(), why);
        return Err(problem.fix("change them to a total of 100"));
    }
    Ok(OptionValue::Shares(shares))
}

/// Reads a word and its percentage.
fn share(
    row: &Row,
    words: &'static [OptionWord],
    entry: Piece<'_>,
    findings: &mut Findings,
) -> Result<(&'static str, u8), Problem> {
    let parts = entry.split(&['/']);
    let (word, percent) = if let [word, percent] = parts.as_slice()
        && !word.text.trim().is_empty()
    {
        (word, percent)
    } else {
        let why = format!("`{}` is not a word with a percentage", entry.text);
        let problem = Problem::new("bad-split", entry.range(), why);
        return Err(problem.fix(format!("write it like `{}`", row.example)));
    };
    let word = chosen(row, words, word.trim(), findings)?;
    match percent.text.trim().parse() {
        Ok(percent @ 0..=100) => Ok((word, percent)),
        _ => Err(not_a_percentage(percent.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::ValueKind;
    use super::*;

    const WORDS: &[OptionWord] = &[
        OptionWord {
            word: "write",
            help: "",
        },
        OptionWord {
            word: "zeroes",
            help: "",
        },
    ];

    #[track_caller]
    fn check(text: &str, want: Result<OptionValue, (&str, &str)>) {
        let kind = ValueKind::Mix(WORDS, |_, _| {});
        let row = Row::new("mode", "", "", "mode=write/70:zeroes/30", kind);
        let got = read(&row, WORDS, Piece::new(text), &mut Findings::default());
        let got = got.map_err(|problem| (problem.code, &text[problem.at]));
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn words_have_percentages_of_100_in_all() {
        check("zeroes", Ok(OptionValue::Text("zeroes".into())));
        let shares = vec![("zeroes", 30), ("write", 70)];
        check("zeroes/30:write/70", Ok(OptionValue::Shares(shares)));
        check("write/100", Ok(OptionValue::Shares(vec![("write", 100)])));
        check(
            "zeroes/30:write/60",
            Err(("bad-split", "zeroes/30:write/60")),
        );
        check(
            "zeroes/30:write/80",
            Err(("bad-split", "zeroes/30:write/80")),
        );
        check("write/50:write/50", Err(("bad-split", "write/50")));
        check("write/50:zeroes", Err(("bad-split", "zeroes")));
        check("write/50/50", Err(("bad-split", "write/50/50")));
        check("write/101:zeroes/0", Err(("bad-percent", "101")));
        check("write/-1:zeroes/101", Err(("bad-percent", "-1")));
        check("write/x", Err(("bad-percent", "x")));
        check("other/50:write/50", Err(("bad-value", "other")));
        check("write/100:", Err(("bad-split", "")));
        check("/50:write/50", Err(("bad-split", "/50")));
    }
}
