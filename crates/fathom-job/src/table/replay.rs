//! Recording and replay of I/O.

use fathom_core::Direction;

use super::general::U32;
use super::read::{narrow, unknown_word};
use super::row::{Row, ValueKind};
use crate::findings::Findings;
use crate::names::split_list;
use crate::number;
use crate::plan::Options;
use crate::problem::{Piece, Problem};
use crate::reading;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "read_iolog",
        "",
        "Replay this I/O log of fio (version 2 or 3) or binary blktrace; colon-separated list: \
         clones take the logs in turn",
        "read_iolog=recorded.log",
        ValueKind::Special {
            form: "path[:path…]",
            read: logs,
        },
    )
    .different(
        "the whole log is checked before the run, so it must be a regular file (fio also reads \
         standard input and sockets); a bad line is an error (fio skips it); trims of text logs \
         are replayed (fio drops them); each op is due at its time after the start, whatever the \
         earlier ones took",
    ),
    Row::new(
        "write_iolog",
        "",
        "Record the job's ops in this file, to be replayed with `read_iolog`",
        "write_iolog=recorded.log",
        ValueKind::Text(|o, text| o.replay.record = Some(text.to_owned())),
    )
    .different(
        "an earlier log is replaced when the recording is complete (fio appends to it); a log that \
         jobs or clones share is refused; a log that cannot be written ends the job (fio \
         continues)",
    ),
    Row::new(
        "read_iolog_chunked",
        "0",
        "No effect: logs are always read in chunks",
        "read_iolog_chunked=1",
        ValueKind::Bool(|_, _| {}),
    ),
    Row::new(
        "merge_blktrace_file",
        "",
        "Merge the binary traces of `read_iolog` by time into this file, and replay the result",
        "merge_blktrace_file=merged.bin",
        ValueKind::Text(|o, text| o.replay.merge_to = Some(text.to_owned())),
    )
    .different(
        "merges (fio 3.33 ends with `iolog short read`); each trace begins at time 0; needs \
         `read_iolog`",
    ),
    Row::new(
        "merge_blktrace_scalars",
        "",
        "Percent of its times that each merged trace takes: colon-separated, one for each",
        "merge_blktrace_scalars=50:100",
        ValueKind::Special {
            form: "list of floating point values separated by ':' (opt=5.9:7.8)",
            read: merge_scalars,
        },
    )
    .stricter("refuses other values than 0.000001 to 1000000"),
    Row::new(
        "merge_blktrace_iters",
        "",
        "Repetitions of each merged trace: colon-separated, one for each",
        "merge_blktrace_iters=2:1",
        ValueKind::Special {
            form: "list of floating point values separated by ':' (opt=5.9:7.8)",
            read: merge_iterations,
        },
    )
    .stricter("refuses fractions and 0"),
    Row::new(
        "replay_no_stall",
        "0",
        "Ignore the times of the log: issue each op as soon as the queue has room",
        "replay_no_stall=1",
        ValueKind::Bool(|o, v| o.replay.no_stall = v),
    ),
    Row::new(
        "replay_redirect",
        "",
        "File or device that takes the place of all those in the log",
        "replay_redirect=/dev/nvme0n1",
        ValueKind::Text(|o, text| o.replay.redirect = Some(text.to_owned())),
    ),
    Row::new(
        "replay_scale",
        "1",
        "Divisor of the offsets in the log",
        "replay_scale=2",
        ValueKind::Int {
            min: 1,
            max: U32,
            set: |o, v| o.replay.scale = narrow(v),
        },
    )
    .fio(0, U32)
    .stricter("refuses 0"),
    Row::new(
        "replay_align",
        "0",
        "Power of two: offsets are rounded down to multiples of it, lengths of traces up; 0: none",
        "replay_align=4k",
        ValueKind::Special {
            form: "power of two (opt=4k)",
            read: align,
        },
    )
    .numeric(),
    Row::new(
        "replay_time_scale",
        "100",
        "Speed of the replay in percent of the recorded one",
        "replay_time_scale=50",
        ValueKind::Int {
            min: 1,
            max: U32,
            set: |o, v| o.replay.speed = narrow(v),
        },
    ),
    Row::new(
        "replay_skip",
        "",
        "Ops of the log to leave out: comma-separated list of read, write, trim, sync",
        "replay_skip=trim,sync",
        ValueKind::Special {
            form: "comma-separated list of read, write, trim, sync",
            read: skip,
        },
    )
    .different("applies to text logs, too; fio skips ops of blktrace only. Flags other words"),
];

fn logs(options: &mut Options, text: &str, _: &mut Findings) -> Result<(), Problem> {
    let names = split_list(text);
    if names.is_empty() {
        let problem = Problem::new("no-value", 0..text.len(), "no file name between the colons");
        return Err(problem.fix("name a log, or remove the option"));
    }
    if let Some(stream) = names.iter().find(|name| *name == "-") {
        let why = format!("`{stream}` is standard input, but a log is read twice");
        let problem = Problem::new("stream", 0..text.len(), why);
        return Err(problem.fix("save the log to a file"));
    }
    options.replay.logs = names;
    Ok(())
}

fn merge_scalars(options: &mut Options, text: &str, _: &mut Findings) -> Result<(), Problem> {
    let in_range = |value: &f64| (0.000_001..=1e6).contains(value);
    let number = |piece: Piece<'_>| {
        let value = piece.text.parse().ok().filter(in_range);
        value.ok_or_else(|| {
            let why = format!(
                "`{}` is not a percentage from 0.000001 to 1000000",
                piece.text
            );
            Problem::new("bad-value", piece.range(), why).fix("separate them by colons, as 50:100")
        })
    };
    options.replay.merge_scalars = of_each_log(text, number)?;
    Ok(())
}

fn merge_iterations(options: &mut Options, text: &str, _: &mut Findings) -> Result<(), Problem> {
    let number = |piece: Piece<'_>| {
        let value = piece.text.parse().ok().filter(|count| *count > 0);
        value.ok_or_else(|| {
            let why = format!("`{}` is not a whole number from 1 on", piece.text);
            Problem::new("bad-value", piece.range(), why).fix("separate them by colons, as 2:1")
        })
    };
    options.replay.merge_iterations = of_each_log(text, number)?;
    Ok(())
}

/// Reads a colon-separated list with a value for each log.
fn of_each_log<T>(
    text: &str,
    read: impl Fn(Piece<'_>) -> Result<T, Problem>,
) -> Result<Vec<T>, Problem> {
    let pieces = Piece::new(text).split(&[':']);
    pieces.into_iter().map(|piece| read(piece.trim())).collect()
}

fn align(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let piece = Piece::new(text);
    let value = number::counted(piece, options.kb_base, 0, U32, findings)?;
    if value > 0 && !value.is_power_of_two() {
        let why = format!("`{text}` is not a power of two");
        return Err(Problem::new("bad-value", piece.range(), why).fix("write one, as 4k"));
    }
    options.replay.align = narrow(value);
    Ok(())
}

fn skip(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let replay = &mut options.replay;
    (replay.skip, replay.skip_syncs) = Default::default();
    for piece in Piece::new(text).split(&[',']).into_iter().map(Piece::trim) {
        match piece.text {
            "sync" => replay.skip_syncs = true,
            word => match Direction::ALL
                .into_iter()
                .find(|direction| direction.name() == word)
            {
                Some(direction) => replay.skip[direction] = true,
                None => {
                    let problem = unknown_word("replay_skip", piece, &WORDS, &[]);
                    findings.misread(problem, reading::NOTHING)?;
                }
            },
        }
    }
    Ok(())
}

/// Words of `replay_skip`.
const WORDS: [&str; 4] = ["read", "write", "trim", "sync"];
