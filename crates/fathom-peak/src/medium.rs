//! Targets that are not, or not only, a device.

use std::path::PathBuf;

use fathom_host::backing::{JobBacking, backing_storage};
use fathom_host::block_tree::BlockTree;
use fathom_record::Warning;

/// Returns the warning that targets are in memory, or behind a page cache that O_DIRECT does not
/// bypass. With `buffered`, the caller asked for the cache.
#[must_use]
pub fn storage_warning(targets: &[PathBuf], buffered: bool) -> Option<Warning> {
    let tree = BlockTree::default();
    let mounts = tree.mounts();
    let mut below = JobBacking::default();
    for target in targets {
        below.add(&backing_storage(target, &tree, &mounts));
    }
    warning(&below, buffered)
}

fn warning(below: &JobBacking, buffered: bool) -> Option<Warning> {
    let (message, hint) = match (&below.memory, &below.cached_loop) {
        (Some((_, place)), _) => (
            format!("the target is in memory ({place}): no device was measured"),
            "name a device, or a file on one, to measure it",
        ),
        (None, Some(device)) if !buffered => (
            format!(
                "{device} uses the page cache of its backing file, even for direct I/O: the \
                 figures may be those of memory"
            ),
            "set it up with `losetup --direct-io=on` to reach the disk",
        ),
        _ => return None,
    };
    Some(Warning {
        code: "storage".into(),
        job: String::new(),
        message,
        hint: hint.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_in_memory_or_behind_a_cached_loop_device_are_told() {
        let cached = JobBacking {
            files: 1,
            cached_loop: Some("loop7".into()),
            ..JobBacking::default()
        };
        let told = warning(&cached, false).expect("a warning");
        assert!(
            told.message.starts_with("loop7 uses the page cache"),
            "{told:?}"
        );
        assert_eq!(warning(&cached, true), None, "the cache was asked for");
        let memory = JobBacking {
            files: 1,
            memory: Some((1, "zram0".into())),
            ..JobBacking::default()
        };
        let told = warning(&memory, true).expect("a warning");
        assert_eq!(
            told.message,
            "the target is in memory (zram0): no device was measured"
        );
        assert_eq!(warning(&JobBacking::default(), false), None);
    }
}
