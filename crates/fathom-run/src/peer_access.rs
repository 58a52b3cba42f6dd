//! Access of a run's parts to the other ranks, on the thread that called the run.

use std::cell::{Cell, Ref, RefCell, RefMut};

use fathom_core::Nanos;
use fathom_hosts::StopReason;
use fathom_record::Warning;
use fathom_setup::{ProblemKind, RunError, RunProblem};
use fathom_sys::clock::sleep;

use crate::peers::Peers;

/// Other ranks, as the parts of a run share them. A run alone pays nothing: it never looks.
pub(crate) struct PeerAccess<'a> {
    peers: RefCell<&'a mut dyn Peers>,
    is_alone: bool,
    /// No job runs, and the run only waits.
    is_idle: Cell<bool>,
    /// A wave has started on this rank.
    has_begun: Cell<bool>,
}

impl<'a> PeerAccess<'a> {
    pub(crate) fn new(peers: &'a mut dyn Peers) -> Self {
        Self {
            is_alone: peers.times().is_none(),
            peers: RefCell::new(peers),
            is_idle: Cell::new(false),
            has_begun: Cell::new(false),
        }
    }

    /// Returns whether there are no other ranks.
    pub(crate) const fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Returns the ranks, to be asked.
    pub(crate) fn see(&self) -> Ref<'_, &'a mut dyn Peers> {
        self.peers.borrow()
    }

    /// Returns the ranks, to send them something, for one statement that asks nothing else.
    pub(crate) fn get(&self) -> RefMut<'_, &'a mut dyn Peers> {
        self.peers.borrow_mut()
    }

    /// Reports whether the run does nothing but wait from now on.
    pub(crate) fn set_idle(&self, is_idle: bool) {
        self.is_idle.set(is_idle);
    }

    /// Reports that a wave has started on this rank.
    pub(crate) fn begin(&self) {
        self.has_begun.set(true);
    }

    /// Lets messages pass, and returns 1 if another rank has asked this one to stop as a user does;
    /// before the first wave, if it is to stop at all. `requested`: this rank's user has.
    pub(crate) fn look(&self, requested: bool) -> u32 {
        if self.is_alone {
            return 0;
        }
        let mut peers = self.get();
        if requested {
            peers.ask_stop(StopReason::Requested);
        }
        peers.poll(self.is_idle.get());
        let stops = peers
            .stop()
            .is_some_and(|reason| reason == StopReason::Requested || !self.has_begun.get());
        u32::from(stops)
    }

    /// Returns the longest nap until the next [`look`](Self::look).
    pub(crate) fn patience(&self) -> Nanos {
        match self.is_alone {
            true => Nanos::MAX,
            false => self.see().patience(),
        }
    }

    /// Waits until `done`, or until nothing more is to start. `stops` looks.
    pub(crate) fn wait(&self, stops: &dyn Fn() -> u32, done: impl Fn(&dyn Peers) -> bool) {
        if self.is_alone {
            return;
        }
        self.set_idle(true);
        loop {
            let _seen_below = stops();
            if done(&**self.see()) || self.see().stop().is_some() {
                break;
            }
            let nap = self.patience().min(WAIT_MAX);
            if !nap.is_zero() {
                sleep(nap);
            }
        }
        self.set_idle(false);
    }

    /// Returns the warning about waves that did not start because a rank was lost.
    pub(crate) fn lost(&self) -> Option<Warning> {
        let message = match self.see().stop()? {
            StopReason::RankLost => "a rank was lost: no further wave was started",
            StopReason::ConductorLost => {
                "rank 0 was lost: no further wave was started, and this record was kept here alone"
            }
            _ => return None,
        };
        Some(Warning {
            code: "rank_lost".to_owned(),
            message: message.to_owned(),
            ..Warning::default()
        })
    }
}

/// Returns the error of a run that ends before its jobs began, for this reason; `None`: another
/// rank refused the plan.
pub(crate) fn never_began(reason: Option<StopReason>) -> RunError {
    let (message, hint) = match reason {
        None => (
            "another rank refused the plan",
            "see its reasons, which rank 0 prints",
        ),
        Some(StopReason::RankLost) => (
            "a rank was lost before the jobs began",
            "see which one on rank 0, and start all ranks again",
        ),
        Some(StopReason::ConductorLost) => (
            "rank 0 was lost before the jobs began",
            "see its output, and start all ranks again",
        ),
        Some(_) => ("the run was stopped before its jobs began", ""),
    };
    let problem = RunProblem::new(ProblemKind::OtherRank, message);
    match hint {
        "" => problem.into(),
        hint => problem.hint(hint).into(),
    }
}

/// Longest nap between looks for a request to stop.
const WAIT_MAX: Nanos = Nanos::from_millis(50);
