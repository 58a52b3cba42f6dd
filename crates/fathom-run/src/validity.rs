//! Validity checks: judge from evidence taken before and after the run what its numbers measure.
//!
//! A judgement states what was observed and gives no advice: measuring the page cache, for example,
//! is legitimate as long as the reader knows it.

mod contention;
mod own_cost;
mod run_checks;
mod storage;
mod submission;

use fathom_core::{Direction, Nanos, OptionEffect};
use fathom_host::allocated_extents::{AllocatedBytes, HOLES_PERCENT_MIN};
use fathom_host::backing::JobBacking;
use fathom_host::control_groups::{CpuLimit, MemoryLimit};
use fathom_host::page_cache::CachedBytes;
use fathom_job::Job;
use fathom_record::{JobRecord, ProcessorsRecord, Validity};
use fathom_setup::caveats::DIRECT_MMAP;
use fathom_setup::translate::JobSetup;
use fathom_setup::translate::pattern::uses;
use fathom_setup::validity::{
    self as measured, JobMeasured, figure, named, percent, to_float, validity,
};
use fathom_sys::system::CpuTimes;

pub(crate) use self::contention::JobProcessors;
pub(crate) use self::run_checks::judge_run;

/// Evidence about one job.
pub(crate) struct JobEvidence<'a> {
    pub(crate) job: &'a Job,
    pub(crate) setup: &'a JobSetup,
    pub(crate) record: &'a JobRecord,
    /// Bytes of its files in the page cache before the start.
    pub(crate) cached_before: CachedBytes,
    /// Bytes of its files in the page cache after the run.
    pub(crate) cached_after: CachedBytes,
    /// Data and holes in the files that it reads and no job writes.
    pub(crate) filled: AllocatedBytes,
    /// Mean queue depth at issue.
    pub(crate) mean_depth: f64,
    /// Storage beneath its files.
    pub(crate) below: JobBacking,
    /// Another job uses buffered I/O on one of its files.
    pub(crate) shares_with_buffered: bool,
    /// Processors that it had.
    pub(crate) processors: JobProcessors,
}

impl<'a> JobEvidence<'a> {
    /// Returns the part of the evidence that the record has.
    const fn measured(&self) -> JobMeasured<'a> {
        JobMeasured {
            setup: self.setup,
            record: self.record,
            mean_depth: self.mean_depth,
            is_modelled: false,
        }
    }
}

/// Evidence about the whole run.
pub(crate) struct RunEvidence {
    /// CPU time of the machine before and after.
    pub(crate) cpu: Option<(CpuTimes, CpuTimes)>,
    /// Bytes that devices read for this process, if the kernel counts them.
    pub(crate) device_bytes: Option<u64>,
    /// Bytes that all jobs read with direct I/O.
    pub(crate) direct_read_bytes: u64,
    /// Bytes that all jobs read with buffered I/O.
    pub(crate) buffered_read_bytes: u64,
    /// Memory of the machine or control group.
    pub(crate) memory: MemoryLimit,
    /// Bytes that all jobs wrote to storage other than memory.
    pub(crate) written_bytes: u64,
    /// Bytes written by the disks under the files.
    pub(crate) disk_write_bytes: Option<u64>,
    /// CPU limit of the control group before and after, and the time between, ns.
    pub(crate) processor: Option<(CpuLimit, CpuLimit, u64)>,
    /// Control-group limits on I/O to the run's devices.
    pub(crate) io_limits: Vec<String>,
    /// Bytes that the disks beneath loop devices read, for any process; `None` without such.
    pub(crate) loop_read_bytes: Option<u64>,
    /// Use of the processors on which jobs may run.
    pub(crate) processors: Option<ProcessorsRecord>,
}

/// Judges one job by every check that applies.
pub(crate) fn judge_job(seen: &JobEvidence<'_>, run: &RunEvidence) -> Vec<Validity> {
    let of_record = seen.measured();
    let judgements = [
        storage::storage(seen, run),
        page_cache(seen, run),
        direct_io(seen),
        written(seen),
        measured::queue_depth(&of_record),
        measured::latency_target(&of_record),
        working_set(seen, run),
        cpu_bound(seen),
        contention::contention(seen, run),
        contention::frequency(seen, run),
        submission::judge(seen),
        own_cost::judge(seen),
        bandwidth(seen),
        measured::response_time(&of_record),
        measured::ramp(&of_record),
        measured::length(&of_record),
    ];
    named(judgements, seen.record)
}

/// Checks that the job read written data: holes read as zeros, without the device.
fn written(seen: &JobEvidence<'_>) -> Option<Validity> {
    let AllocatedBytes { total_bytes, .. } = seen.filled;
    let never = percent(seen.filled.hole_bytes(), total_bytes)?;
    if moved(seen) == 0 {
        return None;
    }
    let ok = never < HOLES_PERCENT_MIN;
    let sentence = if ok {
        "all bytes that the job reads had been written".to_owned()
    } else {
        format!(
            "{never:.0} % of the bytes that the job reads were never written: such reads return \
             zeros without reaching a device"
        )
    };
    let figures = vec![figure("never_written_percent", never)];
    Some(validity("written", ok, sentence, figures))
}

/// Checks whether reads came from memory or writes stayed there.
fn page_cache(seen: &JobEvidence<'_>, run: &RunEvidence) -> Option<Validity> {
    let options = &seen.job.options;
    if options.direct || !seen.setup.has_local_data() || moved(seen) == 0 {
        return None;
    }
    if seen.below.is_memory() || seen.below.cached_loop.is_some() {
        return None; // reported by `storage`
    }
    let writes = (uses(options, Direction::Write)).then(|| cached_writes(seen, run));
    let never = percent(seen.filled.hole_bytes(), seen.filled.total_bytes);
    // Reads of holes are reported by `written`.
    let is_holes = never.is_some_and(|never| never >= CACHED_PERCENT);
    let reads = (uses(options, Direction::Read) && !is_holes).then(|| cached_reads(seen, run));
    match (reads.flatten(), writes) {
        (Some(reads), Some(writes)) if reads.ok && !writes.ok => Some(writes),
        (Some(reads), _) => Some(reads),
        (None, writes) => writes,
    }
}

/// Judges writes: those that no device saw stayed in memory or were overwritten there.
fn cached_writes(seen: &JobEvidence<'_>, run: &RunEvidence) -> Validity {
    let options = &seen.job.options;
    let synced = options.sync != 0 || options.end_fsync || options.fsync_on_close;
    let synced = synced || options.fsync == 1 || options.fdatasync == 1;
    // An upper bound: disks may have written for other processes as well.
    let reached = run
        .disk_write_bytes
        .and_then(|bytes| percent(bytes, run.written_bytes))
        .map(|reached| reached.min(100.0));
    let all_reached = reached.is_none_or(|reached| reached > 100.0 - CACHED_PERCENT);
    let sentence = match (synced, all_reached, reached) {
        (true, true, _) => "buffered writes were synced before the job ended".to_owned(),
        (true, false, Some(reached)) => format!(
            "buffered writes were synced, but disks wrote at most {reached:.0} % of the bytes: the \
             rest was overwritten in memory, compressed, or never written back"
        ),
        (false, false, Some(reached)) => format!(
            "buffered writes go to memory first: disks had written at most {reached:.0} % of the \
             bytes when the run ended, but all are counted as written"
        ),
        _ => "buffered writes go to memory first; bytes still there when the job ended are \
              counted as written"
            .to_owned(),
    };
    let figures = reached.map(|reached| figure("reached_disk_percent", reached));
    let ok = synced && all_reached;
    validity("page_cache", ok, sentence, figures.into_iter().collect())
}

/// Judges reads: those that no device saw came from memory. Read-ahead counts as seen by the
/// device, so this is a lower bound.
fn cached_reads(seen: &JobEvidence<'_>, run: &RunEvidence) -> Option<Validity> {
    let whole_run = run.buffered_read_bytes;
    let cached = seen.cached_after.percent();
    let from_memory = match run.device_bytes {
        None => cached,
        Some(bytes) => {
            let for_the_cache = bytes.saturating_sub(run.direct_read_bytes);
            percent(whole_run.saturating_sub(for_the_cache), whole_run)?
        }
    };
    let ok = from_memory < CACHED_PERCENT;
    let sentence = if ok {
        format!("reads were buffered; {from_memory:.0} % of the bytes came from memory")
    } else {
        format!(
            "about {from_memory:.0} % of the bytes read came from the page cache, not from the \
             device (direct=1 bypasses it)"
        )
    };
    let figures = vec![
        figure("from_memory_percent", from_memory),
        figure("cached_percent", cached),
    ];
    Some(validity("page_cache", ok, sentence, figures))
}

/// Checks that direct I/O did not fill the page cache.
fn direct_io(seen: &JobEvidence<'_>) -> Option<Validity> {
    if !seen.job.options.direct || !seen.setup.has_local_data() || moved(seen) == 0 {
        return None;
    }
    if !seen.job.options.engine.bypasses_cache {
        return Some(validity("direct_io", false, DIRECT_MMAP.into(), Vec::new()));
    }
    let is_cached = seen.below.memory.is_some() || seen.below.cached_loop.is_some();
    if is_cached || seen.shares_with_buffered {
        return None; // the page cache says nothing about this job
    }
    let (before, after) = (seen.cached_before.percent(), seen.cached_after.percent());
    let ok = after < before + CACHED_PERCENT;
    let sentence = if ok {
        "direct I/O was in force: the page cache did not grow".to_owned()
    } else {
        format!(
            "direct=1 was requested, but {after:.0} % of the files are in the page cache \
             ({before:.0} % before): the file system did not bypass it"
        )
    };
    let figures = vec![
        figure("cached_before_percent", before),
        figure("cached_after_percent", after),
    ];
    Some(validity("direct_io", ok, sentence, figures))
}

/// Checks whether the files fit into memory, which would soon serve their reads.
fn working_set(seen: &JobEvidence<'_>, run: &RunEvidence) -> Option<Validity> {
    let memory = run.memory;
    if !seen.setup.has_local_data() || memory.bytes == 0 || moved(seen) == 0 {
        return None;
    }
    let bytes: u64 = seen.setup.files.iter().map(|file| file.length).sum();
    let fits = bytes < memory.bytes;
    let buffered_reads = !seen.job.options.direct && uses(&seen.job.options, Direction::Read);
    // If device statistics are available, `page_cache` reports what came from memory.
    let ok = !(fits && buffered_reads && run.device_bytes.is_none());
    let (bytes_mib, memory_mib, whose) = (bytes >> 20, memory.bytes >> 20, memory.owner());
    let word = if fits { "fit" } else { "do not fit" };
    let sentence =
        format!("the job's {bytes_mib} MiB {word} into {whose} {memory_mib} MiB of memory");
    let figures = vec![
        figure("working_set_bytes", to_float(bytes)),
        figure("memory_bytes", to_float(memory.bytes)),
    ];
    Some(validity("working_set", ok, sentence, figures))
}

/// States that bytes are not an amount of data where an engine moves none.
fn bandwidth(seen: &JobEvidence<'_>) -> Option<Validity> {
    let options = &seen.job.options;
    if moved(seen) == 0 || options.moves_data() || !seen.setup.has_local_files() {
        return None;
    }
    let name = options.engine.name;
    let sentence = format!(
        "the {name} engine moves no data: bytes and bandwidth are the ops times their block size"
    );
    Some(validity("bandwidth", true, sentence, Vec::new()))
}

/// Checks that the CPU was not the bottleneck.
fn cpu_bound(seen: &JobEvidence<'_>) -> Option<Validity> {
    if seen.setup.has_local_files() && !seen.setup.has_local_data() {
        return None; // the kernel's work on files, which was to be measured, is work of the CPU
    }
    let cpu = &seen.record.cpu;
    let busy = percent(cpu.user_us + cpu.system_us, cpu.wall_us)?.min(100.0);
    if moved(seen) == 0 {
        return None;
    }
    // Threads configured to spin tell nothing about the storage.
    let worker = &seen.setup.worker;
    let spins = worker
        .think
        .as_ref()
        .is_some_and(|think| think.spin > Nanos::ZERO);
    let polls = seen.job.options.has_effect(OptionEffect::PolledCompletions)
        || spins
        || worker.batching.complete_min == 0;
    let moves_data = seen.job.options.moves_data();
    let ok = !moves_data || polls || busy < BUSY_PERCENT;
    let sentence = if !moves_data {
        let name = seen.job.options.engine.name;
        format!("the {name} engine moves no data: no storage was measured")
    } else if ok {
        format!("the job's thread was busy {busy:.0} % of the time")
    } else {
        format!(
            "the job's thread was busy {busy:.0} % of the time: the CPU, not the storage, was the \
             bottleneck"
        )
    };
    Some(validity(
        "cpu_bound",
        ok,
        sentence,
        vec![figure("busy_percent", busy)],
    ))
}

fn moved(seen: &JobEvidence<'_>) -> u64 {
    measured::ops(seen.record)
}

/// Returns the bytes that a job read with direct or buffered I/O.
pub(crate) fn read_bytes(seen: &JobEvidence<'_>, direct: bool) -> u64 {
    let counts = seen.setup.has_local_data() && seen.job.options.direct == direct;
    if counts {
        seen.record.directions.read.bytes
    } else {
        0
    }
}

/// Returns the bytes that a job wrote to storage other than memory.
pub(crate) fn written_bytes(seen: &JobEvidence<'_>) -> u64 {
    if !seen.setup.has_local_data() || seen.below.is_memory() {
        0
    } else {
        seen.record.directions.write.bytes
    }
}

/// Share of cached bytes below which the page cache does not matter. A guess.
const CACHED_PERCENT: f64 = 10.0;
/// CPU use that counts as never waiting. The rest is short waits in system calls and clock
/// granularity.
const BUSY_PERCENT: f64 = 95.0;
#[cfg(test)]
mod tests;
