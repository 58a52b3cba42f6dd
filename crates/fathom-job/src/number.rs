//! Integers with units, as documented by fio.
//!
//! With `kb_base=1024` (the default) `4k` is 4096 and `4kib` is 4000: the reverse of the IEC
//! standard, kept for old job files. `4ki`, without the `b`, is still 4096.

use crate::arithmetic;
use crate::findings::Findings;
use crate::plan::Size;
use crate::problem::{Piece, Problem};
use crate::reading;

/// An integer as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    /// Value, in bytes, ops or the unit of the option.
    pub(crate) value: i128,
    /// Set if it had a unit.
    pub(crate) unit: bool,
    /// Set if an IEC unit (`kib`) was read as a power of 1000.
    pub(crate) reversed: bool,
}

/// Reads an integer of at most 63 bits and a sign, or an expression in parentheses that has such a
/// value.
pub(crate) fn integer(piece: Piece<'_>, kb_base: u64) -> Result<Number, Problem> {
    let piece = piece.trim();
    let number = if piece.text.starts_with('(') {
        arithmetic::evaluate(piece, &|literal| number_literal(literal, kb_base))
            .map(|(value, _)| plain(value))
    } else {
        number_literal(piece, kb_base)
    }?;
    match number.value > i128::from(i64::MAX) {
        true => Err(too_large(piece).fix(format!("write at most {}", i64::MAX))),
        false => Ok(number),
    }
}

/// Reads a non-negative integer from `min` to `max`.
pub(crate) fn counted(
    piece: Piece<'_>,
    kb_base: u64,
    min: u64,
    max: u64,
    findings: &mut Findings,
) -> Result<u64, Problem> {
    let number = integer(piece, kb_base)?;
    findings.reversed(piece, number.reversed);
    in_range(piece.trim(), number.value, min, max)
}

/// Reads a number that is part of a value, or fio's reading of a text that is not a number.
pub(crate) fn read_part(
    piece: Piece<'_>,
    kb_base: u64,
    min: u64,
    max: u64,
    findings: &mut Findings,
) -> Result<u64, Problem> {
    let fio = || reading::in_range(reading::count(piece.text.trim(), kb_base)?, min, max);
    findings.documented_or_fio_value(|f| counted(piece, kb_base, min, max, f), fio)
}

/// Reads bytes, or a percentage of at most 100.
pub(crate) fn size(
    piece: Piece<'_>,
    kb_base: u64,
    min: u64,
    findings: &mut Findings,
) -> Result<Size, Problem> {
    let piece = piece.trim();
    let last = piece.text.char_indices().next_back();
    match last {
        Some((end, '%')) => percent(piece, end).map(Size::Percent),
        Some((end, 'z' | 'Z')) => zones(piece, end, kb_base, findings).map(Size::Zones),
        _ => counted(piece, kb_base, min, u64::MAX, findings).map(Size::Bytes),
    }
}

fn zones(
    piece: Piece<'_>,
    end: usize,
    kb_base: u64,
    findings: &mut Findings,
) -> Result<u32, Problem> {
    let digits = piece.part(0..end);
    if !is_digits(digits.text) {
        return Err(Problem::new(
            "bad-zones",
            piece.range(),
            format!("`{}` is not a whole number of zones", piece.text),
        )
        .fix("write only digits before the `z`"));
    }
    let zones = counted(digits, kb_base, 0, u64::from(u32::MAX), findings)?;
    Ok(u32::try_from(zones).unwrap_or(u32::MAX))
}

fn percent(piece: Piece<'_>, end: usize) -> Result<u32, Problem> {
    let digits = piece.part(0..end).trim();
    if !is_digits(digits.text) {
        return Err(Problem::new(
            "bad-percent",
            piece.range(),
            format!("`{}` is not a whole percentage", piece.text),
        )
        .fix("write a whole number from 0 to 100 before the `%`"));
    }
    match digits.text.parse::<u32>() {
        Ok(percent) if percent <= 100 => Ok(percent),
        _ => Err(Problem::new(
            "bad-percent",
            piece.range(),
            format!("`{}` exceeds 100 %", piece.text),
        )
        .fix("write at most `100%`")),
    }
}

/// Reads one number without parentheses.
fn number_literal(piece: Piece<'_>, kb_base: u64) -> Result<Number, Problem> {
    let (sign, body) = signed(piece)?;
    let (digits, suffix) = digits_and_suffix(body, in_smaller_unit)?;
    let (multiplier, reversed) = if suffix.text.is_empty() {
        (1, false)
    } else {
        unit(suffix, kb_base).ok_or_else(|| unknown_suffix(suffix))?
    };
    let value = digits.1.checked_mul(multiplier);
    match value {
        Some(value) if value <= i128::from(u64::MAX) => Ok(Number {
            value: sign * value,
            unit: !suffix.text.is_empty(),
            reversed,
        }),
        _ => Err(too_large(piece)),
    }
}

/// Splits off the sign.
pub(crate) fn signed(piece: Piece<'_>) -> Result<(i128, Piece<'_>), Problem> {
    let piece = piece.trim();
    if piece.text.is_empty() {
        return Err(Problem::new("no-number", piece.range(), "missing number"));
    }
    Ok(match piece.text.as_bytes()[0] {
        b'-' => (-1, piece.part(1..piece.text.len())),
        b'+' => (1, piece.part(1..piece.text.len())),
        _ => (1, piece),
    })
}

/// Splits a number into its digits, with their value, and the suffix. `whole` returns a fraction
/// (`1.5g`) as a whole number in a smaller unit, if it is one.
pub(crate) fn digits_and_suffix(
    piece: Piece<'_>,
    whole: fn(&str) -> Option<String>,
) -> Result<((Piece<'_>, i128), Piece<'_>), Problem> {
    let text = piece.text;
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return hexadecimal(piece, hex);
    }
    let end = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    let digits = piece.part(0..end);
    let suffix = piece.part(end..text.len());
    if digits.text.is_empty() {
        return Err(Problem::new(
            "not-a-number",
            piece.range(),
            format!("`{text}` is not a number"),
        ));
    }
    if suffix.text.starts_with(['.', ',']) {
        return Err(fraction(piece, whole));
    }
    let value = digits.text.parse().map_err(|_| too_large(piece))?;
    Ok(((digits, value), suffix))
}

fn hexadecimal<'a>(piece: Piece<'a>, hex: &str) -> Result<((Piece<'a>, i128), Piece<'a>), Problem> {
    let end = piece.text.len();
    match i128::from_str_radix(hex, 16) {
        Ok(value) if hex.starts_with(|c: char| c.is_ascii_hexdigit()) => {
            Ok(((piece, value), piece.part(end..end)))
        }
        _ if hex.chars().all(|c| c.is_ascii_hexdigit()) && !hex.is_empty() => Err(too_large(piece)),
        _ => Err(Problem::new(
            "bad-hexadecimal",
            piece.range(),
            format!("`{}` is not a hexadecimal number", piece.text),
        )
        .fix("write hexadecimal digits without a unit")),
    }
}

/// Returns the multiplier of a unit, and whether it is an IEC unit read as a power of 1000.
fn unit(suffix: Piece<'_>, kb_base: u64) -> Option<(i128, bool)> {
    let lower = suffix.text.to_ascii_lowercase();
    if lower == "b" {
        return Some((1, false));
    }
    let power = 1 + "kmgtp".find(lower.chars().next()?)?;
    let iec = match &lower[1..] {
        "" | "b" | "i" => false,
        "ib" => true,
        _ => return None,
    };
    let base: i128 = if iec == (kb_base == 1024) { 1000 } else { 1024 };
    let power = u32::try_from(power).ok()?;
    Some((base.pow(power), iec && kb_base == 1024))
}

fn unknown_suffix(suffix: Piece<'_>) -> Problem {
    if let Some(problem) = operator(suffix) {
        return problem;
    }
    Problem::new(
        "bad-suffix",
        suffix.range(),
        format!("`{}` is not a unit", suffix.text),
    )
    .fix("use k, m, g, t or p (powers of 1024 with kb_base=1024), or no unit")
}

/// Returns the problem of arithmetic without parentheses, of which fio reads the first number.
pub(crate) fn operator(suffix: Piece<'_>) -> Option<Problem> {
    let calculates = suffix.text.trim_start().starts_with(['*', '/', '+', '^']);
    calculates.then(|| {
        let why = format!("`{}` needs parentheses to be evaluated", suffix.text);
        Problem::new("operator", suffix.range(), why)
            .fix("write the result, or use parentheses as in `(4*1k)`")
    })
}

fn fraction(piece: Piece<'_>, whole: fn(&str) -> Option<String>) -> Problem {
    let problem = Problem::new(
        "fraction",
        piece.range(),
        format!("`{}` is not a whole number", piece.text),
    );
    match whole(piece.text) {
        Some(text) => problem.fix(format!("write `{text}`")),
        None => problem.fix("write a whole number with a smaller unit"),
    }
}

/// Converts `1.5g` to a smaller unit: `1536m`.
fn in_smaller_unit(text: &str) -> Option<String> {
    let (digits, rest) = text.split_once('.')?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
    let (decimals, unit) = rest.split_at(end);
    let index = "kmgtp".find(&unit.to_ascii_lowercase())?;
    let whole: u128 = digits.parse().ok()?;
    let part: u128 = decimals.parse().ok()?;
    let scale = 10_u128.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let thousandfold = (whole.checked_mul(scale)?.checked_add(part)?).checked_mul(1024)?;
    let smaller = ["", "k", "m", "g", "t"][index];
    (thousandfold % scale == 0).then(|| format!("{}{smaller}", thousandfold / scale))
}

pub(crate) fn too_large(piece: Piece<'_>) -> Problem {
    Problem::new(
        "overflow",
        piece.range(),
        format!("`{}` is too large", piece.text),
    )
}

/// Checks that a number is from `min` to `max`.
pub(crate) fn in_range(piece: Piece<'_>, value: i128, min: u64, max: u64) -> Result<u64, Problem> {
    let problem = |fix: String| {
        let why = format!("value out of range: {value}");
        Err(Problem::new("out-of-range", piece.range(), why).fix(fix))
    };
    match u64::try_from(value) {
        Ok(value) if (min..=max).contains(&value) => Ok(value),
        _ if value > i128::from(max) => problem(format!("write at most {max}")),
        _ => problem(format!("write at least {min}")),
    }
}

const fn plain(value: i128) -> Number {
    Number {
        value,
        unit: true,
        reversed: false,
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, kb_base: u64, want: i128) {
        let got = integer(Piece::new(text), kb_base).map(|number| number.value);
        assert_eq!(got, Ok(want), "{text}");
    }

    #[track_caller]
    fn refuse(text: &str, code: &str) {
        let got = integer(Piece::new(text), 1024).map(|number| number.value);
        assert_eq!(got.map_err(|problem| problem.code), Err(code), "{text}");
    }

    #[test]
    fn units_are_reversed_at_kb_base_1024() {
        check("4", 1024, 4);
        check("4k", 1024, 4096);
        check("4K", 1024, 4096);
        check("4kb", 1024, 4096);
        check("4ki", 1024, 4096);
        check("4kib", 1024, 4000);
        check("4KIB", 1024, 4000);
        check("1mib", 1024, 1_000_000);
        check("2g", 1024, 2 << 30);
        check("1t", 1024, 1 << 40);
        check("1p", 1024, 1 << 50);
        check("4194304B", 1024, 4_194_304);
        check("0x1000", 1024, 4096);
        check("-20", 1024, -20);
        check("9223372036854775807", 1024, i64::MAX.into());
    }

    #[test]
    fn units_are_the_standard_at_kb_base_1000() {
        check("4k", 1000, 4000);
        check("4kb", 1000, 4000);
        check("4kib", 1000, 4096);
        check("1gib", 1000, 1 << 30);
    }

    #[test]
    fn expressions_stand_in_parentheses() {
        check("(4*1k)", 1024, 4096);
        check("((1+2)*4k-4k)", 1024, 8192);
    }

    #[test]
    fn nonsense_is_refused() {
        refuse("4q", "bad-suffix");
        refuse("4e", "bad-suffix");
        refuse("4k8", "bad-suffix");
        refuse("4kk", "bad-suffix");
        refuse("1.5g", "fraction");
        refuse("0x1k", "bad-hexadecimal");
        refuse("0x", "bad-hexadecimal");
        refuse("0x-4", "bad-hexadecimal");
        refuse("99999999999999999999", "overflow");
        refuse(
            "99999999999999999999999999999999999999999999999",
            "overflow",
        );
        refuse("18446744073709551615k", "overflow");
        refuse("9223372036854775808", "overflow");
        refuse("18446744073709551615", "overflow");
        refuse("0x8000000000000000", "overflow");
        refuse("(4611686018427387904*2)", "overflow");
        refuse("8388608t", "overflow");
        refuse("", "no-number");
        refuse("k", "not-a-number");
        refuse("--4", "not-a-number");
        refuse("é", "not-a-number");
        refuse("4é", "bad-suffix");
    }

    #[test]
    fn a_fraction_is_told_in_a_smaller_unit() {
        let problem = integer(Piece::new("1.5g"), 1024).unwrap_err();
        assert_eq!(problem.fix.as_deref(), Some("write `1536m`"));
    }

    #[test]
    fn percent_stops_at_a_hundred() {
        let read = |text| size(Piece::new(text), 1024, 0, &mut Findings::default());
        assert_eq!(read("100%"), Ok(Size::Percent(100)));
        assert_eq!(read("101%").unwrap_err().code, "bad-percent");
        assert_eq!(read("-1%").unwrap_err().code, "bad-percent");
        assert_eq!(read("%").unwrap_err().code, "bad-percent");
    }

    #[test]
    fn zones_are_whole_numbers() {
        let read = |text| size(Piece::new(text), 1024, 0, &mut Findings::default());
        assert_eq!(read("4z"), Ok(Size::Zones(4)));
        for text in ["z", "-1z", "1.5z", "4kz"] {
            assert_eq!(read(text).unwrap_err().code, "bad-zones");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(value in 0..=i64::MAX.cast_unsigned()) {
            check(&value.to_string(), 1024, i128::from(value));
            check(&format!("{value:#x}"), 1024, i128::from(value));
        }

        #[test]
        fn units_multiply(value in 0_u64..1 << 13, power in 1_u32..=5) {
            let unit = ["k", "m", "g", "t", "p"][power as usize - 1];
            check(&format!("{value}{unit}"), 1024, i128::from(value) << (10 * power));
            check(&format!("{value}{unit}"), 1000, i128::from(value) * 1000_i128.pow(power));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,12}") {
            let _ = integer(Piece::new(&text), 1024);
            let _ = size(Piece::new(&text), 1024, 0, &mut Findings::default());
        }
    }
}
