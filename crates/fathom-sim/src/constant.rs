//! Device with the same latency for every op, any number of them in parallel.
//!
//! # Limits
//! It has no queue, no bandwidth and no geometry: it shows the behaviour of the *job*, not of a
//! disk.

use std::collections::VecDeque;

use fathom_core::{Nanos, Tick};

use crate::device::{Command, Device, Finished};

/// Device of constant latency.
#[derive(Clone, Debug)]
pub struct Constant {
    latency: Nanos,
    /// Commands in order of completion, which is that of arrival because latencies are equal.
    in_flight: VecDeque<Finished>,
}

impl Constant {
    /// Creates a device that takes `latency` for every op, at least 1 ns: with none, an unlimited
    /// job would never end.
    #[must_use]
    pub fn new(latency: Nanos) -> Self {
        Self {
            latency: latency.max(Nanos::new(1)),
            in_flight: VecDeque::new(),
        }
    }
}

impl Device for Constant {
    #[inline]
    fn start(&mut self, command: &Command, now: Tick) {
        self.in_flight.push_back(Finished {
            tag: command.tag,
            at: now + self.latency,
            result: command.whole(),
        });
    }

    #[inline]
    fn next(&self) -> Option<Tick> {
        self.in_flight.front().map(|finished| finished.at)
    }

    #[inline]
    fn completed(&mut self, now: Tick) -> Option<Finished> {
        if self.next()? > now {
            return None;
        }
        self.in_flight.pop_front()
    }
}
