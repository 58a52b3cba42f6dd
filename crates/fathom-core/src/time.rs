//! Points in time and durations, in integer nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Point in time: nanoseconds since the origin of the run's clock, real or virtual.
///
/// Two ticks can be subtracted, never added. 2⁶⁴ ns are 584 years, so no sum here overflows in
/// practice; the arithmetic saturates all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(u64);

impl Tick {
    /// Origin of the clock.
    pub const ZERO: Self = Self(0);
    /// Latest tick, which never comes.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates the tick `ns` nanoseconds after the origin.
    #[must_use]
    pub const fn new(ns: u64) -> Self {
        Self(ns)
    }

    /// Returns the nanoseconds since the origin.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the time since `earlier`; zero if `earlier` is later.
    #[must_use]
    #[inline]
    pub const fn since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Duration in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(u64);

impl Nanos {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// Longest duration.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a duration of `ns` nanoseconds.
    #[must_use]
    pub const fn new(ns: u64) -> Self {
        Self(ns)
    }

    /// Creates a duration of `us` microseconds, saturating.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// Creates a duration of `ms` milliseconds, saturating.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// Creates a duration of `s` seconds, saturating.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }

    /// Returns the nanoseconds.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the milliseconds, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Returns whether the duration is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Sub for Tick {
    type Output = Nanos;
    #[inline]
    fn sub(self, earlier: Self) -> Nanos {
        self.since(earlier)
    }
}

impl Add<Nanos> for Tick {
    type Output = Self;
    #[inline]
    fn add(self, span: Nanos) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Nanos> for Tick {
    #[inline]
    fn add_assign(&mut self, span: Nanos) {
        *self = *self + span;
    }
}

impl Add for Nanos {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ns if ns >= 1_000_000_000 => {
                write!(f, "{}.{:03} s", ns / 1_000_000_000, ns / 1_000_000 % 1_000)
            }
            ns if ns >= 1_000_000 => write!(f, "{}.{:03} ms", ns / 1_000_000, ns / 1_000 % 1_000),
            ns if ns >= 1_000 => write!(f, "{}.{:03} us", ns / 1_000, ns % 1_000),
            ns => write!(f, "{ns} ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_never_goes_below_zero() {
        assert_eq!(Tick::new(5) - Tick::new(9), Nanos::ZERO);
        assert_eq!(Tick::new(9) - Tick::new(5), Nanos::new(4));
    }

    #[test]
    fn a_span_prints_in_its_own_unit() {
        assert_eq!(Nanos::new(999).to_string(), "999 ns");
        assert_eq!(Nanos::from_millis(1500).to_string(), "1.500 s");
    }
}
