//! Reading of values by row.

use std::ops::Range;

use fathom_core::{OptionWord, PerDirection};

use crate::findings::Findings;
use crate::number;
use crate::plan::{Options, Size, Verify};
use crate::problem::{Piece, Problem};
use crate::reading::{self, Reading};
use crate::suggest;
use crate::time;
use crate::url_passwords::no_passwords;
use crate::vocabulary::{UNNAMED, Vocabulary};

use super::row::{Choice, EmptyValue, Row, ValueKind};
use super::{mix, queue, verify};

impl Row {
    /// Reads `value` (`None` for a bare name) and sets the option. The documented reading is tried
    /// first, then fio's.
    pub(crate) fn apply(
        &self,
        options: &mut Options,
        value: Option<&str>,
        vocabulary: Vocabulary<'_>,
        findings: &mut Findings,
    ) -> Result<(), Problem> {
        self.read(options, value, vocabulary, findings)?;
        if let Some(value) = options.engine_values.take(UNNAMED) {
            options.engine_values.set(self.name, value);
        }
        Ok(())
    }

    // tidy: long: an arm for each kind of value
    fn read(
        &self,
        options: &mut Options,
        value: Option<&str>,
        vocabulary: Vocabulary<'_>,
        findings: &mut Findings,
    ) -> Result<(), Problem> {
        let may_be_empty = matches!(
            self.kind,
            ValueKind::Ignored(_) | ValueKind::OptionalText(_)
        );
        let text = match (value, self.is_flag()) {
            (None, true) => "1",
            (Some(text), _) if !text.trim().is_empty() => text,
            _ if may_be_empty => "",
            _ => return self.read_empty(options, findings),
        };
        let piece = Piece::new(text).trim();
        let kb_base = options.kb_base;
        let whole = piece.text;
        match self.kind {
            ValueKind::Flag(set) | ValueKind::Bool(set) => {
                let max = if self.is_flag() { U31 } else { 1 };
                let (_, max) = self.fio_range(0, max);
                let fio = || reading::boolean(whole, i32::try_from(max).unwrap_or(i32::MAX));
                given(
                    findings.documented_or_fio(|_| boolean(piece), fio)?,
                    options,
                    set,
                );
            }
            ValueKind::Int { min, max, set } => {
                let fio =
                    || reading::integer(whole, kb_base, self.fio_range(min, max), self.counts);
                let value = findings
                    .documented_or_fio(|f| number::counted(piece, kb_base, min, max, f), fio)?;
                given(value.map(|value| value.min(max)), options, set);
            }
            ValueKind::Signed { min, max, set } => {
                let fio = || reading::signed(whole, kb_base, (min, max));
                let value =
                    findings.documented_or_fio(|_| signed(piece, kb_base, min, max), fio)?;
                given(value, options, set);
            }
            ValueKind::Size { min, set } => {
                let fio = || self.size_in_fio(whole, kb_base, min);
                let value =
                    findings.documented_or_fio(|f| number::size(piece, kb_base, min, f), fio)?;
                given(value, options, set);
            }
            ValueKind::Time { bare, set } => {
                let fio = || reading::time(whole, bare);
                let value = findings.documented_or_fio(|_| time::time(piece, bare), fio)?;
                given(value, options, set);
            }
            ValueKind::PerDirection { min, max, set } => {
                let values = self.per_direction(piece, kb_base, (min, max), findings)?;
                given(values, options, set);
            }
            ValueKind::Choice(choices) => (choose(self, choices, piece, findings)?.set)(options),
            ValueKind::Words(words, set) => set(options, chosen(self, words, piece, findings)?),
            ValueKind::Mix(words, set) => set(options, mix::read(self, words, piece, findings)?),
            ValueKind::Text(set) | ValueKind::OptionalText(set) => set(options, public(piece)?),
            ValueKind::Special { read, .. } => {
                read(options, piece.text, findings).map_err(|problem| problem.shifted(piece.at))?;
            }
            ValueKind::Engine => queue::engine(options, piece, vocabulary)?,
            ValueKind::Verify => options.verify = verification(self, piece, findings)?,
            ValueKind::Ignored(why) => findings.note(Problem::new(
                "ignored",
                piece.range(),
                format!("`{}` {why}", self.name),
            )),
        }
        Ok(())
    }

    /// Reads the values of an option that has one for reads, writes and trims each.
    fn per_direction(
        &self,
        piece: Piece<'_>,
        kb_base: u64,
        (min, max): (u64, u64),
        findings: &mut Findings,
    ) -> Result<Option<PerDirection<Option<u64>>>, Problem> {
        let documented = |findings: &mut Findings| {
            per_direction(self.name, piece, findings, |piece, findings| {
                number::counted(piece, kb_base, min, max, findings)
            })
        };
        // An alignment near 2⁶⁴ is one that only offset 0 has.
        let aligns = self.name == "ba";
        let one = |text: &str| match reading::count(text, kb_base)? {
            value if aligns => Some(value).filter(|value| *value > 0),
            value => reading::in_range(value, min, max),
        };
        // fio fails on a size near 2⁶⁴ only when the job runs.
        let giant = min > 0 && !aligns && reading::is_giant(piece.text, kb_base);
        let fio = || reading::per_direction(piece.text, one).filter(|_| !giant);
        let late = |problem: Problem| if giant { problem.when_run() } else { problem };
        findings.documented_or_fio(documented, fio).map_err(late)
    }

    /// Returns fio's reading of a size. It refuses a giant `io_size`, which a percentage above 100
    /// is.
    fn size_in_fio(&self, text: &str, kb_base: u64, min: u64) -> Option<Reading<Size>> {
        let size = reading::size(text, kb_base, min)?;
        let giant = matches!(size, Reading::Value(Size::Bytes(GIANT..)));
        (!giant || self.name != "io_size").then_some(size)
    }

    /// Returns fio's limits, if they are wider.
    fn fio_range(&self, min: u64, max: u64) -> (u64, u64) {
        self.fio.unwrap_or((min, max))
    }

    /// Reads an empty value, as fio does if it accepts one.
    fn read_empty(&self, options: &mut Options, findings: &mut Findings) -> Result<(), Problem> {
        match self.empty {
            None => Err(self.no_value()),
            Some(EmptyValue::RefusedWhenRun) => Err(self.no_value().when_run()),
            Some(EmptyValue::Ignored) => findings.misread(self.no_value(), reading::NOTHING),
            Some(EmptyValue::Means(meaning, set)) => {
                findings.misread(self.no_value(), meaning)?;
                set(options);
                Ok(())
            }
        }
    }

    fn no_value(&self) -> Problem {
        Problem::new("no-value", 0..0, format!("`{}` needs a value", self.name))
            .fix(format!("write it like `{}`", self.example))
    }
}

/// Reads values for reads, writes and trims. The last value is copied to missing later ones unless
/// a separator follows it: `8k` sets all, `8k,16k` sets trims to 16k, `8k,` sets only reads, `,8k`
/// all but reads.
pub(crate) fn per_direction<T: Clone>(
    name: &str,
    piece: Piece<'_>,
    findings: &mut Findings,
    mut read: impl FnMut(Piece<'_>, &mut Findings) -> Result<T, Problem>,
) -> Result<PerDirection<Option<T>>, Problem> {
    let body = piece.part(usize::from(piece.text.starts_with(['-', '+']))..piece.text.len());
    let mut pieces = body.split(&[',', ':', '-']);
    if body.at > piece.at {
        pieces[0] = piece.part(0..pieces[0].text.len() + 1);
    }
    let values = three(&pieces, piece.range(), "values", |piece| {
        read(piece, findings)
    })?;
    if pieces.len() > 1 && !body.text.contains(',') {
        findings.warn(separator_trap(name, piece));
    }
    Ok(values)
}

/// Reads one to three comma-separated values for reads, writes and trims; any may be empty. `what`
/// names them in messages.
pub(crate) fn up_to_three<T: Clone>(
    text: &str,
    what: &str,
    read: impl FnMut(Piece<'_>) -> Result<T, Problem>,
) -> Result<PerDirection<Option<T>>, Problem> {
    let pieces = Piece::new(text).split(&[',']);
    three(&pieces, 0..text.len(), what, read)
}

fn three<T: Clone>(
    pieces: &[Piece<'_>],
    whole: Range<usize>,
    what: &str,
    mut read: impl FnMut(Piece<'_>) -> Result<T, Problem>,
) -> Result<PerDirection<Option<T>>, Problem> {
    if pieces.len() > 3 {
        let why = format!("more than three {what} (read,write,trim)");
        return Err(Problem::new("too-many-values", whole, why));
    }
    let values = pieces.iter().map(|piece| match piece.text.trim() {
        "" => Ok(None),
        _ => read(*piece).map(Some),
    });
    Ok(spread(&values.collect::<Result<Vec<_>, _>>()?))
}

/// Assigns one to three values to the directions.
pub(crate) fn spread<T: Clone>(values: &[Option<T>]) -> PerDirection<Option<T>> {
    let value = |index: usize| values.get(index).cloned().flatten();
    match values.len() {
        0 | 1 => PerDirection::all(value(0)),
        2 => PerDirection::new(value(0), value(1), value(1)),
        _ => PerDirection::new(value(0), value(1), value(2)),
    }
}

fn separator_trap(name: &str, piece: Piece<'_>) -> Problem {
    let problem = Problem::new(
        "not-a-range",
        piece.range(),
        "the values apply to reads and writes, as in fio; this is not a range",
    );
    match name {
        "bs" => problem
            .fix("for a range use `bsrange=`; for reads and writes separate the values by a comma"),
        _ => problem.fix("separate the values for reads and writes by a comma"),
    }
}

/// Returns the text of a value, unless it is a URL with a password.
fn public(piece: Piece<'_>) -> Result<&str, Problem> {
    let checked = no_passwords(&[piece.text], piece.text.len());
    checked.map_err(|problem| problem.shifted(piece.at))?;
    Ok(piece.text)
}

/// Sets a value, if there is one.
fn given<T>(value: Option<T>, options: &mut Options, set: fn(&mut Options, T)) {
    if let Some(value) = value {
        set(options, value);
    }
}

/// Accepts `0` or `1`.
fn boolean(piece: Piece<'_>) -> Result<bool, Problem> {
    let text = piece.text;
    if matches!(text, "0" | "1") {
        return Ok(text == "1");
    }
    let why = format!("`{text}` is neither 0 nor 1");
    let problem = Problem::new("not-a-boolean", piece.range(), why);
    Err(match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => problem.fix("write `1`"),
        "false" | "no" | "off" => problem.fix("write `0`"),
        _ => problem.fix("write `0` or `1`"),
    })
}

fn signed(piece: Piece<'_>, kb_base: u64, min: i64, max: i64) -> Result<i64, Problem> {
    let number = number::integer(piece, kb_base)?;
    match i64::try_from(number.value) {
        Ok(value) if (min..=max).contains(&value) => Ok(value),
        _ => Err(Problem::new(
            "out-of-range",
            piece.range(),
            format!("`{}` is out of range", piece.text),
        )
        .fix(format!("write a number from {min} to {max}"))),
    }
}

/// Returns the choice with this word.
fn choose(
    row: &Row,
    choices: &'static [Choice],
    piece: Piece<'_>,
    findings: &mut Findings,
) -> Result<&'static Choice, Problem> {
    let words: Vec<_> = choices.iter().map(|choice| choice.word).collect();
    let index = index_of(row, &words, piece, findings)?;
    Ok(&choices[index])
}

/// Returns the word of an engine's own option.
pub(super) fn chosen(
    row: &Row,
    choices: &'static [OptionWord],
    piece: Piece<'_>,
    findings: &mut Findings,
) -> Result<&'static str, Problem> {
    let words: Vec<_> = choices.iter().map(|choice| choice.word).collect();
    let index = index_of(row, &words, piece, findings)?;
    Ok(choices[index].word)
}

/// Returns the verification method with this name.
fn verification(row: &Row, piece: Piece<'_>, findings: &mut Findings) -> Result<Verify, Problem> {
    let (words, methods): (Vec<_>, Vec<_>) = verify::methods()
        .map(|method| (method.word, method.method))
        .unzip();
    Ok(methods[index_of(row, &words, piece, findings)?])
}

/// Returns the index of the word that a value starts with.
fn index_of(
    row: &Row,
    words: &[&str],
    piece: Piece<'_>,
    findings: &mut Findings,
) -> Result<usize, Problem> {
    let named = |text: &str| words.iter().position(|word| *word == text);
    if let Some(index) = named(piece.text) {
        return Ok(index);
    }
    let word = reading::word(piece.text);
    let Some(index) = named(word) else {
        let piece = piece.part(0..word.len());
        return Err(unknown_word(row.name, piece, words, &[]));
    };
    findings.misread(needless(piece, word), word)?;
    Ok(index)
}

/// Returns the problem of text after a word that takes none.
pub(crate) fn needless(piece: Piece<'_>, word: &str) -> Problem {
    let rest = piece.part(word.len()..piece.text.len());
    let why = format!("`{}` after `{word}` has no meaning", rest.text);
    Problem::new("needless-value", rest.range(), why).fix(format!("write `{word}`"))
}

/// Returns the problem of a word that is none of `words`; `later` are words that only fio has.
pub(crate) fn unknown_word(
    name: &str,
    piece: Piece<'_>,
    words: &[&str],
    later: &[&str],
) -> Problem {
    let text = piece.text;
    let list = words.join(", ");
    if later.contains(&text) {
        return Problem::new(
            "not-yet",
            piece.range(),
            format!("`{name}={text}` exists in fio, but not yet in Fathom"),
        )
        .fix(format!("use one of: {list}"));
    }
    let problem = Problem::new(
        "bad-value",
        piece.range(),
        format!("`{text}` is not a value of `{name}`"),
    );
    match suggest::closest(text, words.iter().copied()) {
        Some(word) => problem.fix(format!("did you mean `{word}`? available: {list}")),
        None => problem.fix(format!("use one of: {list}")),
    }
}

/// Converts a number that is known to fit to `u32`.
pub(crate) fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Converts a number that is known to fit to `u8`.
pub(crate) fn byte(value: u64) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}

/// The least number that fio takes for a percentage or a negative one.
const GIANT: u64 = 1 << 63;

/// fio's limit of flags, which it reads as numbers.
pub(crate) const U31: u64 = (1 << 31) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: [Option<u64>; 3]) {
        let got = per_direction(
            "bs",
            Piece::new(text),
            &mut Findings::default(),
            |piece, findings| number::counted(piece, 1024, 0, u64::MAX, findings),
        );
        let [read, write, trim] = want;
        assert_eq!(got, Ok(PerDirection::new(read, write, trim)), "{text}");
    }

    #[test]
    fn a_missing_value_copies_the_last_only_at_the_end() {
        check("8k", [Some(8192); 3]);
        check("8k,16k", [Some(8192), Some(16384), Some(16384)]);
        check(",8k", [None, Some(8192), Some(8192)]);
        check(",,8k", [None, None, Some(8192)]);
        check("8k,,1k", [Some(8192), None, Some(1024)]);
        check("8k,", [Some(8192), None, None]);
        check("4k-8k", [Some(4096), Some(8192), Some(8192)]);
        check("4k:8k:1k", [Some(4096), Some(8192), Some(1024)]);
        check("(8k-4k),1k", [Some(4096), Some(1024), Some(1024)]);
    }

    #[test]
    fn a_minus_sign_is_not_a_separator() {
        let read = |piece: Piece<'_>, findings: &mut Findings| {
            number::counted(piece, 1024, 0, u64::MAX, findings)
        };
        let got = per_direction("bs", Piece::new("-4k"), &mut Findings::default(), read);
        assert_eq!(
            got.map_err(|problem| (problem.code, problem.at)),
            Err(("out-of-range", 0..3))
        );
    }
}
