//! Options on written data and its verification.

use std::borrow::Cow;

use fathom_checksum::{CHECKSUMS, HeaderLayout, META};

use super::row::{Choice, Row, ValueKind};
use crate::bytes_pattern;
use crate::findings::Findings;
use crate::plan::{Options, Verify};
use crate::problem::{Piece, Problem};

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "zero_buffers",
        "0",
        "Write buffers filled with zeros",
        "zero_buffers",
        ValueKind::Flag(|o, v| o.zero_buffers = v),
    ),
    Row::new(
        "refill_buffers",
        "0",
        "Fill the buffer with new random data before every write",
        "refill_buffers",
        ValueKind::Flag(|o, v| {
            o.refill_buffers = v;
            o.refill_given = true;
        }),
    ),
    Row::new(
        "scramble_buffers",
        "1",
        "Modify parts of the buffer before every write, against deduplication",
        "scramble_buffers=0",
        ValueKind::Bool(|o, v| o.scramble_buffers = Some(v)),
    ),
    Row::new(
        "buffer_pattern",
        "",
        "Byte pattern that fills write buffers",
        "buffer_pattern=0xdeadbeef",
        ValueKind::Special {
            form: PATTERN,
            read: buffer_pattern,
        },
    ),
    Row::new(
        "verify",
        "0",
        "Verification method",
        "verify=crc32c",
        ValueKind::Verify,
    )
    .different(
        "a job that writes does not check blocks that a job without `verify` wrote last; fio \
         reports them as damaged",
    ),
    Row::new(
        "do_verify",
        "1",
        "Read back and verify after writing",
        "do_verify=0",
        ValueKind::Bool(|o, v| o.do_verify = v),
    ),
    Row::new(
        "verify_interval",
        "block size",
        "Bytes from one verification header to the next; if no divisor of the block size, that",
        "verify_interval=512",
        ValueKind::Int {
            // As in fio 3.33; 3.42 has 96.
            min: 80,
            max: U32_MAX,
            set: |o, v| o.verification.interval = u32::try_from(v).ok(),
        },
    ),
    Row::new(
        "verify_offset",
        "0",
        "Place of the verification header in each interval",
        "verify_offset=128",
        ValueKind::Int {
            // As in fio 3.33; 3.42 has 48.
            min: 40,
            max: U32_MAX,
            set: |o, v| o.verification.header_offset = u32::try_from(v).unwrap_or(u32::MAX),
        },
    )
    .stricter("places without room for header and checksum, before them or after"),
    Row::new(
        "verify_pattern_interval",
        "0",
        "Bytes of a block after which `verify_pattern` starts over; 0: only at the next block",
        "verify_pattern_interval=512",
        ValueKind::Int {
            min: 0,
            max: U32_MAX,
            set: |o, v| o.verification.pattern_interval = u32::try_from(v).unwrap_or(u32::MAX),
        },
    ),
    Row::new(
        "verify_header",
        "fio-3.42",
        "Layout of written verification headers, by the version of fio that has it",
        "verify_header=fio-3.33",
        ValueKind::Choice(&[
            Choice {
                word: "fio-3.42",
                help: "48 bytes",
                set: |o| o.verification.layout = HeaderLayout::Fio3_42,
            },
            Choice {
                word: "fio-3.33",
                help: "40 bytes; fewer bits of the write's number",
                set: |o| o.verification.layout = HeaderLayout::Fio3_33,
            },
        ]),
    )
    .different("Fathom extension; either layout is read"),
    Row::new(
        "verify_pattern",
        "",
        "Byte pattern to write, which `verify=pattern` and `pattern_hdr` expect",
        "verify_pattern=0xdeadbeef",
        ValueKind::Special {
            form: PATTERN,
            read: verify_pattern,
        },
    ),
];

/// Verification method, as the option names it.
pub(super) struct Method {
    pub(super) word: &'static str,
    pub(super) help: Cow<'static, str>,
    pub(super) method: Verify,
}

/// Returns all verification methods: none, the checksums, and the pattern.
pub(super) fn methods() -> impl Iterator<Item = Method> {
    let fixed = |word, help, method| Method {
        word,
        help: Cow::Borrowed(help),
        method,
    };
    let checksums = CHECKSUMS.iter().flat_map(|row| {
        let method = Verify::Checksum(row);
        let own = format!("{} in a header of every block", row.title);
        let alias = move |word: &&'static str| Method {
            word,
            help: format!("same as `{}`", row.name).into(),
            method,
        };
        let own = Method {
            word: row.name,
            help: own.into(),
            method,
        };
        std::iter::once(own).chain(row.aliases.iter().map(alias))
    });
    let meta = "a header in every block, without a checksum of the payload";
    let header = "a header in every block, and comparison with `verify_pattern`";
    let pattern = "comparison with `verify_pattern`, without a header";
    let null = "none, but written data is read back";
    std::iter::once(fixed("0", "none", Verify::None))
        .chain(checksums)
        .chain([
            fixed("meta", meta, Verify::Checksum(&META)),
            fixed("pattern_hdr", header, Verify::PatternHeader),
            fixed("pattern", pattern, Verify::Pattern),
            fixed("null", null, Verify::Null),
        ])
}

/// Returns the bytes of a pattern, and its text if it names a file, which is read when the job is
/// complete.
fn pattern(
    text: &str,
    offsets: Option<&mut Vec<usize>>,
) -> Result<(Vec<u8>, Option<String>), Problem> {
    let mut names_a_file = false;
    let mut file = |_: Piece<'_>| {
        names_a_file = true;
        Ok(vec![0])
    };
    let bytes = bytes_pattern::read(text, &mut file, offsets)?;
    Ok((bytes, names_a_file.then(|| text.to_owned())))
}

fn buffer_pattern(options: &mut Options, text: &str, _: &mut Findings) -> Result<(), Problem> {
    let (bytes, names_a_file) = pattern(text, None)?;
    options.buffer_pattern = Some(bytes);
    options.buffer_pattern_text = names_a_file;
    options.scramble_buffers = Some(false);
    options.zero_buffers = false;
    // As in fio, whatever was given before.
    options.refill_buffers = options.content.compress_percentage.unwrap_or(0) > 0;
    Ok(())
}

fn verify_pattern(options: &mut Options, text: &str, _: &mut Findings) -> Result<(), Problem> {
    let mut offsets = Vec::new();
    let (bytes, names_a_file) = pattern(text, Some(&mut offsets))?;
    options.verify_pattern = Some(bytes);
    options.verify_pattern_offsets = offsets;
    options.verify_pattern_text = names_a_file;
    Ok(())
}

/// Largest value of fio's unsigned integers.
const U32_MAX: u64 = u32::MAX as u64;

const PATTERN: &str = "\"text\", 0xHEX, a decimal number, 'file', %o (block offset), or a \
                       sequence of these";
