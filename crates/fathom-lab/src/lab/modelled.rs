//! Runs in virtual time, in this process, one per core at a time.
//!
//! Results are handed on in the drawn order, whichever run ends first: the bytes of the table are
//! the same with any number of cores.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{OnceLock, mpsc};

use fathom_core::Nanos;
use fathom_job::{Environment, Plan};
use fathom_record::Record;
use fathom_virtual::{MachineModel, simulate_quietly};

use super::executor::{Executor, Repeat, RunDone, RunFailure, RunOutcome, RunStep};
use crate::lab_plan::{LabPlan, RunText, job_plan};
use crate::order::{Part, Slot, run_number};

/// Executor of runs in virtual time.
pub struct Modelled<'a> {
    /// Experiment.
    plan: &'a LabPlan,
    /// Files and engines that jobs may name.
    environment: &'a (dyn Environment + Sync),
    /// Number of stop requests so far.
    stops: &'a (dyn Fn() -> u32 + Sync),
    /// Number of runs at once.
    threads: usize,
    /// Number of runs before this experiment, which separates its draws from those of others.
    runs_before: u64,
    /// Distance between the starts of runs on the experiment's time line, for the noise of the
    /// machine; found with the first run.
    spacing: OnceLock<Nanos>,
    /// Machine of each cell and variant, read with its first run: none of its settings is of a run.
    machines: Vec<OnceLock<MachineModel>>,
}

impl Executor for Modelled<'_> {
    fn execute(&mut self, repeats: &[Repeat], watch: &mut dyn FnMut(&Slot, RunStep)) {
        let slots: Vec<Slot> = repeats.iter().flat_map(|one| one.slots.clone()).collect();
        let threads = self.threads.clamp(1, slots.len().max(1));
        if threads == 1 {
            // Starting a thread takes as long as a short run.
            let ran = slots.iter().map(|slot| (slot, self.run(slot)));
            return in_order(&slots, ran, watch);
        }
        let next = AtomicUsize::new(0);
        let (tell, told) = mpsc::channel();
        let this = &*self;
        std::thread::scope(|scope| {
            let mut is_alone = true;
            for _ in 0..threads {
                let (slots, next, tell) = (&slots, &next, tell.clone());
                let work = move || {
                    // Relaxed: an index into what was there before the thread.
                    while let Some(slot) = slots.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if tell.send((slot, this.run(slot))).is_err() {
                            break;
                        }
                    }
                };
                // With fewer threads than wanted the outcome is the same, later.
                if std::thread::Builder::new()
                    .spawn_scoped(scope, work)
                    .is_err()
                {
                    break;
                }
                is_alone = false;
            }
            drop(tell);
            if is_alone {
                let ran = slots.iter().map(|slot| (slot, this.run(slot)));
                return in_order(&slots, ran, watch);
            }
            in_order(&slots, told.iter(), watch);
        });
    }
}

/// Hands outcomes on in the order of the slots.
fn in_order<'s>(
    slots: &[Slot],
    mut told: impl Iterator<Item = (&'s Slot, RunOutcome)>,
    watch: &mut dyn FnMut(&Slot, RunStep),
) {
    let side = |slot: &Slot| (slot.cell, slot.variant);
    let mut early = BTreeMap::new();
    let mut failed = None;
    for slot in slots {
        while !early.contains_key(&side(slot)) {
            let Some((other, outcome)) = told.next() else {
                return;
            };
            early.insert(side(other), outcome);
        }
        let Some(outcome) = early.remove(&side(slot)) else {
            return;
        };
        if failed == Some(slot.cell) {
            continue;
        }
        let is_end = matches!(outcome, Err(RunFailure::Interrupted));
        if outcome.is_err() {
            failed = Some(slot.cell);
        }
        watch(slot, RunStep::Ended(Box::new(outcome)));
        if is_end {
            return;
        }
    }
}

impl<'a> Modelled<'a> {
    /// Creates an executor for `threads` runs at once.
    #[must_use]
    pub fn new(
        plan: &'a LabPlan,
        environment: &'a (dyn Environment + Sync),
        stops: &'a (dyn Fn() -> u32 + Sync),
        threads: usize,
    ) -> Self {
        Self {
            plan,
            environment,
            stops,
            threads,
            runs_before: 0,
            spacing: OnceLock::new(),
            machines: vec![OnceLock::new(); plan.cells.len() * plan.variants.len()],
        }
    }

    /// Gives the machine other draws than in the experiments before, which had `runs` runs. Each
    /// begins at the time 0, or drift would slow the machine for ever.
    #[must_use]
    pub fn after(mut self, runs: u64) -> Self {
        self.runs_before = runs;
        self
    }

    fn run(&self, slot: &Slot) -> RunOutcome {
        if (self.stops)() > 0 {
            return Err(RunFailure::Interrupted);
        }
        let record = self.simulate(slot).map_err(RunFailure::Hopeless)?;
        if (self.stops)() > 0 {
            return Err(RunFailure::Interrupted);
        }
        Ok(RunDone::of_model(record))
    }

    /// Runs a job on its machine, as the time line of the experiment has it there.
    fn simulate(&self, slot: &Slot) -> Result<Record, String> {
        let text = self.plan.run_of_slot(slot);
        let (plan, machine) = self.read(slot, &text)?;
        let number = run_number(self.plan, slot);
        let start = match machine.noise() {
            None => Nanos::ZERO,
            Some(_) => Nanos::new(self.spacing().get() * number),
        };
        let machine = machine.at(start, number).redrawn(self.runs_before);
        let ran = simulate_quietly(&plan, &machine, self.stops);
        ran.map_err(|error| error.to_string())
    }

    /// Returns the distance between runs: the duration of the first one. Not that of each run: runs
    /// that end at the same time on several cores would have to wait for each other.
    fn spacing(&self) -> Nanos {
        *self.spacing.get_or_init(|| {
            // Probes differ in their length.
            if let Some(search) = &self.plan.search {
                return Nanos::new(search.probe_most.get() + self.plan.run.pause.get());
            }
            let first = Part::of(self.plan)[0].order(self.plan, 0)[0];
            let text = self.plan.run_of(first.cell, first.variant, first.seed);
            let (plan, machine) = match self.read(&first, &text) {
                Ok(read) => read,
                // The run itself says so.
                Err(_) => return Nanos::ZERO,
            };
            let ran = simulate_quietly(&plan, machine, self.stops);
            let ran_ms = ran.map_or(0, |record| record.elapsed_ms);
            Nanos::new(ran_ms * 1_000_000 + text.run.pause.get())
        })
    }

    /// Reads the texts of a run.
    fn read(&self, slot: &Slot, text: &RunText) -> Result<(Plan, &MachineModel), String> {
        let (Some(job), Some(machine)) = (&text.job, &text.machine) else {
            return Err("only jobs run in virtual time".into());
        };
        let place = &self.machines[slot.cell * self.plan.variants.len() + slot.variant];
        if let Some(model) = place.get() {
            return Ok((self.parse(job)?, model));
        }
        let model = MachineModel::parse(&machine.path, &machine.text);
        let model = model.map_err(|error| error.to_string())?;
        Ok((self.parse(job)?, place.get_or_init(|| model)))
    }

    fn parse(&self, job: &str) -> Result<Plan, String> {
        let plan = job_plan(self.environment, JOB_FILE, job).map_err(|found| {
            let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
            texts.join("\n")
        })?;
        match plan.jobs.is_empty() {
            true => Err("the job asks for something else than a run".into()),
            false => Ok(plan),
        }
    }
}

/// Name of a run's job file in messages.
const JOB_FILE: &str = "the run's job";
