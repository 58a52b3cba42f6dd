//! Virtual-time driver: runs the job or storage whose next event is earliest.
//!
//! ```text
//!   ready ◄── completions, wake-ups ── storages          the clock moves to the earlier of
//!     │                                   ▲              agenda and storages, and only when no
//!     ▼                                   │ ops          job is ready
//!   turn ──── waits until ──► agenda ─────┘
//! ```
//!
//! Events at the same time happen in this order: storages by their numbers, then jobs in the order
//! in which they became ready. Nothing depends on addresses, hashes or the host.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use fathom_core::{Completion, Step, StopRequest, Tick};
use fathom_workload::{Worker, turn};

use crate::data_fault::DataFault;
use crate::engine::{EngineSpec, ModelEngine, Seat};
use crate::files::ModelFile;
use crate::ran::{Ran, Stuck};
use crate::storage::{JobId, ModelledStorage, StorageEvent};
use crate::watch::{Orders, Unobserved, Watch};

/// Simulation of any number of workers on shared storages, in virtual time.
///
/// Create it with its storages and files, make an engine per worker with
/// [`engine`](Self::engine), [`add`](Self::add) the workers, then call [`run`](Self::run) or
/// [`run_with`](Self::run_with), which consume it and return the results.
///
/// A turn of a worker costs what it costs on a thread; on top come a few heap operations per event.
/// Jobs share one thread: a simulation of thousands of jobs takes no more memory than their workers
/// do, and runs as fast as one CPU allows. A worker that can never go on is reported as [`Stuck`]
/// instead of hanging: the driver counts turns without progress of the clock.
#[derive(Debug)]
pub struct Simulation<S> {
    now: Tick,
    jobs: Vec<Job>,
    storages: Vec<S>,
    files: Vec<ModelFile>,
    /// Jobs to run at the current time.
    ready: VecDeque<JobId>,
    /// Jobs to run at later times; ties are resolved by order of insertion.
    agenda: BinaryHeap<Reverse<(Tick, u64, JobId)>>,
    noted: u64,
    events: Vec<StorageEvent>,
    /// Events since the clock last moved.
    at_once: u64,
    /// Events since the observer was last asked.
    unseen: u32,
    /// Time of the observer's next sample.
    sample_at: Tick,
    stop_at: Option<Tick>,
}

#[derive(Debug)]
struct Job {
    worker: Worker,
    engine: ModelEngine,
    stop: StopRequest,
    state: State,
    /// Latest time to run it; agenda entries for other times are stale.
    next: Option<Tick>,
}

/// State of a job between its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits for the order to start.
    Waiting,
    /// Waits for this number of completions, or for its time; 0: for its time alone.
    Sleeping(u32),
    /// Blocked by the storage.
    Blocked,
    /// In the queue of ready jobs.
    Ready,
    /// Ended.
    Done,
}

impl<S: ModelledStorage> Simulation<S> {
    /// Creates a simulation without jobs, with these storages and files.
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
            unseen: 0,
            sample_at: Tick::MAX,
            stop_at: None,
        }
    }

    /// Creates an engine for a worker of this simulation.
    ///
    /// # Panics
    /// If `spec` names a file that does not exist.
    #[must_use]
    pub fn engine(&self, spec: &EngineSpec) -> ModelEngine {
        ModelEngine::new(spec, &self.files)
    }

    /// Adds a worker that starts at `start`.
    pub fn add(&mut self, mut worker: Worker, engine: ModelEngine, start: Tick) {
        worker.join_flow();
        let number = self.add_waiting(worker, engine);
        self.jobs[number].state = State::Sleeping(0);
        self.schedule(job_id(number), start);
    }

    /// Adds a worker that waits for an order to start, and returns its number.
    pub fn add_waiting(&mut self, worker: Worker, engine: ModelEngine) -> usize {
        self.jobs.push(Job {
            worker,
            engine,
            stop: StopRequest::default(),
            state: State::Waiting,
            next: None,
        });
        self.jobs.len() - 1
    }

    /// Stops all workers at `at`, as an interrupt does.
    pub fn stop_at(&mut self, at: Tick) {
        self.stop_at = Some(at);
    }

    /// Runs until every worker is done.
    ///
    /// # Errors
    /// A worker can never go on: a bug in the loop or in a model.
    pub fn run(self) -> Result<Ran<S>, Stuck> {
        self.run_with(&mut Unobserved)
    }

    /// Runs until every worker is done, with an observer.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn run_with(mut self, watch: &mut dyn Watch) -> Result<Ran<S>, Stuck> {
        self.sample_at = watch.next_sample();
        loop {
            while let Some(job) = self.ready.pop_front() {
                if self.step(job)? {
                    let orders = watch.ended(job.index(), &self.jobs[job.index()].worker);
                    self.follow(&orders);
                }
                self.unseen += 1;
            }
            self.unseen += 1;
            if self.unseen >= EVENTS_PER_POLL {
                self.poll_watch(watch);
            }
            if !self.next_event(watch) {
                break;
            }
            // A model whose ops take no time would stop the clock for ever.
            if self.at_once > u64::from(TURNS_PER_TICK_MAX) + 1000 * self.jobs.len() as u64 {
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

    /// Asks the observer for orders and the time of its next sample.
    #[cold]
    fn poll_watch(&mut self, watch: &mut dyn Watch) {
        self.unseen = 0;
        if watch.stops() {
            self.stop_all();
        }
        self.sample_at = watch.next_sample();
    }

    /// Moves the clock to the next event and handles it; false if there is none.
    fn next_event(&mut self, watch: &mut dyn Watch) -> bool {
        if !self.ready.is_empty() {
            return true;
        }
        let noted = self.next_scheduled();
        let storages = self.storages.iter().enumerate();
        let next = storages.filter_map(|(number, storage)| Some((storage.next()?, number)));
        let (at, storage) = match (next.min(), noted) {
            (Some((at, storage)), _) if noted.is_none_or(|noted| at <= noted) => {
                (at, Some(storage))
            }
            (_, Some(noted)) => (noted, None),
            (_, None) => return false,
        };
        if at >= self.sample_at {
            self.take_samples(at, watch);
            if !self.ready.is_empty() {
                return true; // all jobs were told to stop
            }
        }
        self.advance(at);
        match storage {
            Some(storage) => self.advance_storage(storage),
            None => self.wake_scheduled(at),
        }
        true
    }

    /// Takes the observer's samples up to `at`, the time of the next event.
    #[cold]
    fn take_samples(&mut self, at: Tick, watch: &mut dyn Watch) {
        while self.sample_at <= at {
            self.now = self.sample_at.max(self.now);
            let mut workers = self.jobs.iter().map(|job| &job.worker);
            watch.sample(self.now, &mut workers);
            self.poll_watch(watch);
            if !self.ready.is_empty() {
                return;
            }
        }
    }

    /// Moves the clock.
    ///
    /// # Panics
    /// If `to` is in the past: an event was lost, and no result after it could be trusted.
    fn advance(&mut self, to: Tick) {
        assert!(to >= self.now, "virtual time ran backwards");
        self.at_once = if to > self.now { 0 } else { self.at_once + 1 };
        self.now = to;
    }

    /// Handles the events of a storage at the current time.
    fn advance_storage(&mut self, storage: usize) {
        let mut events = std::mem::take(&mut self.events);
        self.storages[storage].advance(self.now, &mut events);
        for event in events.drain(..) {
            match event {
                StorageEvent::Completed { job, slot, result } => {
                    self.complete(job, Completion { slot, result }, None);
                }
                StorageEvent::Faulty {
                    job,
                    slot,
                    result,
                    fault,
                } => self.complete(job, Completion { slot, result }, Some(fault)),
                StorageEvent::Woken { job } => self.woken(job),
            }
        }
        self.events = events;
    }

    /// Wakes a blocked job. A synchronous engine stays in its call, and the job does not run until
    /// the call returns.
    fn woken(&mut self, id: JobId) {
        let job = &mut self.jobs[id.index()];
        if job.state != State::Blocked {
            return;
        }
        if !job.engine.capabilities().synchronous {
            return self.make_ready(id);
        }
        let mut seat = Seat {
            engine: &mut job.engine,
            storages: &mut self.storages,
            files: &mut self.files,
            job: id,
            now: self.now,
        };
        if seat.submit_prepared() {
            job.state = State::Sleeping(1);
        }
    }

    #[inline]
    fn complete(&mut self, id: JobId, done: Completion, fault: Option<DataFault>) {
        let job = &mut self.jobs[id.index()];
        job.engine.complete(done, fault, &mut self.files);
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

    /// Schedules the job for `at`, in place of an earlier schedule.
    fn schedule(&mut self, id: JobId, at: Tick) {
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

    /// Returns the time of the next scheduled job, and drops stale agenda entries.
    fn next_scheduled(&mut self) -> Option<Tick> {
        while let Some(&Reverse((at, _, id))) = self.agenda.peek() {
            if self.jobs[id.index()].next == Some(at) {
                return Some(at);
            }
            self.agenda.pop();
        }
        None
    }

    /// Makes the jobs scheduled for `at` ready.
    fn wake_scheduled(&mut self, at: Tick) {
        while self.next_scheduled() == Some(at) {
            if let Some(Reverse((_, _, id))) = self.agenda.pop() {
                self.make_ready(id);
            }
        }
    }

    fn follow(&mut self, orders: &Orders) {
        for &number in &orders.start {
            self.jobs[number].worker.join_flow();
            self.make_ready(job_id(number));
        }
        orders.stop.iter().for_each(|&number| self.stop(number));
    }

    /// Tells all workers to stop.
    fn stop_all(&mut self) {
        (0..self.jobs.len()).for_each(|number| self.stop(number));
    }

    fn stop(&mut self, number: usize) {
        // Relaxed: there is only one thread.
        self.jobs[number].stop.request();
        // A blocked job is in a system call, as it were, and stops when the call returns.
        if let State::Sleeping(_) = self.jobs[number].state {
            self.make_ready(job_id(number));
        }
    }

    /// Runs one worker until it waits, and returns whether it has ended.
    fn step(&mut self, id: JobId) -> Result<bool, Stuck> {
        let at = self.now;
        let stuck = Stuck {
            job: id.index(),
            at,
        };
        let job = &mut self.jobs[id.index()];
        if self.stop_at.is_some_and(|stop| at >= stop) {
            job.stop.request();
        }
        // A blocked call returns now but was made earlier.
        let mut called = job.engine.blocked_since().unwrap_or(at);
        let mut seat = Seat {
            engine: &mut job.engine,
            storages: &mut self.storages,
            files: &mut self.files,
            job: id,
            now: at,
        };
        for _ in 0..TURNS_PER_TICK_MAX {
            let from = std::mem::replace(&mut called, at);
            match turn(&mut job.worker, &mut seat, &job.stop, from) {
                Step::Again => {}
                Step::Done => {
                    job.state = State::Done;
                    return Ok(true);
                }
                Step::Blocked if seat.engine.is_blocked() => {
                    job.state = State::Blocked;
                    return Ok(false);
                }
                Step::Blocked => return Err(stuck),
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

    /// Schedules the latest time to wake a sleeping job.
    #[inline]
    fn sleep(&mut self, id: JobId, until: Option<Tick>) {
        let stop = self.stop_at.filter(|stop| *stop > self.now);
        if let Some(at) = until.into_iter().chain(stop).min() {
            self.schedule(id, at);
        }
    }
}

fn job_id(number: usize) -> JobId {
    JobId::new(u32::try_from(number).unwrap_or(u32::MAX))
}

/// More turns than any worker needs at one time: a turn fills a slot, and no depth is near this.
const TURNS_PER_TICK_MAX: u32 = 1_000_000;
/// Events between calls of the observer: a few milliseconds of real time.
const EVENTS_PER_POLL: u32 = 4096;
