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
    control: Control,
    stop_at: Option<Tick>,
}

#[derive(Debug)]
struct Job {
    worker: Worker,
    engine: ModelEngine,
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
    pub fn add(&mut self, worker: Worker, engine: ModelEngine, start: Tick) {
        self.agenda.push(Reverse((start, self.jobs.len())));
        self.jobs.push(Job { worker, engine });
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
    pub fn run(mut self) -> Result<Vec<(Results, ModelEngine)>, Stuck> {
        while let Some(Reverse((at, index))) = self.agenda.pop() {
            self.clock.advance(at);
            if self.stop_at.is_some_and(|stop| at >= stop) {
                self.control.stop.store(true, Ordering::Relaxed);
            }
            if let Some(next) = self.step(index, at)? {
                self.agenda.push(Reverse((next, index)));
            }
        }
        Ok(self
            .jobs
            .into_iter()
            .map(|job| (job.worker.into_results(), job.engine))
            .collect())
    }

    /// Turns one worker until it waits; says until when.
    fn step(&mut self, index: usize, at: Tick) -> Result<Option<Tick>, Stuck> {
        let stuck = Stuck { job: index, at };
        let job = &mut self.jobs[index];
        for _ in 0..TURNS_AT_ONE_MOMENT {
            match turn(&mut job.worker, &mut job.engine, &self.control, at) {
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
