//! Replay: recorded ops with their times, in place of a pattern.
//!
//! ```text
//! log ─► reader (the driver's) ─► feed ─► [chunk of ops] ─► issue, each when it is due
//! ```
//!
//! An op is due at its recorded time after the start of the job, never later because an earlier one
//! took long: a replay does not drift, and an op that could not be issued in time is late, which
//! lag and response times show. The order of the log is kept.

use std::fmt;

use fathom_core::{
    Direction, Engine, EngineError, Errno, FileIndex, Nanos, PerDirection, SyncKind, Tick,
};

use crate::issue::IssueStatus;
use crate::pattern::OpTarget;
use crate::results::{JobActivity, JobError};
use crate::worker::Worker;

/// Configuration of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayConfig {
    /// Directions of the log's ops; others do not occur.
    pub used: PerDirection<bool>,
    /// Ops are due at their recorded times; otherwise each is due once it can be issued.
    pub timed: bool,
}

/// One recorded op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayOp {
    /// Time since the start of the job; not less than that of the op before.
    pub due: Nanos,
    /// Kind.
    pub kind: ReplayKind,
    /// File; open, but for [`ReplayKind::Open`].
    pub file: FileIndex,
    /// Byte offset of a data op.
    pub offset: u64,
    /// Bytes of a data op: at least 1, and at most a buffer unless it is a trim.
    pub length: u32,
}

/// Kind of a recorded op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayKind {
    /// Moves or discards data.
    Data(Direction),
    /// Makes earlier writes durable.
    Sync(SyncKind),
    /// Opens a file.
    Open,
    /// Closes a file, once nothing is in flight.
    Close,
}

/// Source of recorded ops.
pub trait ReplayFeed: fmt::Debug + Send {
    /// Fills `ops`, which is empty, with the next ops, without blocking. Called once per chunk, not
    /// per op.
    fn fill(&mut self, ops: &mut Vec<ReplayOp>) -> FeedStatus;
}

/// Result of [`ReplayFeed::fill`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedStatus {
    /// There is at least one op.
    Filled,
    /// The reader of the log has not come so far yet.
    Later,
    /// The log has ended.
    End,
    /// The log cannot be read on, for this reason.
    Failed(String),
}

/// Replay of one job.
#[derive(Debug)]
pub(crate) struct Replay {
    feed: Option<Box<dyn ReplayFeed>>,
    ops: Vec<ReplayOp>,
    next: usize,
    /// Start of the job; `None` if ops have no times.
    origin: Option<Tick>,
}

impl Replay {
    /// Creates a replay without a feed, which has no ops.
    pub(crate) const fn new(config: &ReplayConfig) -> Self {
        Self {
            feed: None,
            ops: Vec::new(),
            next: 0,
            origin: if config.timed { Some(Tick::ZERO) } else { None },
        }
    }

    /// Sets the start of the job.
    pub(crate) fn begin(&mut self, now: Tick) {
        self.origin = self.origin.map(|_| now);
    }

    /// Returns the next op and its due time, without taking it.
    fn peek(&mut self, now: Tick) -> Result<(ReplayOp, Tick), Shortage> {
        if self.next == self.ops.len() {
            self.refill()?;
        }
        let op = self.ops[self.next];
        Ok((op, self.origin.map_or(now, |origin| origin + op.due)))
    }

    #[cold]
    fn refill(&mut self) -> Result<(), Shortage> {
        self.ops.clear();
        self.next = 0;
        let feed = self.feed.as_mut().ok_or(Shortage::End)?;
        match feed.fill(&mut self.ops) {
            FeedStatus::Filled if !self.ops.is_empty() => Ok(()),
            FeedStatus::Filled | FeedStatus::Later => Err(Shortage::Later),
            FeedStatus::End => Err(Shortage::End),
            FeedStatus::Failed(why) => Err(Shortage::Failed(why)),
        }
    }
}

/// Reason for which there is no next op.
enum Shortage {
    Later,
    End,
    Failed(String),
}

impl Worker {
    /// Sets the source of a replay's ops. Call before the first turn.
    pub fn replay_from(&mut self, feed: Box<dyn ReplayFeed>) {
        if let Some(replay) = &mut self.source.replay {
            replay.feed = Some(feed);
        }
    }

    /// Issues the next op of a replay, or returns what it waits for.
    pub(crate) fn issue_replayed<E: Engine>(&mut self, engine: &mut E, now: Tick) -> IssueStatus {
        let Some(replay) = &mut self.source.replay else {
            return IssueStatus::EndOfPass;
        };
        let (op, due) = match replay.peek(now) {
            Ok((_, due)) if due > now => return IssueStatus::NotDue(due),
            Ok(next) => next,
            Err(Shortage::Later) => return IssueStatus::NotDue(now + FEED_POLL),
            Err(Shortage::End) => return IssueStatus::EndOfPass,
            Err(Shortage::Failed(why)) => {
                self.fail(JobError {
                    detail: Some(why),
                    ..error(JobActivity::Replay, FileIndex::new(0), Errno::EIO)
                });
                return IssueStatus::Failed;
            }
        };
        let status = match op.kind {
            ReplayKind::Data(direction) => self.issue_recorded(engine, &op, direction, due, now),
            ReplayKind::Sync(kind) => self.sync_recorded(engine, &op, kind, now),
            ReplayKind::Open => {
                let opened = engine.open(op.file);
                self.handled(JobActivity::Reopen, op.file, opened)
            }
            ReplayKind::Close if !self.queue.is_drained() => IssueStatus::NeedsDrain,
            ReplayKind::Close => {
                let closed = engine.close(op.file);
                self.handled(JobActivity::Close, op.file, closed)
            }
        };
        if let (IssueStatus::Ready, Some(replay)) = (status, &mut self.source.replay) {
            replay.next += 1;
        }
        status
    }

    fn issue_recorded<E: Engine>(
        &mut self,
        engine: &mut E,
        op: &ReplayOp,
        direction: Direction,
        due: Tick,
        now: Tick,
    ) -> IssueStatus {
        let target = OpTarget {
            direction,
            file: op.file,
            offset: op.offset,
            length: op.length,
        };
        match self.must_wait(&target) {
            true => IssueStatus::NeedsDrain,
            false => {
                if let Err(status) = self.hold_zone_of_recorded(engine, &target, now) {
                    return status;
                }
                self.issue_target(engine, &target, due, now);
                IssueStatus::Ready
            }
        }
    }

    fn sync_recorded<E: Engine>(
        &mut self,
        engine: &mut E,
        op: &ReplayOp,
        kind: SyncKind,
        now: Tick,
    ) -> IssueStatus {
        if !self.queue.admits(self.engine.syncs) {
            return IssueStatus::NeedsDrain;
        }
        self.queue.last = self.engine.syncs;
        self.prepare_sync(engine, now, op.file, kind);
        IssueStatus::Ready
    }

    /// Fails the job if a file could not be opened or closed.
    fn handled(
        &mut self,
        activity: JobActivity,
        file: FileIndex,
        result: Result<(), EngineError>,
    ) -> IssueStatus {
        let Err(failed) = result else {
            return IssueStatus::Ready;
        };
        self.fail(JobError {
            detail: Some(failed.to_string()),
            ..error(activity, file, failed.errno.unwrap_or(Errno::EIO))
        });
        IssueStatus::Failed
    }
}

fn error(activity: JobActivity, file: FileIndex, errno: Errno) -> JobError {
    JobError {
        errno,
        activity,
        file,
        offset: 0,
        length: 0,
        detail: None,
    }
}

/// Interval at which a feed is asked again that had nothing: far below a disk's latency, and long
/// enough for the reader to get on.
const FEED_POLL: Nanos = Nanos::from_micros(100);
