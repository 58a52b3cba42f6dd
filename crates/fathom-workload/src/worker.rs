//! One job's state between two turns.

use fathom_core::{
    Capabilities, Completion, Direction, FileIndex, NoMemory, PerDirection, Slot, Tick,
};

use crate::buffers::Filler;
use crate::config::{Batching, Mix, Rate, WorkerConfig};
use crate::job_limits::JobLimits;
use crate::log::JobLog;
use crate::lookahead::Lookahead;
use crate::pattern::{Pattern, PatternError, Target};
use crate::priorities::Priorities;
use crate::readback::{Readback, ReadbackError};
use crate::recorder::Recorder;
use crate::results::{Phase, Progress, Results};
use crate::schedule::{Schedule, Schedules};
use crate::slots::Slots;
use crate::stages::bytes_to_issue;
use crate::steady::SteadyWatch;
use crate::syncs::SyncState;
use crate::think::Thinking;
use crate::uniform_ops::UniformOp;
use crate::verify::IntervalTooSmall;

/// One job: what it is told, how far it has come, what it has measured.
///
/// Driven by [`turn`](crate::turn()) only. All memory is reserved by [`Worker::new`].
#[derive(Debug)]
pub struct Worker {
    pub(crate) config: WorkerConfig,
    pub(crate) engine: Capabilities,
    pub(crate) pattern: Pattern,
    pub(crate) filler: Filler,
    pub(crate) readback: Option<Readback>,
    pub(crate) schedules: Schedules,
    pub(crate) thinking: Option<Thinking>,
    pub(crate) recorder: Recorder,
    pub(crate) priorities: Option<Box<Priorities>>,
    pub(crate) slots: Slots,
    /// Prepared, not yet handed over.
    pub(crate) prepared: Vec<Slot>,
    /// The rest of short transfers, to be issued again in their own slots.
    pub(crate) retry: Vec<Slot>,
    /// Lookahead, but not yet due or not yet allowed.
    pub(crate) held: Option<Target>,
    /// Lookahead ahead, in jobs that are `plain`.
    pub(crate) drawn: Lookahead,
    /// Ops handed over per submission.
    pub(crate) batch: usize,
    pub(crate) done: Box<[Completion]>,
    /// Handed over and not reaped.
    pub(crate) in_flight: u32,
    pub(crate) stage: Stage,
    pub(crate) clock: Timers,
    pub(crate) pass: Pass,
    pub(crate) sync: SyncState,
    /// The queue was full and has not yet sunk to `iodepth_low`.
    pub(crate) sinking: bool,
    /// The op issued last has the engine to itself.
    pub(crate) alone: bool,
    /// No rule of this job looks at single ops: they may be issued many at a time.
    pub(crate) plain: bool,
    /// And they come and go one by one: see `exchange`.
    pub(crate) one_by_one: bool,
    /// Ops issued.
    pub(crate) sequence: u64,
    /// The directions of the mix.
    pub(crate) used: PerDirection<bool>,
    /// Rules that few jobs have.
    pub(crate) limits: Option<Box<JobLimits>>,
    /// Its part in what may become steady.
    pub(crate) steady: Option<Box<SteadyWatch>>,
}

/// What a worker does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Waits for `startdelay`.
    Delayed,
    /// Issues ops of the pattern.
    Running,
    /// Issues nothing but the rest of short transfers; then goes on.
    Draining(After),
    /// Makes every file durable, one after the other, from this file on; then goes on.
    Syncing(FileIndex, After),
    /// Reads back what was written.
    ReadingBack,
    /// Is done.
    Finished,
}

/// What follows when nothing is in flight any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// A pause.
    Think,
    /// The end of a pass: sync, read back, next pass.
    Pass,
    /// The end of reading back.
    Readback,
    /// The end of the job.
    End,
}

/// The moments at which rules change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timers {
    /// When the worker was made; `startdelay` counts from here.
    pub(crate) origin: Tick,
    /// The earliest moment at which any rule below wants to be looked at.
    pub(crate) next_rule: Tick,
    /// When the ramp ends; `MAX` when it has.
    pub(crate) ramp_end: Tick,
    /// When issuing ends.
    pub(crate) deadline: Tick,
    /// When `rate_min` is checked next.
    pub(crate) rate_check: Tick,
    /// When it was looked at last; `None` before the first look.
    pub(crate) rate_looked: Option<Tick>,
    /// When the current stretch of I/O began.
    pub(crate) stretch: Tick,
    /// Ops and bytes at the last rate check.
    pub(crate) rate_seen: PerDirection<(u64, u64)>,
}

/// The current pass over the files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    /// Bytes still to issue.
    pub(crate) remaining: u64,
    /// Bytes by which the last op reached past the pass: the next one has fewer, as in fio.
    pub(crate) over: u64,
    /// Passes still to make after this one.
    pub(crate) more: u32,
    /// The pattern was started over and gave nothing since: it never will.
    pub(crate) empty_since_restart: bool,
    /// The pattern has been everywhere: it is not asked again before it is started over.
    pub(crate) ended: bool,
    /// Page caches are to be dropped before the next op.
    pub(crate) invalidate: bool,
    /// Files are to be made anew before the next op.
    pub(crate) renew: bool,
}

/// Why a worker cannot be made.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The pattern makes no sense.
    Pattern(PatternError),
    /// `iodepth` is 0.
    NoDepth,
    /// A rate of 0 per second.
    NoPace,
    /// Blocks too small to verify.
    Verify(IntervalTooSmall),
    /// No memory for the log of what is to be read back.
    NoMemory(NoMemory),
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pattern(error) => error.fmt(f),
            Self::NoDepth => f.write_str("a job needs a depth of at least 1"),
            Self::NoPace => f.write_str("a rate must be at least 1 per second"),
            Self::Verify(error) => error.fmt(f),
            Self::NoMemory(error) => {
                write!(
                    f,
                    "no memory to log what is to be read back: {} bytes",
                    error.bytes
                )
            }
        }
    }
}

impl std::error::Error for ConfigError {}

impl Worker {
    /// Whether a configuration makes sense, without reserving anything: what is wrong is to be
    /// known before files are made for it.
    ///
    /// # Errors
    /// As [`Worker::new`], apart from memory.
    pub fn check(config: &WorkerConfig) -> Result<(), ConfigError> {
        refuse(config)?;
        Pattern::check(&config.pattern).map_err(ConfigError::Pattern)
    }

    /// A worker for `engine`, whose clock shows `origin`.
    ///
    /// # Errors
    /// Values that contradict one another; see [`ConfigError`].
    pub fn new(
        config: WorkerConfig,
        engine: Capabilities,
        origin: Tick,
    ) -> Result<Self, ConfigError> {
        refuse(&config)?;
        let depth = if engine.synchronous { 1 } else { config.depth };
        let pattern = Pattern::new(config.pattern.clone()).map_err(ConfigError::Pattern)?;
        let used = used_directions(&config);
        let rated = config.rate.map(|rate| rate.is_some());
        let seed = config.pattern.seed;
        let schedules = schedules(&config, used, origin);
        let mut seen = used;
        seen.read |= config
            .verify
            .as_ref()
            .is_some_and(|verify| verify.read_back);
        let recorder = Recorder::new(config.measure, depth, seen, rated, !engine.synchronous);
        let priorities = config
            .priorities
            .as_ref()
            .map(|choices| Box::new(Priorities::new(choices, config.measure, seed)));
        let slots = depth as usize;
        let readback = readback(&config, engine, used.write)?;
        let filler = Filler::new(config.buffers.clone(), seed);
        let batch = config.batching.submit.clamp(1, depth) as usize;
        let reap = config.batching.complete_max.clamp(1, depth) as usize;
        let limits = JobLimits::new(&config);
        let steady = config.limits.steady.clone();
        let steady = steady.map(|group| Box::new(SteadyWatch::new(group)));
        let watched = readback.is_some() || limits.is_some();
        let plain = is_plain(&config, engine, used, watched, filler.changes());
        let common = pattern.common().unwrap_or_default();
        let alike = UniformOp::of(&pattern).filter(|_| plain);
        Ok(Self {
            thinking: config.think.map(Thinking::new),
            pass: Pass::first(&config),
            sync: SyncState::new(&config),
            clock: Timers::new(origin),
            pattern,
            filler,
            readback,
            schedules,
            recorder,
            priorities,
            slots: Slots::new(depth, &common),
            prepared: Vec::with_capacity(slots),
            retry: Vec::with_capacity(slots),
            held: None,
            drawn: Lookahead::new(alike),
            batch,
            done: vec![Completion::default(); reap].into_boxed_slice(),
            in_flight: 0,
            stage: Stage::Delayed,
            sinking: false,
            alone: false,
            one_by_one: plain && is_one_by_one(&config.batching, depth),
            plain,
            sequence: 0,
            used,
            limits,
            steady,
            config,
            engine,
        })
    }

    /// Moves the moment from which `startdelay` counts, for a worker that has not had its first
    /// turn: memory is reserved before the start, and time counts from it.
    pub fn start_at(&mut self, origin: Tick) {
        self.clock.origin = origin;
    }

    /// Logs to `log` what is measured from now on.
    pub fn log_to(&mut self, log: JobLog) {
        self.recorder.log = Some(Box::new(log));
    }

    /// How far it has come.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let mut progress = Progress {
            phase: self.phase(),
            ..Progress::default()
        };
        for direction in Direction::ALL {
            let (ios, bytes) = self.recorder.progress(direction);
            progress.ios[direction] = ios;
            progress.bytes[direction] = bytes;
        }
        progress
    }

    /// What it is doing.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.stage {
            Stage::Delayed => Phase::Delayed,
            Stage::Finished => Phase::Finished,
            Stage::Syncing(..) => Phase::Syncing,
            Stage::ReadingBack | Stage::Draining(After::Readback) => Phase::Verifying,
            Stage::Running | Stage::Draining(_) if self.clock.ramp_end != Tick::MAX => Phase::Ramp,
            Stage::Running | Stage::Draining(_) => Phase::Running,
        }
    }

    /// Ops handed over and not reaped.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// What it has measured up to `now`; nothing before it measures. Copies every histogram.
    #[must_use]
    pub fn results_so_far(&self, now: Tick) -> Option<Results> {
        let running = match self.phase() {
            Phase::Delayed | Phase::Ramp => return None,
            Phase::Running => self.used,
            Phase::Verifying => PerDirection::new(true, false, false),
            Phase::Syncing | Phase::Finished => PerDirection::all(false),
        };
        let mut results = self.recorder.results();
        let since = self.clock.stretch.max(results.started);
        for direction in Direction::ALL {
            if running[direction] {
                results.directions[direction].runtime += now - since;
            }
        }
        results.ended = results.ended.max(now);
        if let Some(priorities) = &self.priorities {
            results.priorities = priorities.results();
        }
        let limits = self.limits.as_ref();
        results.depth_found = limits.and_then(|limits| limits.depth_found());
        Some(results)
    }

    /// What it measured; what is still in flight is not in it.
    #[must_use]
    pub fn into_results(mut self) -> Results {
        let in_ramp = self.clock.ramp_end != Tick::MAX;
        if in_ramp {
            self.recorder.discard_results();
        }
        let mut results = self.recorder.into_results();
        if let Some(priorities) = self.priorities.filter(|_| !in_ramp) {
            results.priorities = priorities.results();
        }
        results.depth_found = self.limits.and_then(|limits| limits.depth_found());
        results
    }
}

impl Timers {
    const fn new(origin: Tick) -> Self {
        Self {
            origin,
            next_rule: Tick::ZERO,
            ramp_end: Tick::MAX,
            deadline: Tick::MAX,
            rate_check: Tick::MAX,
            rate_looked: None,
            stretch: origin,
            rate_seen: PerDirection::new((0, 0), (0, 0), (0, 0)),
        }
    }
}

impl Pass {
    fn first(config: &WorkerConfig) -> Self {
        Self {
            remaining: bytes_to_issue(config),
            over: 0,
            more: config.loops.saturating_sub(1),
            empty_since_restart: false,
            ended: false,
            invalidate: false,
            renew: false,
        }
    }

    /// So many bytes are issued.
    #[inline]
    pub(crate) const fn issue(&mut self, bytes: u64) {
        self.over = bytes.saturating_sub(self.remaining);
        self.remaining = self.remaining.saturating_sub(bytes);
    }
}

fn refuse(config: &WorkerConfig) -> Result<(), ConfigError> {
    let stands_still = |rate: Option<Rate>| rate.is_some_and(|rate| rate.pace.is_zero());
    if config.depth == 0 {
        Err(ConfigError::NoDepth)
    } else if config.rate.iter().any(|(_, rate)| stands_still(*rate)) {
        Err(ConfigError::NoPace)
    } else {
        Ok(())
    }
}

fn schedules(config: &WorkerConfig, used: PerDirection<bool>, origin: Tick) -> Schedules {
    Schedules::new(PerDirection::from_fn(|direction| {
        let rate = config.rate[direction].filter(|_| used[direction])?;
        let seed = config.pattern.seed ^ direction.index() as u64;
        Some(Schedule::new(rate, origin, seed))
    }))
}

fn readback(
    config: &WorkerConfig,
    engine: Capabilities,
    writes: bool,
) -> Result<Option<Readback>, ConfigError> {
    let verify = config.verify.as_ref().filter(|_| engine.moves_data);
    let readback = verify.map(|verify| Readback::new(verify, config, writes));
    readback.transpose().map_err(|error| match error {
        ReadbackError::Interval(error) => ConfigError::Verify(error),
        ReadbackError::Memory(error) => ConfigError::NoMemory(error),
    })
}

fn used_directions(config: &WorkerConfig) -> PerDirection<bool> {
    match config.pattern.mix {
        Mix::Read => PerDirection::new(true, false, false),
        Mix::Write => PerDirection::new(false, true, false),
        Mix::Trim => PerDirection::new(false, false, true),
        Mix::ReadWrite { .. } => PerDirection::new(true, true, false),
        Mix::TrimWrite => PerDirection::new(false, true, true),
    }
}

/// Whether each completion is taken alone and makes room for one op.
const fn is_one_by_one(batching: &Batching, depth: u32) -> bool {
    let alone = batching.submit == 1 || depth == 1;
    let taken_alone = batching.complete_max == 1 || depth == 1;
    alone && taken_alone && batching.complete_min > 0 && batching.low >= depth
}

/// Whether ops can be issued without a look at each.
fn is_plain(
    config: &WorkerConfig,
    engine: Capabilities,
    used: PerDirection<bool>,
    watched: bool,
    changes_buffers: bool,
) -> bool {
    // Where directions have paces, the one that is due first comes next.
    let races = matches!(config.pattern.mix, Mix::ReadWrite { .. } | Mix::TrimWrite)
        && config.rate.iter().any(|(_, rate)| rate.is_some());
    let fills = used.write && engine.moves_data && changes_buffers;
    let syncs = used.write && config.sync.watches_writes();
    let drains = used.trim && !engine.queued_trim;
    let chooses = config.priorities.is_some();
    let waits = config.serialize_overlap || config.think.is_some();
    !(races || watched || fills || syncs || drains || chooses || waits)
}
