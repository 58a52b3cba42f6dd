//! The virtual-time driver: whoever has something to do next is given the processor.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::atomic::Ordering;

use fathom_core::{Step, Tick};
use fathom_workload::{Control, Results, Worker, turn};

use crate::{ModelEngine, VirtualClock};

/// Any number of workers on modelled devices, in virtual time.
#[derive(Debug, Default)]
pub struct Simulation {
    clock: VirtualClock,
    jobs: Vec<Job>,
    /// Who is to be called when; ties go to the lower number.
    agenda: BinaryHeap<Reverse<(Tick, usize)>>,
    stop_at: Option<Tick>,
}

#[derive(Debug)]
struct Job {
    worker: Worker,
    engine: ModelEngine,
    control: Control,
    /// When it is called next; what the agenda has of it for another time is out of date.
    next: Option<Tick>,
    done: bool,
}

/// What is to happen when a worker has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// These workers are called for the first time.
    pub start: Vec<usize>,
    /// These are told to stop.
    pub stop: Vec<usize>,
}

/// A worker waits for something that will never happen, or turns for ever at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The worker, in the order they were added, from 0.
    pub job: usize,
    /// When.
    pub at: Tick,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "job {} is stuck at {} ns of virtual time",
            self.job,
            self.at.get()
        )
    }
}

impl std::error::Error for Stuck {}

impl Simulation {
    /// An empty simulation on `clock`, the clock of the engines that will be added.
    #[must_use]
    pub fn new(clock: VirtualClock) -> Self {
        Self {
            clock,
            ..Self::default()
        }
    }

    /// Adds a worker; it is first called when the clock shows `start`.
    pub fn add(&mut self, mut worker: Worker, engine: ModelEngine, start: Tick) {
        worker.take_part();
        let index = self.add_waiting(worker, engine);
        self.call(index, start);
    }

    /// Adds a worker that waits for an order to start; returns its number.
    pub fn add_waiting(&mut self, worker: Worker, engine: ModelEngine) -> usize {
        self.jobs.push(Job {
            worker,
            engine,
            control: Control::default(),
            next: None,
            done: false,
        });
        self.jobs.len() - 1
    }

    /// Stops all workers at `at`, as an interrupt would.
    pub fn stop_at(&mut self, at: Tick) {
        self.stop_at = Some(at);
    }

    /// Runs until every worker is done; gives their results in the order they were added, with
    /// their engines.
    ///
    /// # Errors
    /// A worker that can never go on: a fault of the loop or of a model.
    pub fn run(self) -> Result<Vec<(Results, ModelEngine)>, Stuck> {
        self.run_with(&mut |_, _| Orders::default())
    }

    /// The same; whenever a worker has ended, `ended` says what follows.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn run_with(
        mut self,
        ended: &mut dyn FnMut(usize, &Worker) -> Orders,
    ) -> Result<Vec<(Results, ModelEngine)>, Stuck> {
        while let Some(Reverse((at, index))) = self.agenda.pop() {
            if self.jobs[index].next != Some(at) {
                continue;
            }
            self.jobs[index].next = None;
            self.clock.advance(at);
            if self.stop_at.is_some_and(|stop| at >= stop) {
                self.jobs[index].control.stop.store(true, Ordering::Relaxed);
            }
            match self.step(index, at)? {
                Some(next) => self.call(index, next),
                None => {
                    self.jobs[index].done = true;
                    let orders = ended(index, &self.jobs[index].worker);
                    self.follow(&orders, at);
                }
            }
        }
        Ok(self
            .jobs
            .into_iter()
            .map(|job| (job.worker.into_results(), job.engine))
            .collect())
    }

    /// The worker is called at `at`, and not when it was to be before.
    fn call(&mut self, index: usize, at: Tick) {
        self.jobs[index].next = Some(at);
        self.agenda.push(Reverse((at, index)));
    }

    fn follow(&mut self, orders: &Orders, at: Tick) {
        for &index in &orders.start {
            self.jobs[index].worker.take_part();
            self.call(index, at);
        }
        for &index in &orders.stop {
            if !self.jobs[index].done {
                // Relaxed: there is one thread.
                self.jobs[index].control.stop.store(true, Ordering::Relaxed);
                self.call(index, at);
            }
        }
    }

    /// Turns one worker until it waits; says until when.
    fn step(&mut self, index: usize, at: Tick) -> Result<Option<Tick>, Stuck> {
        let stuck = Stuck { job: index, at };
        let job = &mut self.jobs[index];
        for _ in 0..TURNS_AT_ONE_MOMENT {
            match turn(&mut job.worker, &mut job.engine, &job.control, at) {
                Step::Again => {}
                Step::Done => return Ok(None),
                Step::InSubmit => return Err(stuck),
                Step::Wait { min, until, .. } => {
                    let woken = [job.engine.completes(min), until]
                        .into_iter()
                        .flatten()
                        .min();
                    let mut next = woken.ok_or(stuck)?;
                    if let Some(stop) = self.stop_at.filter(|stop| *stop > at) {
                        next = next.min(stop);
                    }
                    return if next > at {
                        Ok(Some(next))
                    } else {
                        Err(stuck)
                    };
                }
            }
        }
        Err(stuck)
    }
}

/// More turns than any worker can need at one moment: one submission fills a slot, and no depth
/// is near this.
const TURNS_AT_ONE_MOMENT: u32 = 1_000_000;
