//! Options on the I/O pattern: directions, sizes, offsets.

use super::block_sizes::{bsrange, bssplit, filesize, set_sizes};
use super::general::{U32, choice};
use super::read::{byte, narrow, needless, unknown_word};
use super::row::{EmptyValue, Row, ValueKind};
use crate::findings::Findings;
use crate::number;
use crate::plan::{BlockSize, Options, SequencerSuffix};
use crate::problem::{Piece, Problem};
use crate::reading;
use crate::workload::ReadWrite;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "rw",
        "read",
        "I/O pattern; `:N`: bytes skipped (sequential) or ops per offset (random)",
        "rw=randread",
        ValueKind::Special {
            form: "read|write|trim|rw|readwrite|trimwrite, or rand and one of these; [:N]",
            read: read_write,
        },
    )
    .aliases(&["readwrite"])
    .different(
        "trims of a regular file punch holes, where fio 3.33 fails; with `:N`, random I/O \
         continues after the short block at the end of a file whose size is no multiple of the \
         block size, where fio ends the job; the write of a `trimwrite` pair waits for its trim, \
         where fio issues both at once. Up to `iodepth` trims go ahead of the first write (one \
         with a rate, `thinktime`, `zonemode=zbd`, or an engine that trims synchronously), and a \
         job that ends by time leaves as many blocks trimmed. With a negative N and an `offset`, \
         the first op is at the offset; fio's is at `size` plus N",
    ),
    Row::new(
        "rw_sequencer",
        "sequential",
        "Offsets of the N ops of a `rw=rand…:N` run",
        "rw_sequencer=identical",
        ValueKind::Choice(&[
            choice("sequential", "consecutive offsets", |o| {
                o.rw_identical = false
            }),
            choice("identical", "same offset", |o| o.rw_identical = true),
        ]),
    ),
    Row::new(
        "rwmixread",
        "50",
        "Percentage of reads in a mixed workload",
        "rwmixread=70",
        ValueKind::Int {
            min: 0,
            max: 100,
            set: |o, v| o.rwmixread = byte(v),
        },
    )
    .last_counts()
    .stricter(
        "flags a sum with `rwmixwrite` other than 100 in one section; fio uses the last of the two",
    ),
    Row::new(
        "rwmixwrite",
        "50",
        "Percentage of writes in a mixed workload",
        "rwmixwrite=30",
        ValueKind::Int {
            min: 0,
            max: 100,
            set: |o, v| o.rwmixread = 100 - byte(v),
        },
    )
    .last_counts()
    .stricter(
        "flags a sum with `rwmixread` other than 100 in one section; fio uses the last of the two",
    ),
    Row::new(
        "bs",
        "4k",
        "Block size: bytes per op",
        "bs=4k,64k",
        ValueKind::PerDirection {
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
        "Range of block sizes",
        "bsrange=4k-64k,8k-16k",
        ValueKind::Special {
            form: "one to three ranges for read,write,trim (opt=1k-4k)",
            read: bsrange,
        },
    )
    .aliases(&["blocksize_range"])
    .stricter(NUMBERS),
    Row::new(
        "bssplit",
        "",
        "Block sizes and the percentage of ops with each",
        "bssplit=4k/10:64k/50:32k/40",
        ValueKind::Special {
            form: "size/percent:size/percent…; comma-separated for read,write,trim",
            read: bssplit,
        },
    )
    .empty(EmptyValue::Ignored)
    .stricter(
        "flags percentages above 100, each or in total (fio serves the smallest first), negative \
         ones (100 in fio), and empty entries (fio stops there). A size of 0 that \
         has a share beside others is refused; fio ends the job, without an error, at the first \
         op of that size",
    ),
    Row::new(
        "bs_unaligned",
        "0",
        "Draw any size within `bsrange`, not only multiples of the smallest",
        "bs_unaligned",
        ValueKind::Flag(|o, v| o.bs_unaligned = v),
    )
    .aliases(&["blocksize_unaligned"]),
    Row::new(
        "bs_is_seq_rand",
        "0",
        "Use the first block size for sequential ops, the second for random ones",
        "bs_is_seq_rand=1",
        ValueKind::Bool(|o, v| o.bs_is_seq_rand = v),
    ),
    Row::new(
        "ba",
        "smallest block size",
        "Alignment of random offsets, bytes",
        "ba=4k",
        ValueKind::PerDirection {
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
    .stricter(NUMBERS)
    .different("an alignment above the range leaves offset 0; fio then issues no random op"),
    Row::new(
        "size",
        "size of the file or device",
        "Total size of the job's region over all its files",
        "size=1g",
        ValueKind::Size {
            min: 0,
            set: |o, v| o.size = v.unless_zero(),
        },
    )
    .stricter(SIZES),
    Row::new(
        "io_size",
        "same as `size`",
        "Total bytes to transfer; more than `size`: start over",
        "io_size=4g",
        ValueKind::Size {
            min: 0,
            set: |o, v| o.io_size = v.unless_zero(),
        },
    )
    .aliases(&["io_limit"])
    .stricter(SIZES),
    Row::new(
        "filesize",
        "`size` divided by `nrfiles`",
        "Size of each file; range: drawn for each file",
        "filesize=1m-4m",
        ValueKind::Special {
            form: "size or low-high range of sizes (opt=1m-4m)",
            read: filesize,
        },
    )
    .numeric()
    .stricter(NUMBERS),
    Row::new(
        "offset",
        "0",
        "Start of the job's region in each file",
        "offset=1g",
        ValueKind::Size {
            min: 0,
            set: |o, v| o.offset = v,
        },
    )
    .aliases(&["fileoffset"])
    .stricter(SIZES)
    .different(
        "an offset at the end of every file is an error of the job in JSON, too. A percentage of a \
         file yet to be created refers to its final size; in fio it is 0",
    ),
    Row::new(
        "offset_increment",
        "0",
        "Distance between the offsets of successive clones",
        "offset_increment=1g",
        ValueKind::Size {
            min: 0,
            set: |o, v| o.offset_increment = v,
        },
    )
    .stricter(SIZES),
    Row::new(
        "num_range",
        "1",
        "Ranges per trim, each drawn like an op (`io_uring_cmd`)",
        "num_range=8",
        ValueKind::Int {
            min: 0,
            max: 256,
            set: |o, v| o.trims.ranges = narrow(v.max(1)),
        },
    )
    .different(
        "the last op of a pass has fewer ranges where the rest has no more, and all are in one \
         file; random ranges of several sizes may overlap. Logs have the offset of the first and \
         the bytes of all. Refused in jobs that read or write, for which fio has one range, and \
         with options that look at single ranges: `serialize_overlap`, `zonemode=zbd`, `verify`, \
         `block_error_percentiles`, logs of ops",
    ),
    Row::new(
        "number_ios",
        "",
        "End the job after this many ops",
        "number_ios=1000",
        ValueKind::Int {
            min: 0,
            max: u64::MAX,
            set: |o, v| o.number_ios = (v > 0).then_some(v),
        },
    ),
];

fn read_write(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let mut whole = Piece::new(text);
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
            Ok(number) if number < 0 && random => {
                problem("the suffix of a random pattern is its ops per offset and must be positive")
            }
            Ok(number) if number > i64::from(u32::MAX) && random => {
                problem("this many ops per offset never complete")
            }
            Ok(number) => Ok(number),
        }
    };
    let fio = || match reading::count(piece.text, kb_base) {
        // fio keeps it in 32 bits.
        Some(number) if random => Some((number & U32).cast_signed()),
        Some(number) => Some(number.cast_signed()),
        // With 0 a random pattern never draws an offset, as in fio.
        None if random => Some(0),
        None => None,
    };
    let number = findings
        .documented_or_fio_value(documented, fio)
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

const NUMBERS: &str = "flags negative numbers, and numbers that fio truncates (`4q`, `1.5g`, \
                       `0x1k`)";
const SIZES: &str = "as `bs`; also percentages above 100, which fio turns into huge byte counts";
