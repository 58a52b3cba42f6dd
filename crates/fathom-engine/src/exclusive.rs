//! Ops that the queue of an engine cannot take.

use fathom_core::{Op, Submitted};
use fathom_sys::clock::Clock;

/// Prepared op that its engine executes by a system call of its own, alone in its submission.
#[derive(Debug, Default)]
pub(crate) struct ExclusiveOp(Option<Op>);

impl ExclusiveOp {
    /// Keeps an op for the next submission.
    ///
    /// # Panics
    /// If `others` are in its way, or another such op is prepared.
    #[cold]
    pub(crate) fn prepare(&mut self, op: Op, others: u32) {
        assert!(
            others == 0 && self.0.is_none(),
            "{:?} beside others",
            op.kind
        );
        self.0 = Some(op);
    }

    /// Returns whether the next submission is of such an op.
    #[inline(always)]
    pub(crate) const fn is_prepared(&self) -> bool {
        self.0.is_some()
    }

    /// Executes the op by `perform`, which also completes it.
    #[cold]
    pub(crate) fn submit(&mut self, clock: &Clock, perform: impl FnOnce(&Op)) -> Submitted {
        let issue = clock.now();
        if let Some(op) = self.0.take() {
            perform(&op);
        }
        let now = clock.now();
        Submitted::Issued { issue, now }
    }
}
