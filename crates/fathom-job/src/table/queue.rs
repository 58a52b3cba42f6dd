//! Options on the engine and the queue.

use super::general::{U32, choice};
use super::read::narrow;
use super::row::{Row, ValueKind};
use crate::engines;
use crate::plan::Options;
use crate::problem::{Piece, Problem};
use crate::suggest;
use crate::vocabulary::Vocabulary;
use crate::workload::OffloadKick;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "ioengine",
        "psync",
        "I/O engine: system calls or library that performs ops",
        "ioengine=io_uring",
        ValueKind::Engine,
    )
    .different(
        "an engine that Fathom does not implement is refused by name; fio tries to load a library \
         of that name",
    ),
    Row::new(
        "iodepth",
        "1",
        "Queue depth: maximum number of ops in flight",
        "iodepth=32",
        ValueKind::Int {
            min: 1,
            max: DEPTH_MAX,
            set: |o, v| o.iodepth = narrow(v),
        },
    )
    .fio(1, U32)
    .stricter("flags more than 65536, and uses 65536"),
    Row::new(
        "iodepth_batch",
        "1",
        "Maximum ops per submission; 0: `iodepth`",
        "iodepth_batch=8",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.iodepth_batch = narrow(v),
        },
    )
    .aliases(&["iodepth_batch_submit"]),
    Row::new(
        "iodepth_batch_complete_min",
        "1",
        "Minimum completions to wait for; 0: poll",
        "iodepth_batch_complete_min=4",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.iodepth_batch_complete_min = narrow(v),
        },
    )
    .aliases(&["iodepth_batch_complete"]),
    Row::new(
        "iodepth_batch_complete_max",
        "same as `iodepth_batch_complete_min`",
        "Maximum completions to reap at a time",
        "iodepth_batch_complete_max=8",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.iodepth_batch_complete_max = narrow(v),
        },
    )
    .stricter("flags a value below `iodepth_batch_complete_min` in one section; fio raises it"),
    Row::new(
        "iodepth_low",
        "same as `iodepth`",
        "Low watermark: refill the queue when ops in flight drop to this",
        "iodepth_low=8",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.iodepth_low = narrow(v),
        },
    ),
    Row::new(
        "direct",
        "0",
        "Bypass the page cache (O_DIRECT)",
        "direct=1",
        ValueKind::Bool(|o, v| o.direct = v),
    )
    .stricter("flags a contradicting `buffered` in the same section; fio uses the last one"),
    Row::new(
        "buffered",
        "1",
        "Use the page cache; the opposite of `direct`",
        "buffered=0",
        ValueKind::Bool(|o, v| o.direct = !v),
    )
    .stricter("as `direct`"),
    Row::new(
        "io_submit_mode",
        "inline",
        "Thread that submits I/O: the job's own, or a worker pool",
        "io_submit_mode=offload",
        ValueKind::Choice(&[
            choice("inline", "the job's thread", |o| o.offload = false),
            choice(
                "offload",
                "a pool of worker threads; submission never blocks the job",
                |o| {
                    o.offload = true;
                },
            ),
        ]),
    )
    .different(
        "with `offload` each worker has its own engine, the pool grows while submissions block \
         (at most to `iodepth`), and a synchronous engine keeps `iodepth` ops in flight; \
         latencies are printed, where fio prints none without `ramp_time`",
    ),
    Row::new(
        "offload_kick",
        "batch",
        "Time at which the job wakes a worker, for `io_submit_mode=offload`",
        "offload_kick=reap",
        ValueKind::Choice(&[
            choice("batch", "once per batch", |o| {
                o.offload_kick = OffloadKick::Batch;
            }),
            choice("each", "once per op", |o| {
                o.offload_kick = OffloadKick::Each;
            }),
            choice(
                "delayed",
                "once per batch, from a timer with zero delay",
                |o| {
                    o.offload_kick = OffloadKick::Delayed;
                },
            ),
            choice("reap", "when it reaps completions", |o| {
                o.offload_kick = OffloadKick::Reap;
            }),
        ]),
    )
    .different("Fathom extension; running workers wake further ones in any mode"),
    Row::new(
        "serialize_overlap",
        "0",
        "Delay an op that overlaps one in flight, if either writes or trims",
        "serialize_overlap=1",
        ValueKind::Bool(|o, v| o.serialize_overlap = v),
    ),
];

/// Sets the engine; options of the one before are reset.
pub(super) fn engine(
    options: &mut Options,
    piece: Piece<'_>,
    vocabulary: Vocabulary<'_>,
) -> Result<(), Problem> {
    // What follows a colon is the path of an external engine; after others it means nothing.
    let name = piece.text.split(':').next().unwrap_or_default();
    let Some(engine) = vocabulary.engine(name) else {
        return Err(refused(piece, vocabulary));
    };
    if options.engine.name != engine.name {
        options.reset_engine_options();
    }
    options.engine = engine;
    Ok(())
}

fn refused(piece: Piece<'_>, vocabulary: Vocabulary<'_>) -> Problem {
    let there = vocabulary.engines().map(|engine| engine.name);
    let list = there.clone().collect::<Vec<_>>().join(", ");
    let text = piece.text;
    let stem = text.split(':').next().unwrap_or_default();
    if engines::is_spdk(text) {
        let why = format!("the engine `{text}` is an SPDK plugin, which Fathom does not support");
        return Problem::new("not-in-fathom", piece.range(), why).fix(
            "rebind the device to the kernel driver, and use `ioengine=io_uring` with \
             `filename=/dev/nvme0n1`, `direct=1`, `hipri=1` and `fixedbufs=1`",
        );
    }
    if let Some(what) = engines::needs(stem) {
        let why = match what.starts_with("lib") {
            true => format!(
                "the engine `{stem}` needs {what}, which Fathom does not support, whether it is \
                 installed or not"
            ),
            false => format!("the engine `{stem}` needs {what}, which Fathom does not support"),
        };
        let fix = match (engines::instead_of_library(stem), stem) {
            (Some(instead), _) => instead.into(),
            (None, "external") => format!(
                "use one of: {list}; or write the engine in Rust and register it when Fathom is \
                 built, as the crate fathom-engine-example does"
            ),
            (None, _) => format!("use one of: {list}"),
        };
        return Problem::new("not-in-fathom", piece.range(), why).fix(fix);
    }
    let problem = Problem::new(
        "unknown-engine",
        piece.range(),
        format!("unknown engine `{text}`"),
    );
    match suggest::closest(text, there) {
        Some(word) => problem.fix(format!("did you mean `{word}`? available: {list}")),
        None => problem.fix(format!("use one of: {list}")),
    }
}

/// Limit of the queue depth: slots take memory, and io_uring allows 32768 entries.
const DEPTH_MAX: u64 = 1 << 16;
