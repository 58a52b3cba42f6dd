//! A device that takes the same time for every op, any number at once; with faults on order.
//!
//! # What it must not be used for
//! It has no queue, no bandwidth and no geometry: it tells what the *job* does, nothing of a disk.

use std::collections::VecDeque;

use fathom_core::{Direction, Nanos, OpKind, PerDirection, Tick};

use crate::storage::{Event, JobId, Request, Storage, Taken};

/// A device of constant latency.
#[derive(Clone, Debug)]
pub struct Constant {
    /// Time of every op; at least 1 ns, or a job without a limit would never end.
    pub latency: Nanos,
    /// Times in which the device does nothing.
    pub stalls: Vec<Stall>,
    /// Ops that go wrong.
    pub faults: Vec<Fault>,
}

/// A time in which a device does nothing: what it has, and what comes, waits until it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// When it begins.
    pub at: Tick,
    /// How long it lasts.
    pub length: Nanos,
}

/// An op that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which op of this direction, counted from 0.
    pub number: u64,
    /// Of which direction.
    pub direction: Direction,
    /// What happens.
    pub kind: FaultKind,
}

/// What happens to an op that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// It fails with this errno.
    Error(u16),
    /// It moves only this many bytes.
    Short(u32),
    /// It moves nothing and says that all went well.
    Lost,
}

impl Constant {
    /// A device without faults.
    #[must_use]
    pub const fn new(latency: Nanos) -> Self {
        Self {
            latency,
            stalls: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// When an op handed over at `now` completes.
    fn completes(&self, now: Tick) -> Tick {
        let mut end = now + Nanos::new(self.latency.get().max(1));
        for stall in &self.stalls {
            // Work that would be going on while the device stands still is put off by its rest.
            let over = stall.at + stall.length;
            let begun = now.max(stall.at);
            if begun < over && end > stall.at {
                end += over - begun;
            }
        }
        end
    }

    /// What goes wrong with the `number`th op of a direction.
    fn fault(&self, direction: Direction, number: u64) -> Option<FaultKind> {
        let mut faults = self.faults.iter();
        let fault = faults.find(|fault| fault.number == number && fault.direction == direction);
        fault.map(|fault| fault.kind)
    }
}

/// A device of constant latency with what is in flight in it.
#[derive(Debug)]
pub struct ConstantStorage {
    device: Constant,
    /// In the order of their completion, which is that of their arrival: all take as long.
    in_flight: VecDeque<(Tick, Event)>,
    numbers: PerDirection<u64>,
}

impl ConstantStorage {
    /// The device, with nothing in flight.
    #[must_use]
    pub fn new(device: Constant) -> Self {
        Self {
            device,
            in_flight: VecDeque::new(),
            numbers: PerDirection::default(),
        }
    }

    /// What will be said of an op.
    fn answer(&mut self, job: JobId, request: &Request) -> Event {
        let (slot, whole) = (request.slot, request.length.cast_signed());
        let OpKind::Data(direction) = request.kind else {
            let result = 0;
            return Event::Completed { job, slot, result };
        };
        let number = self.numbers[direction];
        self.numbers[direction] += 1;
        let result = match self.device.fault(direction, number) {
            Some(FaultKind::Lost) => {
                let result = whole;
                return Event::Forgotten { job, slot, result };
            }
            Some(FaultKind::Error(errno)) => -i32::from(errno),
            Some(FaultKind::Short(bytes)) => bytes.min(request.length).cast_signed(),
            None => whole,
        };
        Event::Completed { job, slot, result }
    }
}

impl Storage for ConstantStorage {
    fn submit(&mut self, job: JobId, request: &Request, now: Tick) -> Taken {
        let answer = self.answer(job, request);
        self.in_flight
            .push_back((self.device.completes(now), answer));
        Taken::Yes
    }

    fn next(&self) -> Option<Tick> {
        self.in_flight.front().map(|(at, _)| *at)
    }

    fn advance(&mut self, now: Tick, out: &mut Vec<Event>) {
        while self.next().is_some_and(|at| at <= now) {
            out.extend(self.in_flight.pop_front().map(|(_, event)| event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(now: u64, want: u64) {
        let stall = Stall {
            at: Tick::new(100),
            length: Nanos::new(50),
        };
        let device = Constant {
            stalls: vec![stall],
            ..Constant::new(Nanos::new(10))
        };
        assert_eq!(device.completes(Tick::new(now)), Tick::new(want));
    }

    #[test]
    fn a_stall_puts_work_off_by_what_is_left_of_it() {
        check(80, 90);
        check(90, 100);
        check(95, 155);
        check(100, 160);
        check(140, 160);
        check(150, 160);
    }
}
