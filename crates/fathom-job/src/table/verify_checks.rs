//! Options on the checks of verified data, and on their results.

use super::general::{U32, choice, cpus_allowed};
use super::read::narrow;
use super::row::{Row, UNUSED_IN_FIO, ValueKind};
use crate::findings::Findings;
use crate::plan::Options;
use crate::problem::Problem;

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
        "reported as a job that reads; fio also counts the ops that it leaves out. All passes are \
         verified together, by what the last writes left, and no file is laid out. Refused where \
         the writes depend on more than the options: `trim_percentage`, at which fio 3.33 crashes, \
         a mix with rates or zones, `number_ios` with `verify_backlog`, `time_based` with \
         `blockalign`, `file_append`, and `randrepeat=0` where chance decides which blocks are \
         written",
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
        ValueKind::Choice(&[
            choice("completed", "those that had completed", |o| {
                o.verification.by_sync = false;
            }),
            choice(
                "fsynced",
                "those that a completed fsync or fdatasync covers",
                |o| {
                    o.verification.by_sync = true;
                },
            ),
        ]),
    )
    .different(
        "decides what a state holds, so it is set for the job that saves it; writes with \
         `sync=1` need no other sync. Flags lists of both",
    ),
    Row::new(
        "experimental_verify",
        "",
        "No effect: a job always knows what it wrote; accepted for compatibility",
        "experimental_verify=1",
        ValueKind::Ignored("has no effect: a job always knows what it wrote"),
    ),
    Row::new(
        "verify_async",
        "0",
        "Threads that check what the job reads, besides its own; 0: the job checks by itself",
        "verify_async=2",
        ValueKind::Int {
            min: 0,
            max: VERIFY_THREADS_MAX,
            set: |o, v| o.verify_threads = narrow(v),
        },
    )
    .fio(0, U32)
    .different(
        "each read is copied, so its buffer is free at once; more than 256 threads are refused; in \
         virtual time, which has no threads, the job checks by itself",
    ),
    Row::new(
        "verify_async_cpus",
        "",
        "CPUs of the threads of `verify_async`; by default those of the job",
        "verify_async_cpus=0-1",
        ValueKind::Special {
            form: "list of CPUs and ranges",
            read: verify_cpus,
        },
    ),
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

fn verify_cpus(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let mut scratch = Options::default();
    cpus_allowed(&mut scratch, text, findings)?;
    options.verify_cpus = scratch.cpus_allowed.filter(|cpus| !cpus.is_empty());
    Ok(())
}

/// More threads than any machine has processors to spare for checks.
const VERIFY_THREADS_MAX: u64 = 256;
