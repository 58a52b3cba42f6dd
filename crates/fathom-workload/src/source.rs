//! Source of the ops that a worker has still to issue.

use fathom_core::{Direction, PerDirection, Tick};

use crate::config::{Distribution, MapMode, Mix, RandomGenerator, WorkerConfig};
use crate::lookahead::Lookahead;
use crate::pair_lead::PairLead;
use crate::pattern::{OpTarget, Pattern};
use crate::recording::Recording;
use crate::replay::Replay;
use crate::schedule::{Schedule, Schedules};

/// Source of a worker's ops: pattern, schedules, and the position within the current pass.
///
/// The fast paths take ops from `lookahead`, the checked path draws them one by one and keeps in
/// `held` the one that may not be issued yet.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) pattern: Pattern,
    /// Recorded ops, which replace those of the pattern.
    pub(crate) replay: Option<Box<Replay>>,
    /// Recording of issued ops.
    pub(crate) recording: Option<Box<Recording>>,
    pub(crate) schedules: Schedules,
    /// Order of the ops of `Mix::TrimWrite`.
    pub(crate) pairs: PairLead,
    /// Drawn op that is not due or not allowed yet.
    pub(crate) held: Option<OpTarget>,
    /// Drawn ahead, for the fast paths.
    pub(crate) lookahead: Lookahead,
    pub(crate) pass: Pass,
    /// Number of ops issued.
    pub(crate) sequence: u64,
    /// Directions of the ops.
    pub(crate) used: PerDirection<bool>,
}

impl Source {
    /// Draws an op in the direction that is due first, or as the mix has it; `None` at the end of
    /// the pattern. Not for `Mix::TrimWrite`: see [`draw_of_pair`](Self::draw_of_pair).
    pub(crate) fn draw(&mut self, now: Tick) -> Option<OpTarget> {
        if self.pass.ended {
            return None;
        }
        let mut direction = self.pattern.draw_direction();
        let other = match direction {
            Direction::Read => Direction::Write,
            Direction::Write => Direction::Read,
            Direction::Trim => Direction::Trim,
        };
        if self.used[other]
            && self.schedules.next_due(direction) > now
            && self.schedules.next_due(other) < self.schedules.next_due(direction)
        {
            direction = other;
        }
        let target = self.pattern.next(direction);
        self.pass.ended = target.is_none();
        target
    }

    /// Draws a trim or the write of one; `ops` is the number of pairs that the job may still issue.
    /// Returns `None` at the end of the pattern.
    pub(crate) fn draw_of_pair(&mut self, ops: u64) -> Option<OpTarget> {
        let direction = self.pairs.next(self.pass.remaining, ops);
        let trim = match direction == Direction::Trim && !self.pass.ended {
            true => self.pattern.next(Direction::Trim),
            false => None,
        };
        self.pass.ended |= direction == Direction::Trim && trim.is_none();
        let target = trim.or_else(|| self.pattern.next(Direction::Write))?;
        self.pairs.drew(&target);
        Some(target)
    }

    /// Starts a pass over with all its bytes to issue.
    pub(crate) fn restart(&mut self, config: &WorkerConfig, invalidate: bool) {
        self.pattern.restart();
        self.pairs.restart();
        self.lookahead.clear();
        let whole = bytes_to_issue(config, config.bytes_per_pass);
        let (bytes, left) = match config.bytes_in_all {
            None => (whole, 0),
            Some(_) => {
                let left = self.pass.left.saturating_sub(whole);
                (whole.min(self.pass.left), left)
            }
        };
        self.pass = Pass {
            remaining: bytes.saturating_sub(self.pass.over),
            over: 0,
            more: self.pass.more,
            left,
            empty_since_restart: false,
            ended: false,
            invalidate,
            recreate: false,
        };
    }
}

/// Position within the current pass over the files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    /// Bytes still to issue.
    pub(crate) remaining: u64,
    /// Bytes by which the last op reached past the pass: the next one has fewer, as in fio.
    pub(crate) over: u64,
    /// Passes still to make after this one.
    pub(crate) more: u32,
    /// Bytes of the job after this pass, if bytes and not passes end it.
    pub(crate) left: u64,
    /// The pattern was started over and has given no op since: it never will.
    pub(crate) empty_since_restart: bool,
    /// The pattern is exhausted: it is not asked again before it is started over.
    pub(crate) ended: bool,
    /// Page caches are to be dropped before the next op.
    pub(crate) invalidate: bool,
    /// Files are to be recreated before the next op.
    pub(crate) recreate: bool,
}

impl Pass {
    /// Returns the first pass of a job.
    pub(crate) fn first(config: &WorkerConfig) -> Self {
        let whole = bytes_to_issue(config, config.bytes_per_pass);
        let all = config.bytes_in_all;
        let all = all.map_or(whole, |bytes| bytes_to_issue(config, bytes));
        let left = all.saturating_sub(whole);
        Self {
            remaining: whole.min(all),
            over: 0,
            more: config.loops.saturating_sub(1),
            left,
            empty_since_restart: false,
            ended: false,
            invalidate: false,
            recreate: false,
        }
    }

    /// Returns whether the job ends with this pass, all of which is issued.
    pub(crate) fn is_last(&self, config: &WorkerConfig) -> bool {
        let Some(all) = config.bytes_in_all else {
            return self.more == 0;
        };
        let all = bytes_to_issue(config, all);
        let enough = all / u64::from(config.loops.max(1));
        self.left == 0 || self.more == 0 && all.saturating_sub(self.left) >= enough
    }

    /// Counts `bytes` as issued.
    #[inline]
    pub(crate) const fn issue(&mut self, bytes: u64) {
        self.over += bytes.saturating_sub(self.remaining);
        self.remaining = self.remaining.saturating_sub(bytes);
    }
}

/// Returns the directions of a job's mix.
pub(crate) const fn used_directions(mix: Mix) -> PerDirection<bool> {
    match mix {
        Mix::Read => PerDirection::new(true, false, false),
        Mix::Write => PerDirection::new(false, true, false),
        Mix::Trim => PerDirection::new(false, false, true),
        Mix::ReadWrite { .. } => PerDirection::new(true, true, false),
        Mix::TrimWrite => PerDirection::new(false, true, true),
    }
}

/// Returns the schedules of the directions in use that have a rate.
pub(crate) fn schedules(
    config: &WorkerConfig,
    used: PerDirection<bool>,
    origin: Tick,
) -> Schedules {
    Schedules::new(PerDirection::from_fn(|direction| {
        let rate = config.rate[direction].filter(|_| used[direction])?;
        let seed = config.pattern.seed ^ direction.index() as u64;
        Some(Schedule::new(rate, origin, seed))
    }))
}

/// Returns the bytes of all ops that cover `bytes`: a trim before each write covers them twice.
fn bytes_to_issue(config: &WorkerConfig, bytes: u64) -> u64 {
    match config.pattern.mix {
        Mix::TrimWrite => bytes.saturating_mul(2),
        _ => bytes,
    }
}

/// Returns whether a time-based job draws blocks that may repeat. It never finishes its files, so
/// what is cached of them stays cached, as in fio; passes over them are a notion of ours.
pub(crate) fn never_finishes(config: &WorkerConfig) -> bool {
    let pattern = &config.pattern;
    let may_repeat = pattern.map == MapMode::Off
        || pattern.shares.is_some()
        || pattern.distribution != Distribution::Uniform;
    let percentages = pattern.percentage_random;
    let is_random = pattern.random
        && pattern.zones.is_none()
        && pattern.generator != RandomGenerator::Lfsr
        && percentages.iter().all(|(_, &percent)| percent == 100);
    config.time_based && is_random && may_repeat
}
