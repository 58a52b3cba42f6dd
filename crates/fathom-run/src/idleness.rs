//! CPU idle time while the jobs run (`--idle-prof`).
//!
//! fio runs threads of the lowest priority and counts the units of work they complete. Fathom reads
//! the kernel's idle counters before and after the run instead, which does not disturb the jobs. It
//! still times one unit of work, because the report prints it.

use std::hint::black_box;

use fathom_core::Nanos;
use fathom_job::IdleProfile;
use fathom_record::Idleness;
use fathom_stats::Summary;
use fathom_sys::clock::Clock;
use fathom_sys::system::{self, CpuTimes};

/// Idle counters as they were before the jobs started.
pub(crate) struct IdleWatch {
    profile: IdleProfile,
    unit: (f64, f64),
    all: Option<CpuTimes>,
    each: Vec<(u32, CpuTimes)>,
}

impl IdleWatch {
    /// Times the unit of work and samples the idle counters.
    pub(crate) fn start(profile: IdleProfile, clock: &Clock) -> Self {
        Self {
            profile,
            unit: unit_of_work(clock),
            all: system::cpu_times(),
            each: system::cpu_times_each(),
        }
    }

    /// Returns the idle share since [`start`](Self::start).
    pub(crate) fn finish(&self) -> Idleness {
        let all = self.all.zip(system::cpu_times());
        let each = match self.profile {
            IdleProfile::System => Vec::new(),
            IdleProfile::PerCpu => system::cpu_times_each(),
        };
        let each = each.into_iter().filter_map(|(number, now)| {
            let (_, before) = self.each.iter().find(|(known, _)| *known == number)?;
            Some((number, idle_percent(*before, now)))
        });
        Idleness {
            all_percent: all.map_or(0.0, |(before, now)| idle_percent(before, now)),
            each_percent: each.collect(),
            unit_mean_us: self.unit.0,
            unit_stddev_us: self.unit.1,
        }
    }
}

/// Returns mean and standard deviation of the time of one unit of work on the current CPU, in µs.
#[must_use]
pub fn unit_of_work(clock: &Clock) -> (f64, f64) {
    let mut page: Vec<u64> = (0..WORDS).collect();
    let mut spans = Summary::new();
    for _ in 0..ROUNDS {
        let begun = clock.now();
        for word in &mut page {
            *word = black_box(word.rotate_left(7) ^ 0x5555);
        }
        let span: Nanos = clock.now() - begun;
        spans.record(span.get());
    }
    (spans.mean() / 1000.0, spans.stddev() / 1000.0)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "parts of one number, far below 2⁵³"
)]
/// Returns the idle share between two samples; 0 if the run was shorter than the counter's tick.
fn idle_percent(before: CpuTimes, now: CpuTimes) -> f64 {
    let passed = now.total_us.saturating_sub(before.total_us);
    let idle = now.idle_us.saturating_sub(before.idle_us).min(passed);
    if passed == 0 {
        return 0.0;
    }
    100.0 * idle as f64 / passed as f64
}

/// Words per unit: about 16 µs of work, like fio's unit.
const WORDS: u64 = 1 << 14;
/// Number of units timed.
const ROUNDS: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_a_share_of_what_has_passed() {
        let at = |total_us, idle_us| CpuTimes {
            total_us,
            idle_us,
            stolen_us: 0,
        };
        let cases = [
            ((100, 50), (200, 150), 100.0),
            ((100, 50), (200, 75), 25.0),
            ((100, 50), (100, 50), 0.0),
            // Idle time may go back by a tick, or be sampled slightly later than the total.
            ((100, 50), (200, 40), 0.0),
            ((100, 50), (110, 80), 100.0),
        ];
        for (before, now, want) in cases {
            let got = idle_percent(at(before.0, before.1), at(now.0, now.1));
            assert_eq!(got, want, "{before:?} {now:?}");
        }
    }
}
