//! Searches: the highest load that keeps all conditions, one search per cell and variant.
//!
//! ```text
//! closed-loop maximum ─► probe ─► passed or failed ─► next load, between both
//!                        ▲   │
//!                        └───┘ runs on while an interval holds its limit
//! ```
//!
//! The next run of a search follows from those before, so an earlier process's runs are fed in
//! again, and the search goes on where it was cut.

mod bracket;
mod condensed;
mod gathered;
mod probe;
mod searching;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use fathom_core::stream_seed;
use fathom_record::MetricName;

use super::executor::{Executor, Repeat, RunDone, RunFailure, RunStep};
use super::journal::Journal;
use super::observed::observed;
use super::results::{Disturbance, LabResults};
use super::rounds::{LabEvent, LabFailure, LabOutcome, RETRIES};
use crate::lab_plan::{LabPlan, Load, Search};
use crate::order::{Slot, seed_of};

pub(crate) use bracket::ProbeCount;
pub use gathered::Estimate;
pub use probe::{Decision, Probe};
pub use searching::Searching;

/// Runs what is missing of all searches.
pub(super) fn run_searches(
    plan: &LabPlan,
    search: &Search,
    executor: &mut dyn Executor,
    journal: &mut dyn Journal,
    tell: &mut dyn FnMut(LabEvent<'_>),
) -> Result<LabOutcome, LabFailure> {
    let metrics = observed(plan).map_err(LabFailure::Metric)?;
    let sides = (0..plan.cells.len())
        .flat_map(|cell| (0..plan.variants.len()).map(move |variant| (cell, variant)));
    let shown: Vec<MetricName> = metrics.iter().map(|one| one.name.clone()).collect();
    let mut searches = Searches {
        plan,
        search,
        all: sides
            .map(|side| Searching::new(plan, search, side, shown.clone()))
            .collect(),
        earlier: BTreeMap::new(),
        ended: BTreeMap::new(),
        failures: BTreeMap::new(),
        results: LabResults::new(plan, metrics),
        journal,
        tell,
    };
    searches.read_earlier()?;
    let is_interrupted = searches.run(executor)?;
    searches.journal.judge(&[], !is_interrupted)?;
    let continues = searches.journal.continues();
    let mut results = searches.results;
    for one in &searches.all {
        let state = &mut results.cells[one.cell];
        if state.failure.is_none() {
            state.failure.clone_from(&one.failure);
        }
    }
    Ok(LabOutcome {
        results,
        judgements: Vec::new(),
        searches: searches.all,
        steadiness: None,
        is_interrupted,
        continues,
        waiting: Vec::new(),
    })
}

/// Searches of a lab while they run.
struct Searches<'a> {
    plan: &'a LabPlan,
    search: &'a Search,
    /// By cell and variant.
    all: Vec<Searching>,
    /// Runs of an earlier process, by cell, variant and number.
    earlier: BTreeMap<(usize, usize, u32), RunDone>,
    /// Errors that ended searches of a lab that has ended, in the same way.
    ended: BTreeMap<(usize, usize, u32), String>,
    /// Times that a run failed.
    failures: BTreeMap<(usize, usize, u32), u32>,
    results: LabResults,
    journal: &'a mut dyn Journal,
    tell: &'a mut dyn FnMut(LabEvent<'_>),
}

impl Searches<'_> {
    fn read_earlier(&mut self) -> Result<(), LabFailure> {
        let runs = self.journal.earlier()?;
        for one in self.journal.failures()? {
            self.ended
                .insert((one.cell, one.variant, one.repeat), one.why);
        }
        if !runs.is_empty() {
            (self.tell)(LabEvent::GoesOn { runs: runs.len() });
        }
        for run in runs {
            let key = (run.slot.cell, run.slot.variant, run.slot.repeat);
            self.earlier.insert(key, run.done);
        }
        Ok(())
    }

    /// Runs all searches to their end, in turns. Returns whether the user interrupted them.
    fn run(&mut self, executor: &mut dyn Executor) -> Result<bool, LabFailure> {
        loop {
            let slots = self.next_slots();
            if slots.is_empty() {
                return Ok(false);
            }
            if self.turn(executor, &slots)? {
                return Ok(true);
            }
        }
    }

    /// Returns the next run of each search that has one, after those that are known.
    fn next_slots(&mut self) -> Vec<Slot> {
        let mut slots = Vec::new();
        for at in 0..self.all.len() {
            while let Some(load) = self.all[at].next() {
                let slot = self.slot(at, load);
                if let Some(done) = self.earlier.remove(&key(&slot)) {
                    self.add(&slot, &done);
                } else if let Some(why) = self.ended.remove(&key(&slot)) {
                    self.all[at].failure = Some(why);
                } else {
                    slots.push(slot);
                    break;
                }
            }
        }
        slots
    }

    fn slot(&self, at: usize, load: Load) -> Slot {
        let (plan, one) = (self.plan, &self.all[at]);
        Slot {
            cell: one.cell,
            repeat: one.runs,
            variant: one.variant,
            place: at,
            seed: stream_seed(seed_of(plan, one.cell, one.runs, one.variant), PROBES),
            load: Some(load),
        }
    }

    /// Executes one run of each search; returns whether the user interrupted it.
    fn turn(&mut self, executor: &mut dyn Executor, slots: &[Slot]) -> Result<bool, LabFailure> {
        self.journal.plan(slots)?;
        let repeats: Vec<Repeat> = slots
            .iter()
            .map(|slot| Repeat { slots: vec![*slot] })
            .collect();
        let (mut kept, mut is_interrupted) = (Ok(()), false);
        executor.execute(&repeats, &mut |slot, step| {
            if kept.is_err() {
                return;
            }
            kept = match step {
                RunStep::Begins => self.journal.begin(slot).map_err(Into::into),
                RunStep::Ended(outcome) => match *outcome {
                    Ok(done) => self.ended(slot, done),
                    Err(RunFailure::Interrupted) => {
                        is_interrupted = true;
                        Ok(())
                    }
                    Err(RunFailure::Failed(why)) => self.failed(slot, &why, false),
                    Err(RunFailure::Hopeless(why)) => self.failed(slot, &why, true),
                },
            };
        });
        kept.map(|()| is_interrupted)
    }

    fn ended(&mut self, slot: &Slot, mut done: RunDone) -> Result<(), LabFailure> {
        if let Some(number) = self.missing(&done) {
            let why = format!("`stats` of the service printed no number `{number}`");
            return self.failed(slot, &why, true);
        }
        // Of the whole record, before it is reduced.
        done.measure();
        condensed::condense(&mut done, &self.search.keep);
        self.journal.finish(slot, &done)?;
        let disturbance = done.disturbance.as_deref();
        (self.tell)(LabEvent::Ended { slot, disturbance });
        self.add(slot, &done);
        Ok(())
    }

    /// Returns the first number of a service that is to keep a condition, and that a run has not.
    /// A figure that the jobs do not have counts as a condition not kept: a high load may be the
    /// reason.
    fn missing<'b>(&'b self, done: &RunDone) -> Option<&'b str> {
        let mut metrics = self.search.keep.iter().map(|one| one.metric.as_str());
        metrics.find(|metric| {
            let name = MetricName::parse(metric).ok();
            name.is_some_and(|name| name.is_of_service() && done.value(&name).is_none())
        })
    }

    fn add(&mut self, slot: &Slot, done: &RunDone) {
        let (Some(load), Some(one)) = (&slot.load, self.all.get_mut(slot.place)) else {
            return;
        };
        one.add(done, load);
        self.results
            .disturbed
            .extend(done.disturbance.as_ref().map(|what| Disturbance {
                cell: slot.cell,
                variant: slot.variant,
                repeat: slot.repeat,
                what: what.clone(),
            }));
    }

    fn failed(&mut self, slot: &Slot, why: &str, is_final: bool) -> Result<(), LabFailure> {
        self.journal.fail(slot, why)?;
        let times = self.failures.entry(key(slot)).or_default();
        *times += 1;
        if is_final || *times > RETRIES {
            (self.tell)(LabEvent::Failed { slot, why });
            self.all[slot.place].failure = Some(why.to_owned());
        } else {
            (self.tell)(LabEvent::Retry { slot, why });
            self.results.retried += 1;
        }
        Ok(())
    }
}

const fn key(slot: &Slot) -> (usize, usize, u32) {
    (slot.cell, slot.variant, slot.repeat)
}

/// Stream of the seeds of probes.
const PROBES: u64 = 0x7072_6f62_6573_0003;
