//! The CPU's time-stamp counter: validation and calibration.
//!
//! It must pass three checks: the CPU promises a constant rate (cpuid), the kernel still lists it
//! as a clock source (it removes a counter seen to be wrong), and all CPUs of our affinity mask
//! agree (a thread visits each of them and compares).

use std::fmt;

#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::{calibrate, read};

#[cfg(not(target_arch = "x86_64"))]
pub(super) use other::{calibrate, read};

/// Reason why the CPU's counter is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// No known counter on this architecture.
    NoCounter,
    /// Its rate follows the CPU's frequency, or it stops in deep sleep.
    NotInvariant,
    /// The kernel removed it from its clock sources.
    KernelDroppedIt,
    /// Two CPUs disagree.
    ProcessorsDisagree,
    /// The calibration failed.
    NoRate,
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoCounter => "no counter is known for this kind of processor",
            Self::NotInvariant => "the processor's counter does not run at a constant rate",
            Self::KernelDroppedIt => "the kernel does not list the counter as a clock source",
            Self::ProcessorsDisagree => "the counters of the processors disagree",
            Self::NoRate => "the rate of the processor's counter could not be measured",
        })
    }
}

impl std::error::Error for Distrust {}

/// Calibrated rate of the counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calibration {
    /// Nanoseconds per count, 32 fractional bits.
    pub(super) multiplier: u64,
    /// Counts per second.
    pub(super) hz: u64,
    /// Half-width of the uncertainty, parts per billion.
    pub(super) error_ppb: u64,
}

#[cfg(not(target_arch = "x86_64"))]
mod other {
    use super::{Calibration, Distrust};

    pub(in super::super) fn read() -> u64 {
        0
    }

    pub(in super::super) fn calibrate() -> Result<Calibration, Distrust> {
        Err(Distrust::NoCounter)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::{__cpuid, _rdtsc};

    use super::super::monotonic_ns;
    use super::{Calibration, Distrust};
    use crate::thread;

    #[inline]
    pub(in super::super) fn read() -> u64 {
        // SAFETY: every x86-64 has the instruction; Linux leaves it enabled for programs.
        unsafe { _rdtsc() }
    }

    pub(in super::super) fn calibrate() -> Result<Calibration, Distrust> {
        if !is_invariant() {
            return Err(Distrust::NotInvariant);
        }
        if !kernel_lists_it() {
            return Err(Distrust::KernelDroppedIt);
        }
        let first = Sample::take(BRACKETS);
        while monotonic_ns() < first.ns + BASELINE_NS {
            std::hint::spin_loop();
        }
        let last = Sample::take(BRACKETS);
        let calibration = rate(&first, &last).ok_or(Distrust::NoRate)?;
        if processors_agree(&last, &calibration) {
            Ok(calibration)
        } else {
            Err(Distrust::ProcessorsDisagree)
        }
    }

    /// The counter and the kernel's clock, read as close together as possible.
    #[derive(Clone, Copy, Debug)]
    struct Sample {
        /// The counter just before the kernel's clock was read.
        counter: u64,
        ns: u64,
        /// Counts between the reads on either side of the kernel's clock.
        width: u64,
    }

    impl Sample {
        /// The tightest of `tries` brackets: interrupts and cache misses only widen them.
        fn take(tries: u32) -> Self {
            let once = || {
                let before = read();
                let ns = monotonic_ns();
                let after = read();
                Self {
                    counter: before,
                    ns,
                    width: after.saturating_sub(before),
                }
            };
            let first = once();
            (1..tries).fold(first, |best, _| {
                let next = once();
                if next.width < best.width { next } else { best }
            })
        }
    }

    /// Returns the rate between two samples.
    fn rate(first: &Sample, last: &Sample) -> Option<Calibration> {
        let counts = u128::from(last.counter.checked_sub(first.counter)?);
        let ns = u128::from(last.ns.checked_sub(first.ns)?);
        if counts == 0 || ns == 0 {
            return None;
        }
        let uncertain = u128::from(first.width + last.width) / 2;
        Some(Calibration {
            multiplier: u64::try_from((ns << 32) / counts).ok()?,
            hz: u64::try_from(counts * 1_000_000_000 / ns).ok()?,
            error_ppb: u64::try_from(uncertain * 1_000_000_000 / counts).ok()?,
        })
    }

    /// Returns CPUID 8000_0007h EDX bit 8: the rate is constant in all power states.
    #[allow(
        unused_unsafe,
        reason = "newer compilers have made the intrinsic safe, the oldest supported has not"
    )]
    fn is_invariant() -> bool {
        // SAFETY: every x86-64 has the cpuid instruction.
        let highest = unsafe { __cpuid(0x8000_0000) }.eax;
        // SAFETY: as above; the leaf was just seen to exist.
        highest >= 0x8000_0007 && unsafe { __cpuid(0x8000_0007) }.edx & (1 << 8) != 0
    }

    /// Returns whether the kernel lists `tsc`, which it removes when unstable. An unreadable list
    /// (no /sys) counts as yes.
    fn kernel_lists_it() -> bool {
        std::fs::read_to_string(CLOCK_SOURCES).map_or(true, |list| {
            list.split_whitespace().any(|name| name == "tsc")
        })
    }

    /// Returns whether the counters agree with the kernel's clock, and so with each other, on every
    /// CPU of the affinity mask. Bounded in time: CPUs not visited by then count as agreeing,
    /// because cpuid and the kernel have both vouched for them.
    ///
    /// Runs in its own thread, so that the caller's affinity is not touched.
    fn processors_agree(origin: &Sample, calibration: &Calibration) -> bool {
        let allowed = match thread::allowed_cpus() {
            Ok(allowed) if allowed.len() > 1 => allowed,
            _ => return true,
        };
        let visit = || {
            let deadline = monotonic_ns() + VISIT_NS;
            let mut latest = origin.counter;
            for cpu in allowed {
                if monotonic_ns() > deadline || thread::set_allowed_cpus(&[cpu]).is_err() {
                    break;
                }
                let sample = Sample::take(BRACKETS);
                if !agrees(origin, calibration, latest, &sample) {
                    return false;
                }
                latest = sample.counter;
            }
            true
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new()
                .name("clock-check".into())
                .spawn_scoped(scope, visit);
            // Without a thread there is no evidence against the counter.
            thread.map_or(true, |thread| thread.join().unwrap_or(false))
        })
    }

    /// Returns whether `sample` matches the calibration and is not before `latest`.
    fn agrees(origin: &Sample, calibration: &Calibration, latest: u64, sample: &Sample) -> bool {
        if sample.counter + SKEW_COUNTS < latest {
            return false;
        }
        let counts = sample.counter.saturating_sub(origin.counter);
        let passed = sample.ns.saturating_sub(origin.ns);
        let ours = super::super::scale(counts, calibration.multiplier);
        let drift = u128::from(passed) * u128::from(calibration.error_ppb) / 1_000_000_000;
        let bracket = super::super::scale(
            origin.width + sample.width + SKEW_COUNTS,
            calibration.multiplier,
        );
        u128::from(ours.abs_diff(passed)) <= drift + u128::from(bracket + SKEW_NS)
    }

    const CLOCK_SOURCES: &str =
        "/sys/devices/system/clocksource/clocksource0/available_clocksource";

    /// Samples, of which the tightest is kept: 32 × about 70 ns.
    const BRACKETS: u32 = 32;

    /// A bracket is about 60 ns wide, so 3 ms give the rate to about 10 ppm: 0.6 ms in a minute,
    /// 1 ns in a latency of 100 µs.
    const BASELINE_NS: u64 = 3_000_000;

    /// Time limit for visiting CPUs. A visit takes some 20 µs; a busy CPU may exceed the limit by
    /// one scheduler slice.
    const VISIT_NS: u64 = 4_000_000;

    /// Counters of sockets started together are known to differ by 1 to 5 counts.
    const SKEW_COUNTS: u64 = 8;

    /// Slack for the kernel's own conversion and a clock slewed between samples.
    const SKEW_NS: u64 = 200;

    #[cfg(test)]
    mod tests {
        use super::*;

        /// 2 counts a nanosecond, a bracket of 100 counts.
        const ORIGIN: Sample = Sample {
            counter: 1_000_000,
            ns: 500_000,
            width: 100,
        };

        #[track_caller]
        fn check(counter: u64, ns: u64, want: bool) {
            let calibration = Calibration {
                multiplier: 1 << 31,
                hz: 2_000_000_000,
                error_ppb: 10_000,
            };
            let sample = Sample {
                counter,
                ns,
                width: 100,
            };
            let latest = ORIGIN.counter;
            assert_eq!(agrees(&ORIGIN, &calibration, latest, &sample), want);
        }

        #[test]
        fn a_few_counts_of_skew_are_tolerated_and_a_microsecond_is_not() {
            check(1_200_000, 600_000, true);
            check(1_200_005, 600_000, true);
            check(1_199_995, 600_000, true);
            check(1_202_000, 600_000, false);
            check(1_198_000, 600_000, false);
            check(999_995, 500_000, true);
            check(999_000, 500_000, false);
        }

        #[test]
        fn the_rate_is_counts_over_time() {
            let last = Sample {
                counter: 7_000_000,
                ns: 3_500_000,
                width: 100,
            };
            let found = rate(&ORIGIN, &last).unwrap();
            assert_eq!(found.hz, 2_000_000_000);
            assert_eq!(found.multiplier, 1 << 31);
            assert_eq!(found.error_ppb, 100_000 / 6);
            assert!(
                rate(&last, &ORIGIN).is_none(),
                "a counter that ran backwards"
            );
        }
    }
}
