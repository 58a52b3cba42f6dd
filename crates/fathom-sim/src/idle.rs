//! Idle states of a modelled host's CPUs, which delay the threads that they run.

use fathom_core::Nanos;

/// Deep idle state of a host's CPUs, which a thread must wait for its CPU to leave.
///
/// Up to Linux 6.11 the governor `menu` enters a state only if its exit latency is at most the
/// expected idle time divided by 1 plus ten times the number of threads that wait for I/O on that
/// CPU. So a host wakes many waiting threads sooner than few. Here threads stay on their CPUs, all
/// that share a CPU count as waiting, and the governor expects what comes true, up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeepIdle {
    /// Number of CPUs; the threads are distributed over them evenly.
    pub cpus: u32,
    /// Longest time to leave the state; the delay is uniformly distributed up to it.
    pub exit: Nanos,
    /// Longest idle time that the governor expects.
    pub expected_max: Nanos,
}

impl DeepIdle {
    /// Returns the number of threads that share a CPU with this one, itself included.
    pub(crate) const fn sharing(&self, thread: u32, threads: u32) -> u32 {
        let cpus = if self.cpus == 0 { 1 } else { self.cpus };
        threads.saturating_sub(1 + thread % cpus) / cpus + 1
    }

    /// Returns the longest time to leave the state after a sleep on a CPU that `sharing` threads
    /// share.
    pub(crate) fn exit_after(&self, slept: Nanos, sharing: u32) -> Nanos {
        let limit = slept.min(self.expected_max).get() / (1 + 10 * u64::from(sharing));
        if self.exit.get() <= limit {
            self.exit
        } else {
            Nanos::ZERO
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: DeepIdle = DeepIdle {
        cpus: 4,
        exit: Nanos::from_micros(900),
        expected_max: Nanos::from_millis(20),
    };

    #[test]
    fn threads_are_distributed_over_cpus_evenly() {
        let sharing = |threads| (0..threads).map(move |thread| IDLE.sharing(thread, threads));
        assert!(sharing(1).eq([1]));
        assert!(sharing(4).eq([1; 4]));
        assert!(sharing(9).eq([3, 2, 2, 2, 3, 2, 2, 2, 3]));
    }

    #[track_caller]
    fn check(slept_ms: u64, sharing: u32, want_us: u64) {
        let exit = IDLE.exit_after(Nanos::from_millis(slept_ms), sharing);
        assert_eq!(exit, Nanos::from_micros(want_us));
    }

    #[test]
    fn a_cpu_leaves_deep_idle_after_long_sleeps_of_few_threads() {
        // 900 µs are at most an eleventh of the sleep.
        check(9, 1, 0);
        check(10, 1, 900);
        // A twenty-first, up to the limit; a thirty-first of the limit is less.
        check(18, 2, 0);
        check(19, 2, 900);
        check(1000, 2, 900);
        check(1000, 3, 0);
    }
}
