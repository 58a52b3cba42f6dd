//! Length of a measurement: time and ops.

use fathom_record::Validity;

use super::{JobMeasured, figure, ops, to_float, validity};

/// Checks that the job measured long enough, and enough ops, for its figures to mean something. In
/// virtual time, where nothing interrupts, only the ops count.
#[must_use]
pub fn length(seen: &JobMeasured<'_>) -> Option<Validity> {
    let ops = ops(seen.record);
    if ops == 0 {
        return None;
    }
    let runtime_ms = seen.record.runtime_ms;
    let is_short = !seen.is_modelled && runtime_ms < RUNTIME_MS;
    let is_few = ops < OPS;
    let noun = if ops == 1 { "op" } else { "ops" };
    let sentence = match (is_short, is_few) {
        (false, false) => format!("the figures come from {runtime_ms} ms and {ops} ops"),
        (true, _) => format!(
            "the figures come from {runtime_ms} ms ({ops} {noun}): its first ops, which find \
             nothing prepared, and single interruptions outweigh the rest of so short a run"
        ),
        (false, true) => {
            format!("the figures come from {ops} {noun}: p99 is the slowest of them")
        }
    };
    let figures = vec![
        figure("runtime_ms", to_float(runtime_ms)),
        figure("ops", to_float(ops)),
    ];
    Some(validity("length", !is_short && !is_few, sentence, figures))
}

/// Shortest runtime. It is kept in whole milliseconds, so below this rounding alone changes IOPS by
/// more than 1 %, and one slice of another thread (about 4 ms) takes a twelfth of the run.
const RUNTIME_MS: u64 = 50;
/// Fewest ops: with fewer, none lies beyond p99.
const OPS: u64 = 100;
