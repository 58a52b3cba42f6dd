//! Targets drawn ahead, for jobs that issue them in batches.

use fathom_core::Tick;

use crate::fast_path::MixedOps;
use crate::issue::IssueStatus;
use crate::pattern::{OpTarget, Pattern};
use crate::schedule::Schedules;
use crate::source::Source;
use crate::uniform_ops::{UniformOp, UniformOps};

/// Targets drawn but not issued yet, in order, with their due times.
#[derive(Debug)]
pub(crate) struct Lookahead {
    /// Common part of ops that differ only in offset, if they do.
    pub(crate) uniform: Option<UniformOp>,
    /// Offsets of uniform ops.
    offsets: [u64; LOOKAHEAD_OPS],
    /// Targets of all other ops.
    targets: [OpTarget; LOOKAHEAD_OPS],
    /// Due times of ops with a schedule.
    dues: [Tick; LOOKAHEAD_OPS],
    /// The job has a schedule.
    scheduled: bool,
    next: usize,
    end: usize,
}

impl Lookahead {
    /// Creates a lookahead in which nothing is drawn yet.
    pub(crate) fn new(uniform: Option<UniformOp>, scheduled: bool) -> Self {
        Self {
            uniform,
            offsets: [0; LOOKAHEAD_OPS],
            targets: [OpTarget::default(); LOOKAHEAD_OPS],
            dues: [Tick::ZERO; LOOKAHEAD_OPS],
            scheduled,
            next: 0,
            end: 0,
        }
    }

    /// Returns whether all ops were issued.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.next == self.end
    }

    /// Returns the number of ops not issued yet.
    #[inline]
    pub(crate) const fn count(&self) -> usize {
        self.end - self.next
    }

    /// Returns the due times of the ops not issued yet; empty without a schedule.
    #[inline]
    pub(crate) fn dues(&self) -> &[Tick] {
        match self.scheduled {
            true => self.dues.get(self.next..self.end).unwrap_or_default(),
            false => &[],
        }
    }

    /// Returns the ops not issued yet, of a job whose ops share `common`.
    #[inline]
    pub(crate) fn uniform_ops<'a, const RATED: bool>(
        &'a self,
        common: &'a UniformOp,
    ) -> UniformOps<'a, RATED> {
        UniformOps {
            common,
            offsets: self.offsets.get(self.next..self.end).unwrap_or_default(),
            dues: self.dues(),
        }
    }

    /// Returns the ops not issued yet, of a job whose ops are not uniform.
    #[inline]
    pub(crate) fn mixed_ops(&self) -> MixedOps<'_> {
        MixedOps {
            targets: self.targets.get(self.next..self.end).unwrap_or_default(),
            dues: self.dues(),
        }
    }

    /// Discards what was drawn.
    pub(crate) const fn clear(&mut self) {
        self.next = 0;
        self.end = 0;
    }

    /// Draws up to `wanted` ops; returns their number and their bytes.
    fn draw(&mut self, pattern: &mut Pattern, wanted: usize) -> (usize, u64) {
        self.next = 0;
        if let Some(common) = &self.uniform {
            self.end = pattern.fill_offsets(&mut self.offsets[..wanted]);
            return (self.end, self.end as u64 * u64::from(common.length));
        }
        let targets = &mut self.targets[..wanted];
        self.end = pattern.fill(targets);
        let lengths = targets[..self.end].iter().map(|target| target.length);
        (self.end, lengths.map(u64::from).sum())
    }

    /// Takes the due times of the drawn ops.
    fn schedule(&mut self, schedules: &mut Schedules) {
        if !self.scheduled {
            return;
        }
        let dues = &mut self.dues[..self.end];
        if let Some(common) = &self.uniform {
            return schedules.take_many(common.direction, common.length, dues);
        }
        for (due, target) in dues.iter_mut().zip(&self.targets) {
            *due = schedules.take(target);
        }
    }
}

impl Source {
    /// Draws as many ops as are certain to belong to this pass, at least one if bytes remain.
    #[inline(never)]
    pub(crate) fn draw_ahead(&mut self) {
        let remaining = self.pass.remaining;
        self.lookahead.clear();
        if remaining == 0 || self.pass.ended {
            return;
        }
        let fit = remaining / u64::from(self.pattern.largest());
        let wanted = usize::try_from(fit).unwrap_or(LOOKAHEAD_OPS);
        let wanted = wanted.clamp(1, LOOKAHEAD_OPS);
        let (count, bytes) = self.lookahead.draw(&mut self.pattern, wanted);
        self.lookahead.schedule(&mut self.schedules);
        self.pass.issue(bytes);
        self.pass.ended = count < wanted;
        self.pass.empty_since_restart &= count == 0;
    }

    /// Counts the next `count` drawn ops as issued.
    #[inline]
    pub(crate) const fn advance(&mut self, count: usize) {
        self.lookahead.next += count;
        self.sequence += count as u64;
    }

    /// Returns `Ready` if an op drawn ahead is left to issue, else the reason why there is none.
    #[inline]
    pub(crate) const fn drawn_status(&self) -> IssueStatus {
        match (self.lookahead.is_empty(), self.pass.remaining) {
            (false, _) => IssueStatus::Ready,
            (true, 0) => IssueStatus::EndOfPass,
            (true, _) => IssueStatus::EndOfPattern,
        }
    }
}

/// Ops drawn at a time: enough that drawing is a loop of its own, few enough to stay in the L1
/// cache.
pub(crate) const LOOKAHEAD_OPS: usize = 32;
