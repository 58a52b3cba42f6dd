//! Check that the devices of a job that trims discard blocks.

use std::path::Path;

use fathom_core::Direction;
use fathom_host::block_tree::BlockTree;
use fathom_host::storage::number_under;
use fathom_job::Options;

use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;
use crate::translate::FileSetup;
use crate::translate::pattern::uses;

/// Returns the option to blame and the problem, if the job trims a device that discards nothing.
pub(super) fn check(
    options: &Options,
    file: &FileSetup,
    tree: &BlockTree,
) -> Option<(&'static str, RunProblem)> {
    let option = match options.trims.percentage {
        _ if uses(options, Direction::Trim) => "rw",
        0 => return None,
        _ => "trim_percentage",
    };
    // Files are trimmed by punching holes, which only an attempt can tell.
    let (true, number) = number_under(Path::new(&file.path))? else {
        return None;
    };
    let disk = tree.device(number)?.whole_disk();
    let most = disk.attribute("queue/discard_max_bytes")?;
    (most.trim() == "0").then(|| {
        let message = format!("no trims: {}: the device discards nothing", file.path);
        let hint = "choose a device whose queue/discard_max_bytes is not 0";
        let problem = RunProblem::new(ProblemKind::NoTrims, message).hint(hint);
        (option, problem)
    })
}
