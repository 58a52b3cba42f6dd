//! The run's clock: nanoseconds since it was made, as cheaply as the machine can tell them.
//!
//! On x86-64 that is the processor's time-stamp counter, calibrated against `CLOCK_MONOTONIC` and
//! used only where it is invariant, the kernel has not given it up and no processor disagrees with
//! another. Everywhere else it is `CLOCK_MONOTONIC` itself.

mod counter;
mod shared_clock;
mod time_of_day;

use std::io;
use std::sync::atomic::Ordering;

use fathom_core::{Nanos, Tick};

pub use counter::Distrust;
use shared_clock::Time;
pub use shared_clock::TimeServer;
use time_of_day::TimeOfDay;

/// A source of ticks; a plain value that every thread may copy. Its origin is when it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: Source,
    /// Origin in the source's own unit.
    origin: u64,
    /// Nanoseconds per count as a fixed-point number with 32 fractional bits; unused by `Wall`
    /// and `Monotonic`.
    multiplier: u64,
    hz: u64,
    /// Half-width of the calibration's uncertainty.
    error_ppb: u64,
    read_cost_ns: u64,
}

impl Clock {
    /// The processor's counter where it can be trusted, else `CLOCK_MONOTONIC`.
    ///
    /// Takes about 3 ms, 10 ms at most.
    #[must_use]
    pub fn calibrated() -> Self {
        Self::cpu().unwrap_or_else(|_| Self::monotonic())
    }

    /// The processor's counter.
    ///
    /// # Errors
    /// Why it cannot be trusted on this machine.
    pub fn cpu() -> Result<Self, Distrust> {
        let calibration = counter::calibrate()?;
        Ok(Self {
            source: Source::Counter,
            origin: counter::read(),
            multiplier: calibration.multiplier,
            hz: calibration.hz,
            error_ppb: calibration.error_ppb,
            read_cost_ns: 0,
        }
        .with_read_cost())
    }

    /// `clock_gettime(CLOCK_MONOTONIC)`.
    #[must_use]
    pub fn monotonic() -> Self {
        Self::uncalibrated(Source::Monotonic, monotonic_ns(), 1_000_000_000)
    }

    /// `gettimeofday(2)`: microseconds. When the time of day is set, the clock goes on from where
    /// it was.
    ///
    /// Leaks the 128 bytes that all copies share, because clocks are copied everywhere.
    #[must_use]
    pub fn gettimeofday() -> Self {
        let shared = TimeOfDay::starting(timeofday_ns(), monotonic_ns());
        Self::uncalibrated(Source::Wall(Box::leak(Box::new(shared))), 0, 1_000_000)
    }

    /// A clock that stands still at its origin and costs nothing to read: for loops that keep no
    /// times.
    #[must_use]
    pub const fn stopped() -> Self {
        Self {
            source: Source::Stopped,
            origin: 0,
            multiplier: 0,
            hz: 0,
            error_ppb: 0,
            read_cost_ns: 0,
        }
    }

    /// The time now.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Tick {
        // Asked first, so that the usual clock costs one branch.
        if let Source::Counter = self.source {
            // A counter of another processor may be a few counts behind the origin's.
            let counts = counter::read().saturating_sub(self.origin);
            Tick::new(scale(counts, self.multiplier))
        } else {
            self.other_now()
        }
    }

    #[inline(never)]
    fn other_now(&self) -> Tick {
        match self.source {
            Source::Served(time) => Tick::new(time.0.load(Ordering::Relaxed)),
            Source::Monotonic => Tick::new(monotonic_ns().saturating_sub(self.origin)),
            Source::Wall(shared) => Tick::new(shared.now(timeofday_ns, monotonic_ns)),
            Source::Counter | Source::Stopped => Tick::ZERO,
        }
    }

    /// What is read: `tsc`, `clock_gettime`, `gettimeofday`, or with `gtod_cpu` what another
    /// thread has read.
    #[must_use]
    pub const fn source(&self) -> &'static str {
        match self.source {
            Source::Counter => "tsc",
            Source::Monotonic => "clock_gettime",
            Source::Wall(_) => "gettimeofday",
            Source::Stopped => "none",
            Source::Served(_) => "gtod_cpu",
        }
    }

    /// Returns whether it advances by itself: it depends neither on the time of day nor on another
    /// thread.
    const fn is_steady(&self) -> bool {
        matches!(self.source, Source::Counter | Source::Monotonic)
    }

    /// Returns the number of times that the time of day was set while this clock, or a copy of it,
    /// was read; 0 for clocks that do not follow it.
    #[must_use]
    pub fn steps(&self) -> u32 {
        match self.source {
            Source::Wall(shared) => shared.steps(),
            _ => 0,
        }
    }

    /// Counts per second of the source.
    #[must_use]
    pub const fn hz(&self) -> u64 {
        self.hz
    }

    /// How far the rate may be off, in parts per billion, by the calibration's own bracketing; 0
    /// where nothing was calibrated.
    #[must_use]
    pub const fn error_ppb(&self) -> u64 {
        self.error_ppb
    }

    /// What one `now` costs, in nanoseconds, as measured when the clock was made.
    #[must_use]
    pub const fn read_cost_ns(&self) -> u64 {
        self.read_cost_ns
    }

    fn uncalibrated(source: Source, origin: u64, hz: u64) -> Self {
        Self {
            source,
            origin,
            multiplier: 0,
            hz,
            error_ppb: 0,
            read_cost_ns: 0,
        }
        .with_read_cost()
    }

    /// The best of several rounds, so that an interrupt in one of them does not count.
    fn with_read_cost(mut self) -> Self {
        let round = || {
            let start = self.now();
            for _ in 0..COST_READS {
                std::hint::black_box(self.now());
            }
            (self.now() - start).get() / COST_READS
        };
        self.read_cost_ns = (0..COST_ROUNDS).map(|_| round()).min().unwrap_or(0);
        self
    }
}

/// Sleeps until the clock shows `until`; returns early when a signal was delivered to the thread,
/// so that a stop request is seen at once.
///
/// It wakes late by the thread's timer slack plus the scheduler's delay. A clock that is
/// set back, or stands still, does not lengthen the sleep: the kernel's monotonic clock ends it.
pub fn sleep_until(clock: &Clock, until: Tick) {
    let limit = Limit::of(until - clock.now());
    loop {
        let left = until - clock.now();
        if left.is_zero() {
            return;
        }
        let now = monotonic_ns();
        if now >= limit.0 || sleep_to(now.saturating_add(left.get()).min(limit.0)) != 0 {
            return;
        }
    }
}

/// Spins until the clock shows `until`, as little impressed by a clock that is set back as
/// [`sleep_until`].
pub fn spin_until(clock: &Clock, until: Tick) {
    if clock.is_steady() {
        while clock.now() < until {
            std::hint::spin_loop();
        }
        return;
    }
    let limit = Limit::of(until - clock.now());
    while clock.now() < until && monotonic_ns() < limit.0 {
        std::hint::spin_loop();
    }
}

/// Sleeps for a while by the kernel's monotonic clock; less when a signal was delivered.
pub fn sleep(span: Nanos) {
    let _interrupted = sleep_to(monotonic_ns().saturating_add(span.get()));
}

/// The moment of `CLOCK_MONOTONIC` at which waiting ends, whatever the clock that is waited for
/// shows.
struct Limit(u64);

impl Limit {
    /// A thousandth later than `left`: no clock that goes at all is so slow.
    fn of(left: Nanos) -> Self {
        let most = left.get().saturating_add(left.get() / 1000 + 1_000_000);
        Self(monotonic_ns().saturating_add(most))
    }
}

/// Sleeps until `CLOCK_MONOTONIC` shows `at_ns`; 0, or the error's number.
fn sleep_to(at_ns: u64) -> i32 {
    let at = timespec(at_ns);
    // SAFETY: `at` lives across the call; the remaining-time pointer may be null.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const at,
            std::ptr::null_mut(),
        )
    }
}

/// What the kernel's clock of this number (`clock_gettime(2)`) shows, in nanoseconds; never for
/// measuring.
///
/// # Errors
/// `EINVAL` if there is no such clock.
pub fn read(id: u32) -> io::Result<u64> {
    let id = libc::clockid_t::try_from(id)
        .map_err(|_too_large| io::Error::from_raw_os_error(libc::EINVAL))?;
    let mut time = timespec(0);
    // SAFETY: `time` is a valid place for the result.
    if unsafe { libc::clock_gettime(id, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

/// Milliseconds since 1970, for timestamps in reports; never for measuring.
#[must_use]
pub fn wall_ms() -> u64 {
    timeofday_ns() / 1_000_000
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Counter,
    Monotonic,
    Wall(&'static TimeOfDay),
    Stopped,
    /// By a thread on a processor of its own; in nanoseconds since the origin.
    Served(&'static Time),
}

/// Counts × multiplier ÷ 2³². The product has 128 bits; the result fits 64 for 584 years.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "2^64 ns are 584 years; a process does not run that long"
)]
fn scale(counts: u64, multiplier: u64) -> u64 {
    ((u128::from(counts) * u128::from(multiplier)) >> 32) as u64
}

/// `CLOCK_MONOTONIC` in nanoseconds.
#[inline]
pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the result.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    debug_assert_eq!(failed, 0, "every Linux has CLOCK_MONOTONIC");
    // Neither is negative: the clock counts from boot.
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

fn timeofday_ns() -> u64 {
    let mut time = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    // SAFETY: `time` is a valid place for the result; the time-zone pointer may be null.
    let failed = unsafe { libc::gettimeofday(&raw mut time, std::ptr::null_mut()) };
    debug_assert_eq!(failed, 0, "gettimeofday cannot fail with a valid pointer");
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1_000
}

/// As the kernel takes it; times past what it can hold become the latest it can.
pub(crate) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000).try_into().unwrap_or(i32::MAX.into()),
        tv_nsec: libc::c_long::try_from(ns % 1_000_000_000).unwrap_or(0),
    }
}

/// Reads per round when the cost of a read is measured: 64 × 22 ns ≈ 1.4 µs, short enough that
/// most rounds see no interrupt.
const COST_READS: u64 = 64;

/// Rounds; together about 12 µs.
const COST_ROUNDS: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_moves_forward_at_the_rate_of_the_kernel_clock() {
        let mut clocks = vec![Clock::monotonic(), Clock::gettimeofday()];
        match Clock::cpu() {
            Ok(clock) => clocks.push(clock),
            Err(why) => println!("skipped: tsc: {why}"),
        }
        for clock in clocks {
            let outer = monotonic_ns();
            let start = clock.now();
            let inner = monotonic_ns();
            sleep_until(&clock, start + Nanos::from_millis(2));
            let (inner, end) = (monotonic_ns() - inner, clock.now());
            let outer = monotonic_ns() - outer;
            let ours = (end - start).get();
            assert!(ours >= 2_000_000, "{}: {ours}", clock.source());
            // Between the two brackets, but for 0.1 % of slewing and a microsecond's resolution.
            let slack = outer / 1_000 + 2_000;
            let range = inner - slack..=outer + slack;
            assert!(
                range.contains(&ours),
                "{}: {ours} not in {range:?}",
                clock.source()
            );
        }
    }

    #[test]
    fn the_fixed_point_rate_holds_for_a_year() {
        // 2.5 GHz: 0.4 ns a count.
        let multiplier = (4 << 32) / 10;
        let year = 365 * 86_400 * 2_500_000_000_u64;
        let want = 365 * 86_400 * 1_000_000_000_u64;
        assert!(scale(year, multiplier).abs_diff(want) < want / 1_000_000_000 + 1);
    }

    /// As a thread that waits for a clock sees it when somebody sets that back: the moment it waits
    /// for is no nearer for all its waiting.
    #[test]
    fn a_clock_that_does_not_go_on_keeps_nobody_waiting() {
        let (clock, span) = (Clock::stopped(), Nanos::from_millis(2));
        let begun = monotonic_ns();
        sleep_until(&clock, Tick::ZERO + span);
        spin_until(&clock, Tick::ZERO + span);
        assert!(monotonic_ns() - begun >= 2 * span.get());
    }

    #[test]
    fn a_moment_in_the_past_needs_no_sleep() {
        let clock = Clock::monotonic();
        sleep_until(&clock, Tick::ZERO);
    }

    #[test]
    fn a_time_past_all_times_is_the_latest_the_kernel_knows() {
        assert_eq!(timespec(1_500_000_000).tv_sec, 1);
        assert_eq!(timespec(1_500_000_000).tv_nsec, 500_000_000);
        assert!(timespec(u64::MAX).tv_sec > 18_000_000_000);
    }
}
