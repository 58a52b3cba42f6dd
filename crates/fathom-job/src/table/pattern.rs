//! What a job does: directions, sizes, offsets.

use super::block_sizes::{bsrange, bssplit, filesize, set_sizes};
use super::general::{U32, choice};
use super::read::{byte, needless, unknown_word};
use super::row::{Kind, Row};
use crate::findings::Findings;
use crate::number;
use crate::plan::{BlockSize, Options, ReadWrite, SequencerSuffix};
use crate::problem::{Piece, Problem};
use crate::reading;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "rw",
        "read",
        "What is done and in which order; `:N` adds a gap (sequential) or a run of N ops (random)",
        "rw=randread",
        Kind::Special {
            form: "read|write|trim|rw|readwrite|trimwrite, or rand and one of these; [:N]",
            read: read_write,
        },
    )
    .aliases(&["readwrite"])
    .different(
        "trims of a regular file punch holes, where fio 3.33 fails; random ops go on after the \
         short block at the end of a file of uneven size, where fio ends a job with `:N`",
    ),
    Row::new(
        "rw_sequencer",
        "sequential",
        "With `rw=rand…:N`, where the ops of a run go",
        "rw_sequencer=identical",
        Kind::Choice(&[
            choice("sequential", "one behind the other", |o| {
                o.rw_identical = false
            }),
            choice("identical", "all to the same offset", |o| {
                o.rw_identical = true
            }),
        ]),
    ),
    Row::new(
        "rwmixread",
        "50",
        "Percent of reads in a mix",
        "rwmixread=70",
        Kind::Int {
            min: 0,
            max: 100,
            set: |o, v| o.rwmixread = byte(v),
        },
    )
    .last_counts()
    .stricter(
        "with `rwmixwrite` in one section, both must add up to 100; in fio the last one counts",
    ),
    Row::new(
        "rwmixwrite",
        "50",
        "Percent of writes in a mix",
        "rwmixwrite=30",
        Kind::Int {
            min: 0,
            max: 100,
            set: |o, v| o.rwmixread = 100 - byte(v),
        },
    )
    .last_counts()
    .stricter(
        "with `rwmixread` in one section, both must add up to 100; in fio the last one counts",
    ),
    Row::new(
        "bs",
        "4k",
        "Size of an op",
        "bs=4k,64k",
        Kind::PerDirection {
            min: 1,
            max: u64::MAX,
            set: |o, values| set_sizes(o, values.map(|v| v.map(BlockSize::Fixed))),
        },
    )
    .aliases(&["blocksize"])
    .stricter(NUMBERS),
    Row::new(
        "bsrange",
        "",
        "Smallest and largest size of an op",
        "bsrange=4k-64k,8k-16k",
        Kind::Special {
            form: "one to three ranges for read,write,trim (opt=1k-4k)",
            read: bsrange,
        },
    )
    .aliases(&["blocksize_range"])
    .stricter(NUMBERS),
    Row::new(
        "bssplit",
        "",
        "Sizes of ops and the percentage of each",
        "bssplit=4k/10:64k/50:32k/40",
        Kind::Special {
            form: "size/percent:size/percent…, with commas between read,write,trim",
            read: bssplit,
        },
    )
    .stricter("percentages of more than 100 in all; fio cuts the last ones off"),
    Row::new(
        "bs_unaligned",
        "0",
        "Sizes of a `bsrange` are any number of bytes, not multiples of the smallest",
        "bs_unaligned",
        Kind::Flag(|o, v| o.bs_unaligned = v),
    )
    .aliases(&["blocksize_unaligned"]),
    Row::new(
        "bs_is_seq_rand",
        "0",
        "The first size is that of sequential ops, the second that of random ones",
        "bs_is_seq_rand=1",
        Kind::Bool(|o, v| o.bs_is_seq_rand = v),
    ),
    Row::new(
        "ba",
        "the smallest op size",
        "What random offsets are a multiple of",
        "ba=4k",
        Kind::PerDirection {
            min: 1,
            max: u64::MAX,
            set: |o, values| {
                for (direction, value) in values.iter() {
                    if value.is_some() {
                        o.blockalign[direction] = *value;
                    }
                }
            },
        },
    )
    .aliases(&["blockalign"])
    .stricter(NUMBERS),
    Row::new(
        "size",
        "that of the file or device",
        "Bytes of the job over all its files",
        "size=1g",
        Kind::Size {
            min: 0,
            set: |o, v| o.size = v.unless_zero(),
        },
    )
    .stricter(SIZES),
    Row::new(
        "io_size",
        "as `size`",
        "Bytes to read or write in all; more than `size` begins again",
        "io_size=4g",
        Kind::Size {
            min: 0,
            set: |o, v| o.io_size = v.unless_zero(),
        },
    )
    .aliases(&["io_limit"])
    .stricter(SIZES),
    Row::new(
        "filesize",
        "`size` divided by `nrfiles`",
        "Size of each file; from a range it is drawn for each",
        "filesize=1m-4m",
        Kind::Special {
            form: "size or low-high range of sizes (opt=1m-4m)",
            read: filesize,
        },
    )
    .numeric()
    .stricter(NUMBERS),
    Row::new(
        "offset",
        "0",
        "Where in the file to begin",
        "offset=1g",
        Kind::Size {
            min: 0,
            set: |o, v| o.offset = v,
        },
    )
    .aliases(&["fileoffset"])
    .stricter(SIZES)
    .different(
        "an offset at the end of a file is refused as one behind it is, where fio does nothing and \
         reports success; a percentage of a file that is not there yet is one of the size that it \
         will have, in fio nothing",
    ),
    Row::new(
        "offset_increment",
        "0",
        "Each clone begins so much further on",
        "offset_increment=1g",
        Kind::Size {
            min: 0,
            set: |o, v| o.offset_increment = v,
        },
    )
    .stricter(SIZES),
    Row::new(
        "num_range",
        "1",
        "Ranges that a trim has, where the engine can have more than one: none can",
        "num_range=1",
        Kind::Special {
            form: "integer value (opt=1); min=0, max=256",
            read: num_range,
        },
    ),
    Row::new(
        "number_ios",
        "",
        "End the job after so many ops",
        "number_ios=1000",
        Kind::Int {
            min: 0,
            max: u64::MAX,
            set: |o, v| o.number_ios = (v > 0).then_some(v),
        },
    ),
];

/// As in fio, more than one range is refused where the engine takes only one.
fn num_range(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let ranges = number::settled(Piece::whole(text), options.kb_base, 0, 256, findings)?;
    if ranges > 1 {
        let why = "trims of several ranges need the engine `io_uring_cmd`: not in fathom";
        return Err(Problem::new("not-in-fathom", 0..text.len(), why).fix("write `num_range=1`"));
    }
    Ok(())
}

fn read_write(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let mut whole = Piece::whole(text);
    let first = reading::word(text);
    if text[first.len()..].starts_with(',') {
        findings.misread(needless(whole, first), first)?;
        whole = whole.part(0..first.len());
    }
    let text = whole.text;
    let (word, suffix) = match text.split_once(':') {
        Some((word, _)) => {
            let suffix = whole.part(word.len() + 1..text.len());
            (whole.part(0..word.len()), Some(suffix))
        }
        None => (whole, None),
    };
    let (rw, random) = match word.text.trim() {
        "read" => (ReadWrite::Read, false),
        "write" => (ReadWrite::Write, false),
        "trim" => (ReadWrite::Trim, false),
        "rw" | "readwrite" => (ReadWrite::Mixed, false),
        "trimwrite" => (ReadWrite::TrimWrite, false),
        "randread" => (ReadWrite::Read, true),
        "randwrite" => (ReadWrite::Write, true),
        "randtrim" => (ReadWrite::Trim, true),
        "randrw" => (ReadWrite::Mixed, true),
        "randtrimwrite" => (ReadWrite::TrimWrite, true),
        _ => return Err(unknown_word("rw", word, &RW_WORDS, &[])),
    };
    let suffix = suffix
        .map(|piece| sequencer(piece, random, options.kb_base, findings))
        .transpose()?;
    (options.rw, options.random, options.rw_suffix) = (rw, random, suffix);
    Ok(())
}

fn sequencer(
    piece: Piece<'_>,
    random: bool,
    kb_base: u64,
    findings: &mut Findings,
) -> Result<SequencerSuffix, Problem> {
    let documented = |findings: &mut Findings| {
        let number = number::integer(piece, kb_base)?;
        findings.reversed(piece, number.reversed);
        let problem = |why: &str| Err(Problem::new("bad-sequencer", piece.range(), why));
        match i64::try_from(number.value) {
            Err(_) => Err(number::too_large(piece)),
            Ok(number) if number < 0 && random => problem(
                "behind a random pattern stands how many ops share an offset: a positive number",
            ),
            Ok(number) if number > i64::from(u32::MAX) && random => {
                problem("this many ops never come to an end")
            }
            Ok(number) => Ok(number),
        }
    };
    let fio = || match reading::count(piece.text, kb_base) {
        // Kept in 32 bits.
        Some(number) if random => Some((number & U32).cast_signed()),
        Some(number) => Some(number.cast_signed()),
        // With 0 a random pattern draws no offset ever, in fio too.
        None if random => Some(0),
        None => None,
    };
    let number = findings
        .settle_one(documented, fio)
        .map_err(Problem::when_run)?;
    Ok(SequencerSuffix { number })
}

const RW_WORDS: [&str; 11] = [
    "read",
    "write",
    "trim",
    "rw",
    "readwrite",
    "randread",
    "randwrite",
    "randtrim",
    "randrw",
    "trimwrite",
    "randtrimwrite",
];

const NUMBERS: &str = "numbers that fio cuts short (`4q`, `1.5g`, `0x1k`) or that are negative";
const SIZES: &str = "as `bs`; of more than 100% fio makes a giant number of bytes";
