//! Which of a job's files the next op goes to.

use super::general::U32;
use super::random::law;
use super::read::{Findings, narrow, unknown_word};
use super::row::{Kind, Row};
use crate::number;
use crate::plan::{Options, RandomDistribution};
use crate::problem::{Piece, Problem};
use crate::workload::FileService;

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
    .stricter("what follows the colon must be a number; fio passes over what is none"),
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
    .different("settles the order of the ops; all files stay open as long as the job runs"),
];

fn file_service(options: &mut Options, text: &str, _: &mut Findings) -> Result<(), Problem> {
    let whole = Piece::whole(text);
    let pieces = whole.split(&[':']);
    let word = pieces[0].trim();
    let most = if word.text == "sequential" { 1 } else { 2 };
    if let Some(extra) = pieces.get(most) {
        let extra = extra.range().start..text.len();
        return Err(Problem::new("too-many-values", extra, "too many values"));
    }
    let ops = || match pieces.get(1) {
        Some(piece) => number::counted(*piece, options.kb_base, 1, U32).map(|(n, _)| narrow(n)),
        None => Ok(1),
    };
    options.file_service = match word.text {
        "roundrobin" => FileService::RoundRobin(ops()?),
        "random" => FileService::Random(ops()?),
        "sequential" => FileService::Sequential,
        "zipf" | "pareto" | "normal" | "gauss" => match law(whole)? {
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
