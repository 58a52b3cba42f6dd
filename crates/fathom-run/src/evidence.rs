//! Evidence for the validity checks, gathered before and after the jobs: disks, CPU time, the page
//! cache, control groups.
//!
//! All of it happens outside the measured time. Files and clones are sampled (`FILES_DESCRIBED`,
//! `CLONES_ASKED`), so that a plan with thousands of them starts as quickly.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use fathom_core::Tick;
use fathom_host::allocated_extents::{AllocatedBytes, allocated_bytes};
use fathom_host::backing::{BackingStorage, JobBacking, backing_storage};
use fathom_host::block_tree::{BlockTree, HostDevice};
use fathom_host::control_groups::{ControlGroups, CpuLimit, MemoryLimit};
use fathom_host::disks::DiskWatch;
use fathom_host::page_cache::{CachedBytes, cached_bytes};
use fathom_host::processors::ProcessorWatch;
use fathom_host::storage::{number_under, storage_under};
use fathom_record::{DiskRecord, JobRecord, ProcessorsRecord, StorageRecord, Validity};
use fathom_setup::translate::JobSetup;
use fathom_setup::translate::pattern::writes;
use fathom_setup::validity::judge_clones;
use fathom_sys::system::{self, CpuTimes};
use fathom_sys::thread;

use crate::affinity;
use crate::validity::{
    JobEvidence, JobProcessors, RunEvidence, judge_job, judge_run, read_bytes, written_bytes,
};

/// Baseline captured before the jobs start.
pub(crate) struct Baseline {
    tree: BlockTree,
    disks: DiskWatch,
    cpu: Option<CpuTimes>,
    device_bytes: Option<u64>,
    cached: Vec<CachedBytes>,
    processor: Option<CpuLimit>,
    processors: ProcessorWatch,
    /// Disks beneath loop devices.
    beneath_loops: Option<DiskWatch>,
    /// CPUs on which each job may run.
    cpus: Vec<Vec<u32>>,
    since: Tick,
}

/// Differences between the baseline and the end of the run.
pub(crate) struct Evidence {
    /// Activity of the devices.
    pub(crate) disks: Vec<DiskRecord>,
    /// Storage beneath each file.
    pub(crate) storage: Vec<StorageRecord>,
    cpu: Option<(CpuTimes, CpuTimes)>,
    /// Bytes that devices read for this process.
    device_bytes: Option<u64>,
    cached: Vec<(CachedBytes, CachedBytes)>,
    filled: Vec<AllocatedBytes>,
    /// Storage beneath the files of each job.
    beneath: Vec<JobBacking>,
    /// CPU limit of the control group before and after, and the time between, ns.
    processor: Option<(CpuLimit, CpuLimit, u64)>,
    /// Control-group limits on I/O to the devices of the run.
    io_limits: Vec<String>,
    /// Use of the processors on which jobs may run.
    pub(crate) processors: Option<ProcessorsRecord>,
    /// CPUs on which each job may run.
    cpus: Vec<Vec<u32>>,
    /// Bytes that the disks beneath loop devices read.
    loop_read_bytes: Option<u64>,
}

impl Baseline {
    /// Captures the baseline, before the first job starts.
    pub(crate) fn capture(setups: &[JobSetup], now: Tick) -> Self {
        let tree = BlockTree::default();
        let cpus = cpus_of_each(setups);
        let all: BTreeSet<u32> = cpus.iter().flatten().copied().collect();
        let disks = DiskWatch::start(paths(setups), &tree, now);
        let bottoms = || bottom_disks(&all_beneath(setups, &tree));
        let beneath_loops = disks.has_loop().then(|| DiskWatch::of(bottoms(), now));
        Self {
            disks,
            beneath_loops,
            cpu: system::cpu_times(),
            device_bytes: bytes_from_devices(),
            cached: setups.iter().map(cached_of).collect(),
            processor: ControlGroups::of_this_process().cpu_limit(),
            processors: ProcessorWatch::start(all.into_iter().collect(), now),
            cpus,
            since: now,
            tree,
        }
    }

    /// Returns the activity of the devices so far.
    pub(crate) fn disks_so_far(&self, now: Tick) -> Vec<DiskRecord> {
        self.disks.finish(now)
    }

    /// Returns the devices whose activity is measured, with their counters at the start.
    pub(crate) fn disks(&self) -> DiskWatch {
        self.disks.clone()
    }

    /// Gathers the evidence after the last job has ended.
    pub(crate) fn finish(self, setups: &[JobSetup], now: Tick) -> Evidence {
        let after = setups.iter().map(cached_of);
        let files = paths(setups).take(FILES_DESCRIBED);
        let written: HashSet<&str> = (setups.iter())
            .filter(|setup| writes(&setup.job.options))
            .flat_map(|setup| setup.files.iter().map(|file| file.path.as_str()))
            .collect();
        let groups = ControlGroups::of_this_process();
        let beneath = all_beneath(setups, &self.tree);
        let wall_ns = (now - self.since).get();
        let processor = self.processor.zip(groups.cpu_limit());
        Evidence {
            io_limits: io_limits(&groups, &beneath),
            loop_read_bytes: self.beneath_loops.map(|disks| read_bytes_of(&disks, now)),
            processors: self.processors.finish(now, processor),
            cpus: self.cpus,
            processor: processor.map(|(before, after)| (before, after, wall_ns)),
            disks: self.disks.finish(now),
            storage: files.map(|path| storage_under(path, &self.tree)).collect(),
            cpu: self.cpu.zip(system::cpu_times()),
            device_bytes: self
                .device_bytes
                .zip(bytes_from_devices())
                .map(|(before, after)| after.saturating_sub(before)),
            cached: self.cached.into_iter().zip(after).collect(),
            filled: (setups.iter())
                .map(|setup| filled_of(setup, &written))
                .collect(),
            beneath,
        }
    }
}

impl Evidence {
    /// Judges the results of all jobs. `mean_depths` are in the order of the jobs.
    pub(crate) fn judge(
        &self,
        setups: &[JobSetup],
        records: &[JobRecord],
        mean_depths: &[f64],
    ) -> Vec<Validity> {
        let buffered_files = buffered_files(setups);
        let jobs = setups.iter().zip(records).enumerate();
        let jobs = jobs.map(|(index, (setup, record))| {
            let (cached_before, cached_after) = self.cached[index];
            JobEvidence {
                job: &setup.job,
                setup,
                record,
                cached_before,
                cached_after,
                filled: self.filled[index],
                mean_depth: mean_depths[index],
                below: self.beneath[index].clone(),
                shares_with_buffered: (setup.files.iter())
                    .any(|file| buffered_files.contains(file.path.as_str())),
                processors: self.processors_of(index, records),
            }
        });
        let jobs: Vec<_> = jobs.collect();
        let buffered = jobs.iter().map(|seen| read_bytes(seen, false));
        let direct = jobs.iter().map(|seen| read_bytes(seen, true));
        let run = RunEvidence {
            cpu: self.cpu,
            device_bytes: self.device_bytes,
            direct_read_bytes: direct.sum(),
            buffered_read_bytes: buffered.sum(),
            memory: MemoryLimit::detect(),
            written_bytes: jobs.iter().map(written_bytes).sum(),
            disk_write_bytes: self.disk_write_bytes(),
            processor: self.processor,
            io_limits: self.io_limits.clone(),
            loop_read_bytes: self.loop_read_bytes,
            processors: self.processors,
        };
        let clones = jobs.chunk_by(|one, next| one.setup.place.section == next.setup.place.section);
        let mut validity: Vec<_> = clones
            .flat_map(|clones| {
                let each = clones.iter().map(|seen| judge_job(seen, &run));
                judge_clones(&each.collect::<Vec<_>>())
            })
            .collect();
        validity.extend(judge_run(&run));
        validity
    }

    /// Returns the processors of a job, and the jobs that ran on them beside it.
    fn processors_of(&self, index: usize, records: &[JobRecord]) -> JobProcessors {
        let own = &self.cpus[index];
        let span = |record: &JobRecord| {
            let end_ms = record.start_ms + record.cpu.wall_us / 1_000;
            (record.start_ms, end_ms)
        };
        let (start, end) = span(&records[index]);
        let shares = |(cpus, record): &(&Vec<u32>, &JobRecord)| {
            let (other_start, other_end) = span(record);
            let ran = record.scheduling.is_some() && other_start <= end && start <= other_end;
            ran && cpus.iter().any(|cpu| own.contains(cpu))
        };
        JobProcessors {
            cpus: own.len(),
            jobs: self.cpus.iter().zip(records).filter(shares).count(),
        }
    }

    /// Returns the bytes that the disks wrote, for any process; `None` without disks or counters.
    fn disk_write_bytes(&self) -> Option<u64> {
        // The members of a stacked device have entries of their own, which would count twice.
        let is_part = |name: &String| self.disks.iter().any(|disk| disk.parts.contains(name));
        let tops = self.disks.iter().filter(|disk| !is_part(&disk.name));
        let each: Vec<u64> = tops
            .map(|disk| disk.write_sectors.saturating_mul(512))
            .collect();
        (!each.is_empty()).then(|| each.iter().sum())
    }
}

/// Returns the CPUs on which each job may run.
fn cpus_of_each(setups: &[JobSetup]) -> Vec<Vec<u32>> {
    let inherited = thread::allowed_cpus().unwrap_or_default();
    let own = |setup: &JobSetup| {
        let cpus = affinity::cpus(&setup.job.options, setup.place.number);
        cpus.unwrap_or_else(|| inherited.clone())
    };
    setups.iter().map(own).collect()
}

/// Returns the storage beneath all files of each job. Each file system is examined once.
fn all_beneath(setups: &[JobSetup], tree: &BlockTree) -> Vec<JobBacking> {
    let mounts = tree.mounts();
    let mut known: HashMap<_, BackingStorage> = HashMap::new();
    let mut look = |setup: &JobSetup| {
        let mut below = JobBacking::default();
        for file in setup.files.iter().filter(|_| setup.has_local_files()) {
            let path = Path::new(&file.path);
            let Some(number) = number_under(path) else {
                continue;
            };
            let found = known
                .entry(number)
                .or_insert_with(|| backing_storage(path, tree, &mounts));
            below.add(found);
        }
        below
    };
    setups.iter().map(&mut look).collect()
}

/// Returns the disks at the bottom of the jobs' storage, each once.
fn bottom_disks(beneath: &[JobBacking]) -> Vec<HostDevice> {
    let mut disks: Vec<HostDevice> = Vec::new();
    for disk in beneath.iter().flat_map(JobBacking::bottom_disks) {
        if !disks.contains(disk) {
            disks.push(disk.clone());
        }
    }
    disks
}

/// Returns the bytes that these disks have read since the start.
fn read_bytes_of(disks: &DiskWatch, now: Tick) -> u64 {
    let each = disks.finish(now);
    each.iter().map(|disk| disk.read_sectors * 512).sum()
}

/// Returns the control-group limits on I/O to the devices beneath the run's files.
fn io_limits(groups: &ControlGroups, beneath: &[JobBacking]) -> Vec<String> {
    let mut devices: Vec<_> = (beneath.iter())
        .flat_map(|below| below.devices.iter().map(|device| device.number))
        .collect();
    devices.sort_unstable();
    devices.dedup();
    groups.io_limits(&devices)
}

/// Returns every real file of the run, without duplicates.
fn paths(setups: &[JobSetup]) -> impl Iterator<Item = &Path> {
    let mut seen = HashSet::new();
    let real = setups.iter().filter(|setup| setup.has_local_files());
    let files = real
        .flat_map(|setup| &setup.files)
        .map(|file| Path::new(&file.path));
    files.filter(move |path| seen.insert(*path))
}

/// Returns the files on which some job uses buffered I/O.
fn buffered_files(setups: &[JobSetup]) -> HashSet<&str> {
    let buffered = setups.iter().filter(|setup| {
        let options = &setup.job.options;
        setup.has_local_data() && (!options.direct || !options.engine.bypasses_cache)
    });
    buffered
        .flat_map(|setup| setup.files.iter().map(|file| file.path.as_str()))
        .collect()
}

/// Returns true if the files of a clone are sampled.
fn is_asked(setup: &JobSetup) -> bool {
    setup.has_local_data() && setup.place.clone < CLONES_ASKED
}

/// Returns how many bytes of a job's files are in the page cache.
fn cached_of(setup: &JobSetup) -> CachedBytes {
    if !is_asked(setup) {
        return CachedBytes::default();
    }
    let files = setup.files.iter().take(FILES_DESCRIBED);
    cached_bytes(files.map(|file| (Path::new(&file.path), file.bytes)))
}

/// Returns data and holes in those files of a job that no job writes.
fn filled_of(setup: &JobSetup, written: &HashSet<&str>) -> AllocatedBytes {
    if !is_asked(setup) {
        return AllocatedBytes::default();
    }
    let files = setup.files.iter().take(FILES_DESCRIBED);
    let files = files.filter(|file| !written.contains(file.path.as_str()));
    allocated_bytes(files.map(|file| (Path::new(&file.path), file.bytes)))
}

/// Returns the bytes that devices have read for this process so far, buffered or direct; `None` if
/// the kernel does not count them.
fn bytes_from_devices() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("read_bytes: "))?;
    line.trim().parse().ok()
}

/// Files sampled per job. A guess: more would rarely change the judgement.
const FILES_DESCRIBED: usize = 64;
/// Clones sampled per job. A guess, for the same reason.
pub(crate) const CLONES_ASKED: u32 = 8;
