//! The same error in all repeats of the first round: its cause is the set-up, not a cell.
//!
//! ```text
//! first round: all fail alike ─► one of them again ─► fails alike: the lab ends, told once
//!                                                 └─► else: the others are done again, as usual
//! ```
//!
//! All of the round are tried before: cells that fail alike may be the ones that were drawn first.

use std::collections::BTreeMap;

use super::{Broken, Lab, LabEvent, LabFailure};
use crate::lab::executor::{Executor, Repeat};

impl Lab<'_> {
    /// Returns whether all cells were given up: each repeat of the lab's first round failed alike,
    /// and so did one that was done again. If that one went well, `broken` no longer has it.
    pub(super) fn gives_up(
        &mut self,
        executor: &mut dyn Executor,
        waiting: &[Repeat],
        broken: &mut BTreeMap<usize, Broken>,
    ) -> Result<bool, LabFailure> {
        if waiting.len() < 2 || !self.done.is_empty() {
            return Ok(false);
        }
        let Some((why, is_final)) = shared(waiting, broken) else {
            return Ok(false);
        };
        let again = &waiting[..1];
        let slot = again[0].slots[0];
        if !is_final {
            let slot = &slot;
            (self.tell)(LabEvent::RetryOfOne { slot, why: &why });
            self.results.retried += 1;
            self.journal.plan(&again[0].slots)?;
            let mut second = self.attempt(executor, again)?;
            match second.remove(&slot.cell) {
                Some(Broken::Failed { why: same, .. }) if same == why => {}
                Some(other) => {
                    broken.insert(slot.cell, other);
                    return Ok(false);
                }
                None => {
                    broken.remove(&slot.cell);
                    return Ok(false);
                }
            }
        }
        (self.tell)(LabEvent::AllFailed { why: &why });
        for repeat in waiting {
            self.results.cells[repeat.slots[0].cell].failure = Some(why.clone());
        }
        Ok(true)
    }
}

/// Returns the error of all repeats, and whether none of them can succeed; `None` if some did, or
/// they differ.
fn shared(waiting: &[Repeat], broken: &BTreeMap<usize, Broken>) -> Option<(String, bool)> {
    let mut shared: Option<(&String, bool)> = None;
    for repeat in waiting {
        let Some(Broken::Failed { why, is_final, .. }) = broken.get(&repeat.slots[0].cell) else {
            return None;
        };
        match &mut shared {
            None => shared = Some((why, *is_final)),
            Some((first, all)) if *first == why => *all &= is_final,
            Some(_) => return None,
        }
    }
    shared.map(|(why, is_final)| (why.clone(), is_final))
}
