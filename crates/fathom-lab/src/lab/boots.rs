//! Repeats that span boots: a variant with `requires` runs where the host meets its conditions.
//!
//! A boot is the unit of a repeat: memory layout and the kernel's state are drawn once in it. So a
//! variant of a cell runs at most once per boot, and the next repeat begins when each variant has
//! had its run of this one. Boots of one variant can therefore never all come before those of
//! another, and the runs of a repeat are as close to each other as reboots allow.

use std::collections::{BTreeMap, BTreeSet};

use super::executor::{Boot, Executor, Repeat, RunDone};
use super::rounds::LabFailure;
use crate::lab_plan::{LabPlan, LabVariant, Requirement};
use crate::order::Slot;

/// Boots of a lab.
pub(super) struct Boots {
    here: Boot,
    /// Runs of repeats that wait for another boot, by number and cell.
    begun: BTreeMap<(u32, usize), Vec<(Slot, RunDone)>>,
    /// Cells and variants that this boot has run.
    had: BTreeSet<(usize, usize)>,
    /// Runs that wait for another boot.
    waiting: Vec<Slot>,
}

/// Variant that waits for another boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Index of the variant.
    pub variant: usize,
    /// Number of the repeat that waits, from 1.
    pub repeat: u32,
    /// This boot meets its conditions, and has had its run.
    pub had: bool,
}

impl Boots {
    /// Looks at the boot of the host; `None` if no variant requires anything.
    pub(super) fn of(plan: &LabPlan, executor: &dyn Executor) -> Result<Option<Self>, LabFailure> {
        if !plan.waits_for_boots() {
            return Ok(None);
        }
        Ok(Some(Self {
            here: executor.boot().map_err(LabFailure::Boot)?,
            begun: BTreeMap::new(),
            had: BTreeSet::new(),
            waiting: Vec::new(),
        }))
    }

    /// Returns the identity of this boot.
    pub(super) fn id(&self) -> &str {
        &self.here.id
    }

    /// Returns the runs of `repeats` that this boot can do; the rest waits.
    pub(super) fn split(&mut self, plan: &LabPlan, repeats: Vec<Repeat>) -> Vec<Repeat> {
        let mut now = Vec::new();
        for repeat in repeats {
            let (here, waiting): (Vec<Slot>, Vec<Slot>) = repeat
                .slots
                .into_iter()
                .filter(|slot| !self.has(slot))
                .partition(|slot| self.can_run(plan, slot));
            self.waiting.extend(waiting);
            if !here.is_empty() {
                now.push(Repeat { slots: here });
            }
        }
        now
    }

    fn has(&self, slot: &Slot) -> bool {
        let begun = self.begun.get(&(slot.repeat, slot.cell));
        begun.is_some_and(|runs| runs.iter().any(|(run, _)| run.variant == slot.variant))
    }

    fn can_run(&self, plan: &LabPlan, slot: &Slot) -> bool {
        self.here.meets(&plan.variants[slot.variant])
            && !self.had.contains(&(slot.cell, slot.variant))
    }

    /// Adds runs of a repeat, and returns all of it once each variant has run.
    pub(super) fn add(
        &mut self,
        runs: &[(Slot, RunDone)],
        variants: usize,
    ) -> Option<Vec<(Slot, RunDone)>> {
        let key = runs.first().map(|(slot, _)| (slot.repeat, slot.cell))?;
        for (slot, done) in runs {
            if done.boot.as_deref() == Some(self.id()) {
                self.had.insert((slot.cell, slot.variant));
            }
        }
        let begun = self.begun.entry(key).or_default();
        begun.extend_from_slice(runs);
        let is_whole = begun.len() == variants;
        is_whole.then(|| self.begun.remove(&key)).flatten()
    }

    /// Returns the variants that wait, each with its first repeat; those of a cell that was given
    /// up do not.
    pub(super) fn waiting(
        &self,
        plan: &LabPlan,
        is_given_up: impl Fn(usize) -> bool,
    ) -> Vec<Waiting> {
        let mut first: BTreeMap<usize, u32> = BTreeMap::new();
        for slot in self.waiting.iter().filter(|slot| !is_given_up(slot.cell)) {
            let repeat = first.entry(slot.variant).or_insert(slot.repeat);
            *repeat = slot.repeat.min(*repeat);
        }
        let waiting = first.into_iter().map(|(variant, repeat)| Waiting {
            variant,
            repeat: repeat + 1,
            had: self.here.meets(&plan.variants[variant]),
        });
        waiting.collect()
    }
}

impl Boot {
    fn meets(&self, variant: &LabVariant) -> bool {
        variant.requires.iter().all(|one| self.has(one))
    }

    /// Returns whether the condition holds; `kernel` is the only fact there is.
    fn has(&self, requirement: &Requirement) -> bool {
        matches(&requirement.pattern, &self.kernel)
    }
}

impl Waiting {
    /// Returns what the variant waits for, as a phrase.
    #[must_use]
    pub fn phrase(&self, plan: &LabPlan) -> String {
        let variant = &plan.variants[self.variant];
        let conditions = variant.requires.iter();
        let conditions = conditions.map(|one| format!("{} {}", one.fact, one.pattern));
        let conditions: Vec<String> = conditions.collect();
        let boot = match (conditions.is_empty(), self.had) {
            (true, _) => "another boot".into(),
            (false, true) => format!("another boot with {}", conditions.join(", ")),
            (false, false) => format!("a boot with {}", conditions.join(", ")),
        };
        format!(
            "repeat {} of {} waits for {boot}",
            self.repeat, variant.name
        )
    }
}

/// Returns whether `text` matches `pattern`, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(head) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let tail = parts.pop().unwrap_or_default();
    for part in parts {
        // The earliest place leaves the most for the parts to come.
        let Some(at) = text.find(part) else {
            return false;
        };
        text = &text[at + part.len()..];
    }
    text.ends_with(tail)
}

#[cfg(test)]
mod tests;
