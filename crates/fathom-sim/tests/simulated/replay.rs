//! Replay of recorded ops in virtual time.

use std::collections::VecDeque;

use crate::common::{self, Rig, ms};
use fathom_core::{Direction, FileIndex, Nanos, PerDirection, SyncKind};
use fathom_workload::{
    FeedStatus, ReplayConfig, ReplayFeed, ReplayKind, ReplayOp, Results, WorkerConfig,
};

/// Feed of these chunks; an empty one stands for a reader that is behind.
#[derive(Debug)]
struct Chunks(VecDeque<Vec<ReplayOp>>, FeedStatus);

impl ReplayFeed for Chunks {
    fn fill(&mut self, ops: &mut Vec<ReplayOp>) -> FeedStatus {
        match self.0.pop_front() {
            None => self.1.clone(),
            Some(chunk) if chunk.is_empty() => FeedStatus::Later,
            Some(chunk) => {
                ops.extend(chunk);
                FeedStatus::Filled
            }
        }
    }
}

fn op(due_ms: u64, kind: ReplayKind, offset: u64) -> ReplayOp {
    ReplayOp {
        due: Nanos::from_millis(due_ms),
        kind,
        file: FileIndex::new(0),
        offset,
        length: if matches!(kind, ReplayKind::Data(_)) {
            4096
        } else {
            0
        },
    }
}

const READ: ReplayKind = ReplayKind::Data(Direction::Read);
const WRITE: ReplayKind = ReplayKind::Data(Direction::Write);

/// Returns a log of one read every `every_ms`, in chunks of three with pauses of the reader.
fn reads(count: u64, every_ms: u64) -> VecDeque<Vec<ReplayOp>> {
    let mut ops = vec![op(0, ReplayKind::Open, 0)];
    ops.extend((0..count).map(|index| op(index * every_ms, READ, index * 4096)));
    ops.push(op(count * every_ms, ReplayKind::Close, 0));
    let chunks = ops.chunks(3);
    chunks
        .flat_map(|chunk| [chunk.to_vec(), Vec::new()])
        .collect()
}

fn config(depth: u32, timed: bool) -> WorkerConfig {
    let mut config = common::deep_job(depth);
    config.bytes_per_pass = WorkerConfig::WHOLE_PATTERN;
    config.replay = Some(ReplayConfig {
        used: PerDirection::new(true, true, false),
        timed,
    });
    config
}

#[track_caller]
fn replay(
    config: WorkerConfig,
    latency_ms: u64,
    chunks: VecDeque<Vec<ReplayOp>>,
    end: FeedStatus,
) -> Results {
    let device = Rig {
        latency: Nanos::from_millis(latency_ms),
        ..common::device()
    };
    let feed = Chunks(chunks, end);
    let (results, _engine) = common::replay(config, device, Box::new(feed));
    results
}

#[test]
fn ops_are_issued_at_their_times() {
    let results = replay(config(4, true), 5, reads(100, 10), FeedStatus::End);
    let read = &results.directions.read;
    assert_eq!((read.ios, read.bytes), (100, 100 * 4096));
    assert_eq!(ms(read.runtime), 1000);
    // The reader is behind once per chunk, for a poll of 100 µs.
    let lag = read.lag.as_ref().expect("a replay has due times");
    assert!(lag.summary.max() <= 100_000, "{}", lag.summary.max());
}

#[test]
fn latency_delays_no_later_op() {
    // Depth suffices for three ops at a time: none is late, though each takes 2.5 times the gap.
    let results = replay(config(4, true), 25, reads(100, 10), FeedStatus::End);
    let lag = results.directions.read.lag.as_ref().expect("due times");
    assert!(lag.summary.max() <= 100_000, "{}", lag.summary.max());
    // One op at a time: lag and response time show by how much the device is too slow.
    let slow = replay(config(1, true), 25, reads(100, 10), FeedStatus::End);
    let lag = slow.directions.read.lag.as_ref().expect("due times");
    let behind = lag.summary.max() / 1_000_000;
    assert!((99 * 15..99 * 15 + 5).contains(&behind), "{behind}");
}

#[test]
fn without_times_ops_follow_each_other() {
    let results = replay(config(1, false), 1, reads(100, 10), FeedStatus::End);
    let read = &results.directions.read;
    assert!(read.lag.is_none());
    assert!((100..=104).contains(&ms(read.runtime)), "{}", read.runtime);
}

#[test]
fn syncs_are_counted_and_a_broken_log_ends_the_job() {
    let ops = vec![
        op(0, ReplayKind::Open, 0),
        op(1, WRITE, 0),
        op(2, ReplayKind::Sync(SyncKind::Data), 0),
        op(3, ReplayKind::Close, 0),
        op(4, ReplayKind::Open, 0),
        op(5, WRITE, 4096),
    ];
    let failed = FeedStatus::Failed("log:7: unknown action".into());
    let results = replay(config(4, true), 1, VecDeque::from([ops]), failed);
    assert_eq!(results.directions.write.ios, 2);
    assert_eq!(results.syncs, 1);
    let error = results.error.expect("the job failed");
    assert_eq!(error.detail.as_deref(), Some("log:7: unknown action"));
}
