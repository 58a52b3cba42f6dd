//! Path of a job's ops through the loop, chosen once from its configuration.

use fathom_core::{Capabilities, Queueing};

use crate::buffers::Filler;
use crate::config::{Batching, Mix, WorkerConfig};

/// Path of a job's ops through the loop.
///
/// All three mean the same. *Checked* is the reference: it applies every rule to every op, and any
/// job may take it. The two fast ones skip the rules that this job does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// Every rule is applied to every op.
    Checked,
    /// No rule looks at single ops: they are issued and recorded in batches.
    Batch,
    /// And each completion is reaped by itself and makes room for one op.
    Replenish,
}

impl Path {
    /// Returns the fastest path that a job may take.
    pub(crate) fn of(config: &WorkerConfig, engine: Capabilities, depth: u32) -> Self {
        if !ignores_single_ops(config, engine) {
            Self::Checked
        } else if is_one_by_one(&config.batching, depth) {
            Self::Replenish
        } else {
            Self::Batch
        }
    }

    /// Returns whether ops may be issued without a look at each.
    pub(crate) const fn is_fast(self) -> bool {
        !matches!(self, Self::Checked)
    }
}

/// Returns whether no rule of a job looks at single ops.
///
/// The configuration is taken apart without `..`, so that a new field does not compile until
/// its author has decided whether the fast paths honour it.
fn ignores_single_ops(config: &WorkerConfig, engine: Capabilities) -> bool {
    let WorkerConfig {
        pattern,
        trim_ranges,
        rate,
        think,
        serialize_overlap,
        sync,
        verify,
        is_dry_run,
        generations,
        buffers,
        priorities,
        limits,
        block_lives,
        zoned,
        replay,
        records,
        // Settled before the first op, or by the choice between batch and replenish.
        depth: _,
        batching: _,
        start_delay: _,
        // Looked at between passes, where every path goes through the same stages.
        bytes_per_pass: _,
        loops: _,
        bytes_in_all: _,
        time_based: _,
        sync_filesystems: _,
        recreate_each_pass: _,
        invalidate: _,
        // Looked at when a timer expires.
        runtime: _,
        ramp: _,
        rate_min: _,
        rate_cycle: _,
        // Failed ops leave the fast paths before these are asked.
        fill: _,
        tolerate: _,
        // The recorder's.
        measure: _,
        timeline: _,
    } = config;
    let used = config.used_directions();
    // Where both directions have rates, the one that is due first comes next.
    let races =
        matches!(pattern.mix, Mix::ReadWrite { .. }) && rate.iter().any(|(_, rate)| rate.is_some());
    let verifies = (verify.is_some() || !generations.is_empty()) && engine.moves_data;
    let fills = used.write && engine.moves_data && Filler::changes(buffers);
    let syncs = used.write && sync.watches_writes();
    let drains = used.trim && engine.trims != Queueing::Queued;
    // A write waits for the trim of its block.
    let pairs = pattern.mix == Mix::TrimWrite;
    !(races
        || *is_dry_run
        || verifies
        || fills
        || syncs
        || drains
        || pairs
        || *trim_ranges > 1
        || think.is_some()
        || *serialize_overlap
        || priorities.is_some()
        || block_lives.is_some()
        || zoned.is_some()
        || limits.apply_to_ops()
        || replay.is_some()
        || *records)
}

/// Returns whether each completion is reaped by itself and makes room for one op.
const fn is_one_by_one(batching: &Batching, depth: u32) -> bool {
    let submits_one = batching.submit == 1 || depth == 1;
    let reaps_one = batching.complete_max == 1 || depth == 1;
    submits_one && reaps_one && batching.complete_min > 0 && batching.low >= depth
}
