//! Limits of automatic pacing, and what was measured at them.

/// Limits in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// Bytes in flight per thread, of devices that are not slow; [`UNLIMITED`] for no limit.
    pub(super) limit: u64,
    /// Divisor of what the target can move: slow devices get only this share; 0: as much as they
    /// can.
    pub(super) slow_part: u32,
}

/// Bandwidth measured at another limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    /// The other limit: bytes in flight per thread; `None` for no limit.
    pub limit_bytes: Option<u64>,
    /// Bytes per second at it.
    pub bandwidth: u64,
}

impl Setting {
    /// No limits.
    pub(super) const OPEN: Self = Self {
        limit: UNLIMITED,
        slow_part: 0,
    };

    pub(super) const fn with_limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    pub(super) const fn with_slow_part(self, slow_part: u32) -> Self {
        Self { slow_part, ..self }
    }
}

impl Beside {
    pub(super) fn new(limit: u64, rate: f64) -> Self {
        Self {
            limit_bytes: known(limit),
            bandwidth: bandwidth(rate),
        }
    }
}

/// Returns a limit as shown to users.
pub(super) fn known(limit: u64) -> Option<u64> {
    (limit != UNLIMITED).then_some(limit)
}

/// Returns a bandwidth in whole bytes per second.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; the cast saturates"
)]
pub(super) const fn bandwidth(rate: f64) -> u64 {
    rate as u64
}

/// Limit that holds nothing back. Sums with what is in flight do not overflow.
pub(super) const UNLIMITED: u64 = u64::MAX >> 8;
