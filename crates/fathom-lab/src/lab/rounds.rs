//! Rounds of a lab: which runs are next, which are done again, and when a cell has enough.

mod shared_failure;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use fathom_record::MetricNameError;
use fathom_stats::Verdict;

use super::boots::{Boots, Waiting};
use super::curve::Maxima;
use super::executor::RunFailure;
use super::executor::{Executor, Repeat, RunDone, RunOutcome, RunStep};
use super::journal::{Journal, JournalError};
use super::observed::observed;
use super::precondition;
use super::results::LabResults;
use super::search::{Searching, run_searches};
use super::steady::Steadiness;
use crate::judge::Judgement;
use crate::lab_plan::{LabPlan, Stop};
use crate::order::{Part, Slot};

/// Result of a lab.
#[derive(Clone, Debug)]
pub struct LabOutcome {
    /// Values of the runs.
    pub results: LabResults,
    /// Verdicts.
    pub judgements: Vec<Judgement>,
    /// Searches, of a lab that searches: by cell and variant.
    pub searches: Vec<Searching>,
    /// The user interrupted it: runs are left.
    pub is_interrupted: bool,
    /// The same command continues what was interrupted.
    pub continues: bool,
    /// Evaluation of the last rounds, with `[rounds]`.
    pub steadiness: Option<Steadiness>,
    /// Variants that wait for another boot; it counts as interrupted.
    pub waiting: Vec<Waiting>,
}

impl LabOutcome {
    /// Returns the number of verdicts *worse*.
    #[must_use]
    pub fn worse(&self) -> usize {
        let verdicts = self.judgements.iter().map(|one| one.verdict);
        verdicts
            .filter(|verdict| *verdict == Verdict::Worse)
            .count()
    }
}

/// Event of a lab, for its user.
#[derive(Clone, Copy, Debug)]
pub enum LabEvent<'a> {
    /// Runs of complete repeats were found: the lab goes on.
    GoesOn {
        /// Number of runs.
        runs: usize,
    },
    /// A round begins.
    Round {
        /// Number of the round, from 1.
        number: u32,
        /// Cells that get a repeat in it.
        cells: usize,
    },
    /// A device or file is written before the first run.
    Precondition {
        /// Its name.
        name: &'a str,
        /// Number of this pass, from 1, and of all passes.
        pass: (u32, u32),
        /// Bytes of a regular file; `None` of a device.
        bytes: Option<u64>,
    },
    /// A run ended.
    Ended {
        /// The run.
        slot: &'a Slot,
        /// Disturbance, if there was one.
        disturbance: Option<&'a str>,
    },
    /// A run failed; its repeat is done again.
    Retry {
        /// The run.
        slot: &'a Slot,
        /// Error.
        why: &'a str,
    },
    /// Each repeat of the first round failed with the same error; one of them is done again.
    RetryOfOne {
        /// Its first run.
        slot: &'a Slot,
        /// Error.
        why: &'a str,
    },
    /// That one failed alike: all cells are given up.
    AllFailed {
        /// Error.
        why: &'a str,
    },
    /// A cell is given up.
    Failed {
        /// The run that failed last.
        slot: &'a Slot,
        /// Error.
        why: &'a str,
    },
}

/// Reason why a lab cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabFailure {
    /// A metric's name is none.
    Metric(MetricNameError),
    /// Its progress cannot be kept.
    Journal(JournalError),
    /// A device or file cannot be written before the first run.
    Precondition(String),
    /// This boot cannot be distinguished from others.
    Boot(String),
}

/// Runs what is missing of a lab, and judges.
///
/// # Errors
/// A metric's name is none, or the journal fails. Failed runs are no error: they are in the
/// results.
pub fn run_lab(
    plan: &LabPlan,
    executor: &mut dyn Executor,
    journal: &mut dyn Journal,
    tell: &mut dyn FnMut(LabEvent<'_>),
) -> Result<LabOutcome, LabFailure> {
    if let Some(search) = &plan.search {
        return run_searches(plan, search, executor, journal, tell);
    }
    let metrics = observed(plan).map_err(LabFailure::Metric)?;
    let mut lab = Lab {
        plan,
        results: LabResults::new(plan, metrics),
        done: BTreeSet::new(),
        earlier: BTreeMap::new(),
        failures: BTreeMap::new(),
        maxima: Maxima::new(plan).map_err(LabFailure::Metric)?,
        steadiness: None,
        boots: Boots::of(plan, executor)?,
        journal,
        tell,
    };
    lab.read_earlier()?;
    let is_interrupted = lab.precondition(executor)? || lab.parts(executor)?;
    let judgements = lab.results.judgements();
    let waiting = lab.waiting();
    lab.journal.judge(&judgements, !is_interrupted)?;
    Ok(LabOutcome {
        continues: lab.journal.continues(),
        steadiness: lab.steadiness,
        waiting,
        results: lab.results,
        judgements,
        searches: Vec::new(),
        is_interrupted,
    })
}

/// A lab while it runs.
struct Lab<'a> {
    plan: &'a LabPlan,
    results: LabResults,
    /// Complete repeats: cell and number.
    done: BTreeSet<(usize, u32)>,
    /// Complete repeats of an earlier process, by number and cell.
    earlier: BTreeMap<(u32, usize), Vec<(Slot, RunDone)>>,
    /// Errors that ended cells of a lab that has ended, by number of the repeat and cell.
    failures: BTreeMap<(u32, usize), String>,
    /// Maxima of a curve.
    maxima: Maxima<'a>,
    /// Evaluation of the last round.
    steadiness: Option<Steadiness>,
    /// Boots, if variants require some.
    boots: Option<Boots>,
    journal: &'a mut dyn Journal,
    tell: &'a mut dyn FnMut(LabEvent<'_>),
}

/// End of a repeat that is not complete.
enum Broken {
    Interrupted,
    Failed {
        slot: Slot,
        why: String,
        is_final: bool,
    },
}

impl Lab<'_> {
    /// Reads the complete repeats of an earlier process.
    fn read_earlier(&mut self) -> Result<(), LabFailure> {
        let runs = self.journal.earlier()?;
        let failures = self.journal.failures()?.into_iter();
        self.failures = failures
            .map(|one| ((one.repeat, one.cell), one.why))
            .collect();
        if runs.is_empty() {
            return Ok(());
        }
        (self.tell)(LabEvent::GoesOn { runs: runs.len() });
        for run in runs {
            let repeat = (run.slot.repeat, run.slot.cell);
            let runs = self.earlier.entry(repeat).or_default();
            runs.push((run.slot, run.done));
        }
        Ok(())
    }

    /// Writes each device and file of `[precondition]` that no earlier process has written whole.
    /// Returns whether the user interrupted it.
    fn precondition(&mut self, executor: &mut dyn Executor) -> Result<bool, LabFailure> {
        let Some(precondition) = &self.plan.precondition else {
            return Ok(false);
        };
        let prepared = self.journal.prepared()?;
        // All are checked before the first one is written.
        let files = precondition::resolve_all(self.plan, &prepared);
        for file in &files.map_err(LabFailure::Precondition)? {
            precondition::check_again(self.plan, file).map_err(LabFailure::Precondition)?;
            self.journal.prepare(&file.name)?;
            let Some(path) = file.path.to_str() else {
                let why = format!("{}: not UTF-8", file.path.display());
                return Err(LabFailure::Precondition(why));
            };
            let job = precondition.job(path, file.bytes);
            let mut last = RunDone::default();
            for pass in 1..=precondition.times_capacity {
                (self.tell)(LabEvent::Precondition {
                    name: &file.name,
                    pass: (pass, precondition.times_capacity),
                    bytes: file.bytes,
                });
                last = match executor.prepare(&job, path) {
                    Ok(done) => done,
                    // What was begun is done again.
                    Err(RunFailure::Interrupted) => return Ok(true),
                    Err(RunFailure::Failed(why) | RunFailure::Hopeless(why)) => {
                        self.journal.end_preparation(Err(&why))?;
                        let why = format!("{}: {why}", file.name);
                        return Err(LabFailure::Precondition(why));
                    }
                };
            }
            self.journal.end_preparation(Ok(&last))?;
        }
        Ok(false)
    }

    /// Runs all parts and returns whether the user interrupted them.
    fn parts(&mut self, executor: &mut dyn Executor) -> Result<bool, LabFailure> {
        for part in Part::of(self.plan) {
            if *part == Part::Shares {
                self.ask_shares();
            }
            if self.rounds(executor, *part)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sets the loads that are shares of a maximum; those of one that failed have none.
    fn ask_shares(&mut self) {
        for cell in 0..self.plan.cells.len() {
            let of_max = &self.results.cells[self.plan.max_cell(cell)].failure;
            let of_max = of_max.as_ref().map(|why| format!("no maximum: {why}"));
            let load = self.maxima.load(cell, self.plan.judge.baseline);
            let state = &mut self.results.cells[cell];
            if !self.maxima.has(cell) {
                state.asked = load.and_then(|load| load.rate);
                state.failure = of_max;
            }
        }
    }

    /// Adds what an earlier process did of a part's round. Not all rounds at once: a cell stops by
    /// the repeats that it had at the time, or the lab would end otherwise than without
    /// interruption.
    fn take_earlier(&mut self, part: Part, round: u32) {
        for cell in part.cells(self.plan) {
            if let Some(runs) = self.earlier.remove(&(round, cell)) {
                self.complete(&runs);
            }
            if let Some(why) = self.failures.remove(&(round, cell))
                && !self.done.contains(&(cell, round))
            {
                self.results.cells[cell].failure = Some(why);
            }
        }
    }

    /// Runs all rounds of a part and returns whether the user interrupted them.
    fn rounds(&mut self, executor: &mut dyn Executor, part: Part) -> Result<bool, LabFailure> {
        let repeats = self.plan.judge.repeats;
        for round in 0..repeats.max {
            if repeats.stop == Stop::Narrow && is_look(round, repeats.min) {
                self.results.stop_narrow_cells(part.cells(self.plan));
            }
            if let Some(rounds) = &self.plan.rounds {
                self.results
                    .count_from((round + 1).saturating_sub(rounds.window));
            }
            self.take_earlier(part, round);
            let mut waiting = self.repeats_of(part, round);
            if let Some(boots) = &mut self.boots {
                waiting = boots.split(self.plan, waiting);
            }
            if !waiting.is_empty() {
                (self.tell)(LabEvent::Round {
                    number: round + 1,
                    cells: waiting.len(),
                });
                if self.round(executor, waiting)? {
                    return Ok(true);
                }
            }
            if !self.waiting().is_empty() {
                return Ok(true);
            }
            if self.has_settled(round) {
                break;
            }
        }
        Ok(false)
    }

    /// Returns the variants that wait for another boot.
    fn waiting(&self) -> Vec<Waiting> {
        let is_given_up = |cell: usize| self.results.cells[cell].failure.is_some();
        let boots = self.boots.as_ref();
        boots.map_or_else(Vec::new, |boots| boots.waiting(self.plan, is_given_up))
    }

    /// Evaluates the rounds after this one, and returns whether they end: all variants are steady,
    /// or the cell that decides it was abandoned.
    fn has_settled(&mut self, round: u32) -> bool {
        let Some(rounds) = &self.plan.rounds else {
            return false;
        };
        self.steadiness = Steadiness::of(self.plan, &self.results, round + 1);
        let is_reached = self.steadiness.as_ref().is_some_and(Steadiness::is_reached);
        is_reached || self.results.cells[rounds.cell].failure.is_some()
    }

    /// Returns the repeats of a part's round that are left to do.
    fn repeats_of(&self, part: Part, round: u32) -> Vec<Repeat> {
        let mut repeats: Vec<Repeat> = Vec::new();
        for mut slot in part.order(self.plan, round) {
            slot.load = self.maxima.load(slot.cell, slot.variant);
            let cell = &self.results.cells[slot.cell];
            if cell.is_narrow || cell.failure.is_some() || self.done.contains(&(slot.cell, round)) {
                continue;
            }
            match repeats.last_mut() {
                Some(last) if last.slots[0].cell == slot.cell => last.slots.push(slot),
                _ => repeats.push(Repeat { slots: vec![slot] }),
            }
        }
        repeats
    }

    /// Runs the repeats of a round, those with errors again at its end. Returns whether the user
    /// interrupted it.
    fn round(
        &mut self,
        executor: &mut dyn Executor,
        mut waiting: Vec<Repeat>,
    ) -> Result<bool, LabFailure> {
        for attempt in 0..=RETRIES {
            let slots: Vec<Slot> = waiting.iter().flat_map(|one| one.slots.clone()).collect();
            self.journal.plan(&slots)?;
            let mut broken = self.attempt(executor, &waiting)?;
            if attempt == 0 && self.gives_up(executor, &waiting, &mut broken)? {
                return Ok(false);
            }
            let mut again = Vec::new();
            for repeat in waiting {
                let cell = repeat.slots[0].cell;
                match broken.get(&cell) {
                    None => {}
                    Some(Broken::Interrupted) => return Ok(true),
                    Some(Broken::Failed {
                        slot,
                        why,
                        is_final,
                    }) => {
                        if *is_final || attempt == RETRIES {
                            (self.tell)(LabEvent::Failed { slot, why });
                            self.results.cells[cell].failure = Some(why.clone());
                        } else {
                            (self.tell)(LabEvent::Retry { slot, why });
                            self.results.retried += 1;
                            again.push(repeat);
                        }
                    }
                }
            }
            if again.is_empty() {
                break;
            }
            waiting = again;
        }
        Ok(false)
    }

    /// Runs repeats once, and returns those that are not complete, by cell.
    fn attempt(
        &mut self,
        executor: &mut dyn Executor,
        repeats: &[Repeat],
    ) -> Result<BTreeMap<usize, Broken>, LabFailure> {
        let mut broken = BTreeMap::new();
        let mut runs = Vec::new();
        let mut kept = Ok(());
        executor.execute(repeats, &mut |slot, step| {
            if kept.is_err() {
                return;
            }
            let outcome = match step {
                RunStep::Begins => {
                    kept = self.journal.begin(slot).map_err(Into::into);
                    return;
                }
                RunStep::Ended(outcome) => *outcome,
            };
            match self.ended(slot, outcome) {
                Ok(Ok(done)) => {
                    runs.push((*slot, done));
                    let of_cell = repeats.iter().find(|one| one.slots[0].cell == slot.cell);
                    if of_cell.is_some_and(|one| one.slots.len() == runs.len()) {
                        self.complete(&runs);
                        runs.clear();
                    }
                }
                Ok(Err(why)) => {
                    runs.clear();
                    broken.insert(slot.cell, why);
                    kept = self.journal.cut(slot.cell, slot.repeat).map_err(Into::into);
                }
                Err(error) => kept = Err(error),
            }
        });
        kept?;
        // After an interruption nothing is reported of the rest.
        let is_interrupted = broken
            .values()
            .any(|why| matches!(why, Broken::Interrupted));
        if is_interrupted {
            for repeat in repeats {
                let slot = &repeat.slots[0];
                if !self.done.contains(&(slot.cell, slot.repeat)) {
                    broken.insert(slot.cell, Broken::Interrupted);
                }
            }
        }
        Ok(broken)
    }

    /// Keeps the end of a run; returns its result, or the reason why its repeat is broken.
    fn ended(
        &mut self,
        slot: &Slot,
        outcome: RunOutcome,
    ) -> Result<Result<RunDone, Broken>, LabFailure> {
        let failed = |why: String, is_final| Broken::Failed {
            slot: *slot,
            why,
            is_final,
        };
        let why = match outcome {
            Ok(mut done) => match self.missing(slot, &done) {
                None => {
                    done.boot = self.boots.as_ref().map(|boots| boots.id().to_owned());
                    self.journal.finish(slot, &done)?;
                    let disturbance = done.disturbance.as_deref();
                    (self.tell)(LabEvent::Ended { slot, disturbance });
                    return Ok(Ok(done));
                }
                Some(why) => failed(why, true),
            },
            Err(RunFailure::Interrupted) => return Ok(Err(Broken::Interrupted)),
            Err(RunFailure::Failed(why)) => failed(why, false),
            Err(RunFailure::Hopeless(why)) => failed(why, true),
        };
        if let Broken::Failed { why, .. } = &why {
            self.journal.fail(slot, why)?;
        }
        Ok(Err(why))
    }

    /// Returns a sentence about the first metric that a run has no value of, and must have.
    fn missing(&self, slot: &Slot, done: &RunDone) -> Option<String> {
        match self.maxima.has(slot.cell) {
            true => self.maxima.missing(done),
            false => self.results.missing(slot.cell, done),
        }
    }

    /// Adds the runs of a repeat; of one that spans boots, once it is whole.
    fn complete(&mut self, runs: &[(Slot, RunDone)]) {
        let variants = self.plan.variants.len();
        match &mut self.boots {
            None => self.add(runs),
            Some(boots) => {
                if let Some(runs) = boots.add(runs, variants) {
                    self.add(&runs);
                }
            }
        }
    }

    fn add(&mut self, runs: &[(Slot, RunDone)]) {
        for (slot, done) in runs {
            self.maxima.add(slot, done);
        }
        if let Some((slot, _)) = runs.first() {
            self.done.insert((slot.cell, slot.repeat));
            self.results.add(runs);
        }
    }
}

/// Returns whether a cell may stop before this round: from `min` rounds on, every second one.
const fn is_look(round: u32, min: u32) -> bool {
    round >= min && (round - min).is_multiple_of(2)
}

impl From<JournalError> for LabFailure {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

impl fmt::Display for LabFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Metric(error) => f.write_str(&error.message),
            Self::Journal(error) => error.fmt(f),
            Self::Precondition(why) => write!(f, "precondition: {why}"),
            Self::Boot(why) => write!(f, "requires: {why}"),
        }
    }
}

impl std::error::Error for LabFailure {}

/// Times that a repeat is done again after an error.
pub(super) const RETRIES: u32 = 2;
