//! State of one job between turns.

use fathom_core::{Capabilities, Direction, FileIndex, Nanos, NoMemory, PerDirection, Tick};
use fathom_stats::Histogram;

use crate::block_lives::BlockLives;
use crate::buffers::Filler;
use crate::config::{Rate, WorkerConfig};
use crate::dry_run::DryRun;
use crate::job_limits::JobLimits;
use crate::log::JobLog;
use crate::lookahead::Lookahead;
use crate::pair_lead::PairLead;
use crate::path::Path;
use crate::pattern::{Pattern, PatternError};
use crate::priorities::Priorities;
use crate::queue::Queue;
use crate::readback::{Readback, ReadbackError};
use crate::recorder::Recorder;
use crate::replay::Replay;
use crate::results::{Phase, Results, WorkerProgress};
use crate::source::{self, Pass, Source};
use crate::steady::SteadyWatch;
use crate::syncs::SyncState;
use crate::think::Thinking;
use crate::timeline::{TimelineShare, WindowLatency};
use crate::timers::Timers;
use crate::tracking::Tracking;
use crate::trim_ranges::TrimRanges;
use crate::uniform_ops::UniformOp;
use crate::verify::{Checks, HeaderUnfit};
use crate::zones::Zoned;

/// State machine of one job: decides which op to issue and when, and records the results.
///
/// Create it with [`Worker::new`], which reserves all memory, and call [`turn`](crate::turn())
/// until it returns [`Step::Done`](fathom_core::Step::Done); then take the results with
/// [`into_results`](Self::into_results). In between, [`progress`](Self::progress) and
/// [`results_so_far`](Self::results_so_far) may be called between two turns.
///
/// # What this costs
/// A slot taken and freed, two latencies and one histogram entry per op, but no lock and no
/// allocation; rules that a job does not use cost at most a branch per batch. Reserved at the
/// start: 64 bytes per slot (`iodepth`), 32 KiB per histogram kept, and one bit per block where
/// blocks must not repeat.
///
/// # What it does not do
/// It performs no I/O: that is its [`Engine`](fathom_core::Engine)'s part. It reads no clock: if it
/// did, virtual time would need a second loop. It does not wait: it returns what to wait for.
#[derive(Debug)]
pub struct Worker {
    pub(crate) config: WorkerConfig,
    pub(crate) engine: Capabilities,
    pub(crate) stage: Stage,
    /// Path of this job's ops through the loop.
    pub(crate) path: Path,
    pub(crate) source: Source,
    pub(crate) queue: Queue,
    pub(crate) timers: Timers,
    pub(crate) recorder: Recorder,
    pub(crate) filler: Filler,
    pub(crate) sync: SyncState,
    pub(crate) thinking: Option<Thinking>,
    pub(crate) readback: Option<Readback>,
    /// Reads that others check.
    pub(crate) checks: Option<Box<Checks>>,
    /// Generation maps of the files.
    pub(crate) tracking: Option<Box<Tracking>>,
    /// Progress of a dry run.
    pub(crate) dry_run: DryRun,
    pub(crate) priorities: Option<Box<Priorities>>,
    /// Limits that few jobs have.
    pub(crate) limits: Option<Box<JobLimits>>,
    /// Lives of the files' blocks, if they are followed.
    pub(crate) block_lives: Option<Box<BlockLives>>,
    /// Zones of the files, if the job follows them.
    pub(crate) zoned: Option<Box<Zoned>>,
    /// Ranges of the next trim, if trims have several.
    pub(crate) trim_ranges: Option<Box<TrimRanges>>,
    /// Membership in a group that ends when it is steady.
    pub(crate) steady: Option<Box<SteadyWatch>>,
}

/// Stage of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Waits for `startdelay`.
    Delayed,
    /// Issues ops of the pattern.
    Running,
    /// Draws ops of the pattern without issuing them.
    DryRun,
    /// Issues only the rests of short transfers, then continues with what follows.
    Draining(After),
    /// Syncs the files one after the other, from this one on, then continues.
    Syncing(FileIndex, After),
    /// Reads back and verifies what was written.
    ReadingBack,
    /// Finished.
    Finished,
}

/// Action that follows once nothing is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// A pause.
    Think,
    /// The end of a pass: sync, read back, next pass.
    Pass,
    /// The end of readback.
    Readback,
    /// The end of the job.
    End,
}

/// Error in a worker's configuration.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The pattern is invalid.
    Pattern(PatternError),
    /// `iodepth` is 0.
    NoDepth,
    /// A rate of 0 per second.
    NoPace,
    /// Blocks without room for a header.
    Verify(HeaderUnfit),
    /// Not enough memory for the lives of blocks.
    BlockLives(NoMemory),
    /// Not enough memory for the log of writes to read back, or for the map of the latest ones.
    NoMemory(NoMemory),
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pattern(error) => error.fmt(f),
            Self::NoDepth => f.write_str("a job needs a depth of at least 1"),
            Self::NoPace => f.write_str("a rate must be at least 1 per second"),
            Self::Verify(error) => error.fmt(f),
            Self::BlockLives(error) => {
                let bytes = error.bytes;
                write!(f, "no memory for the lives of blocks: {bytes} bytes needed")
            }
            Self::NoMemory(error) => {
                write!(
                    f,
                    "not enough memory to track what is to be verified: {} bytes",
                    error.bytes
                )
            }
        }
    }
}

impl std::error::Error for ConfigError {}

impl Worker {
    /// Checks a configuration without reserving memory, so that errors are found before files are
    /// created.
    ///
    /// # Errors
    /// As [`Worker::new`], apart from memory.
    pub fn check(config: &WorkerConfig) -> Result<(), ConfigError> {
        refuse(config)?;
        Pattern::check(&config.pattern).map_err(ConfigError::Pattern)
    }

    /// Creates a worker for an engine with these capabilities, at time `origin`.
    ///
    /// # Errors
    /// The configuration is inconsistent; see [`ConfigError`].
    pub fn new(
        config: WorkerConfig,
        engine: Capabilities,
        origin: Tick,
    ) -> Result<Self, ConfigError> {
        refuse(&config)?;
        let depth = if engine.synchronous { 1 } else { config.depth };
        let mut pattern = Pattern::new(config.pattern.clone()).map_err(ConfigError::Pattern)?;
        let used = config.used_directions();
        let schedules = source::schedules(&config, used, origin);
        let pairs = PairLead::new(&config, engine, depth, schedules.any());
        pattern.reserve_pairs(pairs.most());
        let seed = config.pattern.seed;
        let readback = readback(&config, engine, depth)?;
        let tracking = tracking(&config, engine, readback.as_ref(), depth)?;
        let filler = Filler::new(config.buffers.clone(), seed);
        let limits = JobLimits::new(&config);
        let block_lives = config
            .block_lives
            .map(|bytes| BlockLives::new(bytes, &config.pattern.files));
        let block_lives = block_lives.transpose().map_err(ConfigError::BlockLives)?;
        let path = Path::of(&config, engine, depth);
        let uniform = UniformOp::of(&pattern).filter(|_| path.is_fast());
        let common = pattern.common().unwrap_or_default();
        let priorities = config.priorities.as_ref();
        let steady = config.limits.steady.clone();
        Ok(Self {
            stage: Stage::Delayed,
            path,
            queue: Queue::new(depth, &config.batching, config.verify.is_some(), &common),
            timers: Timers::new(origin),
            recorder: recorder(&config, engine, depth),
            sync: SyncState::new(&config),
            thinking: config.think.map(Thinking::new),
            priorities: priorities
                .map(|choices| Box::new(Priorities::new(choices, config.measure, seed))),
            steady: steady.map(|group| Box::new(SteadyWatch::new(group))),
            source: Source {
                pass: Pass::first(&config),
                lookahead: Lookahead::new(uniform, schedules.any()),
                replay: config
                    .replay
                    .as_ref()
                    .map(|replay| Box::new(Replay::new(replay))),
                recording: None,
                pattern,
                schedules,
                pairs,
                held: None,
                sequence: 0,
                used,
            },
            filler,
            checks: None,
            readback,
            tracking,
            dry_run: DryRun::default(),
            limits,
            block_lives: block_lives.map(Box::new),
            zoned: Zoned::new(&config, depth),
            trim_ranges: TrimRanges::new(&config),
            config,
            engine,
        })
    }

    /// Sets the time from which `startdelay` counts. Call before the first turn: memory is reserved
    /// earlier than the start.
    pub fn start_at(&mut self, origin: Tick) {
        self.timers.origin = origin;
    }

    /// Sets the time that a clock read of the driver takes; 0 unless it is called.
    ///
    /// It is then the shortest clat of an asynchronous engine's op. A synchronous engine reads the
    /// clock before and after an op, and the two readings differ by themselves.
    pub const fn set_clock_read(&mut self, span: Nanos) {
        if !self.engine.synchronous {
            self.timers.clock_read = span;
        }
    }

    /// Logs measured ops to `log` from now on.
    pub fn log_to(&mut self, log: JobLog) {
        self.recorder.log = Some(Box::new(log));
    }

    /// Returns the progress.
    #[must_use]
    pub fn progress(&self) -> WorkerProgress {
        let mut progress = WorkerProgress {
            phase: self.phase(),
            in_flight: self.queue.in_flight,
            ..WorkerProgress::default()
        };
        for direction in Direction::ALL {
            let (ios, bytes) = self.recorder.progress(direction);
            progress.ios[direction] = ios;
            progress.bytes[direction] = bytes;
        }
        progress
    }

    /// Returns the current phase.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.stage {
            Stage::Delayed => Phase::Delayed,
            Stage::Finished => Phase::Finished,
            Stage::Syncing(..) => Phase::Syncing,
            Stage::ReadingBack | Stage::Draining(After::Readback) => Phase::Verifying,
            _ if self.timers.ramp_end != Tick::MAX => Phase::Ramp,
            Stage::Running | Stage::DryRun | Stage::Draining(_) => Phase::Running,
        }
    }

    /// Returns the number of ops in flight.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.queue.in_flight
    }

    /// Returns the latencies recorded so far, for a display while the job runs: resp under a
    /// schedule, else clat, else lat; `None` if the job keeps no histogram of them.
    pub fn latencies(&mut self, direction: Direction) -> Option<(WindowLatency, &Histogram)> {
        self.recorder.latencies(direction)
    }

    /// Returns the due time of the slowest op of the stall that goes on or has just ended, once
    /// after each turn in which that stall has grown.
    #[inline]
    pub fn take_stall(&mut self) -> Option<Tick> {
        self.recorder.stalls.take_fresh()
    }

    /// Notes how long the job's thread waited for a processor during that stall.
    pub fn waited_in_stall(&mut self, waited: Nanos) {
        self.recorder.stalls.waited(waited);
    }

    /// Returns the results up to `now`, `None` before measuring begins. Copies every histogram.
    #[must_use]
    pub fn results_so_far(&self, now: Tick) -> Option<Results> {
        let running = match self.phase() {
            Phase::Delayed | Phase::Ramp => return None,
            Phase::Running => self.directions_in_use(),
            Phase::Verifying => PerDirection::new(true, false, false),
            Phase::Syncing | Phase::Finished => PerDirection::all(false),
        };
        let mut results = self.recorder.results();
        let since = self.timers.io_period_start.max(results.started);
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
        results.block_lives = self.block_lives.as_ref().map(|lives| lives.results());
        if let Some(readback) = &self.readback {
            results.mismatches = readback.mismatches().clone();
        }
        Some(results)
    }

    /// Returns the results; ops still in flight are not included.
    #[must_use]
    pub fn into_results(mut self) -> Results {
        let in_ramp = self.timers.ramp_end != Tick::MAX;
        if in_ramp {
            self.recorder.discard_results();
        }
        let mut results = self.recorder.into_results();
        if let Some(priorities) = self.priorities.filter(|_| !in_ramp) {
            results.priorities = priorities.results();
        }
        results.depth_found = self.limits.and_then(|limits| limits.depth_found());
        results.block_lives = self.block_lives.map(|lives| lives.results());
        if let Some(readback) = self.readback {
            results.mismatches = readback.into_mismatches();
        }
        results
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

fn readback(
    config: &WorkerConfig,
    engine: Capabilities,
    depth: u32,
) -> Result<Option<Readback>, ConfigError> {
    let verify = config.verify.as_ref().filter(|_| engine.moves_data);
    let readback = verify.map(|verify| Readback::new(verify, config, depth));
    readback.transpose().map_err(|error| match error {
        ReadbackError::Interval(error) => ConfigError::Verify(error),
        ReadbackError::Memory(error) => ConfigError::NoMemory(error),
    })
}

fn tracking(
    config: &WorkerConfig,
    engine: Capabilities,
    readback: Option<&Readback>,
    depth: u32,
) -> Result<Option<Box<Tracking>>, ConfigError> {
    if !engine.moves_data {
        return Ok(None);
    }
    let verifier = readback.map(|readback| &*readback.verifier);
    Tracking::new(config, verifier, depth).map_err(ConfigError::NoMemory)
}

/// Creates the recorder of a job: histograms for its directions, those of verification included.
fn recorder(config: &WorkerConfig, engine: Capabilities, depth: u32) -> Recorder {
    let used = config.recorded_directions();
    let rated = config.timed_directions();
    let mut recorder = Recorder::new(config.measure, depth, used, rated, !engine.synchronous);
    recorder.timeline = TimelineShare::new(config);
    recorder
}
