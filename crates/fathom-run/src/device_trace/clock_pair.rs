//! Conversion from the run's clock to `CLOCK_MONOTONIC`, which stamps the kernel's events.

use fathom_sys::clock::{self, Clock};

/// One moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockPair {
    /// On the run's clock.
    pub(crate) run_ns: u64,
    /// On `CLOCK_MONOTONIC`.
    pub(crate) monotonic_ns: u64,
}

impl ClockPair {
    /// Reads both clocks as close together as a few tries allow.
    pub(crate) fn read(clock: &Clock) -> Self {
        let attempt = || {
            let before = clock::read(CLOCK_MONOTONIC).unwrap_or(0);
            let run_ns = clock.now().get();
            let after = clock::read(CLOCK_MONOTONIC).unwrap_or(0);
            let apart = after.saturating_sub(before);
            let monotonic_ns = before + apart / 2;
            (
                apart,
                Self {
                    run_ns,
                    monotonic_ns,
                },
            )
        };
        let tries = (0..TRIES).map(|_| attempt());
        let best = tries.min_by_key(|&(apart, _)| apart);
        best.map_or_else(|| attempt().1, |(_, pair)| pair)
    }
}

/// Converts a time of the run's clock, on the line through two moments: the clocks may differ in
/// speed by parts per million.
pub(crate) fn monotonic([from, to]: [ClockPair; 2], run_ns: u64) -> u64 {
    let part = i128::from(run_ns) - i128::from(from.run_ns);
    let run = i128::from(to.run_ns.saturating_sub(from.run_ns)).max(1);
    let all = i128::from(to.monotonic_ns.saturating_sub(from.monotonic_ns)).max(1);
    // Cannot overflow: both factors are below 2⁶⁴.
    let at = i128::from(from.monotonic_ns) + part * all / run;
    u64::try_from(at).unwrap_or(0)
}

/// Reads of which the closest is taken.
const TRIES: u32 = 32;

/// Id of the clock that stamps events.
const CLOCK_MONOTONIC: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    const fn pair(run_ns: u64, monotonic_ns: u64) -> ClockPair {
        ClockPair {
            run_ns,
            monotonic_ns,
        }
    }

    #[test]
    fn times_lie_on_the_line_through_both_moments() {
        let clocks = [pair(1000, 51_000), pair(2000, 52_100)];
        for (run_ns, want) in [
            (1000, 51_000),
            (1500, 51_550),
            (2000, 52_100),
            (900, 50_890),
        ] {
            assert_eq!(monotonic(clocks, run_ns), want, "{run_ns}");
        }
        assert_eq!(monotonic([pair(5, 100); 2], 5), 100);
    }

    #[test]
    fn both_clocks_advance_together() {
        let clock = Clock::monotonic();
        let [from, to] = [(); 2].map(|()| ClockPair::read(&clock));
        assert!(to.run_ns >= from.run_ns && to.monotonic_ns >= from.monotonic_ns);
    }
}
