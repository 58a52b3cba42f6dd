//! Device that draws the latency of each op: from those recorded on a real device, or from the
//! exponential distribution, whose queues have closed forms to test methods with.
//!
//! # Limits
//! Draws are independent of each other, of the load and of the offset: the model is valid only for
//! the depth and the pattern of the recording. Bandwidth is unlimited.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use fathom_block::{Parameters, Recorded};
use fathom_core::{
    BlockDevice, Command, CommandData, Direction, Finished, Geometry, Nanos, OpKind, PerDirection,
    Tick, Xoshiro256,
};

use crate::models::Model;

/// Device that draws its latencies.
#[derive(Debug)]
pub struct Drawn {
    latencies: PerDirection<Option<Latencies>>,
    random: Xoshiro256,
    in_flight: BinaryHeap<Reverse<(Tick, u64, u32, i32)>>,
    number: u64,
}

/// Latencies of a direction, to draw from.
#[derive(Clone, Debug, PartialEq)]
pub enum Latencies {
    /// Those of a real device.
    Recorded(Recorded),
    /// Exponentially distributed, with this mean.
    Exponential(Nanos),
}

impl Latencies {
    fn draw(&self, random: &mut Xoshiro256) -> u64 {
        match self {
            Self::Recorded(recorded) => recorded.draw(random),
            Self::Exponential(mean) => exponential(mean.get(), random),
        }
    }
}

impl Drawn {
    /// Creates a device with these latencies. A direction without any uses those of reads, or else
    /// of writes; syncs use those of writes.
    #[must_use]
    pub fn new(latencies: PerDirection<Option<Latencies>>, seed: u64) -> Self {
        Self {
            latencies,
            random: Xoshiro256::new(seed),
            in_flight: BinaryHeap::new(),
            number: 0,
        }
    }
}

impl BlockDevice for Drawn {
    fn geometry(&self) -> Geometry {
        Geometry::UNBOUNDED
    }

    fn start(&mut self, command: &Command, _no_data: &mut CommandData, now: Tick) {
        let direction = match command.kind {
            OpKind::Data(direction) => direction,
            OpKind::Sync(_) => Direction::Write,
        };
        let each = &self.latencies;
        let latencies = each[direction]
            .as_ref()
            .or(each.read.as_ref())
            .or(each.write.as_ref());
        let ns = latencies.map_or(1, |latencies| latencies.draw(&mut self.random));
        self.number += 1;
        let at = now + Nanos::new(ns);
        let entry = (at, self.number, command.tag, command.whole());
        self.in_flight.push(Reverse(entry));
    }

    fn next(&self) -> Option<Tick> {
        self.in_flight.peek().map(|Reverse((at, ..))| *at)
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        let &Reverse((at, _, tag, result)) = self.in_flight.peek()?;
        (at <= now).then(|| {
            self.in_flight.pop();
            Finished::new(tag, at, result)
        })
    }
}

/// Latencies to draw from, and the seed of the draws.
#[derive(Clone, Debug)]
struct Draws {
    latencies: PerDirection<Option<Latencies>>,
    seed: u64,
}

impl Model for Draws {
    /// Members of an array, and runs of an experiment, draw numbers of their own.
    fn device(&self, number: u64) -> Box<dyn BlockDevice> {
        let seed = self.seed.wrapping_add(number);
        Box::new(Drawn::new(self.latencies.clone(), seed))
    }

    fn drawn(&self) -> Option<PerDirection<bool>> {
        let [read, write, trim] = Direction::ALL.map(|one| self.latencies[one].is_some());
        Some(PerDirection::new(read, write, trim))
    }
}

/// Reads the keys of `[device.distribution]`.
pub(crate) fn read(fields: &dyn Parameters, _capacity: u64) -> Option<Arc<dyn Model>> {
    let keys = ["read", "write", "trim"];
    let [read, write, trim] = keys.map(|key| {
        let table = fields.table(key, true)?;
        let latencies = read_latencies(&*table);
        table.finish();
        latencies
    });
    let latencies = PerDirection::new(read, write, trim);
    if !keys.iter().any(|key| fields.has(key)) {
        let why = "there are no latencies";
        fields.refuse(
            "read",
            why,
            "write `[device.distribution.read]`, or of `write`",
        );
    }
    Some(Arc::new(Draws {
        latencies,
        seed: fields.whole("seed", 0..=u64::MAX, Some(1)),
    }))
}

fn read_latencies(table: &dyn Parameters) -> Option<Latencies> {
    if !table.has(EXPONENTIAL) {
        return table.recorded().map(Latencies::Recorded);
    }
    if let Some(key) = ["latency_ns", "count"]
        .into_iter()
        .find(|key| table.has(key))
    {
        let why = format!("the latencies are exponentially distributed by `{EXPONENTIAL}`");
        table.refuse(key, &why, "remove one of both");
    }
    let us = Nanos::from_micros(1);
    let mean = table.time(EXPONENTIAL, us, 0.001..=1e9, None);
    Some(Latencies::Exponential(mean))
}

/// Draws an exponentially distributed number with a mean, at least 1.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "53 bits of a uniform number; a mean of at most 1000 s, and at most 37 means"
)]
fn exponential(mean: u64, random: &mut Xoshiro256) -> u64 {
    // In (0, 1]: the logarithm is finite.
    let uniform = ((random.next_u64() >> 11) + 1) as f64 * (1.0 / (1_u64 << 53) as f64);
    let drawn = libm::round(-libm::log(uniform) * mean as f64) as u64;
    drawn.max(1)
}

/// Key of the mean of exponentially distributed latencies.
const EXPONENTIAL: &str = "exponential_us";
