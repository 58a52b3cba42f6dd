//! Options on the selection of files, and on advice about them to the kernel.

use super::general::{U32, choice};
use super::random::read_distribution;
use super::read::{narrow, unknown_word};
use super::row::{Row, ValueKind};
use crate::findings::Findings;
use crate::number;
use crate::plan::{Options, RandomDistribution};
use crate::problem::{Piece, Problem};
use crate::reading;
use crate::workload::{FadviseHint, FileService};

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "file_service_type",
        "roundrobin",
        "File selection for the next op; `:N`: ops per file before switching",
        "file_service_type=random:8",
        ValueKind::Special {
            form: "random[:N]|roundrobin[:N]|sequential|zipf[:theta]|pareto[:h]|normal[:dev]|gauss",
            read: file_service,
        },
    )
    .stricter(
        "flags trailing text after a number, and 0 or none, with which a file is used to its end",
    ),
    Row::new(
        "openfiles",
        "all",
        "Files in use at a time; the next starts when one is finished",
        "openfiles=16",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.openfiles = (v > 0).then(|| narrow(v)),
        },
    )
    .different(
        "affects only the order of ops: all files stay open while the job runs, and the queue \
         stays full between files; fio drains it at each file, to a depth of 1 to 4",
    ),
    Row::new(
        "opendir",
        "",
        "Add all files below this directory, recursively",
        "opendir=/mnt/data",
        ValueKind::Text(|o, text| o.files.opendir = Some(text.to_owned())),
    )
    .different(
        "files are sorted by name; fio uses directory order. A missing or empty directory is \
         refused; fio runs the job without an op",
    ),
    Row::new(
        "filetype",
        "detected",
        "Type of the files",
        "filetype=block",
        ValueKind::Choice(&[
            choice("none", "detected", |_| {}),
            choice("file", "regular files", |_| {}),
            choice("block", "block devices", |_| {}),
            choice("char", "character devices", |_| {}),
        ]),
    )
    .different("the type is always detected"),
    Row::new(
        "unique_filename",
        "1",
        "With `--client`, begin generated file names in a `directory` with the name of the host",
        "unique_filename=0",
        ValueKind::Bool(|o, v| o.files.unique = v),
    )
    .different(
        "fio begins them with the address of the host from which the run was started, and also \
         those of `filename`",
    ),
    Row::new(
        "offset_align",
        "smallest block size",
        "Alignment of an `offset` given in percent, bytes",
        "offset_align=1m",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.files.offset_align = narrow(v),
        },
    ),
    Row::new(
        "file_append",
        "0",
        "Start at the current end of the files",
        "file_append=1",
        ValueKind::Bool(|o, v| o.files.append = v),
    )
    .different("each pass of `loops` writes the appended part again; fio does one pass"),
    Row::new(
        "fill_device",
        "0",
        "Write until ENOSPC, which ends the job without error",
        "fill_device=1",
        ValueKind::Bool(|o, v| o.fill_device = v),
    )
    .aliases(&["fill_fs"])
    .different(
        "without `size`, only for `rw=write`; for other jobs fio fills the file system while it \
         lays out the files",
    ),
    Row::new(
        "fadvise_hint",
        "1",
        "posix_fadvise(2) advice on the access pattern",
        "fadvise_hint=0",
        ValueKind::Choice(&[
            choice("1", "derived from `rw`", |o| {
                o.files.fadvise_hint = FadviseHint::ByOrder;
            }),
            choice("0", "nothing", |o| o.files.fadvise_hint = FadviseHint::None),
            choice("sequential", "POSIX_FADV_SEQUENTIAL", |o| {
                o.files.fadvise_hint = FadviseHint::Sequential;
            }),
            choice("random", "POSIX_FADV_RANDOM", |o| {
                o.files.fadvise_hint = FadviseHint::Random;
            }),
            choice("noreuse", "POSIX_FADV_NOREUSE", |o| {
                o.files.fadvise_hint = FadviseHint::NoReuse;
            }),
        ]),
    ),
    Row::new(
        "write_hint",
        "none",
        "Expected lifetime of written data (F_SET_RW_HINT)",
        "write_hint=short",
        ValueKind::Choice(&[
            choice("none", "unknown", |o| o.files.write_hint = 1),
            choice("short", "short-lived", |o| o.files.write_hint = 2),
            choice("medium", "medium", |o| o.files.write_hint = 3),
            choice("long", "long", |o| o.files.write_hint = 4),
            choice("extreme", "longest", |o| o.files.write_hint = 5),
        ]),
    ),
];

fn file_service(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let whole = Piece::new(text);
    // A comma ends the word as well; only what a colon precedes is a number of ops.
    let end = reading::word(text).len();
    let word = whole.part(0..end).trim();
    let service: fn(u32) -> FileService = match word.text {
        "roundrobin" => FileService::RoundRobin,
        "random" => FileService::Random,
        "sequential" => |_| FileService::Sequential,
        "zipf" | "pareto" | "normal" | "gauss" => {
            options.file_service = match read_distribution(whole, findings)? {
                RandomDistribution::Zipf(theta, _) => FileService::Zipf(theta),
                RandomDistribution::Pareto(h, _) => FileService::Pareto(h),
                RandomDistribution::Normal(deviation, _) => FileService::Normal(deviation),
                // Unreachable: the word was one of those above.
                _ => FileService::Random(1),
            };
            return Ok(());
        }
        _ => return Err(unknown_word("file_service_type", word, &WORDS, &[])),
    };
    let counts = text[end..].starts_with(':') && word.text != "sequential";
    let pieces = whole.split(&[':']);
    let (ops, extra) = match pieces.get(1).filter(|_| counts) {
        Some(piece) => (
            ops_on_a_file(*piece, options.kb_base, findings)?,
            pieces.get(2).map(|extra| extra.range().start),
        ),
        None => (1, (end < text.len()).then_some(end + 1)),
    };
    if let Some(start) = extra {
        findings.misread(
            Problem::new("too-many-values", start..text.len(), "too many values"),
            reading::NOTHING,
        )?;
    }
    options.file_service = service(ops);
    Ok(())
}

/// Ops on a file before the next one's turn. Where fio finds no number above 0 it stays with a file
/// to its end.
fn ops_on_a_file(piece: Piece<'_>, kb_base: u64, findings: &mut Findings) -> Result<u32, Problem> {
    let fio = || match reading::atoi(piece.text) {
        0 => Some(U32),
        ops => Some(ops.min(U32)),
    };
    let read = |findings: &mut Findings| number::counted(piece, kb_base, 1, U32, findings);
    findings.documented_or_fio_value(read, fio).map(narrow)
}

const WORDS: [&str; 6] = [
    "random",
    "roundrobin",
    "sequential",
    "zipf",
    "pareto",
    "normal",
];
