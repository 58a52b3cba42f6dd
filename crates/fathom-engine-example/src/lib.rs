//! The engine `delay`: each op completes a fixed time after it was submitted, and no data move.
//!
//! It is an example of an engine that comes from a crate of its own, and the test that this works:
//! no program links it. To bring such an engine to the program, make its crate a dependency of
//! `fathom-cli` and add `.with(fathom_engine_example::ENGINE)` to the registry there. Nothing else
//! knows its name: the job language, help, preflight and reports read [`EngineInfo`].
#![forbid(unsafe_code)]

use std::collections::VecDeque;

use fathom_core::{
    Capabilities, Completion, Engine, EngineError, EngineInfo, EngineOption, Nanos, Op, Queueing,
    Slot, Storage, Submitted, Synchronous, Tick,
};
use fathom_engine::{AnyEngine, EngineConfig, Registration};
use fathom_sys::clock::{Clock, sleep_until};

/// The line by which a program gets the engine.
pub const ENGINE: Registration = Registration::new(&INFO, |config| {
    Ok(AnyEngine::Boxed(Box::new(Delay::start(config))))
});

static INFO: EngineInfo = EngineInfo {
    synchronous: Synchronous::Never,
    storage: Storage::None,
    options: &[DELAY_US],
    ..EngineInfo::new("delay", "completes each op after a fixed time; no I/O")
};

/// Time between submission and completion of an op.
const DELAY_US: EngineOption = EngineOption::int(
    "delay_us",
    0,
    1_000_000,
    "Time that each op takes, in microseconds",
    "delay_us=100",
)
.default("0");

/// An engine that is a queue of due times.
struct Delay {
    clock: Clock,
    delay: Nanos,
    depth: usize,
    /// Prepared, not yet submitted.
    prepared: Vec<(Slot, i32)>,
    /// In flight, in the order in which they complete: the delay is the same for all.
    in_flight: VecDeque<(Tick, Completion)>,
    /// Time up to which ops have completed. Read before the worker reads its own, so that no op
    /// is seen to take less than the delay.
    now: Tick,
}

impl Delay {
    fn start(config: &EngineConfig) -> Self {
        let delay_us = config.options.number(&DELAY_US).unwrap_or(0);
        let depth = config.depth as usize;
        Self {
            clock: config.clock,
            delay: Nanos::from_micros(delay_us),
            depth,
            prepared: Vec::with_capacity(depth),
            in_flight: VecDeque::with_capacity(depth),
            now: Tick::ZERO,
        }
    }
}

impl Engine for Delay {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: INFO.name,
            synchronous: false,
            moves_data: false,
            syncs: Queueing::Queued,
            trims: Queueing::Queued,
        }
    }

    fn buffer(&mut self, _slot: Slot) -> &mut [u8] {
        &mut []
    }

    fn prepare(&mut self, op: &Op) {
        let count = self.prepared.len() + self.in_flight.len();
        assert!(count < self.depth, "more ops than slots");
        self.prepared.push((op.slot, op.length.cast_signed()));
    }

    fn submit(&mut self, _want: u32) -> Submitted {
        let now = self.clock.now();
        self.now = now;
        let due = now + self.delay;
        let submitted = self.prepared.drain(..);
        self.in_flight
            .extend(submitted.map(|(slot, result)| (due, Completion { slot, result })));
        Submitted::Issued { issue: now, now }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        let due = self.in_flight.iter();
        let due = due.take_while(|(due, _)| *due <= self.now).count();
        if due == 0 {
            self.now = self.clock.now();
        }
        let count = due.min(out.len());
        for (place, (_, completion)) in out.iter_mut().zip(self.in_flight.drain(..count)) {
            *place = completion;
        }
        count
    }

    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        let last = (min as usize).checked_sub(1);
        let due = last.and_then(|last| self.in_flight.get(last));
        let due = due.map_or(Tick::ZERO, |(due, _)| *due);
        sleep_until(&self.clock, until.map_or(due, |until| due.min(until)));
        self.now = self.clock.now();
        Ok(())
    }
}
