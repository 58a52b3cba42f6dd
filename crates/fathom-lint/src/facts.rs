//! Facts about the machine that the rules use.

use std::path::Path;

use fathom_host::allocated_extents::{AllocatedBytes, allocated_bytes};
use fathom_host::backing::{JobBacking, backing_storage};
use fathom_host::block_tree::BlockTree;
use fathom_host::control_groups::MemoryLimit;
use fathom_host::probe::cpus_online;
use fathom_host::storage::{is_in_memory, storage_under};
use fathom_record::StorageRecord;
use fathom_setup::translate::JobSetup;

/// Facts about the machine that the rules use.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Memory available to the process.
    pub(super) memory: MemoryLimit,
    /// Number of CPUs online.
    pub(super) cpus: u32,
    /// Storage under the first file of each section, by the section's index.
    pub(super) sections: Vec<SectionFacts>,
}

/// Storage under the files of one section.
#[derive(Clone, Debug, Default)]
pub(super) struct SectionFacts {
    /// Storage under its first file.
    pub(super) storage: StorageRecord,
    /// Allocated part of the files.
    pub(super) filled: AllocatedBytes,
    /// Backing storage of its files.
    pub(super) below: JobBacking,
}

impl Facts {
    /// Gathers the facts about the machine and the files of each section.
    pub(super) fn gather(setups: &[JobSetup]) -> Self {
        let tree = BlockTree::default();
        let sections = setups.iter().map(|setup| setup.place.section + 1).max();
        let mut facts = Self {
            memory: MemoryLimit::detect(),
            cpus: cpus_online(),
            sections: vec![SectionFacts::default(); sections.unwrap_or(0)],
        };
        let mounts = tree.mounts();
        let firsts = setups.iter().filter(|setup| setup.place.clone == 0);
        for setup in firsts.filter(|setup| setup.has_local_files()) {
            let files = setup.files.iter().take(FILES_EXAMINED_MAX);
            let files = files.map(|file| (Path::new(&file.path), file.bytes));
            let mut below = JobBacking::default();
            for (path, _) in files.clone() {
                below.add(&backing_storage(path, &tree, &mounts));
            }
            facts.sections[setup.place.section] = SectionFacts {
                storage: setup
                    .files
                    .first()
                    .map_or_else(StorageRecord::default, |file| {
                        storage_under(Path::new(&file.path), &tree)
                    }),
                filled: allocated_bytes(files),
                below,
            };
        }
        facts
    }
}

impl SectionFacts {
    /// Returns true if the files are in memory.
    pub(super) fn in_memory(&self) -> bool {
        is_in_memory(&self.storage.filesystem) || self.below.memory.is_some()
    }

    /// Returns true if compressible or duplicate data cost less than other data on this storage.
    pub(super) fn compresses(&self) -> bool {
        let StorageRecord {
            filesystem, device, ..
        } = &self.storage;
        let filesystems = ["zfs", "btrfs", "bcachefs", "f2fs", "squashfs", "erofs"];
        filesystems.contains(&filesystem.as_str()) || device.starts_with("zram")
    }
}

/// Files examined per section: as many as for the evidence of a run; more would rarely add
/// anything.
const FILES_EXAMINED_MAX: usize = 64;
