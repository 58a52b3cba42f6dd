//! Use, frequency and throttling of the processors on which a run's threads may run.

use std::fs;
use std::path::Path;

use fathom_core::Tick;
use fathom_record::ProcessorsRecord;
use fathom_sys::system::{CpuTimes, cpu_times_each};
use fathom_sys::thread;

use crate::control_groups::CpuLimit;

/// Times of processors at the start of an observation.
///
/// Costs a reading of `/proc/stat` at either end: 0.1 ms on a small machine, a millisecond on one
/// with hundreds of processors.
#[derive(Clone, Debug)]
pub struct ProcessorTimes {
    cpus: Vec<u32>,
    since: Tick,
    each: Vec<(u32, CpuTimes)>,
    own_us: u64,
}

impl ProcessorTimes {
    /// Reads the times of these processors, each named once.
    #[must_use]
    pub fn start(cpus: Vec<u32>, now: Tick) -> Self {
        Self {
            since: now,
            each: times_of(&cpus),
            own_us: own_us(),
            cpus,
        }
    }

    /// Returns their use since the start; `None` if they cannot be observed.
    #[must_use]
    pub fn finish(&self, now: Tick) -> Option<ProcessorsRecord> {
        let after = times_of(&self.cpus);
        // A processor that went offline or came online meanwhile is left out.
        let each = self.each.iter().filter_map(|&(cpu, before)| {
            let (_, after) = after.iter().find(|(number, _)| *number == cpu)?;
            Some(after.since(before))
        });
        let each: Vec<CpuTimes> = each.collect();
        let sum = |of: fn(&CpuTimes) -> u64| each.iter().map(of).sum();
        let record = ProcessorsRecord {
            cpus: each.len() as u64,
            wall_us: (now - self.since).get() / 1_000,
            busy_us: sum(|times| times.busy_us()),
            own_us: own_us().saturating_sub(self.own_us),
            stolen_us: sum(|times| times.stolen_us),
            ..ProcessorsRecord::default()
        };
        (record.cpus > 0).then_some(record)
    }
}

/// Times, frequencies and throttling of the processors of a run, at its start.
#[derive(Debug)]
pub struct ProcessorWatch {
    times: ProcessorTimes,
    frequency_mhz: Option<u64>,
    thermal_throttles: Option<u64>,
}

impl ProcessorWatch {
    /// Reads the counters of these processors, each named once.
    #[must_use]
    pub fn start(cpus: Vec<u32>, now: Tick) -> Self {
        let folder = Path::new(FOLDER);
        Self {
            frequency_mhz: mean_mhz(folder, &cpus),
            thermal_throttles: thermal_throttles(folder, &cpus),
            times: ProcessorTimes::start(cpus, now),
        }
    }

    /// Returns their use since the start. `limit` are the CPU limits of control groups, before and
    /// after.
    #[must_use]
    pub fn finish(
        &self,
        now: Tick,
        limit: Option<(CpuLimit, CpuLimit)>,
    ) -> Option<ProcessorsRecord> {
        let (folder, cpus) = (Path::new(FOLDER), &self.times.cpus);
        let grown = |of: fn(&CpuLimit) -> u64| {
            limit.map(|(before, after)| of(&after).saturating_sub(of(&before)))
        };
        let throttles = thermal_throttles(folder, cpus);
        Some(ProcessorsRecord {
            throttled_us: grown(|limit| limit.throttled_us),
            throttled_periods: grown(|limit| limit.throttled_periods),
            thermal_throttles: (self.thermal_throttles.zip(throttles))
                .map(|(before, after)| after.saturating_sub(before)),
            frequency_before_mhz: self.frequency_mhz,
            frequency_after_mhz: mean_mhz(folder, cpus),
            frequency_max_mhz: max_mhz(folder, cpus),
            ..self.times.finish(now)?
        })
    }
}

/// Returns the frequency of the processor on which the calling thread runs.
#[must_use]
pub fn own_mhz() -> Option<u64> {
    mhz(Path::new(FOLDER), thread::current_cpu(), CURRENT)
}

fn times_of(cpus: &[u32]) -> Vec<(u32, CpuTimes)> {
    let mut each = cpu_times_each();
    each.retain(|(cpu, _)| cpus.contains(cpu));
    each
}

/// Returns the CPU time of this process so far.
fn own_us() -> u64 {
    let usage = thread::process_usage();
    usage.user_us + usage.system_us
}

fn mean_mhz(folder: &Path, cpus: &[u32]) -> Option<u64> {
    let sampled = cpus.iter().take(CPUS_ASKED);
    let each: Vec<u64> = sampled
        .filter_map(|&cpu| mhz(folder, cpu, CURRENT))
        .collect();
    let count = each.len() as u64;
    each.iter().sum::<u64>().checked_div(count)
}

fn max_mhz(folder: &Path, cpus: &[u32]) -> Option<u64> {
    let sampled = cpus.iter().take(CPUS_ASKED);
    sampled.filter_map(|&cpu| mhz(folder, cpu, HIGHEST)).max()
}

fn mhz(folder: &Path, cpu: u32, file: &str) -> Option<u64> {
    let khz = number(&folder.join(format!("cpu{cpu}/cpufreq/{file}")))?;
    Some(khz / 1_000).filter(|&mhz| mhz > 0)
}

/// Returns the number of times that heat slowed a processor or its package down. The processors of
/// a package show the same count for it.
fn thermal_throttles(folder: &Path, cpus: &[u32]) -> Option<u64> {
    let each = |file: &'static str| {
        let path = move |cpu| folder.join(format!("cpu{cpu}/thermal_throttle/{file}"));
        cpus.iter().filter_map(move |cpu| number(&path(cpu)))
    };
    let package = each("package_throttle_count").max();
    let cores = each("core_throttle_count").reduce(|sum, count| sum + count);
    package
        .into_iter()
        .chain(cores)
        .reduce(|sum, one| sum + one)
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

const FOLDER: &str = "/sys/devices/system/cpu";
const CURRENT: &str = "scaling_cur_freq";
const HIGHEST: &str = "cpuinfo_max_freq";
/// Processors whose frequency is read. A guess: some kernels interrupt a processor to read it, and
/// more would rarely change the mean.
const CPUS_ASKED: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_and_throttles_are_read_per_processor() {
        let folder = std::env::temp_dir().join(format!("fathom-cpus-{}", std::process::id()));
        let write = |file: &str, text: &str| {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (cpu, khz, cores) in [(0, "1000000\n", "3\n"), (2, "2000000\n", "4\n")] {
            write(&format!("cpu{cpu}/cpufreq/scaling_cur_freq"), khz);
            write(&format!("cpu{cpu}/cpufreq/cpuinfo_max_freq"), "3500000\n");
            let count = |name: &str| format!("cpu{cpu}/thermal_throttle/{name}_throttle_count");
            write(&count("core"), cores);
            write(&count("package"), "10\n");
        }
        let found = (
            mean_mhz(&folder, &[0, 1, 2]),
            max_mhz(&folder, &[0, 2]),
            thermal_throttles(&folder, &[0, 1, 2]),
            mean_mhz(&folder, &[1]),
            thermal_throttles(&folder, &[1]),
        );
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, (Some(1500), Some(3500), Some(17), None, None));
    }

    #[test]
    fn the_own_time_of_this_process_is_part_of_the_use() {
        let cpus = thread::allowed_cpus().unwrap();
        let watch = ProcessorWatch::start(cpus.clone(), Tick::ZERO);
        let observed = || watch.finish(Tick::new(2_000), None).unwrap();
        // Until a tick has passed.
        let mut seen = observed();
        while seen.own_us == 0 || seen.busy_us == 0 {
            seen = observed();
        }
        assert_eq!(seen.cpus, cpus.len() as u64);
        assert_eq!((seen.wall_us, seen.throttled_us), (2, None));
    }

    #[test]
    fn processors_that_do_not_exist_are_not_observed() {
        let watch = ProcessorTimes::start(vec![u32::MAX], Tick::ZERO);
        assert_eq!(watch.finish(Tick::new(1)), None);
    }
}
