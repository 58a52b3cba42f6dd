//! Time limits of connections.

use fathom_core::{Nanos, Tick};

use super::config::TargetLimits;
use super::connection::{Connection, Role, State};
use super::flight::FlightState;
use super::log::Ended;

/// Time of the next look at the deadlines of a thread's connections.
///
/// Deadlines move with each command, so none is kept: all are looked at when the earliest one that
/// was seen may have passed, and often enough that a new one is not missed by much. A thousand
/// connections are looked at in some microseconds.
#[derive(Debug)]
pub(crate) struct Timers {
    next: Tick,
    /// Longest time between two looks.
    period: Nanos,
}

impl Timers {
    pub(crate) fn new(limits: &TargetLimits) -> Self {
        let shortest = (limits.initialization_timeout)
            .min(limits.transfer_timeout)
            .min(limits.termination_timeout);
        let period = Nanos::new(shortest.get() / 4).min(PERIOD_MAX);
        Self {
            next: Tick::ZERO,
            period: period.max(PERIOD_MIN),
        }
    }

    /// Returns the time of the next look.
    pub(crate) fn next(&self, has_connections: bool) -> Option<Tick> {
        has_connections.then_some(self.next)
    }

    pub(crate) fn is_due(&self, now: Tick) -> bool {
        self.next <= now
    }

    /// Begins a look.
    pub(crate) fn begin(&mut self, now: Tick) {
        self.next = now + self.period;
    }

    /// Takes a deadline into account.
    pub(crate) fn add(&mut self, deadline: Tick) {
        self.next = self.next.min(deadline);
    }
}

impl Connection {
    /// Returns the time at which the connection ends if nothing happens, and the reason then.
    pub(crate) fn deadline(&self, limits: &TargetLimits) -> Option<(Tick, Ended)> {
        if let State::Terminating(since, _) = self.state {
            // The reason is replaced by that of the termination.
            return Some((since + limits.termination_timeout, Ended::Closed));
        }
        if self.state == State::Closed {
            return None;
        }
        let initialized = match self.role {
            Role::Connecting => Some((
                self.opened_at + limits.initialization_timeout,
                Ended::NotInitialized,
            )),
            Role::Admin(_) | Role::Io(_) => None,
        };
        let transferred = (self.queue.is_owed() && !self.is_waiting())
            .then(|| (self.heard_at + limits.transfer_timeout, Ended::Silent));
        let sent = (!self.is_writable && !self.out.is_empty())
            .then(|| (self.sent_at + limits.transfer_timeout, Ended::Stalled));
        let kept = match &self.role {
            Role::Admin(admin) => {
                (admin.controller.deadline()).map(|deadline| (deadline, Ended::KeepAliveExpired))
            }
            Role::Connecting | Role::Io(_) => None,
        };
        let deadlines = [initialized, transferred, sent, kept];
        let deadlines = deadlines.into_iter().flatten();
        deadlines.min_by_key(|(deadline, _)| *deadline)
    }
}

impl Connection {
    /// Returns whether it is the target that keeps the host waiting: the connection has stopped for
    /// a buffer, which does not depend on data behind.
    fn is_waiting(&self) -> bool {
        let mut transfers = self.flights.in_state(FlightState::Transfer);
        self.blocked_by.is_some() && transfers.next().is_none()
    }
}

/// Precision of the limits, of which the shortest is some seconds.
const PERIOD_MAX: Nanos = Nanos::from_secs(1);
/// Shortest time between two looks, for limits of tests.
const PERIOD_MIN: Nanos = Nanos::from_millis(5);
