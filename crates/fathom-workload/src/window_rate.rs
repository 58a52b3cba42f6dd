//! Rates over windows of equal length.

use fathom_core::Nanos;

/// Rates of one direction over successive windows, rounded so that they add up to the total.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowRate {
    /// Rounding error of the rates so far, times a second: it is added to the next window that is
    /// not empty.
    carry: u128,
}

impl WindowRate {
    /// Returns the rate of `total` over a whole window of length `every`, in `unit`s per second.
    pub(crate) fn of(&mut self, total: u64, every: Nanos, unit: u64) -> u64 {
        let amount = u128::from(total) * 1_000_000_000 + self.carry;
        let per = u128::from(every.get()) * u128::from(unit);
        self.carry = amount % per;
        u64::try_from(amount / per).unwrap_or(u64::MAX)
    }
}
