//! Options on the checks of verified data, and on their results.

use super::row::{Choice, Row, UNUSED_IN_FIO, ValueKind};

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "verify_fatal",
        "0",
        "End the job at the first verification error, even with `continue_on_error=verify`",
        "verify_fatal=1",
        ValueKind::Bool(|o, v| o.verification.is_fatal = v),
    ),
    Row::new(
        "verify_dump",
        "0",
        "Save the read and the expected block of each mismatch to files",
        "verify_dump=1",
        ValueKind::Bool(|o, v| o.verification.dumps = v),
    )
    .different(
        "written when the job has ended, 16 MiB per job at most; a random block of another program \
         cannot be generated again, so its expected content is missing",
    ),
    Row::new(
        "verify_write_sequence",
        "1",
        "Compare the numbers of writes in the headers, where they are known",
        "verify_write_sequence=0",
        ValueKind::Bool(|o, v| o.verification.checks_sequence = v),
    ),
    Row::new(
        "verify_header_seed",
        "1",
        "Compare the seeds in the headers, where they are known",
        "verify_header_seed=0",
        ValueKind::Bool(|o, v| o.verification.checks_seed = v),
    ),
    Row::new(
        "verify_only",
        "0",
        "Write nothing; read and verify what the job would write",
        "verify_only=1",
        ValueKind::Flag(|o, v| o.verification.only = v),
    )
    .different(
        "reported as a job that reads; fio also counts the writes that it leaves out. Jobs that \
         also read or trim are refused; fio crashes with `trim_percentage`",
    ),
    Row::new(
        "verify_state_save",
        "0",
        "Save which blocks were written, for a later run, also if this one is killed",
        "verify_state_save=1",
        ValueKind::Bool(|o, v| o.verification.saves_state = v),
    )
    .different("fio's default is 1; the format is Fathom's own"),
    Row::new(
        "verify_state_load",
        "0",
        "Load which blocks an earlier run wrote; other blocks may hold anything",
        "verify_state_load=1",
        ValueKind::Bool(|o, v| o.verification.loads_state = v),
    )
    .different("reads Fathom's own format, not fio's; older blocks in place of newer are found"),
    Row::new(
        "verify_policy",
        "completed",
        "Writes of an interrupted run that must be there afterwards",
        "verify_policy=completed",
        ValueKind::Choice(&[Choice {
            word: "completed",
            help: "those that had completed",
            set: |_| {},
        }]),
    )
    .later(&["fsynced"]),
    Row::new(
        "experimental_verify",
        "",
        "No effect: a job always knows what it wrote; accepted for compatibility",
        "experimental_verify=1",
        ValueKind::Ignored("has no effect: a job always knows what it wrote"),
    ),
    Row::new(
        "verify_async",
        "",
        "No effect: blocks are checked on the job's thread, with the same results",
        "verify_async=2",
        ValueKind::Ignored("has no effect: blocks are checked on the job's thread"),
    )
    .different("no effect: blocks are checked on the job's thread, with the same results"),
    Row::new(
        "verify_async_cpus",
        "",
        "No effect; see `verify_async`",
        "verify_async_cpus=0-1",
        ValueKind::Ignored("has no effect: blocks are checked on the job's thread"),
    )
    .different("no effect, as `verify_async`"),
    Row::new(
        "verifysort",
        "",
        "No effect; accepted for compatibility",
        "verifysort=1",
        ValueKind::Ignored(UNUSED_IN_FIO),
    ),
    Row::new(
        "verifysort_nr",
        "",
        "No effect; accepted for compatibility",
        "verifysort_nr=8",
        ValueKind::Ignored(UNUSED_IN_FIO),
    ),
];
