//! Which files there are, which of them the next op goes to, and what the kernel is told of them.

use super::general::{U32, choice};
use super::random::law;
use super::read::{narrow, unknown_word};
use super::row::{Kind, Row};
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
        Kind::Special {
            form: "random[:N]|roundrobin[:N]|sequential|zipf[:theta]|pareto[:h]|normal[:dev]|gauss",
            read: file_service,
        },
    )
    .stricter("flags trailing text after a number; non-numeric text is refused"),
    Row::new(
        "openfiles",
        "all",
        "Files in use at a time; the next starts when one is finished",
        "openfiles=16",
        Kind::Int {
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
        Kind::Text(|o, text| o.files.opendir = Some(text.to_owned())),
    )
    .different("files are sorted by name; fio uses directory order"),
    Row::new(
        "filetype",
        "detected",
        "Type of the files",
        "filetype=block",
        Kind::Choice(&[
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
        "Prefix file names with the client's address (client/server mode only)",
        "unique_filename=0",
        Kind::Bool(|_, _| {}),
    )
    .different("no effect: Fathom has no client/server mode"),
    Row::new(
        "offset_align",
        "smallest block size",
        "Alignment of an `offset` given in percent, bytes",
        "offset_align=1m",
        Kind::Int {
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
        Kind::Bool(|o, v| o.files.append = v),
    )
    .different("each pass of `loops` appends again; fio does one pass"),
    Row::new(
        "fill_device",
        "0",
        "Write until ENOSPC, which ends the job without error",
        "fill_device=1",
        Kind::Bool(|o, v| o.fill_device = v),
    )
    .aliases(&["fill_fs"])
    .different("without `size`, only for `rw=write`"),
    Row::new(
        "fadvise_hint",
        "1",
        "posix_fadvise(2) advice on the access pattern",
        "fadvise_hint=0",
        Kind::Choice(&[
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
        Kind::Choice(&[
            choice("none", "unknown", |o| o.files.write_hint = 1),
            choice("short", "short-lived", |o| o.files.write_hint = 2),
            choice("medium", "medium", |o| o.files.write_hint = 3),
            choice("long", "long", |o| o.files.write_hint = 4),
            choice("extreme", "longest", |o| o.files.write_hint = 5),
        ]),
    ),
];

fn file_service(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let whole = Piece::whole(text);
    let pieces = whole.split(&[':']);
    let word = pieces[0].trim();
    let most = if word.text == "sequential" { 1 } else { 2 };
    if let Some(extra) = pieces.get(most) {
        let extra = extra.range().start..text.len();
        findings.misread(
            Problem::new("too-many-values", extra, "too many values"),
            reading::NOTHING,
        )?;
    }
    let mut ops = || match pieces.get(1) {
        Some(piece) => number::settled(*piece, options.kb_base, 1, U32, findings).map(narrow),
        None => Ok(1),
    };
    options.file_service = match word.text {
        "roundrobin" => FileService::RoundRobin(ops()?),
        "random" => FileService::Random(ops()?),
        "sequential" => FileService::Sequential,
        "zipf" | "pareto" | "normal" | "gauss" => match law(whole, findings)? {
            RandomDistribution::Zipf(theta, _) => FileService::Zipf(theta),
            RandomDistribution::Pareto(h, _) => FileService::Pareto(h),
            RandomDistribution::Normal(deviation, _) => FileService::Normal(deviation),
            // Not reached: the word was one of those above.
            _ => FileService::Random(1),
        },
        _ => return Err(unknown_word("file_service_type", word, &WORDS, &[])),
    };
    Ok(())
}

const WORDS: [&str; 6] = [
    "random",
    "roundrobin",
    "sequential",
    "zipf",
    "pareto",
    "normal",
];
