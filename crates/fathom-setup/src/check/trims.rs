//! Check that the devices of a job that trims discard blocks.

use std::path::Path;

use fathom_core::Direction;
use fathom_host::block_tree::{BlockTree, HostDevice};
use fathom_host::storage::number_under;
use fathom_job::{Options, ZoneMode};

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
    discards_nothing(&disk, options.zones.mode).then(|| {
        let message = format!("no trims: {}: the device discards nothing", file.path);
        let hint = "choose a device whose queue/discard_max_bytes is not 0";
        let problem = RunProblem::new(ProblemKind::NoTrims, message).hint(hint);
        (option, problem)
    })
}

/// Returns true if a disk refuses the trims of a job. Those of whole zones are resets, which need
/// no discards.
fn discards_nothing(disk: &HostDevice, mode: ZoneMode) -> bool {
    let most = disk.attribute("queue/discard_max_bytes");
    most.is_some_and(|most| most == "0") && !(disk.has_zones() && mode == ZoneMode::Zbd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_host::fixture::FakeHost;

    #[track_caller]
    fn check(world: &str, bytes: &str, zoned: &str, mode: ZoneMode, refused: bool) {
        let fake = FakeHost::new(world);
        fake.device("nullb0", "259:0");
        fake.attribute("nullb0", "queue/discard_max_bytes", bytes);
        fake.attribute("nullb0", "queue/zoned", zoned);
        let disk = fake.tree().named("nullb0").expect("the fake device");
        assert_eq!(discards_nothing(&disk, mode), refused, "{world}");
    }

    #[test]
    fn zones_are_reset_on_disks_that_discard_nothing() {
        check("trims-a", "0\n", "host-managed\n", ZoneMode::Zbd, false);
        check("trims-b", "0\n", "host-managed\n", ZoneMode::None, true);
        check("trims-c", "0\n", "none\n", ZoneMode::Zbd, true);
        check("trims-d", "4096\n", "none\n", ZoneMode::None, false);
    }
}
