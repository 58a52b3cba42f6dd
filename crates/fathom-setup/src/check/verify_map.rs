//! Memory of the maps that verification keeps of the files.

use std::sync::Arc;

use fathom_job::Size;
use fathom_workload::{GenerationMap, MapLayout};

use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;
use crate::translate::JobSetup;

/// Returns a problem if the maps exceed `verify_map_limit`, of a host with so much memory; without
/// a host only a limit in bytes counts.
pub fn verify_maps(setups: &[JobSetup], memory_bytes: Option<u64>) -> Option<RunProblem> {
    let mut seen: Vec<&Arc<GenerationMap>> = Vec::new();
    let mut total: u64 = 0;
    for setup in setups {
        for map in setup.worker.generations.iter().flatten() {
            if seen.iter().any(|other| Arc::ptr_eq(other, map)) {
                continue;
            }
            seen.push(map);
            total = total.saturating_add(map.memory_bytes());
            let limit = limit(setup, memory_bytes).filter(|limit| total > *limit);
            if let Some(limit) = limit {
                return Some(problem(setup, map.layout(), total, limit));
            }
        }
        for layout in setup.worker.dry_run_layouts() {
            total = total.saturating_add(layout.dry_run_bytes());
            let limit = limit(setup, memory_bytes).filter(|limit| total > *limit);
            if let Some(limit) = limit {
                return Some(problem(setup, layout, total, limit));
            }
        }
    }
    None
}

fn limit(setup: &JobSetup, memory_bytes: Option<u64>) -> Option<u64> {
    match setup.job.options.readback.map_limit {
        Some(Size::Bytes(bytes)) => Some(bytes),
        Some(Size::Percent(percent)) => Some(memory_bytes?.saturating_mul(percent.into()) / 100),
        Some(Size::Zones(_)) | None => Some(memory_bytes? / DEFAULT_SHARE),
    }
}

fn problem(setup: &JobSetup, layout: MapLayout, total: u64, limit: u64) -> RunProblem {
    let block = layout.block_bytes;
    let message = format!(
        "verification needs {total} B of memory to track the latest write of each {block}-B block, \
         more than `verify_map_limit`, {limit} B"
    );
    RunProblem::new(ProblemKind::VerifyMapTooLarge, message)
        .hint(
            "use larger blocks, with offsets, gaps and zones that are multiples of them, verify a \
             smaller part, or raise `verify_map_limit`",
        )
        .at(&setup.job, "verify")
}

/// By default the maps take at most this share of the memory.
const DEFAULT_SHARE: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::FakeFiles;
    use crate::testing::plan;
    use crate::translate::translate;

    #[track_caller]
    fn check(words: &str, memory_bytes: Option<u64>, want: Option<&str>) {
        let words = format!("--name=t --rw=randwrite --verify=crc32c --bs=4k {words}");
        let setups = translate(&plan(&words), &FakeFiles::default(), &mut || 1).setups;
        let problem = verify_maps(&setups, memory_bytes);
        let message = problem.as_ref().map(|problem| problem.message.as_str());
        match (message, want) {
            (Some(message), Some(want)) => assert!(message.contains(want), "{message}"),
            (message, want) => assert_eq!(message, want, "{words}"),
        }
    }

    #[test]
    fn maps_above_the_limit_are_refused_with_their_size() {
        check("--size=1g", Some(4 << 20), None);
        check("--size=1g", Some((4 << 20) - 4), Some("needs 1048576 B"));
        check("--size=1g", None, None);
        check("--size=1g --verify_map_limit=1m", None, None);
        check(
            "--size=1g --verify_map_limit=1023k",
            Some(1 << 40),
            Some("1047552 B"),
        );
        check("--size=1g --verify_map_limit=50%", Some(2 << 20), None);
        check(
            "--size=1g --numjobs=2",
            Some(4 << 20),
            Some("needs 2097152 B"),
        );
        check("--size=1g --numjobs=2 --filename=f", Some(4 << 20), None);
        check(
            "--size=1g --blockalign=512",
            Some(4 << 20),
            Some("each 512-B block"),
        );
        // The gap leaves blocks of 4 B, and one of whole blocks leaves these.
        check(
            "--size=1g --rw=write:100",
            Some(4 << 20),
            Some("needs 1073741824 B of memory to track the latest write of each 4-B block"),
        );
        check("--size=1g --rw=write:4k", Some(4 << 20), None);
    }
}
