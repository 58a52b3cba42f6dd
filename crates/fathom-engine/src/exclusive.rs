//! Ops that the queue of an engine cannot take.

use fathom_core::{Op, Submitted};
use fathom_sys::clock::Clock;

/// Prepared op that its engine executes by a system call of its own, while no other is in flight.
#[derive(Debug, Default)]
pub(crate) struct ExclusiveOp(Option<Op>);

impl ExclusiveOp {
    /// Keeps an op for the next submission.
    ///
    /// # Panics
    /// If any of the engine's ops is in flight or prepared.
    #[cold]
    pub(crate) fn prepare(&mut self, op: Op, in_flight: u32) {
        assert!(
            in_flight == 0 && self.0.is_none(),
            "{:?} while others are in flight",
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
