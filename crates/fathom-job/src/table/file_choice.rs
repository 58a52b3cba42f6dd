//! Which files there are, which of them the next op goes to, and what the kernel is told of them.

use super::general::{U32, choice};
use super::random::law;
use super::read::{narrow, unknown_word};
use super::row::{Kind, Row};
use crate::findings::Findings;
use crate::number;
use crate::plan::{Options, RandomDistribution};
use crate::problem::{Piece, Problem};
use crate::workload::{FadviseHint, FileService};

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "file_service_type",
        "roundrobin",
        "Which file the next op goes to; `:N` for so many ops in a row",
        "file_service_type=random:8",
        Kind::Special {
            form: "random[:N]|roundrobin[:N]|sequential|zipf[:theta]|pareto[:h]|normal[:dev]|gauss",
            read: file_service,
        },
    )
    .stricter("what stands behind a number; what is no number at all is refused"),
    Row::new(
        "openfiles",
        "as many as there are",
        "Work on so many files at a time, and on another only when one is finished",
        "openfiles=16",
        Kind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.openfiles = (v > 0).then(|| narrow(v)),
        },
    )
    .different(
        "settles the order of the ops and nothing else: all files stay open as long as the job \
         runs, and the queue stays full from one file to the next; fio's drains around each file, \
         to a depth of 1 to 4",
    ),
    Row::new(
        "opendir",
        "",
        "All files of this directory and of those below it, too",
        "opendir=/mnt/data",
        Kind::Text(|o, text| o.files.opendir = Some(text.to_owned())),
    )
    .different("in the order of their names; in fio in that of the file system"),
    Row::new(
        "filetype",
        "as it is",
        "What kind of files they are",
        "filetype=block",
        Kind::Choice(&[
            choice("none", "as it is", |_| {}),
            choice("file", "regular files", |_| {}),
            choice("block", "block devices", |_| {}),
            choice("char", "character devices", |_| {}),
        ]),
    )
    .different("is looked up all the same"),
    Row::new(
        "unique_filename",
        "1",
        "Between clients of a server, have file names begin with the client's address",
        "unique_filename=0",
        Kind::Bool(|_, _| {}),
    )
    .different("there are no clients; in fio it matters for them only, too"),
    Row::new(
        "offset_align",
        "the smallest op size",
        "What an `offset` in percent is rounded up to a multiple of",
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
        "Begin at the end of what the files hold",
        "file_append=1",
        Kind::Bool(|o, v| o.files.append = v),
    )
    .different("every pass of `loops` writes again behind what there was; fio does one pass"),
    Row::new(
        "fill_device",
        "0",
        "Write until there is no room left, which is no error",
        "fill_device=1",
        Kind::Bool(|o, v| o.fill_device = v),
    )
    .aliases(&["fill_fs"])
    .different("without a `size` for `rw=write` only"),
    Row::new(
        "fadvise_hint",
        "1",
        "What the kernel is told of the order of reads",
        "fadvise_hint=0",
        Kind::Choice(&[
            choice("1", "what `rw` says", |o| {
                o.files.fadvise_hint = FadviseHint::ByOrder;
            }),
            choice("0", "nothing", |o| o.files.fadvise_hint = FadviseHint::None),
            choice("sequential", "in order", |o| {
                o.files.fadvise_hint = FadviseHint::Sequential;
            }),
            choice("random", "in no order", |o| {
                o.files.fadvise_hint = FadviseHint::Random;
            }),
            choice("noreuse", "each page once", |o| {
                o.files.fadvise_hint = FadviseHint::NoReuse;
            }),
        ]),
    ),
    Row::new(
        "write_hint",
        "none",
        "How long what is written will live, for devices that keep such data apart",
        "write_hint=short",
        Kind::Choice(&[
            choice("none", "not known", |o| o.files.write_hint = 1),
            choice("short", "a short time", |o| o.files.write_hint = 2),
            choice("medium", "longer than that", |o| o.files.write_hint = 3),
            choice("long", "longer still", |o| o.files.write_hint = 4),
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
            "nothing",
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
