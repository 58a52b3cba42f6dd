//! Checks of read blocks apart from the job's loop (`verify_async`).
//!
//! ```text
//!  read completes ─► copy of its data, and what must be in it ─► Checker ─► outcome
//!        │                                                                     │
//!        └── the slot is free ── next op …                  job's loop ◄───────┘
//! ```
//!
//! Data are copied, so that the slot and its buffer are free at once: a copy takes a fraction of
//! the time of any digest worth a thread. What must be in the data is settled before, because the
//! generation map goes on changing.

use std::fmt;
use std::sync::Arc;

use super::{Expected, Verifier, VerifyError};
use crate::slots::SlotState;

/// Read to check.
#[derive(Debug)]
pub struct Check {
    verifier: Arc<Verifier>,
    pub(crate) state: SlotState,
    pub(crate) data: Vec<u8>,
    /// Content of each interval of the data.
    pub(crate) expected: Vec<Expected>,
    /// `None` until it has been run.
    pub(crate) outcome: Option<Result<(), VerifyError>>,
}

impl Check {
    /// Creates a check without data.
    pub(crate) const fn new(verifier: Arc<Verifier>, state: SlotState) -> Self {
        Self {
            verifier,
            state,
            data: Vec::new(),
            expected: Vec::new(),
            outcome: None,
        }
    }

    /// Checks the data, on the calling thread.
    pub fn run(&mut self) {
        let mut expected = self.expected.drain(..);
        let next = |_, _| expected.next().unwrap_or(Expected::Anything);
        let offset = self.state.start_offset();
        self.outcome = Some(self.verifier.check(&mut self.data, offset, next));
    }
}

/// Threads that run checks, as a worker sees them.
pub trait Checker: fmt::Debug + Send {
    /// Hands over a check; waits while too many are under way, so that memory is bounded.
    fn give(&mut self, check: Check);

    /// Returns a check that has been run; with `wait`, waits for it. `None` if there is none, or
    /// will be none.
    fn take(&mut self, wait: bool) -> Option<Check>;
}

/// Checks of a worker that others run.
#[derive(Debug)]
pub(crate) struct Checks {
    checker: Box<dyn Checker>,
    /// Checks handed over and not taken back.
    under_way: usize,
    /// Checks that have been run, for their memory.
    spare: Vec<Check>,
}

impl Checks {
    pub(crate) fn new(checker: Box<dyn Checker>) -> Self {
        Self {
            checker,
            under_way: 0,
            spare: Vec::new(),
        }
    }

    /// Returns a check of a read, without data.
    pub(crate) fn begin(&mut self, verifier: &Arc<Verifier>, state: SlotState) -> Check {
        let new = || Check::new(Arc::clone(verifier), state);
        let mut check = self.spare.pop().unwrap_or_else(new);
        check.state = state;
        check.data.clear();
        check.expected.clear();
        check.outcome = None;
        check
    }

    pub(crate) fn give(&mut self, check: Check) {
        self.under_way += 1;
        self.checker.give(check);
    }

    /// Returns a check that has been run; with `wait`, `None` only if none is left.
    ///
    /// # Errors
    /// Checks are left that no thread has run, or will run.
    pub(crate) fn take(&mut self, wait: bool) -> Result<Option<Check>, ChecksLost> {
        if self.under_way == 0 {
            return Ok(None);
        }
        match self.checker.take(wait) {
            Some(check) => {
                self.under_way -= 1;
                let has_run = check.outcome.is_some();
                has_run.then_some(Some(check)).ok_or(ChecksLost)
            }
            None if wait => {
                self.under_way = 0;
                Err(ChecksLost)
            }
            None => Ok(None),
        }
    }

    /// Keeps the memory of a check.
    pub(crate) fn put_back(&mut self, check: Check) {
        self.spare.push(check);
    }
}

/// The threads that run checks are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChecksLost;
