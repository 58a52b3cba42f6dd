//! Targets drawn some ahead, for jobs that issue them without a look at each.

use fathom_core::Tick;

use crate::pattern::{Pattern, Target};
use crate::schedule::Schedules;
use crate::uniform_ops::UniformOp;
use crate::worker::Worker;

/// Targets that were drawn and not yet issued, in their order.
#[derive(Debug)]
pub(crate) struct Lookahead {
    /// What all have in common, if they differ in nothing but the offset.
    pub(crate) alike: Option<UniformOp>,
    /// Used where they have something in common.
    offsets: [u64; LOOKAHEAD_OPS],
    /// When they are due; used where they have something in common, and a schedule.
    dues: [Tick; LOOKAHEAD_OPS],
    scheduled: bool,
    /// Used where they have nothing in common.
    targets: [Target; LOOKAHEAD_OPS],
    next: usize,
    count: usize,
}

impl Lookahead {
    /// None yet.
    pub(crate) fn new(alike: Option<UniformOp>) -> Self {
        Self {
            alike,
            offsets: [0; LOOKAHEAD_OPS],
            dues: [Tick::ZERO; LOOKAHEAD_OPS],
            scheduled: false,
            targets: [Target::default(); LOOKAHEAD_OPS],
            next: 0,
            count: 0,
        }
    }

    /// Whether all were issued.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.next == self.count
    }

    /// Those that were not issued, where they have nothing in common.
    #[inline]
    pub(crate) fn rest(&self) -> &[Target] {
        self.targets.get(self.next..self.count).unwrap_or_default()
    }

    /// The offsets of those that were not issued, where they have all else in common.
    #[inline]
    pub(crate) fn offsets(&self) -> &[u64] {
        self.offsets.get(self.next..self.count).unwrap_or_default()
    }

    /// When these are due; `None` where they have no schedule.
    #[inline]
    pub(crate) fn dues(&self) -> Option<&[Tick]> {
        let dues = self.dues.get(self.next..self.count).unwrap_or_default();
        self.scheduled.then_some(dues)
    }

    /// The next `count` are issued.
    #[inline]
    pub(crate) const fn advance(&mut self, count: usize) {
        self.next += count;
    }

    /// Draws `wanted`, as far as the pattern gives so many: how many that were, and their bytes.
    fn fill(&mut self, pattern: &mut Pattern, wanted: usize) -> (usize, u64) {
        if let Some(alike) = &self.alike {
            let count = pattern.fill_offsets(&mut self.offsets[..wanted]);
            return (count, count as u64 * u64::from(alike.length));
        }
        let targets = &mut self.targets[..wanted];
        let count = pattern.fill(targets);
        let lengths = targets[..count].iter().map(|target| target.length);
        (count, lengths.map(u64::from).sum())
    }

    /// Takes the due times of what was drawn, where all is alike.
    fn schedule(&mut self, schedules: &mut Schedules) {
        if let Some(alike) = &self.alike {
            let dues = &mut self.dues[..self.count];
            self.scheduled = schedules.fill(alike.direction, alike.length, dues);
        }
    }

    /// Forgets what was drawn.
    pub(crate) const fn clear(&mut self) {
        self.next = 0;
        self.count = 0;
    }
}

impl Worker {
    /// Draws as many as surely belong to this pass, at least one if any bytes remain.
    #[inline(never)]
    pub(crate) fn draw_ahead(&mut self) {
        let remaining = self.pass.remaining;
        self.drawn.clear();
        if remaining == 0 || self.pass.ended {
            return;
        }
        let fit = remaining / u64::from(self.pattern.largest());
        let wanted = usize::try_from(fit)
            .unwrap_or(LOOKAHEAD_OPS)
            .clamp(1, LOOKAHEAD_OPS);
        let (count, bytes) = self.drawn.fill(&mut self.pattern, wanted);
        self.drawn.count = count;
        self.drawn.schedule(&mut self.schedules);
        self.pass.issue(bytes);
        self.pass.ended = count < wanted;
        self.pass.empty_since_restart &= count == 0;
    }
}

/// How many: enough that drawing is a loop of its own, few enough to stay in the nearest cache.
pub(crate) const LOOKAHEAD_OPS: usize = 32;
