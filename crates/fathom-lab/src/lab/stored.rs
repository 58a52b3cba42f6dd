//! Journal in the history of runs.

mod lab_lock;
mod looking_back;
mod rescue;

use std::collections::{BTreeMap, BTreeSet};

use fathom_sys::clock;

use self::lab_lock::lock_lab;
use self::looking_back::earlier_run;
use self::rescue::rescue;
use super::executor::RunDone;
use super::journal::{EarlierFailure, EarlierRun, Journal, JournalError};
use super::lock_file::LockFile;
use super::observed::observed;
use crate::finished::{FinishedRun, RunEnd};
use crate::judge::Judgement;
use crate::lab_plan::{LabPlan, Subject};
use crate::order::Slot;
use crate::store::{
    History, HistoryError, LabId, LabRow, LabRun, LabStart, PlannedRun, RunId, RunState, VerdictRow,
};

/// Progress of a lab, in the history.
#[derive(Debug)]
pub struct StoredLab<'a> {
    history: History,
    plan: &'a LabPlan,
    lab: LabId,
    /// Name and version of the program that runs the jobs.
    program: String,
    /// Runs of the latest attempt at each repeat, by cell, repeat and variant.
    runs: BTreeMap<(usize, u32, usize), RunId>,
    /// Run that prepares a device.
    preparation: Option<RunId>,
    /// The history is only read: what is left of repeats that were cut stays as it is.
    is_read_only: bool,
    /// It was begun afresh, and the same command begins another one.
    is_fresh: bool,
    /// Keeps other processes from this lab; `None` if the history is only read.
    _lock: Option<LockFile>,
}

/// Reason why a lab cannot be begun or resumed.
#[derive(Debug)]
pub enum StoredLabError {
    /// The history fails.
    History(HistoryError),
    /// Another process runs the lab, or the lock cannot be taken: the message, with a hint.
    Locked(String),
    /// The lab file was changed since the unfinished lab of that name began.
    Changed {
        /// Its text then, with the arguments.
        earlier: String,
        /// Its text now.
        now: String,
    },
}

impl<'a> StoredLab<'a> {
    /// Begins a lab or finds an unfinished or finished one of the same text. With `fresh` it always
    /// begins.
    ///
    /// # Errors
    /// The history fails, another process runs the lab, or the file was changed.
    pub fn begin(
        mut history: History,
        plan: &'a LabPlan,
        program: &str,
        fresh: bool,
    ) -> Result<Self, StoredLabError> {
        let lock = lock_lab(history.path(), &plan.name).map_err(StoredLabError::Locked)?;
        let text = text(plan);
        let cells: Vec<String> = (0..plan.cells.len()).map(|cell| axes(plan, cell)).collect();
        let row = LabRow {
            name: &plan.name,
            file: &plan.file,
            text: &text,
            seed: plan.seed,
            cells: &cells,
            now_ms: clock::wall_ms(),
        };
        let start = history.begin_lab(&row, fresh);
        match start.map_err(StoredLabError::History)? {
            LabStart::Begun(lab) | LabStart::Resumed(lab) => Ok(Self {
                history,
                plan,
                lab,
                program: program.to_owned(),
                runs: BTreeMap::new(),
                preparation: None,
                is_read_only: false,
                is_fresh: fresh,
                _lock: Some(lock),
            }),
            LabStart::Changed { text: earlier, .. } => {
                Err(StoredLabError::Changed { earlier, now: text })
            }
        }
    }

    /// Finds the runs of a lab without a change of the history: only
    /// [`earlier`](Journal::earlier) may be called.
    pub(super) const fn reader(history: History, plan: &'a LabPlan, lab: LabId) -> Self {
        Self {
            history,
            plan,
            lab,
            program: String::new(),
            runs: BTreeMap::new(),
            preparation: None,
            is_read_only: true,
            is_fresh: false,
            _lock: None,
        }
    }

    pub(super) const fn lab_plan(&self) -> &'a LabPlan {
        self.plan
    }

    /// Marks what is left of earlier repeats as cut.
    fn cut_left(&mut self, runs: &[RunId]) -> Result<(), JournalError> {
        match self.is_read_only {
            true => Ok(()),
            false => Ok(self.history.cut_runs(runs)?),
        }
    }

    /// Returns the history.
    #[must_use]
    pub const fn history(&self) -> &History {
        &self.history
    }

    fn run(&self, slot: &Slot) -> Result<RunId, JournalError> {
        let run = self.runs.get(&(slot.cell, slot.repeat, slot.variant));
        run.copied()
            .ok_or_else(|| JournalError("a run that is not planned ended".into()))
    }

    /// Returns the role of the lab's runs.
    const fn role(&self) -> &'static str {
        match self.plan.search {
            Some(_) => PROBE,
            None => MEASURE,
        }
    }

    /// Reads the runs of searches and of labs whose repeats are boots: each stands for itself.
    fn earlier_alone(&mut self, runs: &[LabRun]) -> Result<Vec<EarlierRun>, JournalError> {
        let (mut earlier, mut cut) = (Vec::new(), Vec::new());
        let role = self.role();
        for run in runs.iter().filter(|run| run.planned.role == role) {
            match (run.state, self.variant(&run.planned.variant)) {
                (RunState::Done, Some(variant)) => {
                    earlier.push(earlier_run(&self.history, run, variant, true)?)
                }
                (RunState::Planned | RunState::Running, _) => cut.push(run.id),
                _ => {}
            }
        }
        self.cut_left(&cut)?;
        Ok(earlier)
    }

    /// Writes a run that the history does not take into a file, and says so.
    fn rescued(&self, slot: &Slot, mut run: FinishedRun, error: &HistoryError) -> JournalError {
        let label = |key: &str, value: String| (key.to_owned(), value);
        run.tags = vec![
            label("lab", self.plan.name.clone()),
            label("variant", self.plan.variants[slot.variant].name.clone()),
            label("axes", axes(self.plan, slot.cell)),
        ];
        JournalError(match rescue(self.history.path(), &run) {
            Ok(file) => format!(
                "{error}; the run is in {0}: `fathom history import {0}` adds it later",
                file.display()
            ),
            Err(why) => format!("{error}; and the run is lost: {why}"),
        })
    }

    fn variant(&self, name: &str) -> Option<usize> {
        self.plan.variants.iter().position(|one| one.name == name)
    }
}

impl Journal for StoredLab<'_> {
    fn continues(&self) -> bool {
        !self.is_fresh
    }

    fn earlier(&mut self) -> Result<Vec<EarlierRun>, JournalError> {
        let runs = self.history.runs_of(self.lab)?;
        if self.plan.search.is_some() || self.plan.waits_for_boots() {
            return self.earlier_alone(&runs);
        }
        let mut repeats: BTreeMap<(u32, u32), Vec<&LabRun>> = BTreeMap::new();
        for run in runs.iter().filter(|run| run.planned.role == MEASURE) {
            let repeat = (run.planned.repeat, run.planned.cell);
            repeats.entry(repeat).or_default().push(run);
        }
        let (mut earlier, mut cut) = (Vec::new(), Vec::new());
        for runs in repeats.into_values() {
            let done = runs.iter().filter(|run| run.state == RunState::Done);
            let done = done.filter_map(|run| Some((*run, self.variant(&run.planned.variant)?)));
            let done: Vec<(&LabRun, usize)> = done.collect();
            let variants: BTreeSet<usize> = done.iter().map(|(_, variant)| *variant).collect();
            if variants.len() == self.plan.variants.len() && done.len() == variants.len() {
                for (run, variant) in done {
                    earlier.push(earlier_run(&self.history, run, variant, true)?);
                }
            } else {
                let is_open = |run: &&&LabRun| {
                    matches!(
                        run.state,
                        RunState::Planned | RunState::Running | RunState::Done
                    )
                };
                cut.extend(runs.iter().filter(is_open).map(|run| run.id));
            }
        }
        self.cut_left(&cut)?;
        Ok(earlier)
    }

    fn failures(&mut self) -> Result<Vec<EarlierFailure>, JournalError> {
        // A failure in one boot is tried again in the next one.
        if self.plan.waits_for_boots() || !self.history.has_ended(self.lab)? {
            return Ok(Vec::new());
        }
        let mut failures = BTreeMap::new();
        let role = self.role();
        let runs = self.history.runs_of(self.lab)?;
        for run in runs.into_iter().filter(|run| run.planned.role == role) {
            let Some(variant) = self.variant(&run.planned.variant) else {
                continue;
            };
            let key = (run.planned.cell as usize, variant, run.planned.repeat);
            match run.state {
                RunState::Failed => {
                    failures.insert(key, run.note.unwrap_or_default());
                }
                RunState::Done => {
                    failures.remove(&key);
                }
                RunState::Planned | RunState::Running | RunState::Cut => {}
            }
        }
        let failures = failures.into_iter();
        let failure = |((cell, variant, repeat), why)| EarlierFailure {
            cell,
            variant,
            repeat,
            why,
        };
        Ok(failures.map(failure).collect())
    }

    fn plan(&mut self, slots: &[Slot]) -> Result<(), JournalError> {
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let planned: Vec<PlannedRun> = slots
            .iter()
            .map(|slot| PlannedRun {
                cell: number(slot.cell),
                variant: self.plan.variants[slot.variant].name.clone(),
                repeat: slot.repeat,
                place: number(slot.place),
                role: self.role().into(),
                seed: slot.seed,
            })
            .collect();
        let ids = self.history.plan_runs(self.lab, &planned)?;
        for (slot, id) in slots.iter().zip(ids) {
            self.runs.insert((slot.cell, slot.repeat, slot.variant), id);
        }
        Ok(())
    }

    fn begin(&mut self, slot: &Slot) -> Result<(), JournalError> {
        let run = self.run(slot)?;
        Ok(self.history.begin_run(run, clock::wall_ms())?)
    }

    fn finish(&mut self, slot: &Slot, done: &RunDone) -> Result<(), JournalError> {
        let run = self.run(slot)?;
        let text = self.plan.run_of_slot(slot);
        let model = text.machine.as_ref().map(|machine| machine.text.as_str());
        let mut finished = match &done.record {
            Some(record) => {
                let program = done.program.as_ref().unwrap_or(&self.program);
                FinishedRun::of_record(record, program, model)
            }
            None => FinishedRun {
                plan: text.job.unwrap_or_default(),
                ..FinishedRun::default()
            },
        };
        // Those of the whole record: a probe's is reduced.
        if !done.measures.is_empty() {
            finished.measures.clone_from(&done.measures);
        }
        finished.wall_ms = done.wall_ms;
        // What a lab takes as a run of a cell is one; failures are its own.
        finished.end = RunEnd::Done;
        finished.note.clone_from(&done.disturbance);
        let boot = done.boot.iter().map(|id| (BOOT.to_owned(), id.clone()));
        finished.tags.extend(boot);
        let kept = self.history.finish_run(run, &finished);
        kept.map_err(|error| self.rescued(slot, finished, &error))
    }

    fn fail(&mut self, slot: &Slot, why: &str) -> Result<(), JournalError> {
        let run = self.run(slot)?;
        Ok(self.history.fail_run(run, why, 0)?)
    }

    fn cut(&mut self, cell: usize, repeat: u32) -> Result<(), JournalError> {
        let of_repeat = (cell, repeat, 0)..=(cell, repeat, usize::MAX);
        let cut: Vec<RunId> = self.runs.range(of_repeat).map(|(_, run)| *run).collect();
        let states = self.history.runs_of(self.lab)?;
        // Those that failed say why.
        let failed: BTreeSet<RunId> = states
            .iter()
            .filter(|run| run.state == RunState::Failed)
            .map(|run| run.id)
            .collect();
        let cut: Vec<RunId> = cut
            .into_iter()
            .filter(|run| !failed.contains(run))
            .collect();
        Ok(self.history.cut_runs(&cut)?)
    }

    fn prepared(&mut self) -> Result<Vec<String>, JournalError> {
        let runs = self.history.runs_of(self.lab)?;
        let runs = runs.iter().filter(|run| run.planned.role == PRECONDITION);
        let (done, others): (Vec<&LabRun>, Vec<_>) =
            runs.partition(|run| run.state == RunState::Done);
        let open = [RunState::Planned, RunState::Running];
        let cut = others.iter().filter(|run| open.contains(&run.state));
        let cut: Vec<RunId> = cut.map(|run| run.id).collect();
        self.history.cut_runs(&cut)?;
        let names = done.iter().map(|run| run.planned.variant.clone());
        Ok(names.collect())
    }

    fn prepare(&mut self, name: &str) -> Result<(), JournalError> {
        let planned = PlannedRun {
            cell: 0,
            variant: name.into(),
            repeat: 0,
            place: 0,
            role: PRECONDITION.into(),
            seed: 0,
        };
        let ids = self.history.plan_runs(self.lab, &[planned])?;
        self.preparation = ids.first().copied();
        match self.preparation {
            Some(run) => Ok(self.history.begin_run(run, clock::wall_ms())?),
            None => Ok(()),
        }
    }

    fn end_preparation(&mut self, outcome: Result<&RunDone, &str>) -> Result<(), JournalError> {
        let Some(run) = self.preparation.take() else {
            return Ok(());
        };
        match outcome {
            Err(why) => Ok(self.history.fail_run(run, why, 0)?),
            Ok(done) => {
                let record = done.record.as_ref();
                let of_record = |record| FinishedRun::of_record(record, &self.program, None);
                let finished = record.map(of_record).unwrap_or_default();
                Ok(self.history.finish_run(run, &finished)?)
            }
        }
    }

    fn judge(&mut self, judgements: &[Judgement], is_complete: bool) -> Result<(), JournalError> {
        // A lab that is only shown keeps its verdicts and its end.
        if self.runs.is_empty() && self.history.has_ended(self.lab)? {
            return Ok(());
        }
        let metrics = observed(self.plan).map_err(|error| JournalError(error.message))?;
        let rows: Vec<VerdictRow> = judgements
            .iter()
            .map(|one| VerdictRow {
                cell: u32::try_from(one.cell).unwrap_or(u32::MAX),
                variant: self.plan.variants[one.variant].name.clone(),
                metric: metrics[one.metric].name.stored_name(),
                estimate: one.ratio.map(|ratio| ratio.middle),
                low: one.ratio.map(|ratio| ratio.low),
                high: one.ratio.map(|ratio| ratio.high),
                p: Some(one.p),
                p_holm: Some(one.p_adjusted),
                repeats: u32::try_from(one.repeats).unwrap_or(u32::MAX),
                word: one.verdict.word().into(),
            })
            .collect();
        self.history.put_verdicts(self.lab, &rows)?;
        if is_complete {
            self.history.end_lab(self.lab, clock::wall_ms())?;
        }
        Ok(())
    }
}

/// Returns everything that decides on the runs of a lab.
pub(super) fn text(plan: &LabPlan) -> String {
    let mut text = plan.text.clone();
    for (name, value) in &plan.arguments {
        text.push_str(&format!("\n# {name}={value}"));
    }
    if let Some(machine) = &plan.machine {
        text.push_str(&format!("\n# machine: {}\n{}", machine.path, machine.text));
    }
    let of_lab = match &plan.subject {
        Subject::Job(job) => Some(job),
        Subject::Peak(_) => None,
    };
    let of_variants = plan.variants.iter().filter_map(|one| one.job.as_ref());
    for job in of_lab.into_iter().chain(of_variants) {
        if job.file != plan.file {
            text.push_str(&format!("\n# job: {}\n{}", job.file, job.text));
        }
    }
    text
}

/// Returns the values of a cell's axes as JSON.
fn axes(plan: &LabPlan, cell: usize) -> String {
    let values = plan.cells[cell].values.iter().zip(&plan.axes);
    let values =
        values.map(|(value, axis)| (axis.name.clone(), axis.values[*value].clone().into()));
    serde_json::Value::Object(values.collect()).to_string()
}

impl From<HistoryError> for JournalError {
    fn from(error: HistoryError) -> Self {
        Self(error.to_string())
    }
}

/// Role of the runs that are compared.
const MEASURE: &str = "measure";
/// Role of the jobs that prepare devices; their variant is the name of the device.
const PRECONDITION: &str = "precondition";
/// Tag of a run with the boot it ran in.
const BOOT: &str = "boot";
/// Role of the runs of searches.
const PROBE: &str = "probe";

#[cfg(test)]
pub(super) mod tests;
