//! Faults for any device: stalls, and ops that fail at random.
//!
//! * **Stall at T for D**: the device's clock stops; commands in flight and new ones wait.
//! * **Errors**: a share (ppm) of a direction's ops fails, after the usual time.
//! * **Short transfers**: a share of reads and writes moves only some of its sectors.
//! * **Lost completions**: a share of ops never completes; the host fails each after a timeout, as
//!   a kernel does.
//!
//! # Limits
//! Faults are independent of each other and of the load; those of real devices come in clusters.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fathom_core::{
    BlockDevice, Command, CommandData, Errno, Finished, Geometry, Nanos, OpKind, PerDirection,
    Tick, Xoshiro256,
};

/// Faults of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Stalls in order of time, not overlapping.
    pub stalls: Vec<Stall>,
    /// Failing ops per million, by direction.
    pub errors_ppm: PerDirection<u32>,
    /// Errno of failing ops.
    pub errno: u16,
    /// Short transfers per million reads and writes of more than one sector.
    pub short_ppm: u32,
    /// Lost completions per million ops.
    pub lost_ppm: u32,
    /// Time after which the host fails an op with a lost completion with `ETIMEDOUT`.
    pub timeout: Nanos,
    /// Seed of the random draws.
    pub seed: u64,
}

/// Period in which a device makes no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Start of the stall.
    pub at: Tick,
    /// Length of the stall.
    pub length: Nanos,
}

/// Device with faults.
#[derive(Debug)]
pub struct Faulty<D> {
    device: D,
    faults: Faults,
    random: Xoshiro256,
    /// Fate of the command with this tag.
    fates: Vec<Fate>,
    /// Commands with a lost completion, which the host fails later.
    lost: BinaryHeap<Reverse<(Tick, u32)>>,
    /// Latest time passed to the device.
    now: Tick,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Good,
    Error,
    Short(u32),
    Lost(Tick),
}

impl Faults {
    /// Returns whether there are no faults.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let errors = self.errors_ppm.iter().any(|(_, ppm)| *ppm > 0);
        self.stalls.is_empty() && !errors && self.short_ppm == 0 && self.lost_ppm == 0
    }

    /// Returns the end of the stall in progress at `now`.
    fn stall_over(&self, now: Tick) -> Option<Tick> {
        let mut ends = self
            .stalls
            .iter()
            .map(|stall| (stall.at, stall.at + stall.length));
        let around = ends.find(|(at, end)| *at < now && now < *end);
        around.map(|(_, end)| end)
    }

    /// Converts simulation time to the device's own, which stops during stalls.
    fn to_device(&self, now: Tick) -> Tick {
        let mut stood = 0;
        for stall in &self.stalls {
            let passed = now.get().saturating_sub(stall.at.get());
            stood += passed.min(stall.length.get());
        }
        Tick::new(now.get() - stood)
    }

    /// Converts the device's own time to the earliest matching simulation time.
    fn to_world(&self, own: Tick) -> Tick {
        let mut now = own;
        for stall in &self.stalls {
            if now > stall.at {
                now += stall.length;
            }
        }
        now
    }
}

impl<D: BlockDevice> Faulty<D> {
    /// Adds `faults` to `device`.
    #[must_use]
    pub fn new(device: D, faults: Faults) -> Self {
        Self {
            device,
            random: Xoshiro256::new(faults.seed),
            faults,
            fates: Vec::new(),
            lost: BinaryHeap::new(),
            now: Tick::ZERO,
        }
    }

    fn draws(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.random.below(1_000_000) < u64::from(ppm)
    }

    fn fate(&mut self, command: &Command, now: Tick) -> Fate {
        if self.draws(self.faults.lost_ppm) {
            return Fate::Lost(now + self.faults.timeout);
        }
        let OpKind::Data(direction) = command.kind else {
            return Fate::Good;
        };
        if self.draws(self.faults.errors_ppm[direction]) {
            return Fate::Error;
        }
        let sectors = u64::from(command.length / SECTOR);
        if sectors > 1 && self.draws(self.faults.short_ppm) {
            let moved = 1 + self.random.below(sectors - 1);
            return Fate::Short(u32::try_from(moved).unwrap_or(1) * SECTOR);
        }
        Fate::Good
    }

    /// Returns a lost command whose timeout has passed at `now`.
    fn given_up(&mut self, now: Tick) -> Option<Finished> {
        let &Reverse((at, tag)) = self.lost.peek()?;
        (at <= now).then(|| {
            self.lost.pop();
            let result = Errno::ETIMEDOUT.result();
            Finished::new(tag, at, result)
        })
    }
}

impl<D: BlockDevice> BlockDevice for Faulty<D> {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn start(&mut self, command: &Command, data: &mut CommandData, now: Tick) {
        self.now = now;
        let tag = command.tag as usize;
        if self.fates.len() <= tag {
            self.fates.resize(tag + 1, Fate::Good);
        }
        self.fates[tag] = self.fate(command, now);
        self.device.start(command, data, self.faults.to_device(now));
    }

    fn next(&self) -> Option<Tick> {
        // Otherwise a command of zero latency that came during a stall would complete before it
        // came.
        let earliest = self.faults.stall_over(self.now).unwrap_or(self.now);
        let done = self.device.next();
        let done = done.map(|own| self.faults.to_world(own).max(earliest));
        let given_up = self.lost.peek().map(|Reverse((at, _))| *at);
        done.into_iter().chain(given_up).min()
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        self.now = now;
        if self.faults.stall_over(now).is_some() {
            return self.given_up(now);
        }
        while let Some(finished) = self.device.completed(self.faults.to_device(now)) {
            let at = self.faults.to_world(finished.at);
            let result = match self.fates[finished.tag as usize] {
                Fate::Good => finished.result,
                Fate::Error => -i32::from(self.faults.errno),
                Fate::Short(bytes) => finished.result.min(bytes.cast_signed()),
                Fate::Lost(until) => {
                    self.lost.push(Reverse((until.max(at), finished.tag)));
                    continue;
                }
            };
            return Some(Finished {
                at,
                result,
                ..finished
            });
        }
        self.given_up(now)
    }
}

/// Smallest transfer of a device, in bytes.
const SECTOR: u32 = 512;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Constant;
    use fathom_core::Direction;

    fn write(tag: u32) -> Command {
        Command {
            tag,
            kind: OpKind::Data(Direction::Write),
            offset: 0,
            length: 4096,
        }
    }

    #[track_caller]
    fn check(now: u64, want: u64) {
        let stall = |at, length| Stall {
            at: Tick::new(at),
            length: Nanos::new(length),
        };
        let faults = Faults {
            stalls: vec![stall(100, 50), stall(1000, 7)],
            ..Faults::default()
        };
        let mut device = Faulty::new(Constant::new(Nanos::new(10)), faults);
        device.start(&write(0), &mut None, Tick::new(now));
        let next = device.next().expect("in flight");
        assert_eq!(next, Tick::new(want));
        assert_eq!(device.completed(Tick::new(want - 1)), None);
        assert_eq!(device.completed(next).expect("done").at, next);
    }

    #[test]
    fn a_stall_delays_work_by_its_remaining_time() {
        check(80, 90);
        check(90, 100);
        check(95, 155);
        check(100, 160);
        check(140, 160);
        check(150, 160);
        check(999, 1016);
        check(1006, 1017);
        check(1007, 1017);
    }

    /// Seed 135 of the plans in virtual time: a trim of no time at all, in a stall.
    #[test]
    fn zero_latency_commands_wait_for_the_end_of_a_stall() {
        #[derive(Debug, Default)]
        struct AtOnce(Option<Finished>);
        impl BlockDevice for AtOnce {
            fn geometry(&self) -> Geometry {
                Geometry::UNBOUNDED
            }
            fn start(&mut self, command: &Command, _data: &mut CommandData, now: Tick) {
                let (tag, result) = (command.tag, command.whole());
                self.0 = Some(Finished::new(tag, now, result));
            }
            fn next(&self) -> Option<Tick> {
                self.0.as_ref().map(|finished| finished.at)
            }
            fn completed(&mut self, now: Tick) -> Option<Finished> {
                self.0.take_if(|finished| finished.at <= now)
            }
        }
        let faults = Faults {
            stalls: vec![Stall {
                at: Tick::new(100),
                length: Nanos::new(50),
            }],
            ..Faults::default()
        };
        let mut device = Faulty::new(AtOnce::default(), faults);
        device.start(&write(0), &mut None, Tick::new(120));
        assert_eq!(device.next(), Some(Tick::new(150)));
        assert_eq!(device.completed(Tick::new(120)), None);
        assert!(device.completed(Tick::new(150)).is_some());
    }

    #[test]
    fn a_lost_completion_fails_after_the_timeout() {
        let faults = Faults {
            lost_ppm: 1_000_000,
            timeout: Nanos::from_secs(30),
            ..Faults::default()
        };
        let mut device = Faulty::new(Constant::new(Nanos::new(10)), faults);
        device.start(&write(0), &mut None, Tick::new(5));
        assert_eq!(device.completed(Tick::new(15)), None);
        let at = device.next().expect("a time-out");
        assert_eq!(at, Tick::new(30_000_000_005));
        assert_eq!(device.completed(at).expect("it").result, -110);
    }

    #[test]
    fn chances_are_met() {
        let faults = Faults {
            errors_ppm: PerDirection::new(0, 100_000, 0),
            errno: 5,
            short_ppm: 50_000,
            ..Faults::default()
        };
        let mut device = Faulty::new(Constant::new(Nanos::new(10)), faults);
        let mut seen = [0_u32; 3];
        for at in 0..10_000 {
            device.start(&write(0), &mut None, Tick::new(100 * at));
            let end = Tick::new(100 * at + 10);
            match device.completed(end).expect("done").result {
                4096 => seen[0] += 1,
                -5 => seen[1] += 1,
                moved => {
                    assert!(moved > 0 && moved % 512 == 0, "{moved}");
                    seen[2] += 1;
                }
            }
        }
        assert!(
            seen[1].abs_diff(1000) < 150 && seen[2].abs_diff(450) < 100,
            "{seen:?}"
        );
    }
}
