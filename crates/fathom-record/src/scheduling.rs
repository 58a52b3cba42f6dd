//! Processors that a run had, and the waits of its jobs for them.

use serde::{Deserialize, Serialize};

/// Scheduling of a job's thread over the measured part of the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulingRecord {
    /// Time on a processor.
    pub ran_ns: u64,
    /// Time ready to run, but waiting for a processor.
    pub waited_ns: u64,
    /// Number of times that it was given a processor.
    pub turns: u64,
    /// Context switches that it did not ask for: its slice was over, or another thread preempted
    /// it.
    pub involuntary_switches: u64,
    /// Frequency of its processor at the end; `None` if the kernel does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_mhz: Option<u64>,
}

impl SchedulingRecord {
    /// Adds another job, as reports do for a group: counts are summed, and the frequency is the
    /// lowest.
    pub fn merge(&mut self, other: &Self) {
        let sum = |own: &mut u64, more: u64| *own = own.saturating_add(more);
        sum(&mut self.ran_ns, other.ran_ns);
        sum(&mut self.waited_ns, other.waited_ns);
        sum(&mut self.turns, other.turns);
        sum(&mut self.involuntary_switches, other.involuntary_switches);
        let both = self.frequency_mhz.into_iter().chain(other.frequency_mhz);
        self.frequency_mhz = both.min();
    }
}

/// Use of the processors on which jobs may run: all of them, from the start of the first job to the
/// end of the last, or one job, from its start to its end.
///
/// Times are summed over these processors. Those of the kernel's `/proc/stat` have a resolution of
/// 10 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessorsRecord {
    /// Number of processors.
    pub cpus: u64,
    /// Length of the observation.
    pub wall_us: u64,
    /// Time in which they were busy, for whatever program, interrupts included.
    pub busy_us: u64,
    /// CPU time of this program, its kernel workers included.
    pub own_us: u64,
    /// Time taken by the hypervisor for other guests.
    pub stolen_us: u64,
    /// Time for which CPU limits of control groups held the program back; `None` without a limit.
    #[serde(default)]
    pub throttled_us: Option<u64>,
    /// Number of periods in which they did.
    #[serde(default)]
    pub throttled_periods: Option<u64>,
    /// Number of times that heat slowed them down; `None` if the kernel does not count them.
    #[serde(default)]
    pub thermal_throttles: Option<u64>,
    /// Mean frequency before the run; `None` if the kernel does not report it.
    #[serde(default)]
    pub frequency_before_mhz: Option<u64>,
    /// Mean frequency after the run.
    #[serde(default)]
    pub frequency_after_mhz: Option<u64>,
    /// Highest frequency that one of them offers.
    #[serde(default)]
    pub frequency_max_mhz: Option<u64>,
}

impl ProcessorsRecord {
    /// Returns the busy share of the processors, percent 0–100; `None` if they were not observed
    /// for a tick.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    pub fn busy_percent(&self) -> Option<f64> {
        let all_us = self.cpus.saturating_mul(self.wall_us);
        let share = self.busy_us as f64 * 100.0 / all_us.max(1) as f64;
        (all_us >= 10_000).then(|| share.min(100.0))
    }

    /// Returns the CPU time of other programs, of the kernel on their behalf, and of interrupts.
    #[must_use]
    pub const fn others_us(&self) -> u64 {
        self.busy_us.saturating_sub(self.own_us)
    }
}
