//! Rules on a job's own ops, beside what comes between and after them: readback, syncs, the ramp.

use crate::common;
use crate::memory::{engine, run, run_on};
use fathom_core::{Direction, Nanos, OpKind, PerDirection};
use fathom_workload::{
    CHECKSUMS, LatencyTarget, MapMode, Mix, Pace, PatternConfig, Sequencer, SizeChoice, SyncRules,
    Think, VerifyConfig, VerifyMethod, WorkerConfig,
};

/// Returns a job that writes `ops` blocks in sequence and reads them back.
fn job(ops: u64) -> WorkerConfig {
    let crc32c = CHECKSUMS.iter().find(|sum| sum.name == "crc32c");
    let method = VerifyMethod::Checksum(crc32c.expect("a known checksum"));
    WorkerConfig {
        verify: Some(VerifyConfig::new(method)),
        ..common::job(common::sequential(Mix::Write, ops * 4096))
    }
}

/// Returns a job whose writes must keep a rate in ops per second.
fn rated(ops: u64, least: u64) -> WorkerConfig {
    WorkerConfig {
        rate_min: PerDirection::new(None, Some(Pace::Ops(least)), None),
        ..job(ops)
    }
}

/// Checks that a job has moved all its ops without an error.
#[track_caller]
fn check(config: WorkerConfig, latency: fn(OpKind, u64) -> u64, ops: u64) {
    let (results, _) = run(config, latency);
    assert_eq!(results.error, None);
    let directions = &results.directions;
    assert_eq!((directions.read.ios, directions.write.ios), (ops, ops));
}

#[test]
fn readback_and_final_syncs_do_not_count_for_rate_min() {
    check(rated(350, 60), |_, _| 10, 350);
    let sync = SyncRules {
        at_end: true,
        ..SyncRules::default()
    };
    let config = WorkerConfig {
        sync,
        ..rated(350, 60)
    };
    let slow_sync = |kind, _| {
        if matches!(kind, OpKind::Sync(_)) {
            3000
        } else {
            10
        }
    };
    check(config, slow_sync, 350);
    // Passes shorter than a cycle, between which others are read back.
    let config = WorkerConfig {
        loops: 8,
        ..rated(70, 60)
    };
    check(config, |_, _| 10, 8 * 70);
}

#[test]
fn passes_without_readback_are_judged_together() {
    let config = WorkerConfig {
        verify: None,
        loops: 100,
        ..rated(20, 60)
    };
    let (results, _) = run(config, |_, _| 20);
    let activity = results.error.map(|error| error.activity.name());
    assert_eq!(activity, Some("rate_min"), "50 op/s are too few");
}

#[test]
fn the_ramp_does_not_count_for_rate_min() {
    let ramped = |least| WorkerConfig {
        ramp: Nanos::from_secs(6),
        verify: None,
        ..rated(400, least)
    };
    let slow_at_first = |_, at| if at < 6000 { 100 } else { 10 };
    let (results, _) = run(ramped(60), slow_at_first);
    assert_eq!(results.error, None);
    let (results, _) = run(ramped(200), slow_at_first);
    let error = results.error.expect("100 op/s are too few");
    assert_eq!(error.activity.name(), "rate_min");
}

#[test]
fn reads_of_readback_follow_each_other_without_pauses() {
    let think = Think {
        time: Nanos::from_millis(500),
        spin: Nanos::ZERO,
        blocks: 1,
        count_issues: true,
        io_time: Nanos::ZERO,
        moves_schedule: false,
    };
    let config = WorkerConfig {
        think: Some(think),
        loops: 2,
        ..job(3)
    };
    let (_, done) = run(config, |_, _| 10);
    let of = |wanted| {
        let ended = done
            .iter()
            .filter(move |(kind, _)| *kind == OpKind::Data(wanted));
        ended.map(|(_, end)| *end).collect::<Vec<_>>()
    };
    let (writes, reads) = (of(Direction::Write), of(Direction::Read));
    assert_eq!(writes, [10, 520, 1030, 1570, 2080, 2590]);
    assert_eq!(reads, [1540, 1550, 1560, 3100, 3110, 3120]);
}

#[test]
fn a_search_for_a_depth_ends_with_readback() {
    let mut config = job(1000);
    config.limits.target = Some(LatencyTarget {
        latency: Nanos::from_millis(5),
        window: Nanos::from_millis(100),
        share: 100_000_000,
        run: false,
    });
    config.loops = 2;
    // The slow reads come after the search.
    let slow_reads = |kind, _| {
        if kind == OpKind::Data(Direction::Read) {
            10
        } else {
            1
        }
    };
    let (results, done) = run(config, slow_reads);
    assert_eq!(results.error, None);
    let writes = done
        .iter()
        .filter(|(kind, _)| *kind == OpKind::Data(Direction::Write));
    let writes = writes.count() as u64;
    assert!((200..=202).contains(&writes), "{writes}");
    assert_eq!(results.directions.read.ios, writes);
}

#[test]
fn writes_with_gaps_are_read_back() {
    for gap in [100, 1000, 512] {
        let ops = job(256);
        let pattern = PatternConfig {
            sequencer: Sequencer::Skip(gap),
            ..ops.pattern.clone()
        };
        let (results, _) = run(WorkerConfig { pattern, ..ops }, |_, _| 1);
        assert_eq!(results.error, None);
        let (reads, writes) = (results.directions.read.ios, results.directions.write.ios);
        assert!(writes > 100 && reads == writes, "{gap}: {reads} {writes}");
    }
}

#[test]
fn every_block_of_an_op_is_checked_whichever_size_it_has() {
    let mut config = job(16);
    config.pattern.random = true;
    config.pattern.map = MapMode::Off;
    config.pattern.sizes_by_order = true;
    config.pattern.sizes.read = SizeChoice::Fixed(16 << 10);
    config.pattern.percentage_random.write = 0;
    for block in 0..16 {
        let mut engine = engine(&config, |_, _| 1);
        engine.damaged = Some(block * 4096 + 1000);
        let (results, _) = run_on(engine, config.clone());
        assert!(results.error.is_some(), "block {block}");
    }
}
