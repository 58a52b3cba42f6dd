//! Times at which the rules of a job are due.

use fathom_core::{Nanos, PerDirection, Tick};

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
    /// End of the last pass, and the time from then to the next check.
    pub(crate) rate_paused: (Tick, Nanos),
    /// Ops and bytes at the last check.
    pub(crate) rate_seen: PerDirection<(u64, u64)>,
    /// Start of the current period of I/O, which counts as runtime when it ends.
    pub(crate) io_period_start: Tick,
    /// Time of a clock read, if one reading is both the issue time of ops and the completion time
    /// of those reaped next.
    pub(crate) clock_read: Nanos,
    /// End of the last turn.
    pub(crate) turned: Tick,
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
            rate_paused: (Tick::ZERO, Nanos::ZERO),
            rate_seen: PerDirection::new((0, 0), (0, 0), (0, 0)),
            io_period_start: origin,
            clock_read: Nanos::ZERO,
            turned: Tick::ZERO,
        }
    }

    /// Returns the time after a submission whose last clock read gave `reading`: the end of that
    /// read.
    ///
    /// The reading is the issue time. An op that its submission has completed is found after the
    /// read, so that its clat is the time of a read and not 0. The next op starts then, too, and
    /// latencies that follow each other still do not overlap. The next reading may be before that
    /// (a clock of whole microseconds, a processor that has become faster): then the op starts with
    /// its issue, so that lat is the sum of slat and clat, and clat all that the op took.
    ///
    /// One addition per submission: raising the latencies op by op took 5 to 13 instructions of
    /// some 140, a test in each reap 2 to 6, a second read a tenth of the time of an op.
    #[inline(always)]
    pub(crate) const fn after_submission(reading: Tick, clock_read: Nanos) -> Tick {
        // Wraps after 584 years; saturating would take two instructions more.
        Tick::new(reading.get().wrapping_add(clock_read.get()))
    }
}
