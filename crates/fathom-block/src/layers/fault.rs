//! Faults for any device: stalls, and commands that fail, fall short or vanish.
//!
//! * **Stall at T for D**: the device's clock stops; commands in flight and new ones wait.
//! * **Stalled commands**: a share (ppm) of the commands completes later than the device says.
//! * **Errors**: a share of a direction's commands fails, after the usual time.
//! * **Short transfers**: a share of reads and writes moves only some of its sectors.
//! * **Lost completions**: a share of commands never completes; the host fails each after a
//!   timeout, as a kernel does.
//!
//! All but the stalls of the device may be limited to a range of addresses: with a share of one
//! million, a bad region.
//!
//! # Limits
//! Faults are independent of each other and of the load; those of real devices come in clusters.
//! A command reaches the device below whatever comes of it, so a write that fails may have been
//! written, as on a real device. Failing it without the device was rejected: it would take no time.

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use fathom_core::{
    BlockDevice, Command, CommandData, Direction, Errno, Finished, Geometry, Nanos, OpKind,
    PerDirection, Tick, Xoshiro256, Zone, ZoneAction,
};

use super::Layer;
use crate::Parameters;
use crate::held_back::HeldBack;

/// Faults of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Stalls in order of time, not overlapping; their times are from the opening of the device.
    pub stalls: Vec<Stall>,
    /// Failing commands per million, by direction.
    pub errors_ppm: PerDirection<u32>,
    /// Errno of failing commands.
    pub errno: u16,
    /// Short transfers per million reads and writes of more than one sector.
    pub short_ppm: u32,
    /// Lost completions per million commands.
    pub lost_ppm: u32,
    /// Time after which the host fails a command with a lost completion with `ETIMEDOUT`.
    pub timeout: Nanos,
    /// Stalled commands per million.
    pub stalled_ppm: u32,
    /// Time by which a stalled command completes later.
    pub stalled_for: Nanos,
    /// Bytes of the device to which faults of commands are limited; `None`: all, and syncs.
    pub range: Option<Range<u64>>,
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

impl Layer for Faults {
    fn over(&self, device: Box<dyn BlockDevice>, opened: Tick) -> Box<dyn BlockDevice> {
        let mut faults = self.clone();
        for stall in &mut faults.stalls {
            stall.at = opened + (stall.at - Tick::ZERO);
        }
        Box::new(Faulty::new(device, faults))
    }
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
    lost: HeldBack,
    /// Commands that complete later than the device says.
    late: HeldBack,
    /// Latest time passed to the device.
    now: Tick,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Good,
    Error,
    Short(u32),
    Late,
    Lost(Tick),
}

impl Faults {
    /// Reads the faults of commands from one table, and the stalls from a list in another.
    #[must_use]
    pub fn read(commands: Option<&dyn Parameters>, stalls: &dyn Parameters) -> Self {
        let mut faults = Self {
            stalls: read_stalls(stalls),
            ..Self::default()
        };
        if let Some(fields) = commands {
            faults.read_commands(fields);
        }
        faults
    }

    fn read_commands(&mut self, fields: &dyn Parameters) {
        let ppm = |key| fields.count(key, 0..=1_000_000, Some(0));
        self.errors_ppm = PerDirection::new(
            ppm("read_errors_ppm"),
            ppm("write_errors_ppm"),
            ppm("trim_errors_ppm"),
        );
        self.short_ppm = ppm("short_ppm");
        self.lost_ppm = ppm("lost_ppm");
        self.stalled_ppm = ppm("stalled_ppm");
        let errno = fields.count("errno", 1..=4095, Some(Errno::EIO.unsigned()));
        self.errno = u16::try_from(errno).unwrap_or(u16::MAX);
        self.timeout = fields.time("timeout_ms", MS, 0.001..=1e9, Some(30_000.0));
        self.stalled_for = fields.time("stalled_ms", MS, 0.001..=1e9, Some(1_000.0));
        let from = fields.gib("from_gib", 0.0, Some(0.0));
        let size = fields.gib("size_gib", 0.0, Some(1_000_000.0));
        let is_limited = fields.has("from_gib") || fields.has("size_gib");
        self.range = is_limited.then_some(from..from + size);
        self.seed = fields.whole("seed", 0..=u64::MAX, Some(1));
    }

    /// Returns whether there are no faults.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let errors = self.errors_ppm.iter().any(|(_, ppm)| *ppm > 0);
        let others = self.short_ppm | self.lost_ppm | self.stalled_ppm;
        self.stalls.is_empty() && !errors && others == 0
    }

    /// Returns whether the command can have a fault.
    fn concerns(&self, command: &Command) -> bool {
        let touches = |range: &Range<u64>| {
            let moves = matches!(command.kind, OpKind::Data(_));
            moves && command.offset < range.end && range.start < command.end()
        };
        self.range.as_ref().is_none_or(touches)
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
            lost: HeldBack::default(),
            late: HeldBack::default(),
            now: Tick::ZERO,
        }
    }

    fn draws(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.random.below(1_000_000) < u64::from(ppm)
    }

    fn fate(&mut self, command: &Command, now: Tick) -> Fate {
        if !self.faults.concerns(command) {
            return Fate::Good;
        }
        if self.draws(self.faults.lost_ppm) {
            return Fate::Lost(now + self.faults.timeout);
        }
        if self.draws(self.faults.stalled_ppm) {
            return Fate::Late;
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
        let mut command = *command;
        if let Fate::Short(bytes) = self.fates[tag]
            && command.kind != OpKind::Data(Direction::Trim)
        {
            // The device below sees no more: a zone's write pointer stops there.
            command.length = bytes;
        }
        self.device
            .start(&command, data, self.faults.to_device(now));
    }

    fn next(&self) -> Option<Tick> {
        // Otherwise a command of zero latency that came during a stall would complete before it
        // came.
        let earliest = self.faults.stall_over(self.now).unwrap_or(self.now);
        let done = self.device.next().map(|own| self.faults.to_world(own));
        let done = done.into_iter().chain(self.late.next()).min();
        let done = done.map(|at| at.max(earliest));
        done.into_iter().chain(self.lost.next()).min()
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        self.now = now;
        if self.faults.stall_over(now).is_some() {
            return self.lost.pop(now);
        }
        while let Some(mut finished) = self.device.completed(self.faults.to_device(now)) {
            finished.at = self.faults.to_world(finished.at);
            let order = u64::from(finished.tag);
            match self.fates[finished.tag as usize] {
                Fate::Good => {}
                Fate::Error => finished.result = -i32::from(self.faults.errno),
                Fate::Short(bytes) => finished.result = finished.result.min(bytes.cast_signed()),
                Fate::Late => {
                    finished.at += self.faults.stalled_for;
                    self.late.push(order, finished);
                    continue;
                }
                Fate::Lost(until) => {
                    finished.at = finished.at.max(until);
                    finished.result = Errno::ETIMEDOUT.result();
                    self.lost.push(order, finished);
                    continue;
                }
            }
            return Some(finished);
        }
        self.late.pop(now).or_else(|| self.lost.pop(now))
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
    let faults = Faults::read(Some(fields), fields);
    if faults.is_empty() {
        let hint = "write `read_errors_ppm`, another share, or `[[…stall]]`";
        fields.refuse("read_errors_ppm", "the layer has no fault", hint);
    }
    Some(Arc::new(faults))
}

fn read_stalls(fields: &dyn Parameters) -> Vec<Stall> {
    let mut stalls = Vec::new();
    let mut free_from = Tick::ZERO;
    for stall in fields.tables("stall") {
        let at = stall.time("at_ms", MS, 0.0..=1e9, None);
        let length = stall.time("for_ms", MS, 0.001..=1e9, None);
        let at = Tick::ZERO + at;
        if at < free_from {
            let why = "a stall begins before the one above is over";
            stall.refuse("at_ms", why, "write stalls in their order, or as one");
        }
        free_from = at + length;
        stalls.push(Stall { at, length });
        stall.finish();
    }
    stalls
}

/// Keys of the layer.
pub(super) const KEYS: &[&str] = &[
    "read_errors_ppm",
    "write_errors_ppm",
    "trim_errors_ppm",
    "errno",
    "short_ppm",
    "lost_ppm",
    "timeout_ms",
    "stalled_ppm",
    "stalled_ms",
    "from_gib",
    "size_gib",
    "seed",
    "stall",
];
const MS: Nanos = Nanos::from_millis(1);
/// Smallest transfer of a device, in bytes.
const SECTOR: u32 = 512;
