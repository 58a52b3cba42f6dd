//! Options on durability and on files shared between jobs.

use super::general::{U32, choice};
use super::read::{narrow, unknown_word};
use super::row::{Row, ValueKind};
use crate::findings::Findings;
use crate::number;
use crate::plan::Options;
use crate::problem::{Piece, Problem};
use crate::reading::{self, Shown};
use crate::workload::{LockFile, RangeSync};

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "sync_file_range",
        "",
        "Issue sync_file_range(2) after every N writes [default N: 1]",
        "sync_file_range=wait_before,write:8",
        ValueKind::Special {
            form: "comma-separated list of wait_before, write, wait_after, then :N",
            read: sync_file_range,
        },
    )
    .different("a number is accepted only at the end; fio uses that of the last word"),
    Row::new(
        "write_barrier",
        "0",
        "Make every Nth write a barrier; no engine supports barriers",
        "write_barrier=32",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |_, _| {},
        },
    ),
    Row::new(
        "end_syncfs",
        "0",
        "Issue syncfs(2) on the files' file systems at the end of the job",
        "end_syncfs=1",
        ValueKind::Bool(|o, v| o.files.end_syncfs = v),
    )
    .different("one call per directory that contains files of the job"),
    Row::new(
        "unlink_each_loop",
        "0",
        "Remove the job's files between `loops`",
        "unlink_each_loop=1",
        ValueKind::Bool(|o, v| o.files.unlink_each_loop = v),
    )
    .different(
        "only between `loops`; fio also where `io_size` begins the files again, and at the end of \
         a job that goes by time",
    ),
    Row::new(
        "lockfile",
        "none",
        "Locking of files shared between jobs",
        "lockfile=readwrite",
        ValueKind::Choice(&[
            choice("none", "none", |o| o.files.lockfile = LockFile::None),
            choice("exclusive", "one job at a time", |o| {
                o.files.lockfile = LockFile::Exclusive;
            }),
            choice("readwrite", "multiple readers or one writer", |o| {
                o.files.lockfile = LockFile::ReadWrite;
            }),
        ]),
    )
    .different("a job with several ops in flight holds the lock until all complete"),
];

fn sync_file_range(
    options: &mut Options,
    text: &str,
    findings: &mut Findings,
) -> Result<(), Problem> {
    let kb_base = options.kb_base;
    let documented = |findings: &mut Findings| {
        let whole = Piece::new(text);
        let pieces = whole.split(&[':']);
        let bad = |code, piece: &Piece<'_>, why: &str| {
            let problem = Problem::new(code, piece.range(), why);
            Err(problem.fix("write it like `wait_before,write:8`"))
        };
        if let Some(extra) = pieces.get(2) {
            let why = "only one number is allowed, after the last word";
            return bad("too-many-values", extra, why);
        }
        if let Some(piece) = pieces.get(1).filter(|piece| piece.text.contains(',')) {
            return bad(
                "bad-value",
                piece,
                "the number of writes must follow the last word",
            );
        }
        let every = match pieces.get(1) {
            Some(piece) => narrow(number::counted(*piece, kb_base, 0, U32, findings)?),
            None => 1,
        };
        let mut flags = 0;
        for word in pieces[0].split(&[',']) {
            let word = word.trim();
            flags |= flag(word.text)
                .ok_or_else(|| unknown_word("sync_file_range", word, &WORDS, &[]))?;
        }
        Ok(RangeSync { flags, every })
    };
    let range = findings.documented_or_fio_value(documented, || range_in_fio(text, kb_base))?;
    options.files.sync_range = (range.every > 0).then_some(range);
    Ok(())
}

fn flag(word: &str) -> Option<u8> {
    let at = WORDS.iter().position(|known| *known == word)?;
    Some(1 << at)
}

/// Returns fio's reading: a word with a number is recognised only at the end, unknown words are
/// skipped, and the number is the first one after the last known word.
fn range_in_fio(text: &str, kb_base: u64) -> Option<RangeSync> {
    let (mut flags, mut number, mut at) = (0, None, 0);
    for word in text.split(',') {
        let rest = &text[at..];
        let known = if rest.len() == word.len() {
            reading::word(word)
        } else {
            word
        };
        at += word.len() + 1;
        if let Some(flag) = flag(known.trim()) {
            flags |= flag;
            number = rest.split_once(':').map(|(_, number)| number);
        }
    }
    let every = number.map_or(Some(1), |number| reading::count(number, kb_base));
    (flags != 0).then(|| RangeSync {
        flags,
        every: narrow(every.unwrap_or(0)),
    })
}

impl Shown for RangeSync {
    fn shown(&self) -> String {
        let words = WORDS.iter().enumerate();
        let words = words.filter(|(at, _)| self.flags >> at & 1 == 1);
        let words: Vec<_> = words.map(|(_, word)| *word).collect();
        format!("{}:{}", words.join(","), self.every)
    }
}

const WORDS: [&str; 3] = ["wait_before", "write", "wait_after"];
