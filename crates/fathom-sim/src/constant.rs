//! A device that takes the same time for every op, any number at once.
//!
//! # What it must not be used for
//! It has no queue, no bandwidth and no geometry: it tells what the *job* does, nothing of a disk.

use std::collections::VecDeque;

use fathom_core::{Nanos, Tick};

use crate::device::{Command, Device, Finished};

/// A device of constant latency.
#[derive(Clone, Debug)]
pub struct Constant {
    latency: Nanos,
    /// In the order of their completion, which is that of their arrival: all take as long.
    in_flight: VecDeque<Finished>,
}

impl Constant {
    /// A device that takes `latency` for every op; at least 1 ns, or a job without a limit would
    /// never end.
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
