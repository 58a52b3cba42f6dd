//! Placement of a plan's files on modelled devices.

use std::collections::HashMap;

use fathom_block::SparseBytes;
use fathom_setup::translate::{FileSetup, JobSetup};
use fathom_sim::ModelFile;

/// Device that a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    /// Index of the device.
    pub(crate) storage: usize,
    /// The name is the device itself, not a file on it.
    pub(crate) is_device: bool,
}

/// Files of a plan, placed on their devices.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    /// All files, each once.
    pub(crate) files: Vec<ModelFile>,
    /// Indices of the files of each setup.
    pub(crate) of_jobs: Vec<Vec<usize>>,
    /// Start of the free space of each device, bytes.
    pub(crate) used: HashMap<usize, u64>,
}

/// Places the files one after the other on their devices, in the order of the jobs. Content is kept
/// only for files that a job verifies.
pub(crate) fn place(setups: &[JobSetup], home: &dyn Fn(&str) -> Home) -> Placed {
    let mut placed = Placed::default();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let sizes = sizes(setups);
    for setup in setups {
        let mut of_job = Vec::with_capacity(setup.files.len());
        for file in &setup.files {
            let number = *numbers
                .entry(&file.path)
                .or_insert_with(|| placed.add(sizes[file.path.as_str()], home(&file.path)));
            of_job.push(number);
            if setup.worker.verify.is_some() {
                placed.files[number]
                    .content
                    .get_or_insert_with(SparseBytes::default);
            }
        }
        placed.of_jobs.push(of_job);
    }
    placed
}

impl Placed {
    fn add(&mut self, bytes: u64, home: Home) -> usize {
        let storage = home.storage;
        let free = self.used.entry(storage).or_default();
        let base = if home.is_device {
            0
        } else {
            let end = free.saturating_add(bytes).saturating_add(ALIGN - 1) / ALIGN * ALIGN;
            std::mem::replace(free, end)
        };
        self.files.push(ModelFile {
            storage,
            base,
            content: None,
            earlier: None,
        });
        self.files.len() - 1
    }
}

/// Returns the size of each file once all jobs have laid out theirs.
fn sizes(setups: &[JobSetup]) -> HashMap<&str, u64> {
    let mut sizes = HashMap::new();
    for file in setups.iter().flat_map(|setup| &setup.files) {
        let size: &mut u64 = sizes.entry(file.path.as_str()).or_default();
        *size = (*size).max(file.file_bytes()).max(end(file));
    }
    sizes
}

fn end(file: &FileSetup) -> u64 {
    file.offset.saturating_add(file.length)
}

/// Alignment of files, bytes, as on file systems that allocate large extents.
const ALIGN: u64 = 1 << 20;
