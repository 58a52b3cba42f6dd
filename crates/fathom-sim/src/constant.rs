//! Device with the same latency for every op, any number of them in parallel.
//!
//! # Limits
//! It has no queue, no bandwidth and no geometry: it shows the behaviour of the *job*, not of a
//! disk.

use std::collections::VecDeque;
use std::sync::Arc;

use fathom_block::Parameters;
use fathom_core::{BlockDevice, Command, CommandData, Finished, Geometry, Nanos, Tick};

use crate::models::Model;

/// Device of constant latency.
#[derive(Clone, Debug)]
pub struct Constant {
    latency: Nanos,
    /// Tag, completion time and result of the commands, in order of completion, which is that of
    /// arrival because latencies are equal.
    in_flight: VecDeque<(u32, Tick, i32)>,
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

impl BlockDevice for Constant {
    fn geometry(&self) -> Geometry {
        Geometry::UNBOUNDED
    }

    #[inline]
    fn start(&mut self, command: &Command, _no_data: &mut CommandData, now: Tick) {
        let at = now + self.latency;
        self.in_flight.push_back((command.tag, at, command.whole()));
    }

    #[inline]
    fn next(&self) -> Option<Tick> {
        self.in_flight.front().map(|&(_, at, _)| at)
    }

    #[inline]
    fn completed(&mut self, now: Tick) -> Option<Finished> {
        if self.next()? > now {
            return None;
        }
        let (tag, at, result) = self.in_flight.pop_front()?;
        Some(Finished::new(tag, at, result))
    }
}

/// Latency of a constant device.
#[derive(Clone, Copy, Debug)]
struct Latency(Nanos);

impl Model for Latency {
    fn device(&self, _number: u64) -> Box<dyn BlockDevice> {
        Box::new(Constant::new(self.0))
    }
}

/// Reads the keys of `[device.constant]`.
pub(crate) fn read(fields: &dyn Parameters, _capacity: u64) -> Option<Arc<dyn Model>> {
    let us = Nanos::from_micros(1);
    let latency = fields.time("latency_us", us, 0.001..=1e9, None);
    Some(Arc::new(Latency(latency)))
}
