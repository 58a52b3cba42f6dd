//! Rules about caches, files in memory, and unwritten space.

use fathom_host::allocated_extents::HOLES_PERCENT_MIN;
use fathom_host::target_kind::TargetKind;
use fathom_job::Fallocate;
use fathom_setup::caveats::DIRECT_MMAP;

use super::view::JobView;
use super::{Rule, RuleMatch};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "files-in-memory",
        "files in memory (tmpfs), which measure no device",
        files_in_memory,
    ),
    Rule::new(
        "cached-reads",
        "buffered reads of files that fit into memory",
        cached_reads,
    ),
    Rule::new(
        "cached-writes",
        "buffered writes that are never synced",
        cached_writes,
    ),
    Rule::new(
        "mmap-direct",
        "direct I/O with mmap, which has none",
        mmap_direct,
    ),
    Rule::new(
        "unaligned-ops",
        "ops not a multiple of the page or the physical block",
        unaligned_ops,
    ),
    Rule::new(
        "reads-holes",
        "reads of unwritten parts of a file",
        reads_holes,
    ),
    Rule::new(
        "first-writes",
        "random writes to unwritten space",
        first_writes,
    ),
];

fn files_in_memory(view: &JobView<'_>) -> Option<RuleMatch> {
    if !view.setup.has_local_data() || !view.storage_facts.in_memory() {
        return None;
    }
    let mount = &view.storage_facts.storage.mount;
    let of_file = (1, view.storage_facts.storage.filesystem.clone());
    let (_, place) = view.storage_facts.below.memory.as_ref().unwrap_or(&of_file);
    let direct = if view.options.direct {
        "; `direct=1` does not change that"
    } else {
        ""
    };
    RuleMatch::new(
        &["filename", "directory", "opendir"],
        format!(
            "the files are in memory ({place}; mount {mount}), so no device is measured{direct}"
        ),
        "use a `filename` or `directory` on a file system on the device",
    )
}

fn cached_reads(view: &JobView<'_>) -> Option<RuleMatch> {
    let (bytes, memory) = (view.working_set(), view.facts.memory);
    if !view.is_buffered() || !view.reads() || bytes >= memory.bytes || view.options.pre_read {
        return None; // with `pre_read`, reading from memory is intended
    }
    if bytes == 0 {
        return None; // a job without a size is refused, and has nothing that could be cached
    }
    let (job, whose, memory) = (amount(bytes), memory.owner(), amount(memory.bytes));
    let when = if !view.options.invalidate {
        "cached and repeated blocks come"
    } else if view.repeats() {
        "after the first pass, blocks come"
    } else {
        "blocks read ahead, and repeated blocks, come"
    };
    RuleMatch::new(
        &["direct", "buffered", "invalidate", "size", "filename", "rw"],
        format!(
            "reads are buffered, and the job's {job} fit into {whose} {memory} of memory: {when} \
             from the page cache, not from the device"
        ),
        "add `direct=1`, or set `size` to several times the memory",
    )
}

/// Returns an amount of data in the unit that fits.
fn amount(bytes: u64) -> String {
    match bytes {
        0..KIB => format!("{bytes} B"),
        KIB..MIB => format!("{} KiB", bytes / KIB),
        MIB.. => format!("{} MiB", bytes / MIB),
    }
}

fn cached_writes(view: &JobView<'_>) -> Option<RuleMatch> {
    let options = view.options;
    let durable = options.sync != 0 || options.fsync > 0 || options.fdatasync > 0;
    let durable = durable || options.end_fsync || options.fsync_on_close;
    if !view.is_buffered() || !view.writes() || durable {
        return None;
    }
    RuleMatch::new(
        &["direct", "buffered", "rw", "ioengine"],
        "writes are buffered and never synced: they complete in the page cache, and most reach the \
         device later or after the job",
        "add `direct=1`, or `end_fsync=1` with a `size` of several times the memory",
    )
}

fn mmap_direct(view: &JobView<'_>) -> Option<RuleMatch> {
    if view.options.engine.bypasses_cache || !view.options.direct || !view.has_storage() {
        return None;
    }
    RuleMatch::new(
        &["direct", "buffered", "ioengine"],
        DIRECT_MMAP,
        "remove `direct`, or use `ioengine=psync` or `io_uring`",
    )
}

fn unaligned_ops(view: &JobView<'_>) -> Option<RuleMatch> {
    if !view.has_storage() || !view.writes() {
        return None;
    }
    let (smallest, _) = view.op_bytes();
    let physical = view.storage_facts.storage.physical_block_bytes;
    let (block, what) = if view.is_buffered() {
        (PAGE_BYTES, "pages of the page cache")
    } else {
        (physical, "physical blocks of the device")
    };
    // Sequential buffered ops fill whole pages before write-back, so nothing is read.
    let matters = !view.is_buffered() || view.options.random;
    if !matters || block == 0 || smallest.is_multiple_of(block) {
        return None;
    }
    RuleMatch::new(
        &["bs", "bsrange", "bssplit"],
        format!(
            "ops of {smallest} B are not a multiple of the {block} B {what}: each write reads the \
             rest of its block first"
        ),
        format!("set `bs` to a multiple of {block}, unless read-modify-write is to be measured"),
    )
}

fn reads_holes(view: &JobView<'_>) -> Option<RuleMatch> {
    let filled = view.storage_facts.filled;
    // Only files that exist already: a job's own writes and layouts leave no holes.
    let never = filled.hole_percent()?;
    if !view.reads() || view.writes() || never < HOLES_PERCENT_MIN {
        return None;
    }
    RuleMatch::new(
        &["filename", "directory", "opendir"],
        format!(
            "{never:.0} % of the file is unwritten: reads there return zeros without reaching a \
             device"
        ),
        "write the file first, or remove it so that the job lays it out",
    )
}

fn first_writes(view: &JobView<'_>) -> Option<RuleMatch> {
    let options = view.options;
    if !view.writes() || view.reads() || !options.random || options.overwrite {
        return None; // files that are also read are laid out with content
    }
    let grows = view.setup.files.iter().find(|file| {
        let there = file.found.bytes().unwrap_or(0);
        matches!(file.found, TargetKind::Missing | TargetKind::Regular(_)) && there < file.bytes
    })?;
    let how = match options.fallocate {
        Fallocate::None | Fallocate::Truncate => "a hole",
        _ => "preallocated space",
    };
    (view.has_storage()).then_some(())?;
    RuleMatch::new(
        &["fallocate", "rw"],
        format!(
            "{} is new and consists of {how}: the first write to each block also updates file \
             system metadata and takes longer than later ones",
            grows.path
        ),
        "add `overwrite=1` to write the file once before the job",
    )
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Smallest page size of Linux, bytes.
const PAGE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_the_unit_that_fits() {
        let amounts = [512, 64 << 10, 1 << 20, 24_105 << 20].map(amount);
        assert_eq!(amounts, ["512 B", "64 KiB", "1 MiB", "24105 MiB"]);
    }
}
