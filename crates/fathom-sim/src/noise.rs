//! Noise of a modelled machine: its devices' own clocks run slower or faster, by chance and with
//! time, as those of real machines seem to.
//!
//! ```text
//! time of the simulation   |────────|────────|────────|   grid of the wander, turns of a neighbour
//! own time of the device   |──────|────────|─────|        the same ops, but later or earlier
//! ```
//!
//! A model answers as ever, on its own clock; a [`Noisy`] device converts the times on the way. How
//! slow the clock is depends on the number of the run and on its place on the time line of an
//! experiment ([`TimeLine`]), so that drift and wander go on from one run to the next.
//!
//! # Limits
//! It scales the time of a device as a whole: a neighbour that takes queue slots, or fills a cache,
//! also changes which op is slow. It shows whether an experiment copes with such noise, never which
//! noise a real machine has.

mod own_clock;

use std::os::fd::BorrowedFd;

use fathom_block::Parameters;
use fathom_core::{
    BlockDevice, Command, CommandData, Errno, Finished, Geometry, Nanos, Tick, Zone, ZoneAction,
};

use own_clock::OwnClock;

/// Noise as a machine file assumes it. All shares are relative: 0.02 is 2 %.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NoiseConfig {
    /// Standard deviation of a run's level, drawn once for each run.
    pub between_runs: f64,
    /// Slowdown with each hour; below 0 the machine gets faster.
    pub drift_per_hour: f64,
    /// Level that wanders, within runs and across them.
    pub wander: Option<Wander>,
    /// Neighbour that needs the machine, too, at times.
    pub neighbour: Option<Neighbour>,
    /// Seed of all draws.
    pub seed: u64,
}

/// Level that keeps a part of its deviation from step to step: an AR(1) process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wander {
    /// Standard deviation in the long run.
    pub deviation: f64,
    /// Length of a step.
    pub every: Nanos,
    /// Part of the deviation that the next step keeps.
    pub correlation: f64,
}

/// Neighbour that slows the machine once in each period, from a drawn moment on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// Length of a period.
    pub every: Nanos,
    /// Time in which the machine is slow, at most a period.
    pub length: Nanos,
    /// Factor by which it is slower.
    pub times: f64,
}

/// Place of a run on the time line of an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeLine {
    /// Time from the begin of the experiment to that of the run.
    pub start: Nanos,
    /// Number of the run, which no other run of the experiment has.
    pub run: u64,
    /// Number that separates the draws of this experiment from those of others.
    pub experiment: u64,
}

impl TimeLine {
    /// Returns a number that separates the draws of this run from those of all others; 0 of the
    /// first run of experiment 0.
    #[must_use]
    pub const fn draws(&self) -> u64 {
        // Experiments with up to 2³² runs do not overlap.
        (self.experiment << 32).wrapping_add(self.run)
    }
}

impl NoiseConfig {
    /// Reads the keys of `[noise]`.
    #[must_use]
    pub fn read(fields: &dyn Parameters) -> Self {
        let percent = |key, least| fields.number(key, least..=100.0, Some(0.0)) / 100.0;
        let noise = Self {
            between_runs: percent("between_runs_percent", 0.0),
            drift_per_hour: percent("drift_percent_per_hour", -99.0),
            wander: fields.table("wander", true).map(|keys| read_wander(&*keys)),
            neighbour: fields
                .table("neighbour", true)
                .map(|keys| read_neighbour(&*keys)),
            seed: fields.whole("seed", 0..=u64::MAX, Some(1)),
        };
        if noise.is_none() {
            let hint =
                "write `between_runs_percent`, `drift_percent_per_hour`, `wander` or `neighbour`";
            fields.refuse("between_runs_percent", "it describes no noise", hint);
        }
        noise
    }

    /// Returns whether the clock runs evenly.
    fn is_none(&self) -> bool {
        let wanders = self.wander.is_some() || self.neighbour.is_some();
        !(self.between_runs > 0.0 || self.drift_per_hour.abs() > 0.0 || wanders)
    }

    /// Describes the noise in reports.
    #[must_use]
    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        if self.between_runs > 0.0 {
            parts.push(format!("{} between runs", percent(self.between_runs)));
        }
        if self.drift_per_hour.abs() > 0.0 {
            parts.push(format!("drift {} per hour", percent(self.drift_per_hour)));
        }
        if let Some(wander) = self.wander {
            let (deviation, kept) = (percent(wander.deviation), percent(wander.correlation));
            let every = wander.every;
            parts.push(format!("wander {deviation}, {kept} kept after {every}"));
        }
        if let Some(neighbour) = self.neighbour {
            let (every, length) = (neighbour.every, neighbour.length);
            let times = rounded(neighbour.times);
            parts.push(format!(
                "a neighbour once in {every} for {length}, {times} times slower"
            ));
        }
        parts.push(format!("seed {}", self.seed));
        parts.join("; ")
    }

    /// Creates the device that `device` is with this noise, in a run at this place.
    #[must_use]
    pub fn over<D: BlockDevice>(&self, device: D, place: TimeLine) -> Noisy<D> {
        Noisy {
            device,
            clock: OwnClock::new(self.clone(), place),
            started: Vec::new(),
        }
    }
}

/// Device whose clock runs unevenly.
///
/// A command costs two conversions of a time, a multiplication each, and a table entry.
#[derive(Debug)]
pub struct Noisy<D> {
    device: D,
    clock: OwnClock,
    /// Start of the command with this tag.
    started: Vec<Tick>,
}

impl<D: BlockDevice> BlockDevice for Noisy<D> {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn start(&mut self, command: &Command, data: &mut CommandData, now: Tick) {
        let tag = command.tag as usize;
        if self.started.len() <= tag {
            self.started.resize(tag + 1, Tick::ZERO);
        }
        self.started[tag] = now;
        self.device.start(command, data, self.clock.to_own(now));
    }

    fn next(&self) -> Option<Tick> {
        self.device.next().map(|own| self.clock.to_world(own))
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        let Some(mut finished) = self.device.completed(self.clock.to_own(now)) else {
            // All that is left lies ahead: no time before `now` is converted again.
            self.clock.pass(now);
            return None;
        };
        // Several moments of the simulation are one of a slow clock, and the first of them may be
        // before the command.
        let started = self.started[finished.tag as usize];
        finished.at = self.clock.to_world(finished.at).max(started).min(now);
        Some(finished)
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

fn read_wander(keys: &dyn Parameters) -> Wander {
    let wander = Wander {
        deviation: keys.number("percent", 0.0..=100.0, None) / 100.0,
        every: keys.time("every_s", SECOND, 0.001..=1e6, None),
        correlation: keys.number("correlation", 0.0..=CORRELATION_MAX, None),
    };
    keys.finish();
    wander
}

fn read_neighbour(keys: &dyn Parameters) -> Neighbour {
    let neighbour = Neighbour {
        every: keys.time("every_s", SECOND, 0.001..=1e6, None),
        length: keys.time("for_s", SECOND, 0.001..=1e6, None),
        times: keys.number("times", 1.0..=1000.0, None),
    };
    if neighbour.length > neighbour.every {
        let hint = "lower `for_s`: the neighbour comes once in `every_s`";
        keys.refuse("for_s", "a visit is longer than its period", hint);
    }
    keys.finish();
    neighbour
}

fn percent(share: f64) -> String {
    format!("{} %", rounded(share * 100.0))
}

/// Rounds to three decimals: a share that was written in percent looks as it was written.
fn rounded(number: f64) -> f64 {
    libm::round(number * 1000.0) / 1000.0
}

const SECOND: Nanos = Nanos::from_secs(1);
/// With more, a step would depend on more of those before than is worth computing.
const CORRELATION_MAX: f64 = 0.999;

/// Keys in files, those of inner tables last.
pub const NOISE_KEYS: &[&str] = &[
    "between_runs_percent",
    "drift_percent_per_hour",
    "wander",
    "neighbour",
    "seed",
    "percent",
    "every_s",
    "correlation",
    "for_s",
    "times",
];
