//! How ops reach the kernel.

use super::general::{U32, choice};
use super::read::narrow;
use super::row::{Kind, Row};
use crate::engines;
use crate::findings::Findings;
use crate::plan::Options;
use crate::problem::{Piece, Problem};
use crate::suggest;
use crate::workload::OffloadKick;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "ioengine",
        "psync",
        "The engine: by which system calls ops are done",
        "ioengine=io_uring",
        Kind::Special {
            form: "name of an engine (opt=psync)",
            read: ioengine,
        },
    )
    .different(
        "an engine that is not there yet is refused by name; fio looks for a library of that name",
    ),
    Row::new(
        "iodepth",
        "1",
        "Ops in flight at most",
        "iodepth=32",
        Kind::Int {
            min: 1,
            max: DEPTH_MAX,
            set: |o, v| o.iodepth = narrow(v),
        },
    )
    .fio(1, U32)
    .stricter("more than 65536: 65536 are taken"),
    Row::new(
        "iodepth_batch",
        "1",
        "Ops handed over in one go; 0 for as many as `iodepth`",
        "iodepth_batch=8",
        Kind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.iodepth_batch = narrow(v),
        },
    )
    .aliases(&["iodepth_batch_submit"]),
    Row::new(
        "iodepth_batch_complete_min",
        "1",
        "Completions to wait for at least; 0 polls",
        "iodepth_batch_complete_min=4",
        Kind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.iodepth_batch_complete_min = narrow(v),
        },
    )
    .aliases(&["iodepth_batch_complete"]),
    Row::new(
        "iodepth_batch_complete_max",
        "as `iodepth_batch_complete_min`",
        "Completions to take in one go at most",
        "iodepth_batch_complete_max=8",
        Kind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.iodepth_batch_complete_max = narrow(v),
        },
    )
    .stricter("less than `iodepth_batch_complete_min` in one section; fio raises it"),
    Row::new(
        "iodepth_low",
        "as `iodepth`",
        "Fill the queue again only when no more ops than this are in flight",
        "iodepth_low=8",
        Kind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.iodepth_low = narrow(v),
        },
    ),
    Row::new(
        "direct",
        "0",
        "Go around the page cache (O_DIRECT)",
        "direct=1",
        Kind::Bool(|o, v| o.direct = v),
    )
    .stricter("a `buffered` in the same section that says otherwise; in fio the last one counts"),
    Row::new(
        "buffered",
        "1",
        "Go through the page cache: the opposite of `direct`",
        "buffered=0",
        Kind::Bool(|o, v| o.direct = !v),
    )
    .stricter("as `direct`"),
    Row::new(
        "io_submit_mode",
        "inline",
        "Who hands ops over",
        "io_submit_mode=offload",
        Kind::Choice(&[
            choice("inline", "the job itself", |o| o.offload = false),
            choice("offload", "workers, so that it never blocks", |o| {
                o.offload = true;
            }),
        ]),
    )
    .different(
        "with `offload` each worker has an engine of its own, there are as many as ops are held \
         up (at most `iodepth`), and a synchronous engine has `iodepth` ops in flight; latencies \
         are printed, where fio prints none without `ramp_time`",
    ),
    Row::new(
        "offload_kick",
        "batch",
        "With `io_submit_mode=offload`: when the job wakes a worker",
        "offload_kick=reap",
        Kind::Choice(&[
            choice("batch", "once for each batch", |o| {
                o.offload_kick = OffloadKick::Batch;
            }),
            choice("each", "once for each op", |o| {
                o.offload_kick = OffloadKick::Each;
            }),
            choice("delayed", "once for each batch, by a timer of 0", |o| {
                o.offload_kick = OffloadKick::Delayed;
            }),
            choice("reap", "when it looks for completions", |o| {
                o.offload_kick = OffloadKick::Reap;
            }),
        ]),
    )
    .different("Fathom's own; workers that are awake wake the next all the same"),
    Row::new(
        "serialize_overlap",
        "0",
        "An op that overlaps one in flight waits for it, if either writes or trims",
        "serialize_overlap=1",
        Kind::Bool(|o, v| o.serialize_overlap = v),
    ),
];

fn ioengine(options: &mut Options, text: &str, _: &mut Findings) -> Result<(), Problem> {
    let piece = Piece::whole(text);
    let Some(engine) = engines::find(text) else {
        return Err(refused(piece));
    };
    if options.ioengine != engine.name {
        options.reset_engine_options();
        options.ioengine = engine.name.to_owned();
    }
    Ok(())
}

fn refused(piece: Piece<'_>) -> Problem {
    let there = engines::ENGINES.iter().map(|engine| engine.name);
    let list = there.clone().collect::<Vec<_>>().join(", ");
    let text = piece.text;
    let stem = text.split(':').next().unwrap_or_default();
    if engines::is_spdk(text) {
        let why = format!("the engine `{text}` is a plugin of SPDK's: not in fathom");
        return Problem::new("not-in-fathom", piece.range(), why).fix(
            "give the device back to the kernel's driver, and use `ioengine=io_uring` with \
             `filename=/dev/nvme0n1`, `direct=1`, `hipri=1` and `fixedbufs=1`",
        );
    }
    if let Some(what) = engines::needs(stem) {
        let why = format!("the engine `{stem}` needs {what}: not in fathom");
        return Problem::new("not-in-fathom", piece.range(), why)
            .fix(format!("the engines are: {list}"));
    }
    if engines::LATER.contains(&stem) {
        return Problem::new(
            "not-yet",
            piece.range(),
            format!("the engine `{stem}` is known to fio, not yet to fathom"),
        )
        .fix(format!("the engines are: {list}"));
    }
    let problem = Problem::new(
        "unknown-engine",
        piece.range(),
        format!("there is no engine `{text}`"),
    );
    match suggest::closest(text, there.chain(engines::LATER.iter().copied())) {
        Some(word) => problem.fix(format!("did you mean `{word}`? The engines are: {list}")),
        None => problem.fix(format!("the engines are: {list}")),
    }
}

/// Slots are memory; io_uring's own limit is 32768 entries.
const DEPTH_MAX: u64 = 1 << 16;
