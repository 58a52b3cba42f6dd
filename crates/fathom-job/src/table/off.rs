//! Options whose work is not there yet, at the values that ask for none of it: a job file that only
//! says so runs.

use super::row::{ALL_OTHERS, Choice, Kind, Row};

/// An option that can only be left off.
const fn row(
    name: &'static str,
    help: &'static str,
    example: &'static str,
    off: &'static [Choice],
) -> Row {
    Row::new(name, off[0].word, help, example, Kind::Choice(off)).later(ALL_OTHERS)
}

const fn off(word: &'static str, help: &'static str) -> Choice {
    Choice {
        word,
        help,
        set: |_| {},
    }
}

const ZERO: &[Choice] = &[off("0", "no")];

pub(super) const ROWS: &[Row] = &[
    row(
        "verify_fatal",
        "End at the first block that is not what was written",
        "verify_fatal=0",
        ZERO,
    ),
    row(
        "verify_dump",
        "Keep what was found and what was expected as files",
        "verify_dump=0",
        ZERO,
    ),
    row("verify_async", "Threads that check", "verify_async=0", ZERO),
    row(
        "verify_backlog",
        "Check behind so many blocks",
        "verify_backlog=0",
        ZERO,
    ),
    row(
        "verify_only",
        "Check what an earlier run wrote",
        "verify_only=0",
        ZERO,
    ),
    row(
        "verify_state_save",
        "Save what was written when, for a later run",
        "verify_state_save=0",
        ZERO,
    ),
    row(
        "verify_state_load",
        "Load what an earlier run saved",
        "verify_state_load=0",
        ZERO,
    ),
    row(
        "experimental_verify",
        "Check by drawing the same numbers again",
        "experimental_verify=0",
        ZERO,
    ),
    row(
        "trim_percentage",
        "Trim so many of the blocks that were checked",
        "trim_percentage=0",
        ZERO,
    ),
    row(
        "trim_verify_zero",
        "Check that trimmed blocks read as zeros",
        "trim_verify_zero=0",
        ZERO,
    ),
    row(
        "trim_backlog",
        "Trim behind so many blocks",
        "trim_backlog=0",
        ZERO,
    ),
    row(
        "read_iolog_chunked",
        "Read the recording in parts",
        "read_iolog_chunked=0",
        ZERO,
    ),
    row(
        "replay_no_stall",
        "Replay as fast as it goes",
        "replay_no_stall=0",
        ZERO,
    ),
    row(
        "replay_scale",
        "Divide the offsets of a recording",
        "replay_scale=1",
        &[off("1", "leave them as they are")],
    ),
    row(
        "replay_time_scale",
        "Replay at so many percent of the speed",
        "replay_time_scale=100",
        &[off("100", "as it was recorded")],
    ),
];
