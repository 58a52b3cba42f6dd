//! Readback by the device: writes are compared there, and what it rejects is read and checked here.

use crate::common;
use crate::memory::{Memory, engine, run_on};
use fathom_core::{Direction, OpKind};
use fathom_workload::{
    MapMode, Mix, Results, SizeChoice, TrimRule, VerifyBacklog, VerifyConfig, VerifyMethod,
    WorkerConfig,
};

/// Returns a job that writes a pattern to `ops` blocks, in random order, and has them compared.
fn job(ops: u64) -> WorkerConfig {
    let verify = VerifyConfig {
        pattern: Some(b"fathom".to_vec()),
        on_device: true,
        ..VerifyConfig::new(VerifyMethod::Pattern)
    };
    WorkerConfig {
        verify: Some(verify),
        depth: 4,
        ..common::job(common::random(Mix::Write, ops * 4096))
    }
}

fn with_verify(config: WorkerConfig, change: impl FnOnce(&mut VerifyConfig)) -> WorkerConfig {
    let mut verify = config.verify.expect("it verifies");
    change(&mut verify);
    WorkerConfig {
        verify: Some(verify),
        ..config
    }
}

/// Runs a job with changes to its engine.
fn run(config: WorkerConfig, change: impl FnOnce(&mut Memory)) -> (Results, Memory) {
    let mut engine = engine(&config, |_, _| 1);
    change(&mut engine);
    run_on(engine, config)
}

#[track_caller]
fn fails(config: WorkerConfig, change: impl FnOnce(&mut Memory), want: &str) -> Memory {
    let (results, engine) = run(config, change);
    let error = results.error.expect("a mismatch");
    assert_eq!(error.activity.name(), "verify");
    let detail = error.detail.expect("what differs");
    assert!(detail.contains(want), "{detail}");
    engine
}

#[test]
fn writes_are_compared_instead_of_read() {
    let (results, engine) = run(job(64), |_| {});
    assert_eq!(results.error, None);
    let directions = &results.directions;
    assert_eq!((directions.read.ios, directions.write.ios), (64, 64));
    assert_eq!(engine.compared.len(), 64);
}

#[test]
fn without_the_option_nothing_is_compared() {
    let config = with_verify(job(64), |verify| verify.on_device = false);
    let (results, engine) = run(config, |_| {});
    assert_eq!((results.error, engine.compared.len()), (None, 0));
}

#[test]
fn a_block_that_the_device_rejects_is_read_and_the_byte_named() {
    // The second letter of the pattern, which starts over with each block.
    let want = "pattern: verify failed (got '60', wanted '61', bad bits 1, block offset 1003)";
    let damage = |engine: &mut Memory| engine.damaged = Some(7 * 4096 + 1003);
    let engine = fails(job(64), damage, want);
    let reads = engine.done.iter();
    let reads = reads.filter(|(kind, _)| matches!(kind, OpKind::Data(Direction::Read)));
    assert_eq!(reads.count(), engine.compared.len() + 1);
}

#[test]
fn a_device_that_rejects_what_is_right_is_found_out() {
    let want = "rejected the block when it compared it, but the data read back are right";
    fails(job(64), |engine| engine.rejects = true, want);
}

#[test]
fn offsets_in_the_pattern_are_compared() {
    let config = with_verify(job(64), |verify| {
        verify.pattern = Some(vec![0; 16]);
        verify.pattern_offsets = vec![4];
    });
    let (results, engine) = run(config, |_| {});
    assert_eq!((results.error, engine.compared.len()), (None, 64));
}

#[test]
fn blocks_that_a_later_write_has_replaced_in_part_are_read() {
    for (seed, backlog) in (0..40).zip([None, Some((3, 2))].into_iter().cycle()) {
        let mut config = with_verify(job(64), |verify| {
            verify.pattern_offsets = vec![0];
            verify.pattern = Some(vec![7; 12]);
            verify.backlog = backlog.map(|(writes, reads)| VerifyBacklog { writes, reads });
        });
        config.pattern.seed = seed;
        config.pattern.map = MapMode::Off;
        config.pattern.sizes.write = SizeChoice::Range {
            min: 512,
            max: 16 << 10,
        };
        config.loops = 3;
        let (results, engine) = run(config, |_| {});
        assert_eq!(results.error, None, "{seed}");
        assert!(!engine.compared.is_empty(), "{seed}");
        assert!(
            (engine.compared.len() as u64) < results.directions.read.ios,
            "{seed}"
        );
    }
}

#[test]
fn trimmed_blocks_are_read_as_zeros() {
    let config = with_verify(job(64), |verify| {
        verify.trims = Some(TrimRule {
            percent: 50,
            writes: None,
            batch: u64::MAX,
        });
    });
    let (results, engine) = run(config, |_| {});
    assert_eq!(results.error, None);
    let trimmed = results.directions.trim.ios;
    assert!(trimmed > 8, "{trimmed}");
    assert_eq!(engine.compared.len() as u64, 64 - trimmed);
}

#[test]
fn a_tolerated_mismatch_leaves_the_rest_to_be_compared() {
    let mut config = job(64);
    config.tolerate.verify = true;
    let (results, engine) = run(config, |engine| engine.damaged = Some(9 * 4096));
    assert_eq!(results.error, None);
    assert_eq!(engine.compared.len(), 64);
    assert_eq!(results.directions.read.ios, 64);
}
