//! Processors that a job had to wait for, or that ran slowly.
//!
//! A thread that is ready but has no processor delays every op in flight, and clat contains the
//! delay. The kernel counts such waits per thread; what used the processors meanwhile follows from
//! their busy time and this program's share of it.

use fathom_record::{ProcessorsRecord, SchedulingRecord, Validity};

use super::{JobEvidence, RunEvidence, figure, percent, to_float, validity};

/// Processors of one job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct JobProcessors {
    /// Number of CPUs on which its thread may run.
    pub(crate) cpus: usize,
    /// Number of jobs, itself included, that ran at the same time and may run on some of these.
    pub(crate) jobs: usize,
}

/// Checks that the job's thread did not wait for a processor.
pub(super) fn contention(seen: &JobEvidence<'_>, run: &RunEvidence) -> Option<Validity> {
    let scheduling = seen.record.scheduling?;
    let wall_us = seen.record.cpu.wall_us;
    let share = percent(scheduling.waited_ns / 1_000, wall_us)?;
    let each_us = to_float(scheduling.waited_ns) / 1e3 / to_float(scheduling.turns.max(1));
    // Clones beyond the first few have no observation of their own.
    let used = seen.record.processors.or(run.processors);
    let busy = used.and_then(|used| used.busy_percent());
    let is_crowded = busy.is_none_or(|busy| busy >= BUSY_PERCENT);
    let is_long = share >= WAITED_PERCENT && each_us >= WAIT_US && wall_us >= OBSERVED_US;
    let ok = !(is_long && is_crowded);
    let waited = duration(scheduling.waited_ns);
    let sentence = if ok {
        format!("the job's thread waited {waited} for a processor, {share:.1} % of the run")
    } else {
        let why = cause(seen, run, used, scheduling);
        format!(
            "the job's thread waited {waited} for a processor, {share:.0} % of the run \
             ({each_us:.0} µs at a time){why}; latencies include these waits, which the storage \
             does not cause"
        )
    };
    let mut figures = vec![
        figure("waited_percent", share),
        figure("wait_mean_us", each_us),
    ];
    figures.extend(busy.map(|busy| figure("cpus_busy_percent", busy)));
    Some(validity("contention", ok, sentence, figures))
}

/// Names the user of the processors for which the job waited. Whatever ran instead of the job used
/// about as much CPU time as the job waited; what used far less is not the cause.
fn cause(
    seen: &JobEvidence<'_>,
    run: &RunEvidence,
    used: Option<ProcessorsRecord>,
    scheduling: SchedulingRecord,
) -> String {
    let Some(used) = used else {
        return String::new();
    };
    let waited_us = scheduling.waited_ns / 1_000;
    let job_us = seen.record.cpu.user_us + seen.record.cpu.system_us;
    let own_us = used.own_us.saturating_sub(job_us);
    let others_us = used.others_us();
    let held_us = run.processors.and_then(|used| used.throttled_us);
    if held_us.is_some_and(|held_us| held_us >= waited_us / 2) {
        return ", held back by the CPU limit of its control group".into();
    }
    if others_us.max(own_us) < waited_us / 4 {
        return String::new();
    }
    let others = cpus_of(others_us, &used);
    if others_us >= own_us {
        let all = match used.cpus {
            1 => "the one CPU".to_owned(),
            count => format!("the {count} CPUs"),
        };
        return format!(": other programs used {others:.1} of {all} on which it may run");
    }
    let JobProcessors { cpus, jobs, .. } = seen.processors;
    match (jobs > cpus, cpus) {
        (true, 1) => format!(": {jobs} jobs share one CPU and waited for each other"),
        (true, _) => format!(": {jobs} jobs share {cpus} CPUs and waited for each other"),
        (false, _) => ": other threads of this run used its CPUs".into(),
    }
}

/// Returns CPU time as a number of processors, at most all of them: the kernel counts in ticks.
fn cpus_of(used_us: u64, processors: &ProcessorsRecord) -> f64 {
    let count = to_float(used_us) / to_float(processors.wall_us.max(1));
    count.min(to_float(processors.cpus))
}

/// Checks that the job's processor did not run far below its highest frequency.
pub(super) fn frequency(seen: &JobEvidence<'_>, run: &RunEvidence) -> Option<Validity> {
    let mhz = seen.record.scheduling?.frequency_mhz?;
    let max_mhz = run.processors?.frequency_max_mhz?;
    let cpu = &seen.record.cpu;
    let busy = percent(cpu.user_us + cpu.system_us, cpu.wall_us)?;
    let share = percent(mhz, max_mhz)?;
    let ok = share >= FREQUENCY_PERCENT || busy < WORKING_PERCENT;
    let (ghz, max_ghz) = (to_float(mhz) / 1e3, to_float(max_mhz) / 1e3);
    let sentence = if ok {
        format!("the job's processor ran at {ghz:.1} GHz, of at most {max_ghz:.1} GHz")
    } else {
        format!(
            "the job's processor ran at {ghz:.1} GHz, of at most {max_ghz:.1} GHz, when the job \
             ended: submission and completion take longer than at full speed"
        )
    };
    let figures = vec![
        figure("frequency_mhz", to_float(mhz)),
        figure("frequency_max_mhz", to_float(max_mhz)),
    ];
    Some(validity("frequency", ok, sentence, figures))
}

/// Checks that heat did not slow the processors down.
pub(super) fn overheated(run: &RunEvidence) -> Option<Validity> {
    let count = run.processors?.thermal_throttles?;
    let ok = count == 0;
    let sentence = if ok {
        "heat did not slow the processors down".to_owned()
    } else {
        let noun = if count == 1 { "time" } else { "times" };
        format!(
            "heat slowed the processors down ({count} {noun}): the later part of the run is slower \
             than the storage"
        )
    };
    let figures = vec![figure("thermal_throttles", to_float(count))];
    Some(validity("overheating", ok, sentence, figures))
}

/// Formats a time: `1.86 s`, `18.6 ms`.
fn duration(ns: u64) -> String {
    match ns {
        1_000_000_000.. => format!("{:.2} s", to_float(ns) / 1e9),
        _ => format!("{:.1} ms", to_float(ns) / 1e6),
    }
}

/// Share of the run from which waits matter: spread over one op in a hundred of a job with one op
/// in flight, they delay each of those by more than the mean time of an op, which moves p99.
const WAITED_PERCENT: f64 = 1.0;
/// Mean wait from which a processor was in use by another thread. A thread that wakes on an idle
/// processor runs after 1 or 2 µs; one slice of another thread (1 ms or more) in a hundred waits
/// makes 10 µs.
const WAIT_US: f64 = 10.0;
/// Busy share of the job's CPUs from which its waits count as contention: while fewer than half are
/// busy, a thread that wakes finds an idle one, and its waits are those of leaving a sleep state.
const BUSY_PERCENT: f64 = 50.0;
/// Shortest run to judge: five ticks of the kernel's busy times.
const OBSERVED_US: u64 = 50_000;
/// Share of the highest frequency that the processor must reach. The highest one is that of a
/// single busy core; even with all cores busy, processors keep well above half of it.
const FREQUENCY_PERCENT: f64 = 50.0;
/// Share of the run that the job must spend on a processor for its frequency to matter: with less,
/// half the frequency makes an op less than a tenth longer.
const WORKING_PERCENT: f64 = 10.0;

#[cfg(test)]
mod tests;
