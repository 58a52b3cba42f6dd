//! Lines of fio's text logs.
//!
//! ```text
//! fio version 2 iolog            fio version 3 iolog
//! FILE add|open|close            MICROSECONDS FILE add|open|close
//! FILE ACTION OFFSET LENGTH      MICROSECONDS FILE ACTION OFFSET LENGTH
//! ```
//!
//! Version 2 has no times, but the action `wait`. fio's manual calls its first number a pause in
//! microseconds; fio 3.33 waits until that many milliseconds after the start, and so do we.

use fathom_core::{Direction, Nanos, SyncKind};

use crate::error::{IologErrorKind, shown};

/// Version of a text log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextVersion {
    /// Without times.
    Two,
    /// With a time before each action.
    Three,
}

/// Parsed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Time of the action; `None` if the line has none.
    pub(crate) time: Option<Nanos>,
    /// Name of the file.
    pub(crate) name: &'a [u8],
    /// Action.
    pub(crate) verb: Verb,
}

/// Action of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Add,
    Open,
    Close,
    Data {
        direction: Direction,
        offset: u64,
        length: u32,
    },
    Sync(SyncKind),
    /// Nothing until this time.
    Wait(Nanos),
}

/// Returns the version that a log's first line names; `None` if it is not a header.
pub(crate) fn version(line: &[u8]) -> Option<Result<TextVersion, IologErrorKind>> {
    let rest = line.strip_prefix(HEADER)?;
    Some(match rest.trim_ascii_end() {
        b"2 iolog" => Ok(TextVersion::Two),
        b"3 iolog" => Ok(TextVersion::Three),
        other => Err(IologErrorKind::Version(shown(other))),
    })
}

/// Parses a line; `None` if it is blank.
pub(crate) fn parse(line: &[u8], version: TextVersion) -> Result<Option<Line<'_>>, IologErrorKind> {
    if line.starts_with(HEADER) {
        return Err(IologErrorKind::SecondHeader);
    }
    let mut fields: [&[u8]; FIELDS_MAX] = [b""; FIELDS_MAX];
    let mut count = 0;
    let split = line.split(u8::is_ascii_whitespace);
    for field in split.filter(|field| !field.is_empty()) {
        if let Some(place) = fields.get_mut(count) {
            *place = field;
        }
        count += 1;
    }
    if count == 0 {
        return Ok(None);
    }
    let (time, fields, left) = match version {
        TextVersion::Two => (None, &fields[..], count),
        TextVersion::Three if count < 2 => return Err(IologErrorKind::Fields(count)),
        TextVersion::Three => (
            Some(scaled("time", fields[0], 1_000)?),
            &fields[1..],
            count - 1,
        ),
    };
    let verb = match left {
        2 => management(fields[1])?,
        4 => action(fields[1], fields[2], fields[3], version)?,
        _ => return Err(IologErrorKind::Fields(count)),
    };
    Ok(Some(Line {
        time,
        name: fields[0],
        verb,
    }))
}

/// Parses the action of a line without numbers.
fn management(action: &[u8]) -> Result<Verb, IologErrorKind> {
    match action {
        b"add" => Ok(Verb::Add),
        b"open" => Ok(Verb::Open),
        b"close" => Ok(Verb::Close),
        b"read" | b"write" | b"trim" | b"sync" | b"datasync" | b"wait" => {
            Err(IologErrorKind::Fields(2))
        }
        other => Err(IologErrorKind::UnknownAction(shown(other))),
    }
}

/// Parses the action of a line with an offset and a length.
fn action(
    action: &[u8],
    offset: &[u8],
    length: &[u8],
    version: TextVersion,
) -> Result<Verb, IologErrorKind> {
    let direction = match action {
        b"read" => Direction::Read,
        b"write" => Direction::Write,
        b"trim" => Direction::Trim,
        b"sync" => return Ok(Verb::Sync(SyncKind::Full)),
        b"datasync" => return Ok(Verb::Sync(SyncKind::Data)),
        b"wait" if version == TextVersion::Three => return Err(IologErrorKind::Wait),
        b"wait" => return Ok(Verb::Wait(scaled("wait", offset, 1_000_000)?)),
        other => return Err(IologErrorKind::UnknownAction(shown(other))),
    };
    let (offset, length) = (number("offset", offset)?, number("length", length)?);
    Ok(Verb::Data {
        direction,
        offset,
        length: checked_length(offset, length)?,
    })
}

/// Returns the length of an op at `offset`, if both are within the limits of an op.
pub(crate) fn checked_length(offset: u64, length: u64) -> Result<u32, IologErrorKind> {
    let short = u32::try_from(length);
    let short = short.map_err(|_| IologErrorKind::TooLarge("length", u32::MAX.into()))?;
    let end = offset.checked_add(length);
    match end {
        Some(end) if end <= OFFSET_MAX && short > 0 => Ok(short),
        _ if short == 0 => Err(IologErrorKind::Empty),
        _ => Err(IologErrorKind::TooLarge("end of the op", OFFSET_MAX)),
    }
}

/// Parses a time in units of `unit` nanoseconds.
fn scaled(field: &'static str, text: &[u8], unit: u64) -> Result<Nanos, IologErrorKind> {
    match number(field, text)?.checked_mul(unit) {
        Some(ns) if ns <= TIME_MAX => Ok(Nanos::new(ns)),
        _ => Err(IologErrorKind::TooLarge(field, TIME_MAX / unit)),
    }
}

fn number(field: &'static str, text: &[u8]) -> Result<u64, IologErrorKind> {
    if text.first() == Some(&b'-') {
        return Err(IologErrorKind::Negative(field, shown(text)));
    }
    let mut value = 0_u64;
    for &byte in text {
        if !byte.is_ascii_digit() {
            return Err(IologErrorKind::NotANumber(field, shown(text)));
        }
        let next = value.checked_mul(10);
        let next = next.and_then(|tens| tens.checked_add(u64::from(byte - b'0')));
        value = next.ok_or(IologErrorKind::TooLarge(field, u64::MAX))?;
    }
    Ok(value)
}

/// Start of a log's first line.
pub(crate) const HEADER: &[u8] = b"fio version ";

/// Fields of the longest line.
const FIELDS_MAX: usize = 5;

/// Last byte of any file, as the kernel counts offsets.
pub(crate) const OFFSET_MAX: u64 = i64::MAX.unsigned_abs();

/// Latest time: 73 years, so that no sum with a clock's time overflows.
pub(crate) const TIME_MAX: u64 = u64::MAX / 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, want: Result<Verb, IologErrorKind>) {
        let version = match line.as_bytes()[0].is_ascii_digit() {
            true => TextVersion::Three,
            false => TextVersion::Two,
        };
        let parsed = parse(line.as_bytes(), version);
        assert_eq!(
            parsed.map(|line| line.expect("not blank").verb),
            want,
            "{line}"
        );
    }

    #[test]
    fn lines_are_parsed_as_fio_does() {
        let data = |direction, offset, length| {
            Ok(Verb::Data {
                direction,
                offset,
                length,
            })
        };
        check("0 a add", Ok(Verb::Add));
        check("a open", Ok(Verb::Open));
        check("17\ta  close\r", Ok(Verb::Close));
        check("0 a read 0 4096", data(Direction::Read, 0, 4096));
        check("a write 512 1", data(Direction::Write, 512, 1));
        check("0 a trim 1 4294967295", data(Direction::Trim, 1, u32::MAX));
        check("0 a sync 8192 0", Ok(Verb::Sync(SyncKind::Full)));
        check("a datasync 0 0", Ok(Verb::Sync(SyncKind::Data)));
        check("a wait 1000 0", Ok(Verb::Wait(Nanos::from_millis(1000))));
    }

    #[test]
    fn bad_lines_are_errors() {
        use IologErrorKind as Kind;
        let text = String::from;
        check("0 a", Err(Kind::Fields(2)));
        check("0 a read 0", Err(Kind::Fields(4)));
        check("0 a read", Err(Kind::Fields(2)));
        check("0 a read 0 1 2", Err(Kind::Fields(6)));
        check("0 a frob 0 1", Err(Kind::UnknownAction(text("frob"))));
        check("0 a wait 0 1", Err(Kind::Wait));
        check("0 a read 0 -1", Err(Kind::Negative("length", text("-1"))));
        check("a read -8 1", Err(Kind::Negative("offset", text("-8"))));
        check("0 a read 0 0", Err(Kind::Empty));
        check("0 a read x 1", Err(Kind::NotANumber("offset", text("x"))));
        let limit = u64::from(u32::MAX);
        let huge = Kind::TooLarge("length", limit);
        check("0 a read 0 9223372036854775808", Err(huge.clone()));
        check("0 a read 0 4294967296", Err(huge));
        let end = Kind::TooLarge("end of the op", OFFSET_MAX);
        check("0 a read 9223372036854775808 1", Err(end.clone()));
        check("0 a read 18446744073709551615 1", Err(end));
        let beyond = Kind::TooLarge("offset", u64::MAX);
        check("0 a read 18446744073709551616 1", Err(beyond));
        let late = Kind::TooLarge("time", TIME_MAX / 1_000);
        check("18446744073709551615 a open", Err(late));
        check("fio version 3 iolog", Err(Kind::SecondHeader));
        assert_eq!(parse(b" \r", TextVersion::Two), Ok(None));
    }

    #[test]
    fn the_header_names_the_version() {
        assert_eq!(
            version(b"fio version 2 iolog\r"),
            Some(Ok(TextVersion::Two))
        );
        assert_eq!(
            version(b"fio version 3 iolog"),
            Some(Ok(TextVersion::Three))
        );
        assert!(matches!(version(b"fio version 1 iolog"), Some(Err(_))));
        assert_eq!(version(b"0, 0, 4096"), None);
    }
}
