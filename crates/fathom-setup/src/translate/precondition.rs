//! Bytes of a pass that preconditions an SSD (`sprandom`).

use fathom_job::Options;
use fathom_workload::{PatternConfig, Preconditioning};

use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;

use super::pattern::smallest;

/// Returns the bytes of a pass: `moved`, unless the job preconditions its file and has no
/// `io_size`.
///
/// # Errors
/// Several files, or a region that the device's cache could hold.
pub(super) fn bytes_per_pass(
    options: &Options,
    pattern: &PatternConfig,
    moved: u64,
) -> Result<u64, RunProblem> {
    let Some(asked) = pattern.preconditioning else {
        return Ok(moved);
    };
    let problem = |message| Err(RunProblem::new(ProblemKind::Contradiction, message));
    let [file] = pattern.files[..] else {
        let message = format!("`sprandom` has one file, not {}", pattern.files.len());
        return problem(message);
    };
    // The parser refuses several sizes.
    let size = smallest(options);
    let blocks = file.length / size;
    let region = asked.distance(blocks).saturating_mul(size);
    let cache = options.device.spr_cs;
    if region / 2 < cache {
        return Err(too_small(asked, region, cache));
    }
    match options.io_size {
        Some(_) => Ok(moved),
        None => Ok(asked.writes(blocks).saturating_mul(size)),
    }
}

/// Returns the problem of regions that are written again while the device may still hold them in
/// its cache, where nothing is outdated.
fn too_small(asked: Preconditioning, region: u64, cache: u64) -> RunProblem {
    let message = format!(
        "regions of {region} B are smaller than twice the cache of {cache} B (`spr_cs`), which \
         would take up writes of the same block"
    );
    let fewer = u64::from(asked.regions) * region / cache.saturating_mul(2).max(1);
    let hint = match fewer {
        0 | 1 => "use a larger `size`".to_owned(),
        _ => format!("set `spr_num_regions` to {fewer} or less"),
    };
    RunProblem::new(ProblemKind::Contradiction, message).hint(hint)
}
