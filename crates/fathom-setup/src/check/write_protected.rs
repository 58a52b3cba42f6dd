//! Check that the devices of a job that changes them are not write-protected.

use std::path::Path;

use fathom_host::block_tree::{BlockTree, HostDevice};

use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;

/// Returns the problem, if a device is write-protected: by itself, or by `blockdev --setro`. The
/// kernel opens its block device for writing and fails each write with `EPERM`. Commands that pass
/// the block layer would even be performed, against the wish of the one that protected it.
pub(super) fn check(path: &Path, tree: &BlockTree) -> Option<RunProblem> {
    let device = tree.device_at(path)?;
    is_protected(&device).then(|| {
        let message = format!("{} is write-protected", path.display());
        let hint = format!(
            "`blockdev --setrw /dev/{}` permits writes, unless the device itself refuses them",
            device.name
        );
        RunProblem::new(ProblemKind::WriteProtected, message).hint(hint)
    })
}

fn is_protected(device: &HostDevice) -> bool {
    device.attribute("ro").is_some_and(|ro| ro == "1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_host::fixture::FakeHost;

    #[test]
    fn a_device_is_protected_by_its_attribute() {
        let fake = FakeHost::new("write-protected");
        for (name, number, ro, protected) in
            [("sda", "8:0", "1\n", true), ("sdb", "8:16", "0\n", false)]
        {
            fake.device(name, number);
            fake.attribute(name, "ro", ro);
            let device = fake.tree().named(name).expect("the fake device");
            assert_eq!(is_protected(&device), protected, "{name}");
        }
    }
}
