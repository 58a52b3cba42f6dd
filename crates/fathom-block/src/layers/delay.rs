//! Delay: each command completes later than the device below completes it.
//!
//! The time is added to the device's own, from its completion on, so that a delay of 1 ms over an
//! idle device adds 1 ms and over a busy one does not disappear in its queue. Any number of
//! commands is delayed in parallel: a delay limits no bandwidth.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use fathom_core::{
    BlockDevice, Command, CommandData, Direction, Errno, Finished, Geometry, Nanos, OpKind,
    PerDirection, Tick, Xoshiro256, Zone, ZoneAction,
};

use super::Layer;
use crate::held_back::HeldBack;
use crate::{Parameters, Recorded};

/// Configuration of a delay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DelayConfig {
    /// Added latency by direction; syncs have that of writes.
    pub times: PerDirection<DelayTime>,
    /// Seed of the draws.
    pub seed: u64,
}

/// Added latency of a direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DelayTime {
    /// The same for all commands.
    Fixed(Nanos),
    /// Drawn for each command.
    Drawn(Recorded),
}

impl Default for DelayTime {
    fn default() -> Self {
        Self::Fixed(Nanos::ZERO)
    }
}

impl DelayTime {
    fn draw(&self, random: &mut Xoshiro256) -> Nanos {
        match self {
            Self::Fixed(time) => *time,
            Self::Drawn(recorded) => Nanos::new(recorded.draw(random)),
        }
    }
}

impl Layer for DelayConfig {
    fn over(&self, device: Box<dyn BlockDevice>, _opened: Tick) -> Box<dyn BlockDevice> {
        Box::new(Delay::new(device, self.clone()))
    }
}

/// Device with added latency.
///
/// A command costs two heap operations more; memory is one entry per command in flight.
#[derive(Debug)]
pub struct Delay<D> {
    device: D,
    config: DelayConfig,
    random: Xoshiro256,
    /// Added latency of the command with this tag.
    added: Vec<Nanos>,
    held: HeldBack,
    /// Completions so far: those of one time leave in the device's order.
    completions: u64,
}

impl<D: BlockDevice> Delay<D> {
    /// Adds latency to `device`.
    #[must_use]
    pub fn new(device: D, config: DelayConfig) -> Self {
        Self {
            device,
            random: Xoshiro256::new(config.seed),
            config,
            added: Vec::new(),
            held: HeldBack::default(),
            completions: 0,
        }
    }
}

impl<D: BlockDevice> BlockDevice for Delay<D> {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn start(&mut self, command: &Command, data: &mut CommandData, now: Tick) {
        let direction = match command.kind {
            OpKind::Data(direction) => direction,
            OpKind::Sync(_) => Direction::Write,
        };
        let tag = command.tag as usize;
        if self.added.len() <= tag {
            self.added.resize(tag + 1, Nanos::ZERO);
        }
        self.added[tag] = self.config.times[direction].draw(&mut self.random);
        self.device.start(command, data, now);
    }

    fn next(&self) -> Option<Tick> {
        let below = self.device.next();
        below.into_iter().chain(self.held.next()).min()
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        while let Some(mut finished) = self.device.completed(now) {
            finished.at += self.added[finished.tag as usize];
            self.completions += 1;
            self.held.push(self.completions, finished);
        }
        self.held.pop(now)
    }

    fn manage_zone(&mut self, action: ZoneAction, start: u64) -> Result<(), Errno> {
        self.device.manage_zone(action, start)
    }

    fn zone(&self, offset: u64) -> Option<Zone> {
        self.device.zone(offset)
    }

    fn descriptors(&self, add: &mut dyn FnMut(BorrowedFd<'_>)) {
        self.device.descriptors(add);
    }
}

pub(super) fn read(fields: &dyn Parameters, _below: u64) -> Option<Arc<dyn Layer>> {
    let times = Direction::ALL.map(|direction| time(fields, direction));
    let seed = fields.whole("seed", 0..=u64::MAX, Some(1));
    let [read, write, trim] = times;
    let config = DelayConfig {
        times: PerDirection::new(read?, write?, trim?),
        seed,
    };
    if config.times == PerDirection::default() {
        let hint = "write `read_us`, `write_us` or `trim_us`, or a table of latencies";
        fields.refuse("read_us", "the layer delays nothing", hint);
    }
    Some(Arc::new(config))
}

/// Reads the latency of a direction: a number, or a table of recorded ones.
fn time(fields: &dyn Parameters, direction: Direction) -> Option<DelayTime> {
    let (fixed, drawn) = match direction {
        Direction::Read => ("read_us", "read"),
        Direction::Write => ("write_us", "write"),
        Direction::Trim => ("trim_us", "trim"),
    };
    let time = fields.time(fixed, Nanos::from_micros(1), 0.0..=1e9, Some(0.0));
    let Some(table) = fields.table(drawn, true) else {
        return Some(DelayTime::Fixed(time));
    };
    if fields.has(fixed) {
        let why = format!("`{fixed}` and a table `{drawn}`: a command has one latency");
        fields.refuse(fixed, &why, "remove one of them");
    }
    let recorded = table.recorded();
    table.finish();
    recorded.map(DelayTime::Drawn)
}
