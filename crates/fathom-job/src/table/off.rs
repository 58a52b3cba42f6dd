//! Options that are not implemented, accepted at the value that disables them, so that job files
//! that set it run.

use super::row::{ALL_OTHERS, Choice, Row, ValueKind};

/// Creates the row of an option that is accepted only when off.
const fn row(
    name: &'static str,
    help: &'static str,
    example: &'static str,
    off: &'static [Choice],
) -> Row {
    Row::new(name, off[0].word, help, example, ValueKind::Choice(off)).later(ALL_OTHERS)
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
        "verify_state_save",
        "Save the verification state for a later run",
        "verify_state_save=0",
        ZERO,
    ),
    row(
        "verify_state_load",
        "Load the verification state of an earlier run",
        "verify_state_load=0",
        ZERO,
    ),
];
