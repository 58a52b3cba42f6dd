//! Times: `30`, `500ms`, `(2*30s)`. The unit of a bare number depends on the option.

use fathom_core::Nanos;

use crate::arithmetic;
use crate::findings::Findings;
use crate::number::{Number, digits_and_suffix, operator, signed, too_large};
use crate::problem::{Piece, Problem};
use crate::reading;

/// Unit of a bare number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bare {
    /// Seconds: `runtime`, `ramp_time`, `startdelay`…
    Seconds,
    /// Microseconds: `thinktime`…
    Microseconds,
}

/// Reads a time.
pub(crate) fn time(piece: Piece<'_>, bare: Bare) -> Result<Nanos, Problem> {
    let piece = piece.trim();
    let micros = if piece.text.starts_with('(') {
        expression(piece, bare)?
    } else {
        let number = literal(piece)?;
        match (number.unit, bare) {
            (false, Bare::Seconds) => number.value.saturating_mul(SECOND),
            _ => number.value,
        }
    };
    if micros < 0 {
        return Err(Problem::new(
            "negative",
            piece.range(),
            format!("`{}` is negative", piece.text),
        )
        .fix("write a time of 0 or more"));
    }
    micros
        .checked_mul(1000)
        .and_then(|nanos| u64::try_from(nanos).ok())
        .map(Nanos::new)
        .ok_or_else(|| too_large(piece).fix("write a time of less than 584 years"))
}

/// Reads a time that is part of a value, or fio's reading of a text that is not a time.
pub(crate) fn read_part(
    piece: Piece<'_>,
    bare: Bare,
    findings: &mut Findings,
) -> Result<Nanos, Problem> {
    let fio = || reading::moment(piece.text.trim(), bare);
    findings.documented_or_fio_value(|_| time(piece, bare), fio)
}

/// Reads an expression, in which bare numbers are microseconds for every option. That is an error
/// for options in seconds.
fn expression(piece: Piece<'_>, bare: Bare) -> Result<i128, Problem> {
    let (micros, unit) = arithmetic::evaluate(piece, &literal)?;
    if unit || micros == 0 || bare == Bare::Microseconds {
        return Ok(micros);
    }
    Err(Problem::new(
        "no-unit",
        piece.range(),
        "a time in parentheses needs a unit",
    )
    .fix("add a unit to at least one number, as in `(2*30s)`"))
}

/// Reads one number, in microseconds if it has a unit.
fn literal(piece: Piece<'_>) -> Result<Number, Problem> {
    let (sign, body) = signed(piece)?;
    if body.text.starts_with("0x") || body.text.starts_with("0X") {
        let why = format!("`{}` is a hexadecimal time", piece.text);
        let problem = Problem::new("hexadecimal-time", piece.range(), why);
        return Err(problem.fix("write it in decimal"));
    }
    let ((digits, value), suffix) = digits_and_suffix(body, in_smaller_unit)?;
    let lower = suffix.text.to_ascii_lowercase();
    let multiplier = match lower.as_str() {
        "" => 1,
        "us" | "usec" => 1,
        "ms" | "msec" => 1000,
        "s" => SECOND,
        "m" => 60 * SECOND,
        "h" => 3600 * SECOND,
        "d" => 86_400 * SECOND,
        _ => return Err(unknown_unit(digits, suffix, &lower)),
    };
    Ok(Number {
        value: sign
            * value
                .checked_mul(multiplier)
                .ok_or_else(|| too_large(piece))?,
        unit: !lower.is_empty(),
        reversed: false,
    })
}

fn unknown_unit(digits: Piece<'_>, suffix: Piece<'_>, lower: &str) -> Problem {
    let meant = match lower {
        "sec" | "secs" | "second" | "seconds" => Some("s"),
        "min" | "mins" | "minute" | "minutes" => Some("m"),
        "hr" | "hrs" | "hour" | "hours" => Some("h"),
        "day" | "days" => Some("d"),
        "msecs" | "millisecond" | "milliseconds" => Some("ms"),
        "usecs" | "microsecond" | "microseconds" => Some("us"),
        _ => None,
    };
    if let Some(problem) = operator(suffix) {
        return problem.fix("write the result, or use parentheses as in `(2*30s)`");
    }
    let problem = Problem::new(
        "bad-time-unit",
        suffix.range(),
        format!("`{}` is not a unit of time", suffix.text),
    );
    match meant {
        Some(unit) => problem.fix(format!("write `{}{unit}`", digits.text)),
        None => problem.fix("use us, ms, s, m, h or d"),
    }
}

/// Converts `1.5s` to a smaller unit: `1500ms`.
fn in_smaller_unit(text: &str) -> Option<String> {
    let (digits, rest) = text.split_once('.')?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit());
    let (decimals, unit) = rest.split_at(end.unwrap_or(rest.len()));
    let (smaller, factor): (&str, u128) = match unit {
        "s" | "" => ("ms", 1000),
        "ms" => ("us", 1000),
        "m" => ("s", 60),
        "h" => ("m", 60),
        "d" => ("h", 24),
        _ => return None,
    };
    let scale = 10_u128.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let whole: u128 = digits.parse().ok()?;
    let all = whole
        .checked_mul(scale)?
        .checked_add(decimals.parse().ok()?)?;
    let scaled = all.checked_mul(factor)?;
    (scaled % scale == 0).then(|| format!("{}{smaller}", scaled / scale))
}

/// One second in microseconds.
const SECOND: i128 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, want: Nanos) {
        assert_eq!(time(Piece::new(text), Bare::Seconds), Ok(want), "{text}");
    }

    #[track_caller]
    fn refuse(text: &str, code: &str, fix: &str) {
        let problem = time(Piece::new(text), Bare::Seconds).unwrap_err();
        assert_eq!(
            (problem.code, problem.fix.as_deref()),
            (code, Some(fix)),
            "{text}"
        );
    }

    #[test]
    fn units_are_the_documented_ones() {
        check("30", Nanos::from_secs(30));
        check("30s", Nanos::from_secs(30));
        check("500ms", Nanos::from_millis(500));
        check("500msec", Nanos::from_millis(500));
        check("7us", Nanos::new(7000));
        check("2M", Nanos::from_secs(120));
        check("1h", Nanos::from_secs(3600));
        check("1d", Nanos::from_secs(86_400));
        check("(2*30s)", Nanos::from_secs(60));
        check("(1m-500ms)", Nanos::from_millis(59_500));
        check("0", Nanos::ZERO);
    }

    #[test]
    fn a_bare_number_has_the_options_unit() {
        let got = time(Piece::new("30"), Bare::Microseconds);
        assert_eq!(got, Ok(Nanos::new(30_000)));
        let got = time(Piece::new("(2*30)"), Bare::Microseconds);
        assert_eq!(got, Ok(Nanos::new(60_000)));
    }

    #[test]
    fn what_fio_takes_for_a_microsecond_is_refused() {
        refuse("1min", "bad-time-unit", "write `1m`");
        refuse("30sec", "bad-time-unit", "write `30s`");
        refuse("1x", "bad-time-unit", "use us, ms, s, m, h or d");
        refuse("1h30m", "bad-time-unit", "use us, ms, s, m, h or d");
        refuse("1.5s", "fraction", "write `1500ms`");
        refuse("0.5", "fraction", "write `500ms`");
        refuse("1.5m", "fraction", "write `90s`");
        refuse(
            "(2*30)",
            "no-unit",
            "add a unit to at least one number, as in `(2*30s)`",
        );
        refuse("-1", "negative", "write a time of 0 or more");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,12}") {
            let _ = time(Piece::new(&text), Bare::Seconds);
        }

        #[test]
        fn what_is_printed_is_read_back(millis in 0_u64..1 << 40) {
            check(&format!("{millis}ms"), Nanos::from_millis(millis));
        }
    }
}
