//! The virtual-time driver: whoever has something to do next is given the processor.
//!
//! ```text
//!   ready ◄── completions, wake-ups ── storages          the clock moves to the earlier of
//!     │                                   ▲              the agenda and the storages only when
//!     ▼                                   │ ops          nobody is ready
//!   turn ──── waits until ──► agenda ─────┘
//! ```
//!
//! What happens at one moment happens in this order: the storages in theirs, then the jobs in the
//! order in which they became ready. Nothing depends on addresses, hashes or the host.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;
use std::sync::atomic::Ordering;

use fathom_core::{Completion, Step, Tick};
use fathom_workload::{Control, Results, Worker, turn};

use crate::engine::{EngineSpec, ModelEngine, Seat};
use crate::files::ModelFile;
use crate::storage::{Event, JobId, Storage};

/// Any number of workers on storages that they share, in virtual time.
#[derive(Debug)]
pub struct Simulation<S> {
    now: Tick,
    jobs: Vec<Job>,
    storages: Vec<S>,
    files: Vec<ModelFile>,
    /// Who is to be called at this moment.
    ready: VecDeque<JobId>,
    /// Who is to be called when; ties go to the one that was noted first.
    agenda: BinaryHeap<Reverse<(Tick, u64, JobId)>>,
    noted: u64,
    events: Vec<Event>,
    /// How often anything has happened since the clock last moved.
    at_once: u64,
    stop_at: Option<Tick>,
}

#[derive(Debug)]
struct Job {
    worker: Worker,
    engine: ModelEngine,
    control: Control,
    state: State,
    /// When it is called at the latest; what the agenda has of it for another time is out of date.
    next: Option<Tick>,
}

/// What a job is doing between its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits for the order to start.
    Waiting,
    /// Waits for so many completions, or for its time; 0 for its time alone.
    Sleeping(u32),
    /// The storage has no room.
    Blocked,
    /// Stands in the queue for the processor.
    Ready,
    /// Has ended.
    Done,
}

/// What is to happen when a worker has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// These workers are called for the first time.
    pub start: Vec<usize>,
    /// These are told to stop.
    pub stop: Vec<usize>,
}

/// What a simulation leaves behind.
#[derive(Debug)]
pub struct Ran<S> {
    /// Of each worker, in the order they were added.
    pub jobs: Vec<(Results, ModelEngine)>,
    /// The files, with what was written to them.
    pub files: Vec<ModelFile>,
    /// The storages.
    pub storages: Vec<S>,
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

impl<S: Storage> Simulation<S> {
    /// A simulation without jobs on these storages, with these files on them.
    #[must_use]
    pub fn new(storages: Vec<S>, files: Vec<ModelFile>) -> Self {
        Self {
            now: Tick::ZERO,
            jobs: Vec::new(),
            storages,
            files,
            ready: VecDeque::new(),
            agenda: BinaryHeap::new(),
            noted: 0,
            events: Vec::new(),
            at_once: 0,
            stop_at: None,
        }
    }

    /// An engine for a worker of this simulation.
    ///
    /// # Panics
    /// If `spec` names a file that there is not.
    #[must_use]
    pub fn engine(&self, spec: &EngineSpec) -> ModelEngine {
        ModelEngine::new(spec, &self.files)
    }

    /// Adds a worker; it is first called when the clock shows `start`.
    pub fn add(&mut self, mut worker: Worker, engine: ModelEngine, start: Tick) {
        worker.take_part();
        let number = self.add_waiting(worker, engine);
        self.jobs[number].state = State::Sleeping(0);
        self.note(job_id(number), start);
    }

    /// Adds a worker that waits for an order to start; returns its number.
    pub fn add_waiting(&mut self, worker: Worker, engine: ModelEngine) -> usize {
        self.jobs.push(Job {
            worker,
            engine,
            control: Control::default(),
            state: State::Waiting,
            next: None,
        });
        self.jobs.len() - 1
    }

    /// Stops all workers at `at`, as an interrupt would.
    pub fn stop_at(&mut self, at: Tick) {
        self.stop_at = Some(at);
    }

    /// Runs until every worker is done.
    ///
    /// # Errors
    /// A worker that can never go on: a fault of the loop or of a model.
    pub fn run(self) -> Result<Ran<S>, Stuck> {
        self.run_with(&mut |_, _| Orders::default())
    }

    /// The same; whenever a worker has ended, `ended` says what follows.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn run_with(
        mut self,
        ended: &mut dyn FnMut(usize, &Worker) -> Orders,
    ) -> Result<Ran<S>, Stuck> {
        loop {
            while let Some(job) = self.ready.pop_front() {
                if self.step(job)? {
                    let orders = ended(job.index(), &self.jobs[job.index()].worker);
                    self.follow(&orders);
                }
            }
            if !self.move_on() {
                break;
            }
            // A model whose ops take no time would keep the clock where it is for ever.
            if self.at_once > u64::from(TURNS_AT_ONE_MOMENT) + 1000 * self.jobs.len() as u64 {
                break;
            }
        }
        let left = |job: &Job| {
            !matches!(job.state, State::Done | State::Waiting) || job.engine.has_in_flight()
        };
        if let Some(job) = self.jobs.iter().position(left) {
            return Err(Stuck { job, at: self.now });
        }
        let jobs = self.jobs.into_iter();
        Ok(Ran {
            jobs: jobs
                .map(|job| (job.worker.into_results(), job.engine))
                .collect(),
            files: self.files,
            storages: self.storages,
        })
    }

    /// Moves the clock to when something happens next, and lets it happen; false for never.
    fn move_on(&mut self) -> bool {
        let noted = self.next_noted();
        let storages = self.storages.iter().enumerate();
        let next = storages.filter_map(|(number, storage)| Some((storage.next()?, number)));
        match next.min() {
            Some((at, storage)) if noted.is_none_or(|noted| at <= noted) => {
                self.advance(at);
                self.hear(storage);
                true
            }
            _ => noted.is_some_and(|at| {
                self.advance(at);
                self.call_noted(at);
                true
            }),
        }
    }

    /// # Panics
    /// If `to` is in the past: an event was lost, and no result after it could be trusted.
    fn advance(&mut self, to: Tick) {
        assert!(to >= self.now, "virtual time ran backwards");
        self.at_once = if to > self.now { 0 } else { self.at_once + 1 };
        self.now = to;
    }

    /// Hands round what happens in a storage now.
    fn hear(&mut self, storage: usize) {
        let mut events = std::mem::take(&mut self.events);
        self.storages[storage].advance(self.now, &mut events);
        for event in events.drain(..) {
            match event {
                Event::Completed { job, slot, result } => {
                    self.complete(job, Completion { slot, result }, true);
                }
                Event::Forgotten { job, slot, result } => {
                    self.complete(job, Completion { slot, result }, false);
                }
                Event::Woken { job } => {
                    if self.jobs[job.index()].state == State::Blocked {
                        self.make_ready(job);
                    }
                }
            }
        }
        self.events = events;
    }

    #[inline]
    fn complete(&mut self, id: JobId, done: Completion, moved: bool) {
        let job = &mut self.jobs[id.index()];
        job.engine.complete(done, moved, &mut self.files);
        if let State::Sleeping(wanted @ 1..) = job.state
            && job.engine.completed() >= wanted as usize
        {
            self.make_ready(id);
        }
    }

    #[inline]
    fn make_ready(&mut self, id: JobId) {
        let job = &mut self.jobs[id.index()];
        job.state = State::Ready;
        job.next = None;
        self.ready.push_back(id);
    }

    /// The job is called at `at`, and not when it was to be before.
    fn note(&mut self, id: JobId, at: Tick) {
        self.jobs[id.index()].next = Some(at);
        self.noted += 1;
        self.agenda.push(Reverse((at, self.noted, id)));
        if self.agenda.len() > 64 + 4 * self.jobs.len() {
            let jobs = &self.jobs;
            let is_valid = |&Reverse((at, _, id)): &Reverse<(Tick, u64, JobId)>| {
                jobs[id.index()].next == Some(at)
            };
            self.agenda.retain(is_valid);
        }
    }

    /// When the agenda has somebody next; what is out of date is struck off.
    fn next_noted(&mut self) -> Option<Tick> {
        while let Some(&Reverse((at, _, id))) = self.agenda.peek() {
            if self.jobs[id.index()].next == Some(at) {
                return Some(at);
            }
            self.agenda.pop();
        }
        None
    }

    /// Makes ready whom the agenda has for `at`.
    fn call_noted(&mut self, at: Tick) {
        while self.next_noted() == Some(at) {
            if let Some(Reverse((_, _, id))) = self.agenda.pop() {
                self.make_ready(id);
            }
        }
    }

    fn follow(&mut self, orders: &Orders) {
        for &number in &orders.start {
            self.jobs[number].worker.take_part();
            self.make_ready(job_id(number));
        }
        for &number in &orders.stop {
            // Relaxed: there is one thread.
            (self.jobs[number].control.stop).store(true, Ordering::Relaxed);
            // Whoever waits for room is in the kernel's hands, and stops when it is let in.
            if let State::Sleeping(_) = self.jobs[number].state {
                self.make_ready(job_id(number));
            }
        }
    }

    /// Turns one worker until it waits; says whether it has ended.
    fn step(&mut self, id: JobId) -> Result<bool, Stuck> {
        let at = self.now;
        let stuck = Stuck {
            job: id.index(),
            at,
        };
        let job = &mut self.jobs[id.index()];
        if self.stop_at.is_some_and(|stop| at >= stop) {
            job.control.stop.store(true, Ordering::Relaxed);
        }
        let mut seat = Seat {
            engine: &mut job.engine,
            storages: &mut self.storages,
            job: id,
            now: at,
        };
        for _ in 0..TURNS_AT_ONE_MOMENT {
            match turn(&mut job.worker, &mut seat, &job.control, at) {
                Step::Again => {}
                Step::Done => {
                    job.state = State::Done;
                    return Ok(true);
                }
                Step::InSubmit if seat.engine.is_blocked() => {
                    job.state = State::Blocked;
                    return Ok(false);
                }
                Step::InSubmit => return Err(stuck),
                Step::Wait { min, until, .. } => {
                    let is_there = min > 0 && seat.engine.completed() >= min as usize;
                    let is_past = until.is_some_and(|until| until <= at);
                    if is_there || is_past || (min == 0 && until.is_none()) {
                        return Err(stuck);
                    }
                    job.state = State::Sleeping(min);
                    self.sleep(id, until);
                    return Ok(false);
                }
            }
        }
        Err(stuck)
    }

    /// Notes when a job that sleeps is called at the latest.
    #[inline]
    fn sleep(&mut self, id: JobId, until: Option<Tick>) {
        let stop = self.stop_at.filter(|stop| *stop > self.now);
        if let Some(at) = until.into_iter().chain(stop).min() {
            self.note(id, at);
        }
    }
}

fn job_id(number: usize) -> JobId {
    JobId::new(u32::try_from(number).unwrap_or(u32::MAX))
}

/// More turns than any worker can need at one moment: one submission fills a slot, and no depth
/// is near this.
const TURNS_AT_ONE_MOMENT: u32 = 1_000_000;
