//! fio's reading of undocumented values: `4kk`, `1min`, `100*1`, `1[x]`, `-3`.
//!
//! fio reads leading digits and then looks for a unit in what follows. A value is cut at `,`, `:`
//! and `-`, and each part is read together with all text after it. The rules were observed on a
//! running fio (`--debug=parse` prints the reading of each text); `tests/language/beside_fio.rs`
//! compares them with an installed fio.

use fathom_core::{Nanos, PerDirection};

use crate::plan::Size;
use crate::time::Bare;

/// fio's reading of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading<T> {
    /// This value.
    Value(T),
    /// No value and no error: the option stays unchanged.
    Nothing,
}

impl<T> Reading<T> {
    pub(crate) fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Nothing => None,
        }
    }

    fn of(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Self::Value)
    }
}

impl<T: Shown> Reading<T> {
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Value(value) => value.shown(),
            Self::Nothing => NOTHING.to_owned(),
        }
    }
}

/// A value that can be written as a job file would.
pub(crate) trait Shown {
    fn shown(&self) -> String;
}

impl Shown for u64 {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Shown for u32 {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Shown for i64 {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Shown for f64 {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Shown for bool {
    fn shown(&self) -> String {
        u8::from(*self).to_string()
    }
}

impl Shown for (u64, u64) {
    fn shown(&self) -> String {
        format!("{}-{}", self.0, self.1)
    }
}

impl Shown for (Nanos, Nanos) {
    fn shown(&self) -> String {
        match self {
            (low, high) if low == high => low.shown(),
            (low, high) => format!("{}-{}", low.shown(), high.shown()),
        }
    }
}

impl Shown for Size {
    fn shown(&self) -> String {
        match self {
            Self::Bytes(bytes) => bytes.to_string(),
            Self::Percent(percent) => format!("{percent}%"),
            Self::Zones(zones) => format!("{zones}z"),
        }
    }
}

impl Shown for Nanos {
    fn shown(&self) -> String {
        let micros = self.get() / 1000;
        match micros {
            0 => "0".to_owned(),
            _ if micros.is_multiple_of(1_000_000) => format!("{}s", micros / 1_000_000),
            _ if micros.is_multiple_of(1000) => format!("{}ms", micros / 1000),
            _ => format!("{micros}us"),
        }
    }
}

impl<T: Shown + Eq> Shown for PerDirection<Option<T>> {
    fn shown(&self) -> String {
        let values = [&self.read, &self.write, &self.trim];
        let shown = |value: &Option<T>| value.as_ref().map_or_else(String::new, T::shown);
        match values {
            [Some(read), Some(write), Some(trim)] if read == write && write == trim => read.shown(),
            _ => values.map(shown).join(","),
        }
    }
}

/// The part that is used if a single-valued option is given several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EffectiveEntry {
    First,
    Last,
}

/// Reads an integer from `min` to `max`.
pub(crate) fn integer(
    text: &str,
    kb_base: u64,
    (min, max): (u64, u64),
    counts: EffectiveEntry,
) -> Option<Reading<u64>> {
    parts(text, counts, |rest| {
        in_range(count(rest, kb_base)?, min, max)
    })
}

/// Reads an integer that may be negative.
pub(crate) fn signed(text: &str, kb_base: u64, (min, max): (i64, i64)) -> Option<Reading<i64>> {
    parts(text, EffectiveEntry::First, |rest| {
        let value = count(rest, kb_base)?.cast_signed();
        (min..=max).contains(&value).then_some(value)
    })
}

/// Reads bytes, percent or zones.
pub(crate) fn size(text: &str, kb_base: u64, min: u64) -> Option<Reading<Size>> {
    parts(text, EffectiveEntry::Last, |rest| {
        if rest.ends_with('z') {
            let (zones, rest) = digits(rest)?;
            let zones = u32::try_from(zones).ok()?;
            return rest.starts_with('z').then_some(Size::Zones(zones));
        }
        match digits(rest)? {
            (percent @ 0..=100, rest) if rest.starts_with('%') => {
                u32::try_from(percent).ok().map(Size::Percent)
            }
            _ => in_range(count(rest, kb_base)?, min, u64::MAX).map(Size::Bytes),
        }
    })
}

/// Reads a time.
pub(crate) fn time(text: &str, bare: Bare) -> Option<Reading<Nanos>> {
    parts(text, EffectiveEntry::First, |rest| moment(rest, bare))
}

/// Reads a range of delays: the first two parts that are times. One that is negative counts as 0,
/// and so does an unreadable first part.
pub(crate) fn delays(text: &str) -> Option<(Nanos, Nanos)> {
    let mut parts = rests(text);
    let low = match parts.next()? {
        negative if negative.trim_start().starts_with('-') => None,
        part => moment(part, Bare::Seconds),
    };
    let high = parts.find_map(|part| moment(part, Bare::Seconds));
    match (low, high) {
        (Some(low), None) => Some((low, low)),
        (low, high) => high.map(|high| (low.unwrap_or(Nanos::ZERO), high)),
    }
}

/// Reads one time, with all text after it.
pub(crate) fn moment(text: &str, bare: Bare) -> Option<Nanos> {
    if text.ends_with('z') {
        return None;
    }
    let (value, rest) = digits(text)?;
    let second = 1_000_000_u64;
    // The unit of a range is that of its end: `1-2ms` begins at 1 ms.
    let rest = rest.trim_start_matches(|letter: char| letter == '-' || letter.is_ascii_digit());
    let unit = rest.to_ascii_lowercase();
    let micros = match unit.as_str() {
        unit if unit.starts_with("ms") => 1000,
        "s" => second,
        "m" => 60 * second,
        "h" => 3600 * second,
        "d" => 86_400 * second,
        unit if unit.starts_with(|letter: char| letter.is_alphabetic()) => 1,
        _ if bare == Bare::Seconds => second,
        _ => 1,
    };
    let micros = value.cast_unsigned().wrapping_mul(micros);
    Some(Nanos::new(micros.saturating_mul(1000)))
}

/// Reads a flag, or with a `max` of 1 a boolean: any number but 0 is on.
pub(crate) fn boolean(text: &str, max: i32) -> Option<Reading<bool>> {
    parts(text, EffectiveEntry::First, |rest| {
        let value = digits(rest).map_or_else(|| overflowed(rest), |(value, _)| Some(value))?;
        // fio keeps it in 32 bits.
        let value = u32::try_from(value.cast_unsigned() & u64::from(u32::MAX)).ok()?;
        (value.cast_signed() <= max).then_some(value != 0)
    })
}

/// Returns fio's reading of a flag with too many digits, -1.
fn overflowed(text: &str) -> Option<i64> {
    let all_digits = text.trim_start().bytes().all(|byte| byte.is_ascii_digit());
    (all_digits && !text.trim().is_empty()).then_some(-1)
}

/// Returns the word before the first `,` or `:`; fio compares no more.
pub(crate) fn word(text: &str) -> &str {
    text.split([',', ':']).next().unwrap_or(text)
}

/// Reads values for reads, writes and trims. A part that is not a number leaves its direction
/// unchanged.
pub(crate) fn per_direction<T: Copy>(
    text: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Option<Reading<PerDirection<Option<T>>>> {
    let values: Vec<_> = rests(text).map(&read).collect();
    values.iter().any(Option::is_some).then(|| {
        let value = |index: usize| values.get(index).copied().flatten();
        Reading::Value(match values.len() {
            1 => PerDirection::all(value(0)),
            2 => PerDirection::new(value(0), value(1), value(1)),
            _ => PerDirection::new(value(0), value(1), value(2)),
        })
    })
}

/// Returns whether a part is negative or a percentage, which fio reads as a number near 2⁶⁴.
pub(crate) fn is_giant(text: &str, kb_base: u64) -> bool {
    rests(text).any(|part| count(part, kb_base).is_some_and(|value| value > i64::MAX as u64))
}

/// Reads a count: digits, followed by a one-letter unit or `%`.
pub(crate) fn count(text: &str, kb_base: u64) -> Option<u64> {
    if text.ends_with('z') {
        return None;
    }
    let (value, rest) = digits(text)?;
    let value = value.cast_unsigned();
    let lower = rest.to_ascii_lowercase();
    let Some(first) = lower.chars().next() else {
        return Some(value);
    };
    // fio encodes a percentage as a number counted down from the maximum, for any option.
    if first == '%' {
        return Some(!value);
    }
    let Some(power) = "kmgtp".find(first) else {
        return Some(value);
    };
    let iec = lower[1..].starts_with("ib");
    let base: u64 = if iec == (kb_base == 1024) { 1000 } else { 1024 };
    let unit = base.pow(u32::try_from(power + 1).ok()?);
    Some(value.wrapping_mul(unit))
}

/// Checks limits as fio does, with signed comparison: a negative number passes as a huge one,
/// truncated to the width of the option.
pub(crate) fn in_range(value: u64, min: u64, max: u64) -> Option<u64> {
    let signed = i128::from(value.cast_signed());
    if (min > 0 && signed < i128::from(min)) || signed > i128::from(max) {
        return None;
    }
    Some(match max {
        max if max <= u64::from(u32::MAX) => (value & u64::from(u32::MAX)).min(max),
        _ => value,
    })
}

/// Reads the number that a text begins with, like the C library's `strtod`: decimal with or without
/// fraction and exponent, whole hexadecimal, `inf` or `nan`.
pub(crate) fn float(text: &str) -> Option<f64> {
    let body = text.trim_start();
    let (negative, body) = match body.strip_prefix('-') {
        Some(body) => (true, body),
        None => (false, body.strip_prefix('+').unwrap_or(body)),
    };
    let until = |text: &str, is_part: fn(char) -> bool| {
        let end = text.find(|letter| !is_part(letter));
        end.unwrap_or(text.len())
    };
    let lower = body.get(..3).unwrap_or(body).to_ascii_lowercase();
    let value = if matches!(lower.as_str(), "inf" | "nan") {
        lower.parse().ok()
    } else if lower.starts_with("0x") && lower.ends_with(|last: char| last.is_ascii_hexdigit()) {
        let digits = &body[2..];
        let digits = &digits[..until(digits, |letter| letter.is_ascii_hexdigit())];
        u64::from_str_radix(digits, 16)
            .ok()
            .map(|value| value as f64)
    } else {
        let end = until(body, |letter| letter.is_ascii_digit() || letter == '.');
        // One dot, with or without digits after it.
        let mut dots = body[..end].match_indices('.');
        let end = dots.nth(1).map_or(end, |(second, _)| second);
        let rest = body[end..].strip_prefix(['e', 'E']).unwrap_or_default();
        let sign = usize::from(rest.starts_with(['-', '+']));
        let exponent = sign + until(&rest[sign..], |letter| letter.is_ascii_digit());
        let whole = (exponent > sign).then(|| body[..end + 1 + exponent].parse().ok());
        whole.flatten().or_else(|| body[..end].parse().ok())
    };
    value.map(|value: f64| if negative { -value } else { value })
}

/// Reads leading digits, 0 if there are none, like the C library's `atoi`.
pub(crate) fn atoi(text: &str) -> u64 {
    let body = text.trim_start();
    let end = body.find(|letter: char| !letter.is_ascii_digit());
    body[..end.unwrap_or(body.len())].parse().unwrap_or(0)
}

/// Splits a text into its number, after spaces and a sign, and the rest after the decimal digits.
/// `0x` anywhere in the text makes the number hexadecimal; the rest then starts at the `x`. Returns
/// `None` if there are no digits, or too many.
fn digits(text: &str) -> Option<(i64, &str)> {
    let body = text.trim_start();
    let negative = body.starts_with('-');
    let body = body.strip_prefix(['-', '+']).unwrap_or(body);
    let until = |text: &str, radix| {
        let end = text.find(|letter: char| !letter.is_digit(radix));
        end.unwrap_or(text.len())
    };
    let rest = &body[until(body, 10)..];
    let (radix, body) = match body.strip_prefix("0x").or_else(|| body.strip_prefix("0X")) {
        Some(digits) if until(digits, 16) > 0 => (16, digits),
        _ if text.contains("0x") || text.contains("0X") => (16, body),
        _ => (10, body),
    };
    let value = i64::from_str_radix(&body[..until(body, radix)], radix).ok()?;
    Some((if negative { -value } else { value }, rest))
}

/// Reads each part of a value; `None` if none can be read.
fn parts<T: Copy>(
    text: &str,
    counts: EffectiveEntry,
    read: impl Fn(&str) -> Option<T>,
) -> Option<Reading<T>> {
    let values: Vec<_> = rests(text).map(read).collect();
    let last = values.iter().copied().flatten().last()?;
    Some(match counts {
        EffectiveEntry::First => Reading::of(values[0]),
        EffectiveEntry::Last => Reading::Value(last),
    })
}

/// Returns the value, and the text after each separator in it.
fn rests(text: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(text), |rest| {
        // fio looks for a comma first, even if a colon or dash precedes it.
        let at = [',', ':', '-'].iter().find_map(|mark| rest.find(*mark))?;
        Some(&rest[at + 1..])
    })
}

/// The reading of a text that fio accepts and ignores.
pub(crate) const NOTHING: &str = "nothing";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const U32: u64 = u32::MAX as u64;

    #[track_caller]
    fn number(text: &str, want: Option<u64>) {
        let got = integer(text, 1024, (0, U32), EffectiveEntry::First).and_then(Reading::value);
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn digits_count_as_far_as_they_go_and_then_one_letter() {
        for (text, want) in [
            ("4q", 4),
            ("4e", 4),
            ("4kk", 4096),
            ("4k8", 4096),
            ("4kibibyte", 4000),
            ("4mx", 4 << 20),
            ("1.5g", 1),
            ("0x1k", 1),
            ("0xg", 0),
            ("100*1", 100),
            ("30+30", 30),
            ("4/2", 4),
            ("4 k", 4),
            ("4k 8k", 4096),
            ("1e3", 1),
            ("10k0x1", 16 << 10),
            ("50.5%", 50),
            ("200k,500k", 200 << 10),
        ] {
            number(text, Some(want));
        }
        for text in [
            "k",
            "",
            "4z",
            "é",
            "99999999999999999999",
            "(4*2)",
            "4294967296",
        ] {
            number(text, None);
        }
    }

    #[test]
    fn a_sign_begins_a_part_of_its_own() {
        let depth = |text| integer(text, 1024, (1, U32), EffectiveEntry::First);
        assert_eq!(depth("-4"), Some(Reading::Nothing));
        assert_eq!(depth("0,0"), None);
        assert_eq!(depth("4,0"), Some(Reading::Value(4)));
        let mix =
            |text| integer(text, 1024, (0, 100), EffectiveEntry::Last).and_then(Reading::value);
        assert_eq!(mix("-4"), Some(4));
        assert_eq!(mix("4,8"), Some(8));
        assert_eq!(mix("70%"), Some(100));
        assert_eq!(mix("101"), None);
        assert_eq!(signed("-4", 1024, (-20, 19)), Some(Reading::Value(-4)));
    }

    #[test]
    fn sizes_are_bytes_percent_or_zones() {
        let read = |text| size(text, 1024, 0).and_then(Reading::value);
        assert_eq!(read("100%%"), Some(Size::Percent(100)));
        assert_eq!(read("101%"), Some(Size::Bytes(!101)));
        assert_eq!(read("50.5%"), Some(Size::Bytes(50)));
        assert_eq!(read("4zz"), Some(Size::Zones(4)));
        assert_eq!(read("4kzz"), None);
        assert_eq!(read("-4"), Some(Size::Bytes(4)));
        assert_eq!(read("8-4"), Some(Size::Bytes(4)));
    }

    #[test]
    fn unknown_units_of_time_are_microseconds_and_no_unit_is_the_options_own() {
        let read = |text, bare| time(text, bare).and_then(Reading::value);
        let micros = |text| read(text, Bare::Seconds).map(|time| time.get() / 1000);
        for (text, want) in [
            ("1min", 1),
            ("30sec", 30),
            ("1h30m", 1),
            ("10msecs", 10_000),
            ("10msx", 10_000),
            ("1.5s", 1_000_000),
            ("0.5", 0),
            ("100*1", 100_000_000),
            ("30+30", 30_000_000),
            ("5 s", 5_000_000),
            ("2s-3s", 2),
            ("0x10s", 16),
            ("8-4", 8_000_000),
            ("1-2ms", 1000),
            ("1-2-3m", 60_000_000),
            ("1-x", 1),
            ("1m-2", 1),
            ("1:2ms", 1_000_000),
            ("1 2ms", 1_000_000),
        ] {
            assert_eq!(micros(text), Some(want), "{text}");
        }
        let got = read("30+30", Bare::Microseconds);
        assert_eq!(got, Some(Nanos::from_micros(30)));
        assert_eq!(read("s", Bare::Seconds), None);
    }

    #[test]
    fn floats_are_those_of_the_c_library() {
        for (text, want) in [
            ("50", Some(50.0)),
            (" .5x", Some(0.5)),
            ("5.6.7", Some(5.6)),
            ("1e1", Some(10.0)),
            ("10e-1:3", Some(1.0)),
            ("1e", Some(1.0)),
            ("1e+", Some(1.0)),
            ("0x10", Some(16.0)),
            ("0xg", Some(0.0)),
            ("+5", Some(5.0)),
            ("-5", Some(-5.0)),
            ("INF", Some(f64::INFINITY)),
            ("1e400", Some(f64::INFINITY)),
            ("x", None),
            (".", None),
            ("", None),
            ("é", None),
        ] {
            assert_eq!(float(text), want, "{text}");
        }
        assert!(float("nan").is_some_and(f64::is_nan));
    }

    #[test]
    fn flags_are_numbers() {
        let flag = |text| boolean(text, i32::MAX).and_then(Reading::value);
        assert_eq!(flag("10"), Some(true));
        assert_eq!(flag("1[nvme]"), Some(true));
        assert_eq!(flag("0.9"), Some(false));
        assert_eq!(flag("true"), None);
        let one = |text| boolean(text, 1).and_then(Reading::value);
        assert_eq!(one("10"), None);
        assert_eq!(one("0/1"), Some(false));
        assert_eq!(one("-1"), Some(true));
        assert_eq!(one("1,0"), Some(true));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,12}") {
            let _ = integer(&text, 1024, (0, U32), EffectiveEntry::First);
            let _ = size(&text, 1000, 0);
            let _ = time(&text, Bare::Seconds);
            let _ = boolean(&text, 1);
        }

        #[test]
        fn documented_numbers_are_read_as_documented(
            value in 0_u64..1 << 14,
            unit in "[kmgtKMG]?b?",
        ) {
            let text = format!("{value}{unit}");
            let documented = crate::number::integer(crate::problem::Piece::new(&text), 1024);
            let documented = documented.map(|number| u64::try_from(number.value).unwrap());
            let got = integer(&text, 1024, (0, u64::MAX), EffectiveEntry::First);
            prop_assert_eq!(got, documented.ok().map(Reading::Value));
        }
    }
}
