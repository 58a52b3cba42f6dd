//! Check that existing files store the job's writes whole (`atomic=1`). The engine checks files
//! that the layout creates when it opens them.

use std::path::Path;

use fathom_core::Direction;
use fathom_host::probe;
use fathom_job::Options;

use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;
use crate::translate::FileSetup;
use crate::translate::pattern::{bounds, uses};

/// Returns the size of the job's atomic writes; 0 if they need not be atomic.
pub fn write_bytes(options: &Options) -> u64 {
    match options.device.atomic && uses(options, Direction::Write) {
        // The parser refuses several sizes.
        true => bounds(options, Direction::Write).1,
        false => 0,
    }
}

/// Returns the option to blame and the problem, if the file's storage does not store writes of this
/// size whole.
pub(super) fn check(options: &Options, file: &FileSetup) -> Option<(&'static str, RunProblem)> {
    let bytes = write_bytes(options);
    let path = &file.path;
    if bytes == 0 || !Path::new(path).exists() {
        return None;
    }
    let problem = |message| RunProblem::new(ProblemKind::NotAtomic, message);
    // A file that cannot be opened is refused for that.
    let Some(units) = probe::atomic_writes(Path::new(path)).ok()? else {
        let message = format!("no atomic writes: {path}: its storage has none");
        let hint = "remove `atomic`, or use a device or a file system that has them";
        return Some(("atomic", problem(message).hint(hint)));
    };
    if !units.allow(bytes) {
        let message = format!(
            "no atomic writes of {bytes} B: {path}: its storage has those from {} to {} B",
            units.min, units.max
        );
        let hint = format!("choose a power of two from {} to {}", units.min, units.max);
        return Some(("bs", problem(message).hint(hint)));
    }
    if !file.offset.is_multiple_of(bytes) {
        let message = format!(
            "offset {} B is not a multiple of the {bytes} B of an atomic write",
            file.offset
        );
        return Some(("offset", problem(message)));
    }
    None
}
