//! Modelled stack between jobs and a device: threads that cost time, a request queue, tags.
//!
//! ```text
//! job ─► thread ─► request queue ─► device tags ─► device
//!          ▲            │                             │
//!          └─ woken ◄───┴──────── completions ◄───────┘
//! ```
//!
//! Threads run in parallel. A woken thread runs after a delay of its own, and a thread that got a
//! tag asks for the next one only when it has queued its piece, by when other threads may have
//! taken it. These two delays alone reproduce the collapse of large ops under plain tags: threads
//! that run at the same time share the free tags, and the first of several that run one after
//! the other takes them all. CPUs in deep idle states ([`DeepIdle`]) spread their threads out.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fathom_block::{
    Bio, Class, DonePiece, Progress, QueueConfig, RequestQueue, SeekCounts, WaiterId,
};
use fathom_core::{
    BlockDevice, Command, Completion, Errno, Nanos, Slot, SplitMix64, Tick, Zone, ZoneAction,
};

use crate::idle::DeepIdle;
use crate::storage::{JobId, ModelledStorage, Request, StorageEvent, SubmitResult};

/// Costs of a host's threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostConfig {
    /// Time from one piece of a split op to the next.
    pub piece: Nanos,
    /// Shortest time from a wake-up until the thread runs.
    pub wake: Nanos,
    /// Additional delay of each further thread of the same wake-up: they are woken one by one.
    pub wake_each: Nanos,
    /// Largest additional random delay, uniformly distributed.
    pub wake_spread: Nanos,
    /// Deep idle state of the CPUs; `None` if they never enter one.
    pub idle: Option<DeepIdle>,
    /// Seed of the random delays.
    pub seed: u64,
}

/// Device behind a request queue.
///
/// An op takes a few heap operations per piece; memory is one entry per op in flight and two per
/// job. The queue itself is that of `fathom-block`, the same code that a real stack would use.
#[derive(Debug)]
pub struct Stack<D> {
    queue: RequestQueue,
    device: D,
    host: HostConfig,
    random: SplitMix64,
    threads: Vec<Thread>,
    ops: Vec<OpState>,
    free_ops: Vec<u32>,
    agenda: BinaryHeap<Reverse<(Tick, u64, Next)>>,
    noted: u64,
    /// Time from which seeks are counted.
    count_from: Option<Tick>,
    commands: Vec<Command>,
    done: Vec<DonePiece>,
}

/// Thread of a job.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    /// Number of threads on its CPU, itself included.
    sharing: u32,
    /// Time at which it last queued a piece or found no tag.
    ran: Tick,
    /// Op whose pieces are being queued.
    queueing: Option<u32>,
    /// Op whose last piece was queued while the thread slept.
    queued: Option<u32>,
    /// Time at which the thread flushes its plug.
    unplugs: bool,
}

impl Thread {
    fn new(job: u32, jobs: u32, host: &HostConfig) -> Self {
        Self {
            sharing: host.idle.map_or(1, |idle| idle.sharing(job, jobs)),
            ..Self::default()
        }
    }
}

/// Op in flight.
#[derive(Clone, Copy, Debug)]
struct OpState {
    job: JobId,
    slot: Slot,
    /// Bytes not yet completed; 1 for a sync.
    left: u32,
    moved: u32,
    /// First error, as an errno.
    error: i32,
    /// The op was reported to the job as accepted.
    taken: bool,
}

/// Next action of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    /// Queue the next piece.
    Ask(JobId),
    /// Flush the plug.
    Unplug(JobId),
    /// Receive the completion of its op.
    Hear(u32),
}

impl<D: BlockDevice> Stack<D> {
    /// Creates a stack of `device` behind a queue, for this number of jobs.
    ///
    /// # Panics
    /// As [`RequestQueue::new`].
    #[must_use]
    pub fn new(queue: QueueConfig, host: HostConfig, device: D, jobs: u32) -> Self {
        Self {
            queue: RequestQueue::new(queue, jobs),
            device,
            random: SplitMix64::new(host.seed),
            host,
            threads: (0..jobs).map(|job| Thread::new(job, jobs, &host)).collect(),
            ops: Vec::new(),
            free_ops: Vec::new(),
            agenda: BinaryHeap::new(),
            noted: 0,
            count_from: None,
            commands: Vec::new(),
            done: Vec::new(),
        }
    }

    /// Returns the device.
    #[must_use]
    pub const fn device(&self) -> &D {
        &self.device
    }

    fn note(&mut self, at: Tick, next: Next) {
        self.noted += 1;
        self.agenda.push(Reverse((at, self.noted, next)));
    }

    /// Performs one or more steps of a submission; true when the whole op is queued.
    fn ask(&mut self, job: JobId, now: Tick) -> bool {
        let who = waiter(job);
        self.threads[job.index()].ran = now;
        let whole = loop {
            match self.queue.ask(who, now) {
                Progress::Whole => break true,
                Progress::Waits => break false,
                Progress::More if self.host.piece.is_zero() => {}
                Progress::More => {
                    self.note(now + self.host.piece, Next::Ask(job));
                    break false;
                }
            }
        };
        if whole && self.queue.is_plugged(who) && !self.threads[job.index()].unplugs {
            // At the same time, but after everything else the job submits now.
            self.threads[job.index()].unplugs = true;
            self.note(now, Next::Unplug(job));
        }
        self.dispatch_and_wake(now);
        whole
    }

    /// Dispatches what the device can take and schedules the woken threads.
    fn dispatch_and_wake(&mut self, now: Tick) {
        let mut commands = std::mem::take(&mut self.commands);
        self.queue.dispatch(now, &mut commands);
        for command in commands.drain(..) {
            self.device.start(&command, &mut None, now);
        }
        self.commands = commands;
        let mut before = Nanos::ZERO;
        for who in self.queue.woken() {
            let job = JobId::new(u32::try_from(who.index()).unwrap_or(u32::MAX));
            let thread = &self.threads[who.index()];
            let at = now + before + wake_delay(&mut self.random, &self.host, thread, now);
            self.noted += 1;
            self.agenda.push(Reverse((at, self.noted, Next::Ask(job))));
            before += self.host.wake_each;
        }
    }

    fn act(&mut self, next: Next, now: Tick, out: &mut Vec<StorageEvent>) {
        match next {
            Next::Ask(job) => {
                if self.ask(job, now) {
                    let thread = &mut self.threads[job.index()];
                    thread.queued = thread.queueing.take();
                    out.push(StorageEvent::Woken { job });
                }
            }
            Next::Unplug(job) => {
                self.threads[job.index()].unplugs = false;
                self.queue.unplug(waiter(job), now);
                self.dispatch_and_wake(now);
            }
            Next::Hear(op) => {
                let OpState { job, slot, .. } = self.ops[op as usize];
                let result = self.ops[op as usize].result();
                self.free_ops.push(op);
                out.push(StorageEvent::Completed { job, slot, result });
            }
        }
    }

    /// Reaps what the device has completed by now, then dispatches the next commands.
    fn reap(&mut self, now: Tick) {
        let mut done = std::mem::take(&mut self.done);
        while let Some(finished) = self.device.completed(now) {
            self.queue
                .complete(finished.tag, finished.result, &mut done);
        }
        for piece in done.drain(..) {
            let op = &mut self.ops[piece.owner as usize];
            op.left -= piece.length.max(1);
            let moved = u32::try_from(piece.result).unwrap_or(0);
            op.moved = op.moved.saturating_add(moved);
            if piece.result < 0 && op.error == 0 {
                op.error = piece.result;
            }
            if op.left == 0 && op.taken {
                let thread = &self.threads[op.job.index()];
                let wait = wake_delay(&mut self.random, &self.host, thread, now);
                self.note(now + wait, Next::Hear(piece.owner));
            }
        }
        self.done = done;
        self.dispatch_and_wake(now);
    }

    fn new_op(&mut self, job: JobId, request: &Request) -> u32 {
        let op = OpState {
            job,
            slot: request.slot,
            left: request.length.max(1),
            moved: 0,
            error: 0,
            taken: false,
        };
        if let Some(number) = self.free_ops.pop() {
            self.ops[number as usize] = op;
            return number;
        }
        self.ops.push(op);
        u32::try_from(self.ops.len() - 1).unwrap_or(u32::MAX)
    }
}

impl OpState {
    fn result(&self) -> i32 {
        if self.error < 0 {
            self.error
        } else {
            self.moved.min(Completion::BYTES_MAX).cast_signed()
        }
    }
}

impl<D: BlockDevice> ModelledStorage for Stack<D> {
    fn submit(&mut self, job: JobId, request: &Request, now: Tick) -> SubmitResult {
        if let Some(op) = self.threads[job.index()].queued.take() {
            self.ops[op as usize].taken = true;
            if self.ops[op as usize].left == 0 {
                self.note(now, Next::Hear(op));
            }
            return SubmitResult::Accepted;
        }
        let op = self.new_op(job, request);
        let bio = Bio {
            kind: request.kind,
            offset: request.offset,
            length: request.length,
            class: Class::from_priority(request.priority),
            owner: op,
        };
        self.queue.begin(waiter(job), bio);
        if self.ask(job, now) {
            self.ops[op as usize].taken = true;
            SubmitResult::Accepted
        } else {
            self.threads[job.index()].queueing = Some(op);
            SubmitResult::Blocked
        }
    }

    fn next(&self) -> Option<Tick> {
        let noted = self.agenda.peek().map(|Reverse((at, ..))| *at);
        noted.into_iter().chain(self.device.next()).min()
    }

    fn advance(&mut self, now: Tick, out: &mut Vec<StorageEvent>) {
        if self.count_from.is_some_and(|from| from <= now) {
            self.count_from = None;
            self.queue.restart_seeks();
        }
        loop {
            if self.device.next().is_some_and(|at| at <= now) {
                self.reap(now);
            }
            match self.agenda.peek() {
                Some(&Reverse((at, _, next))) if at <= now => {
                    self.agenda.pop();
                    self.act(next, now, out);
                }
                _ => break,
            }
        }
    }

    fn manage_zone(&mut self, action: ZoneAction, start: u64) -> Result<(), Errno> {
        self.device.manage_zone(action, start)
    }

    fn zone(&self, offset: u64) -> Option<Zone> {
        self.device.zone(offset)
    }

    fn count_seeks(&mut self, from: Tick) {
        self.count_from = Some(from);
    }

    fn seeks(&self) -> Option<&SeekCounts> {
        Some(self.queue.seeks())
    }
}

const fn waiter(job: JobId) -> WaiterId {
    WaiterId::new(job.get())
}

/// Draws the time from a wake-up until the thread runs.
fn wake_delay(random: &mut SplitMix64, host: &HostConfig, thread: &Thread, now: Tick) -> Nanos {
    let slept = now.since(thread.ran);
    let exit = (host.idle).map_or(Nanos::ZERO, |idle| idle.exit_after(slept, thread.sharing));
    let bound = (host.wake_spread + exit).get();
    let spread = if bound == 0 {
        0
    } else {
        random.next_u64() % bound
    };
    host.wake + Nanos::new(spread)
}
