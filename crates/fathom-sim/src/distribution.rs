//! Device that draws the latency of each op from those recorded on a real device.
//!
//! # Limits
//! Draws are independent of each other, of the load and of the offset: the model is valid only for
//! the depth and the pattern of the recording. Bandwidth is unlimited.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use fathom_block::{Parameters, Recorded};
use fathom_core::{
    BlockDevice, Command, CommandData, Direction, Finished, Geometry, OpKind, PerDirection, Tick,
    Xoshiro256,
};

use crate::models::Model;

/// Device that draws its latencies.
#[derive(Debug)]
pub struct Drawn {
    recorded: PerDirection<Option<Recorded>>,
    random: Xoshiro256,
    in_flight: BinaryHeap<Reverse<(Tick, u64, u32, i32)>>,
    number: u64,
}

impl Drawn {
    /// Creates a device with these latencies. A direction without any uses those of reads, or else
    /// of writes; syncs use those of writes.
    #[must_use]
    pub fn new(recorded: PerDirection<Option<Recorded>>, seed: u64) -> Self {
        Self {
            recorded,
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
        let recorded = &self.recorded;
        let latencies = recorded[direction]
            .as_ref()
            .or(recorded.read.as_ref())
            .or(recorded.write.as_ref());
        let ns = latencies.map_or(1, |latencies| latencies.draw(&mut self.random));
        self.number += 1;
        let at = now + fathom_core::Nanos::new(ns);
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
    recorded: PerDirection<Option<Recorded>>,
    seed: u64,
}

impl Model for Draws {
    /// Members of an array draw numbers of their own.
    fn device(&self, number: u64) -> Box<dyn BlockDevice> {
        let seed = self.seed.wrapping_add(number);
        Box::new(Drawn::new(self.recorded.clone(), seed))
    }

    fn recorded(&self) -> Option<&PerDirection<Option<Recorded>>> {
        Some(&self.recorded)
    }
}

/// Reads the keys of `[device.distribution]`.
pub(crate) fn read(fields: &dyn Parameters, _capacity: u64) -> Option<Arc<dyn Model>> {
    let keys = ["read", "write", "trim"];
    let [read, write, trim] = keys.map(|key| {
        let table = fields.table(key, true)?;
        let recorded = table.recorded();
        table.finish();
        recorded
    });
    let each = PerDirection::new(read, write, trim);
    if !keys.iter().any(|key| fields.has(key)) {
        let why = "there are no latencies";
        fields.refuse(
            "read",
            why,
            "write `[device.distribution.read]`, or of `write`",
        );
    }
    Some(Arc::new(Draws {
        recorded: each,
        seed: fields.whole("seed", 0..=u64::MAX, Some(1)),
    }))
}
