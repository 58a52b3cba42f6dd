//! Byte patterns as options write them: `"text"`, `0xdeadbeef`, `-12`, and any of them in a row.

use crate::file::JOB_FILE_BYTES_MAX;
use crate::problem::{Piece, Problem};

/// Returns the bytes of a pattern, at least one. `file` reads a file that the pattern names.
///
/// Each `%o` becomes eight zero bytes whose positions are added to `offsets`; it is refused if
/// `offsets` is `None`.
pub(crate) fn read<'t>(
    text: &'t str,
    file: &mut dyn FnMut(Piece<'t>) -> Result<Vec<u8>, Problem>,
    mut offsets: Option<&mut Vec<usize>>,
) -> Result<Vec<u8>, Problem> {
    let whole = Piece::new(text);
    let mut bytes = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = whole.part(at..text.len());
        at += match rest.text.as_bytes()[0] {
            b' ' | b'\t' => blanks(rest)?,
            b'"' => quoted(rest, &mut bytes)?,
            b'0' if rest.text[1..].starts_with(['x', 'X']) => hexadecimal(rest, &mut bytes)?,
            b'0'..=b'9' | b'-' | b'+' => decimal(rest, &mut bytes)?,
            b'\'' => {
                let Some(length) = rest.text[1..].find('\'') else {
                    return Err(bad(rest, "has no closing quotation mark"));
                };
                bytes.append(&mut file(rest.part(1..length + 1))?);
                length + 2
            }
            b'%' => {
                let place = bytes.len();
                let length = offset(rest, &mut bytes)?;
                let Some(offsets) = &mut offsets else {
                    return Err(bad(rest, "is valid only in `verify_pattern`, as in fio"));
                };
                offsets.push(place);
                length
            }
            _ => return Err(bad(rest, "does not start a text, number or file name")),
        };
        if bytes.len() as u64 > JOB_FILE_BYTES_MAX {
            return Err(bad(whole, "is longer than 64 MiB"));
        }
    }
    if bytes.is_empty() {
        return Err(bad(whole, "is empty"));
    }
    Ok(bytes)
}

/// Skips blanks, which only a decimal number may follow, as in fio.
fn blanks(piece: Piece<'_>) -> Result<usize, Problem> {
    let rest = piece.text.trim_start_matches([' ', '\t']);
    let hexadecimal = rest.starts_with("0x") || rest.starts_with("0X");
    if hexadecimal || !rest.starts_with(|letter: char| "+-0123456789".contains(letter)) {
        return Err(bad(piece, "starts with a blank").fix("write parts without blanks in between"));
    }
    Ok(piece.text.len() - rest.len())
}

/// `%o`: eight bytes for the offset of a block.
fn offset(piece: Piece<'_>, bytes: &mut Vec<u8>) -> Result<usize, Problem> {
    if !piece.text.starts_with("%o") {
        return Err(bad(piece, "is not a format; only `%o` is supported"));
    }
    bytes.extend_from_slice(&[0; 8]);
    Ok(2)
}

/// `"text"`; no escapes, as in fio.
fn quoted(piece: Piece<'_>, bytes: &mut Vec<u8>) -> Result<usize, Problem> {
    let Some(length) = piece.text[1..].find('"') else {
        return Err(bad(piece, "has no closing quotation mark"));
    };
    bytes.extend_from_slice(&piece.text.as_bytes()[1..=length]);
    Ok(length + 2)
}

/// `0xdeadbeef`: the bytes in written order; with an odd number of digits the first is a byte of
/// its own.
fn hexadecimal(piece: Piece<'_>, bytes: &mut Vec<u8>) -> Result<usize, Problem> {
    let digits = piece.text[2..]
        .bytes()
        .take_while(u8::is_ascii_hexdigit)
        .map(|digit| match digit {
            b'0'..=b'9' => digit - b'0',
            _ => (digit | 0x20) - b'a' + 10,
        })
        .collect::<Vec<_>>();
    let length = before_next(piece, 2, digits.len());
    let digits = &digits[..length];
    if digits.is_empty() {
        return Err(bad(piece, "has no hexadecimal digits"));
    }
    let (odd, pairs) = digits.split_at(digits.len() % 2);
    bytes.extend_from_slice(odd);
    bytes.extend(pairs.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]));
    Ok(length + 2)
}

/// Returns the number of digits that belong to a number. A final zero belongs to the `0x` that
/// starts there, as in fio: `120x34` is `12` and `0x34`.
fn before_next(piece: Piece<'_>, from: usize, digits: usize) -> usize {
    let end = from + digits;
    let another = piece.text[end..].starts_with(['x', 'X']) && piece.text[..end].ends_with('0');
    digits - usize::from(another && digits > 1)
}

/// Reads a decimal of 32 bits, little endian: without high zero bytes if positive, all four bytes
/// if negative.
fn decimal(piece: Piece<'_>, bytes: &mut Vec<u8>) -> Result<usize, Problem> {
    let sign = usize::from(piece.text.starts_with(['-', '+']));
    let digits = piece.text[sign..].bytes();
    let digits = digits.take_while(u8::is_ascii_digit).count();
    let length = sign + before_next(piece, sign, digits);
    let number = piece.part(0..length);
    match number.text.parse::<i64>() {
        Ok(value) if u32::try_from(value).is_ok() => {
            let little = value.to_le_bytes();
            let used = little
                .iter()
                .rposition(|byte| *byte != 0)
                .map_or(1, |last| last + 1);
            bytes.extend_from_slice(&little[..used]);
        }
        Ok(value) if i32::try_from(value).is_ok() => {
            bytes.extend_from_slice(&value.to_le_bytes()[..4]);
        }
        _ => return Err(bad(number, "is not a 32-bit number")),
    }
    Ok(length)
}

fn bad(piece: Piece<'_>, why: &str) -> Problem {
    Problem::new(
        "bad-pattern",
        piece.range(),
        format!("`{}` {why}", piece.text),
    )
    .fix("write \"text\", 0x followed by hexadecimal digits, or a decimal number")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str) -> Result<Vec<u8>, Problem> {
        read(text, &mut |name| Err(bad(name, "is no file")), None)
    }

    #[test]
    fn an_offset_has_its_place_among_the_bytes() {
        let mut places = Vec::new();
        let mut file = |piece| Err(bad(piece, "is a file"));
        let bytes = read("0xff%o\"ab\"%o", &mut file, Some(&mut places)).unwrap();
        assert_eq!((bytes.len(), &places[..]), (19, &[1, 11][..]));
        assert!(read("%d", &mut file, Some(&mut places)).is_err());
    }

    #[track_caller]
    fn check(text: &str, want: &[u8]) {
        assert_eq!(of(text).as_deref(), Ok(want), "{text}");
    }

    /// As fio 3.33 writes them to a file.
    #[test]
    fn patterns_have_fios_bytes() {
        check("\"abcd\"", b"abcd");
        check("0xdeadface", &[0xde, 0xad, 0xfa, 0xce]);
        check("0xabc", &[0x0a, 0xbc]);
        check("12", &[12]);
        check("300", &[0x2c, 1]);
        check("70000", &[0x70, 0x11, 1]);
        check("-12", &[0xf4, 0xff, 0xff, 0xff]);
        check(
            "0xdeadface\"ab\"-12",
            &[0xde, 0xad, 0xfa, 0xce, b'a', b'b', 0xf4, 0xff, 0xff, 0xff],
        );
        check("0x12 34", &[0x12, 34]);
        check("1 -2\t3", &[1, 0xfe, 0xff, 0xff, 0xff, 3]);
        check("\"a\" 10x3", &[b'a', 1, 3]);
        check("1+2", &[1, 2]);
        check("0", &[0]);
        check("120x34", &[12, 0x34]);
        check("-120x12", &[0xf4, 0xff, 0xff, 0xff, 0x12]);
        check("00x12", &[0, 0x12]);
        check("0x120x34", &[0x12, 0x34]);
        check("\"abcd\"-120xde", b"abcd\xf4\xff\xff\xff\xde");
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in [
            "abcd",
            "0x",
            "\"a",
            "",
            "4294967296",
            "-",
            "'file'",
            "%o",
            "é",
            "+-1",
            "- 1",
            "0x12 0x34",
            "12 0X34",
            "\"a\" \"b\"",
            "1 \"b\"",
            "0x11 'file'",
            "0x11 ",
        ] {
            assert!(of(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,24}") {
            let _ = of(&text);
        }
    }
}
