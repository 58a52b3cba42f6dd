//! What becomes durable when, and how jobs share files.

use super::general::{U32, choice};
use super::read::{narrow, unknown_word};
use super::row::{Kind, Row};
use crate::findings::Findings;
use crate::number;
use crate::plan::Options;
use crate::problem::{Piece, Problem};
use crate::workload::{LockFile, RangeSync};

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "sync_file_range",
        "",
        "sync_file_range(2) of what was written, after so many writes (1 without a number)",
        "sync_file_range=wait_before,write:8",
        Kind::Special {
            form: "wait_before, write and wait_after with commas between them, then :N",
            read: sync_file_range,
        },
    )
    .different("a number anywhere but at the end is refused; in fio the last word's counts"),
    Row::new(
        "write_barrier",
        "0",
        "Make every so manieth write a barrier, where the engine has such writes: none has",
        "write_barrier=32",
        Kind::Int {
            min: 0,
            max: U32,
            set: |_, _| {},
        },
    ),
    Row::new(
        "end_syncfs",
        "0",
        "syncfs(2) of the files' file systems at the job's end",
        "end_syncfs=1",
        Kind::Bool(|o, v| o.files.end_syncfs = v),
    )
    .different("once for each directory that the job has files in"),
    Row::new(
        "unlink_each_loop",
        "0",
        "Remove the job's files between two of its `loops`",
        "unlink_each_loop=1",
        Kind::Bool(|o, v| o.files.unlink_each_loop = v),
    ),
    Row::new(
        "lockfile",
        "none",
        "How jobs that have a file in common take turns on it",
        "lockfile=readwrite",
        Kind::Choice(&[
            choice("none", "not at all", |o| o.files.lockfile = LockFile::None),
            choice("exclusive", "one job at a time", |o| {
                o.files.lockfile = LockFile::Exclusive;
            }),
            choice("readwrite", "several that read, or one that writes", |o| {
                o.files.lockfile = LockFile::ReadWrite;
            }),
        ]),
    )
    .different("a job with several ops in flight has the lock for all of them"),
];

fn sync_file_range(
    options: &mut Options,
    text: &str,
    findings: &mut Findings,
) -> Result<(), Problem> {
    let whole = Piece::whole(text);
    let pieces = whole.split(&[':']);
    if let Some(extra) = pieces.get(2) {
        let why = "one number at most, behind the last word";
        findings.misread(
            Problem::new("too-many-values", extra.range(), why),
            "nothing",
        )?;
    }
    if let Some(piece) = pieces.get(1).filter(|piece| piece.text.contains(',')) {
        let why = "the number of writes stands behind the last word";
        return Err(Problem::new("bad-value", piece.range(), why)
            .fix("write it as in `wait_before,write:8`"));
    }
    let every = match pieces.get(1) {
        Some(piece) => narrow(number::settled(*piece, options.kb_base, 0, U32, findings)?),
        None => 1,
    };
    let mut flags = 0;
    for word in pieces[0].split(&[',']) {
        let word = word.trim();
        flags |= match word.text {
            "wait_before" => 1,
            "write" => 2,
            "wait_after" => 4,
            _ => return Err(unknown_word("sync_file_range", word, &WORDS, &[])),
        };
    }
    options.files.sync_range = (every > 0).then_some(RangeSync { flags, every });
    Ok(())
}

const WORDS: [&str; 3] = ["wait_before", "write", "wait_after"];
