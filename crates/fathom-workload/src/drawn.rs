//! Targets drawn some ahead, for jobs that issue them without a look at each.

use crate::pattern::Target;
use crate::worker::Worker;

/// Targets that were drawn and not yet issued, in their order.
#[derive(Debug)]
pub(crate) struct Drawn {
    targets: [Target; AHEAD],
    next: usize,
    count: usize,
}

impl Drawn {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self {
            targets: [Target::default(); AHEAD],
            next: 0,
            count: 0,
        }
    }

    /// Whether all were issued.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.next == self.count
    }

    /// Those that were not issued.
    #[inline]
    pub(crate) fn rest(&self) -> &[Target] {
        self.targets.get(self.next..self.count).unwrap_or_default()
    }

    /// The next `count` are issued.
    #[inline]
    pub(crate) const fn advance(&mut self, count: usize) {
        self.next += count;
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
        let wanted = usize::try_from(fit).unwrap_or(AHEAD).clamp(1, AHEAD);
        let targets = &mut self.drawn.targets[..wanted];
        let count = self.pattern.fill(targets);
        let bytes: u64 = targets[..count]
            .iter()
            .map(|target| u64::from(target.length))
            .sum();
        self.drawn.count = count;
        self.pass.issue(bytes);
        self.pass.ended = count < wanted;
        self.pass.barren &= count == 0;
    }
}

/// How many: enough that drawing is a loop of its own, few enough to stay in the nearest cache.
const AHEAD: usize = 32;
