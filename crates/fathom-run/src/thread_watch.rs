//! Resources of a job's thread over the measured part of the job: CPU time, faults, scheduling.

use fathom_core::Tick;
use fathom_host::processors::{ProcessorTimes, own_mhz};
use fathom_record::{CpuRecord, ProcessorsRecord, SchedulingRecord};
use fathom_sys::thread::{self, ScheduleTimes, ThreadSchedule, Usage};

/// Observer of the calling thread.
///
/// Created before the thread waits for the others, so that opening the file in /proc delays no op;
/// [`begin`](Self::begin) costs two system calls at the start of the measurement.
#[derive(Default)]
pub(crate) struct ThreadWatch {
    schedule: Option<ThreadSchedule>,
    /// Times of the processors on which the thread may run.
    processors: Option<ProcessorTimes>,
    before: ScheduleTimes,
    usage: Usage,
    begun: Tick,
}

impl ThreadWatch {
    /// Prepares to observe the calling thread, with its processors if asked.
    pub(crate) fn new(with_processors: bool, now: Tick) -> Self {
        let cpus = with_processors.then(|| thread::allowed_cpus().ok());
        Self {
            schedule: ThreadSchedule::own().ok(),
            processors: (cpus.flatten()).map(|cpus| ProcessorTimes::start(cpus, now)),
            ..Self::default()
        }
    }

    /// Begins the observation at `now`, and returns the thread's times until then, if the kernel
    /// counts them.
    pub(crate) fn begin(&mut self, now: Tick) -> Option<ScheduleTimes> {
        self.begun = now;
        self.usage = thread::usage();
        let before = self.schedule.as_ref().and_then(ThreadSchedule::read);
        match before {
            Some(before) => self.before = before,
            // A kernel that does not count now will not count later.
            None => self.schedule = None,
        }
        before
    }

    /// Returns the CPU time of the thread so far.
    pub(crate) fn cpu(&self, now: Tick) -> CpuRecord {
        let mut cpu = CpuRecord {
            wall_us: (now - self.begun).get() / 1_000,
            ..CpuRecord::default()
        };
        add_usage(&mut cpu, self.used());
        cpu
    }

    /// Returns how the thread was scheduled so far, if the kernel counts it.
    pub(crate) fn scheduling(&self) -> Option<SchedulingRecord> {
        let times = self.schedule.as_ref()?.read()?.since(self.before);
        Some(SchedulingRecord {
            ran_ns: times.ran.get(),
            waited_ns: times.waited.get(),
            turns: times.turns,
            involuntary_switches: self.used().involuntary_switches,
            frequency_mhz: None,
        })
    }

    /// Returns the same at the end of the measurement, with the frequency of the processor, which
    /// still has that of the job's load.
    pub(crate) fn final_scheduling(&self) -> Option<SchedulingRecord> {
        let scheduling = self.scheduling()?;
        Some(SchedulingRecord {
            frequency_mhz: own_mhz(),
            ..scheduling
        })
    }

    /// Returns the use of the processors since the observer was created, if asked for.
    pub(crate) fn processors(&self, now: Tick) -> Option<ProcessorsRecord> {
        self.processors.as_ref()?.finish(now)
    }

    fn used(&self) -> Usage {
        thread::usage().since(self.usage)
    }
}

/// Adds the CPU time of another thread.
pub(crate) fn add_usage(cpu: &mut CpuRecord, used: Usage) {
    cpu.user_us += used.user_us;
    cpu.system_us += used.system_us;
    cpu.context_switches += used.voluntary_switches + used.involuntary_switches;
    cpu.major_faults += used.major_faults;
    cpu.minor_faults += used.minor_faults;
}

#[cfg(test)]
mod tests {
    use fathom_core::Nanos;
    use fathom_sys::clock::sleep;

    use super::*;

    #[test]
    fn only_what_follows_the_beginning_counts() {
        let mut watch = ThreadWatch::new(true, Tick::ZERO);
        watch.begin(Tick::new(5_000));
        let cpu = watch.cpu(Tick::new(9_000));
        assert_eq!(cpu.wall_us, 4);
        let processors = watch.processors(Tick::new(7_000)).unwrap();
        assert_eq!(processors.wall_us, 7);
        let Some(first) = watch.scheduling() else {
            return println!("skipped: the kernel does not count");
        };
        let mut last = first;
        // A sleep ends a turn, and waking up begins another.
        while last.turns == first.turns {
            sleep(Nanos::new(1));
            last = watch.final_scheduling().unwrap();
        }
        let own = ThreadSchedule::own().unwrap().read().unwrap();
        assert!(last.turns < own.turns, "{last:?}, {own:?}");
    }
}
