//! Storage beneath a job's files: a device, memory, or a device behind a page cache.

use fathom_host::backing::JobBacking;
use fathom_record::Validity;

use super::{CACHED_PERCENT, JobEvidence, RunEvidence, figure, moved, percent, validity};

/// Checks that the files are on a device.
pub(super) fn storage(seen: &JobEvidence<'_>, run: &RunEvidence) -> Option<Validity> {
    let JobBacking {
        files,
        memory,
        cached_loop,
        ..
    } = &seen.below;
    if moved(seen) == 0 {
        return None;
    }
    let sentence = match (memory, cached_loop) {
        (Some((count, place)), _) if count == files => {
            format!("the files are in memory ({place}): no device was measured")
        }
        (Some((count, place)), _) => {
            format!(
                "{count} of {files} files are in memory ({place}): no device was measured there"
            )
        }
        (None, Some(device)) => return Some(behind_a_loop(seen, run, device)),
        (None, None) => return None,
    };
    Some(validity("storage", false, sentence, Vec::new()))
}

/// Judges a loop device that uses the page cache of its backing file: direct I/O bypasses only the
/// cache above it.
///
/// Its own counters show no difference between the two, but those of the disk beneath do. That disk
/// may have read for other processes or ahead, so the share of memory is a lower bound.
fn behind_a_loop(seen: &JobEvidence<'_>, run: &RunEvidence, device: &str) -> Validity {
    let read = seen.record.directions.read.bytes;
    let from_memory = run
        .loop_read_bytes
        .and_then(|beneath| percent(read.saturating_sub(beneath), read));
    let effect = match from_memory {
        Some(share) if share >= CACHED_PERCENT => format!(
            "at least {share:.0} % of the bytes read came from memory, not from the disk beneath"
        ),
        _ => "reads may come from memory and writes stay there".into(),
    };
    let sentence = format!(
        "{device} uses the page cache of its backing file, even for direct I/O: {effect} \
         (`losetup --direct-io=on` reaches the disk)"
    );
    let figures = from_memory.map(|share| figure("from_memory_percent", share));
    validity("storage", false, sentence, figures.into_iter().collect())
}
