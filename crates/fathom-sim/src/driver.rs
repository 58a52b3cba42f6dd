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
use std::sync::atomic::Ordering;

use fathom_core::{Completion, Step, Tick};
use fathom_workload::{Control, Worker, turn};

use crate::engine::{EngineSpec, ModelEngine, Seat};
use crate::files::ModelFile;
use crate::ran::{Ran, Stuck};
use crate::storage::{Event, JobId, Storage};
use crate::watch::{Nobody, Orders, Watch};

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
    /// How often anything has happened since the world was last looked at.
    unseen: u32,
    /// When somebody looks at the workers next.
    look_at: Tick,
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
            unseen: 0,
            look_at: Tick::MAX,
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
        worker.join_flow();
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
        self.run_with(&mut Nobody)
    }

    /// The same, followed by somebody.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn run_with(mut self, watch: &mut dyn Watch) -> Result<Ran<S>, Stuck> {
        self.look_at = watch.next_look();
        loop {
            while let Some(job) = self.ready.pop_front() {
                if self.step(job)? {
                    let orders = watch.ended(job.index(), &self.jobs[job.index()].worker);
                    self.follow(&orders);
                }
                self.unseen += 1;
            }
            self.unseen += 1;
            if self.unseen >= LOOK_AROUND {
                self.look_around(watch);
            }
            if !self.move_on(watch) {
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

    /// Sees whether the world wants something.
    #[cold]
    fn look_around(&mut self, watch: &mut dyn Watch) {
        self.unseen = 0;
        if watch.stops() {
            self.stop_all();
        }
        self.look_at = watch.next_look();
    }

    /// Moves the clock to when something happens next, and lets it happen; false for never.
    fn move_on(&mut self, watch: &mut dyn Watch) -> bool {
        if !self.ready.is_empty() {
            return true;
        }
        let noted = self.next_noted();
        let storages = self.storages.iter().enumerate();
        let next = storages.filter_map(|(number, storage)| Some((storage.next()?, number)));
        let (at, storage) = match (next.min(), noted) {
            (Some((at, storage)), _) if noted.is_none_or(|noted| at <= noted) => {
                (at, Some(storage))
            }
            (_, Some(noted)) => (noted, None),
            (_, None) => return false,
        };
        if at >= self.look_at {
            self.be_looked_at(at, watch);
            if !self.ready.is_empty() {
                return true; // all were told to stop
            }
        }
        self.advance(at);
        match storage {
            Some(storage) => self.hear(storage),
            None => self.call_noted(at),
        }
        true
    }

    /// Lets all be looked at that want to until `at`, where the next thing happens.
    #[cold]
    fn be_looked_at(&mut self, at: Tick, watch: &mut dyn Watch) {
        while self.look_at <= at {
            self.now = self.look_at.max(self.now);
            let mut workers = self.jobs.iter().map(|job| &job.worker);
            watch.look(self.now, &mut workers);
            self.look_around(watch);
            if !self.ready.is_empty() {
                return;
            }
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
                Event::Woken { job } => self.woken(job),
            }
        }
        self.events = events;
    }

    /// There is room for what a job hands over. In a call of a synchronous engine it sees nothing
    /// of that, nor of the time, until the call returns.
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
            job: id,
            now: self.now,
        };
        if seat.hand_over() {
            job.state = State::Sleeping(1);
        }
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
        // Relaxed: there is one thread.
        (self.jobs[number].control.stop).store(true, Ordering::Relaxed);
        // Whoever waits for room is in the kernel's hands, and stops when it is let in.
        if let State::Sleeping(_) = self.jobs[number].state {
            self.make_ready(job_id(number));
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
        // A call that has waited for room returns now; it was made then.
        let mut called = job.engine.blocked_since().unwrap_or(at);
        let mut seat = Seat {
            engine: &mut job.engine,
            storages: &mut self.storages,
            job: id,
            now: at,
        };
        for _ in 0..TURNS_AT_ONE_MOMENT {
            let from = std::mem::replace(&mut called, at);
            match turn(&mut job.worker, &mut seat, &job.control, from) {
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
/// So much happens before the world is looked at: some milliseconds of it.
const LOOK_AROUND: u32 = 4096;
