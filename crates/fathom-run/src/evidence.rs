//! What is looked at before and after the jobs: disks, processor time, the page cache.

use std::path::Path;

use fathom_core::Tick;
use fathom_job::Plan;
use fathom_record::{DiskRecord, JobRecord, Storage, Validity};
use fathom_sys::system::{self, CpuTimes};

use crate::block_tree::BlockTree;
use crate::disks::DiskWatch;
use crate::page_cache::{Cached, cached};
use crate::storage::storage_under;
use crate::translate::JobSetup;
use crate::validity::{JobEvidence, RunEvidence, judge_job, judge_run, read_bytes};

/// What was seen before the jobs began.
pub(crate) struct Before {
    tree: BlockTree,
    disks: DiskWatch,
    cpu: Option<CpuTimes>,
    device_bytes: Option<u64>,
    cached: Vec<Cached>,
}

/// What was seen over the whole run.
pub(crate) struct Evidence {
    /// What the devices did.
    pub(crate) disks: Vec<DiskRecord>,
    /// What is under each file.
    pub(crate) storage: Vec<Storage>,
    cpu: Option<(CpuTimes, CpuTimes)>,
    /// Bytes that devices read for this process.
    device_bytes: Option<u64>,
    cached: Vec<(Cached, Cached)>,
}

impl Before {
    /// Looks before the first job starts.
    pub(crate) fn look(setups: &[JobSetup], now: Tick) -> Self {
        let tree = BlockTree::default();
        Self {
            disks: DiskWatch::start(paths(setups), &tree, now),
            cpu: system::cpu_times(),
            device_bytes: bytes_from_devices(),
            cached: setups.iter().map(cached_of).collect(),
            tree,
        }
    }

    /// Looks again when the last job has ended.
    pub(crate) fn look_again(self, setups: &[JobSetup], now: Tick) -> Evidence {
        let after = setups.iter().map(cached_of);
        let files = paths(setups).take(FILES_DESCRIBED);
        Evidence {
            disks: self.disks.finish(now),
            storage: files.map(|path| storage_under(path, &self.tree)).collect(),
            cpu: self.cpu.zip(system::cpu_times()),
            device_bytes: self
                .device_bytes
                .zip(bytes_from_devices())
                .map(|(before, after)| after.saturating_sub(before)),
            cached: self.cached.into_iter().zip(after).collect(),
        }
    }
}

impl Evidence {
    /// What the numbers of all jobs are worth. `mean_depths` are in the order of the jobs.
    pub(crate) fn judge(
        &self,
        plan: &Plan,
        setups: &[JobSetup],
        records: &[JobRecord],
        mean_depths: &[f64],
    ) -> Vec<Validity> {
        let jobs = setups
            .iter()
            .zip(records)
            .zip(&self.cached)
            .zip(mean_depths);
        let jobs = jobs.map(
            |(((setup, record), &(before, after)), &mean_depth)| JobEvidence {
                job: &plan.jobs[setup.place.section],
                setup,
                record,
                cached_before: before,
                cached_after: after,
                mean_depth,
            },
        );
        let jobs: Vec<_> = jobs.collect();
        let buffered = jobs.iter().map(|seen| read_bytes(seen, false));
        let direct = jobs.iter().map(|seen| read_bytes(seen, true));
        let run = RunEvidence {
            cpu: self.cpu,
            device_bytes: self.device_bytes,
            direct_read_bytes: direct.sum(),
            buffered_read_bytes: buffered.sum(),
            memory_bytes: system::memory_bytes(),
        };
        // Clones of one job are alike: the first speaks for all.
        let first = jobs.iter().filter(|seen| seen.setup.place.clone == 0);
        let mut validity: Vec<_> = first.flat_map(|seen| judge_job(seen, &run)).collect();
        validity.extend(judge_run(&run));
        validity
    }
}

/// Every file of the run that is not made up, each once.
fn paths(setups: &[JobSetup]) -> impl Iterator<Item = &Path> {
    let mut seen = std::collections::HashSet::new();
    let real = setups.iter().filter(|setup| !setup.diskless);
    let files = real
        .flat_map(|setup| &setup.files)
        .map(|file| Path::new(&file.path));
    files.filter(move |path| seen.insert(*path))
}

/// How much of a job's files is cached; clones are not asked again, as only the first is judged.
fn cached_of(setup: &JobSetup) -> Cached {
    if setup.diskless || setup.place.clone != 0 {
        return Cached::default();
    }
    let files = setup.files.iter().take(FILES_DESCRIBED);
    cached(files.map(|file| (Path::new(&file.path), file.bytes)))
}

/// Bytes that devices have read for this process so far, for its page cache or past it; `None`
/// where the kernel does not count them.
fn bytes_from_devices() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("read_bytes: "))?;
    line.trim().parse().ok()
}

/// A job of a thousand files says no more by its last than by its hundredth.
const FILES_DESCRIBED: usize = 64;
