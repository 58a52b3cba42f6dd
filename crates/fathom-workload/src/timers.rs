//! Times at which the rules of a job are due.

use fathom_core::{PerDirection, Tick};

/// Deadlines of a worker; `Tick::MAX` for those that are not set or have passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timers {
    /// Creation of the worker; `startdelay` counts from here.
    pub(crate) origin: Tick,
    /// The earliest of the times below and of the recorder's and the steady state's.
    pub(crate) next_rule: Tick,
    /// End of the ramp.
    pub(crate) ramp_end: Tick,
    /// End of issuing.
    pub(crate) deadline: Tick,
    /// Next check of `rate_min`.
    pub(crate) rate_check: Tick,
    /// Last check of it; `None` before the first.
    pub(crate) rate_checked: Option<Tick>,
    /// Ops and bytes at the last check.
    pub(crate) rate_seen: PerDirection<(u64, u64)>,
    /// Start of the current period of I/O, which counts as runtime when it ends.
    pub(crate) io_period_start: Tick,
}

impl Timers {
    /// Creates the timers of a worker that has not begun.
    pub(crate) const fn new(origin: Tick) -> Self {
        Self {
            origin,
            next_rule: Tick::ZERO,
            ramp_end: Tick::MAX,
            deadline: Tick::MAX,
            rate_check: Tick::MAX,
            rate_checked: None,
            rate_seen: PerDirection::new((0, 0), (0, 0), (0, 0)),
            io_period_start: origin,
        }
    }
}
