//! The run's clock: nanoseconds since its creation, read as cheaply as the machine allows.
//!
//! On x86-64 it reads the time-stamp counter, calibrated against `CLOCK_MONOTONIC` and used only if
//! it is invariant, the kernel trusts it and the CPUs agree. Elsewhere it reads `CLOCK_MONOTONIC`.

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

/// A source of [`Tick`]s: a plain value that every thread may copy.
///
/// The origin is the moment of creation. Drivers read it; workers and engines of pure crates are
/// given ticks. A read costs [`read_cost_ns`](Self::read_cost_ns), some 20 ns for either source.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: Source,
    /// Origin in the source's own unit.
    origin: u64,
    /// Nanoseconds per count as a fixed-point number with 32 fractional bits; unused by `Wall`
    /// and `Monotonic`.
    multiplier: u64,
    hz: u64,
    /// Half-width of the calibration's uncertainty, in parts per billion.
    error_ppb: u64,
    read_cost_ns: u64,
}

impl Clock {
    /// Creates the cheapest trusted clock: the CPU's counter, else `CLOCK_MONOTONIC`.
    ///
    /// Takes about 3 ms, 10 ms at most.
    #[must_use]
    pub fn calibrated() -> Self {
        Self::cpu().unwrap_or_else(|_| Self::monotonic())
    }

    /// Creates a clock that reads the CPU's counter.
    ///
    /// # Errors
    /// The reason why the counter cannot be trusted on this machine.
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

    /// Creates a clock that reads `clock_gettime(CLOCK_MONOTONIC)`.
    #[must_use]
    pub fn monotonic() -> Self {
        Self::uncalibrated(Source::Monotonic, monotonic_ns(), 1_000_000_000)
    }

    /// Creates a clock that reads `gettimeofday(2)`, in microseconds. Steps of the time of day are
    /// removed.
    ///
    /// Leaks the 128 bytes that all copies share, because clocks are copied everywhere.
    #[must_use]
    pub fn gettimeofday() -> Self {
        let shared = TimeOfDay::starting(timeofday_ns(), monotonic_ns());
        Self::uncalibrated(Source::Wall(Box::leak(Box::new(shared))), 0, 1_000_000)
    }

    /// Creates a clock that is stopped at its origin and free to read, for loops without times.
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

    /// Returns the current time.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Tick {
        // Tested first, so that the usual clock costs one branch.
        if let Source::Counter = self.source {
            // Another CPU's counter may be a few counts behind the origin.
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

    /// Returns the source's name: `tsc`, `clock_gettime`, `gettimeofday`, or that of the shared
    /// clock of `gtod_cpu`.
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

    /// Returns whether the clock advances by itself, independent of the time of day and of other
    /// threads.
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

    /// Returns the source's counts per second.
    #[must_use]
    pub const fn hz(&self) -> u64 {
        self.hz
    }

    /// Returns the uncertainty of the rate in parts per billion, from the calibration's brackets; 0
    /// if nothing was calibrated.
    #[must_use]
    pub const fn error_ppb(&self) -> u64 {
        self.error_ppb
    }

    /// Returns the cost of one `now`, in nanoseconds, measured at creation.
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

    /// Measures the cost of a read: the best of several rounds, which excludes interrupts.
    fn with_read_cost(mut self) -> Self {
        self.read_cost_ns = (0..COST_ROUNDS)
            .map(|_| self.mean_read_ns())
            .min()
            .unwrap_or(0);
        self
    }

    /// Returns the mean cost of a read in one round.
    ///
    /// Not inlined: rounds that the compiler unrolls are code that runs once, so even the best of
    /// them fetches its instructions from memory. Under valgrind, which translates code when it is
    /// first run, a read seemed to take 2.7 µs; it takes 0.03 to 0.07.
    #[inline(never)]
    fn mean_read_ns(&self) -> u64 {
        let start = self.now();
        for _ in 0..COST_READS {
            std::hint::black_box(self.now());
        }
        (self.now() - start).get() / COST_READS
    }
}

/// Sleeps until the clock reads `until`; returns early if the thread receives a signal, so that a
/// stop request is noticed at once.
///
/// The wake-up is late by the timer slack plus the scheduler's delay. A clock that is set back or
/// stopped does not lengthen the sleep, which the kernel's monotonic clock ends.
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

/// Spins until the clock reads `until`; bounded as in [`sleep_until`] if the clock is set back.
pub fn spin_until(clock: &Clock, until: Tick) {
    stay_awake_until(clock, until, std::hint::spin_loop);
}

/// Offers the processor to other threads until the clock reads `until`; bounded as
/// [`spin_until`]. Among threads that share a processor and all do so, each runs every few
/// microseconds.
pub fn yield_until(clock: &Clock, until: Tick) {
    stay_awake_until(clock, until, std::thread::yield_now);
}

#[inline(always)]
fn stay_awake_until(clock: &Clock, until: Tick, pause: impl Fn()) {
    if clock.is_steady() {
        while clock.now() < until {
            pause();
        }
        return;
    }
    let limit = Limit::of(until - clock.now());
    while clock.now() < until && monotonic_ns() < limit.0 {
        pause();
    }
}

/// Sleeps for a span of the kernel's monotonic clock; less if a signal arrives.
pub fn sleep(span: Nanos) {
    let _interrupted = sleep_to(monotonic_ns().saturating_add(span.get()));
}

/// Deadline on `CLOCK_MONOTONIC` that bounds a wait for any other clock.
struct Limit(u64);

impl Limit {
    /// Sets the deadline 0.1 % after `left`: no running clock is that slow.
    fn of(left: Nanos) -> Self {
        let most = left.get().saturating_add(left.get() / 1000 + 1_000_000);
        Self(monotonic_ns().saturating_add(most))
    }
}

/// Sleeps until `CLOCK_MONOTONIC` reads `at_ns`; returns 0 or the errno.
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

/// Reads the kernel's clock with this id (`clock_gettime(2)`), in nanoseconds; not for measuring.
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

/// State of the wall clock, as the kernel knows it from the time service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStatus {
    /// A time service keeps the clock.
    pub is_synchronised: bool,
    /// Largest error, as the service estimates it.
    pub bound: Nanos,
}

/// Returns the state of the wall clock (`adjtimex(2)`); changes nothing.
///
/// # Errors
/// The error of the system call, which a sandbox may forbid.
pub fn clock_status() -> io::Result<ClockStatus> {
    // SAFETY: `timex` is a plain C struct of integers, for which zeros are a value: no mode is set,
    // so that the call only reads.
    let mut raw: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the struct lives through the call.
    let state = unsafe { libc::adjtimex(&raw mut raw) };
    if state < 0 {
        return Err(io::Error::last_os_error());
    }
    let bound_us = u64::try_from(raw.maxerror).unwrap_or(u64::MAX / 1_000);
    Ok(ClockStatus {
        is_synchronised: state != libc::TIME_ERROR && raw.status & libc::STA_UNSYNC == 0,
        bound: Nanos::new(bound_us.saturating_mul(1_000)),
    })
}

/// Returns nanoseconds since 1970 on the kernel's wall clock.
#[must_use]
pub fn wall_ns() -> u64 {
    timeofday_ns()
}

/// Returns milliseconds since 1970, for timestamps in reports; not for measuring.
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
    /// Read by a thread on a dedicated CPU, in nanoseconds since the origin.
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

/// Reads `CLOCK_MONOTONIC`, in nanoseconds.
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

/// Converts to the kernel's type; saturates at its maximum.
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

    /// A clock that is set back again and again: the awaited time never comes nearer.
    #[test]
    fn a_clock_that_does_not_go_on_keeps_nobody_waiting() {
        let (clock, span) = (Clock::stopped(), Nanos::from_millis(2));
        let begun = monotonic_ns();
        sleep_until(&clock, Tick::ZERO + span);
        spin_until(&clock, Tick::ZERO + span);
        yield_until(&clock, Tick::ZERO + span);
        assert!(monotonic_ns() - begun >= 3 * span.get());
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
