//! A device that takes the same time for every op, any number at once; with faults on order.
//!
//! # What it must not be used for
//! It has no queue, no bandwidth and no geometry: it tells what the *job* does, nothing of a disk.

use fathom_core::{Direction, Nanos, Op, OpKind, Tick};

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
    pub(crate) fn completes(&self, now: Tick) -> Tick {
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

    /// What comes of the `number`th op of its direction.
    pub(crate) fn result(&self, op: &Op, number: u64) -> i32 {
        let OpKind::Data(direction) = op.kind else {
            return 0;
        };
        match self.fault(direction, number) {
            Some(FaultKind::Error(errno)) => -i32::from(errno),
            Some(FaultKind::Short(bytes)) => bytes.min(op.length).cast_signed(),
            Some(FaultKind::Lost) | None => op.length.cast_signed(),
        }
    }

    /// What goes wrong with the `number`th op of a direction.
    pub(crate) fn fault(&self, direction: Direction, number: u64) -> Option<FaultKind> {
        let mut faults = self.faults.iter();
        let fault = faults.find(|fault| fault.number == number && fault.direction == direction);
        fault.map(|fault| fault.kind)
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
