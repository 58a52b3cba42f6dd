//! Start, end and passes of a job, and which ops are counted.

use crate::common::{self, deep_job, device, job, ms, run};
use fathom_core::{Nanos, PerDirection, SyncKind, Tick};
use fathom_sim::ModelledStorage;
use fathom_workload::{MapMode, Mix, SizeChoice, SyncRules, Think, WorkerConfig};

#[test]
fn a_job_ends_when_all_bytes_are_moved() {
    let results = run(job(), device());
    assert_eq!(results.directions.read.ios, 256);
    assert_eq!(results.directions.read.bytes, 1 << 20);
    assert_eq!(results.directions.read.runtime, Nanos::new(256 * 100_000));
    assert_eq!(results.directions.read.clat.summary.max(), 100_000);
}

#[test]
fn depth_divides_the_time() {
    let results = run(deep_job(32), device());
    assert_eq!(results.directions.read.ios, 256);
    assert_eq!(results.directions.read.runtime, Nanos::new(8 * 100_000));
    assert_eq!(results.depth_at_issue.iter().sum::<u64>(), 256);
}

#[test]
fn runtime_ends_a_job_early() {
    let mut config = job();
    config.runtime = Some(Nanos::from_millis(10));
    let results = run(config, device());
    assert_eq!(results.directions.read.ios, 100);
}

#[test]
fn time_based_repeats_passes_until_runtime() {
    let mut config = job();
    config.runtime = Some(Nanos::from_millis(100));
    config.time_based = true;
    let results = run(config, device());
    assert_eq!(results.directions.read.ios, 1000);
    assert_eq!(ms(results.directions.read.runtime), 100);
}

#[test]
fn loops_repeat_the_pass() {
    let mut config = job();
    config.loops = 3;
    assert_eq!(run(config, device()).directions.read.ios, 3 * 256);
}

#[test]
fn a_pass_is_shortened_by_the_overrun_of_the_previous_one() {
    let mut config = job();
    config.pattern.random = true;
    config.pattern.map = MapMode::Off;
    config.bytes_per_pass = 66 << 10;
    assert_eq!(run(config.clone(), device()).directions.read.ios, 17);
    config.loops = 2;
    assert_eq!(run(config, device()).directions.read.ios, 33);
}

#[test]
fn bytes_beyond_the_file_size_start_over() {
    let mut config = job();
    config.bytes_per_pass = (1 << 20) + 8192;
    assert_eq!(run(config, device()).directions.read.ios, 258);
}

#[test]
fn io_size_below_the_file_size_ends_the_pass_early() {
    let mut config = job();
    config.bytes_per_pass = 10_000;
    assert_eq!(run(config, device()).directions.read.ios, 3);
}

#[test]
fn ramp_time_is_not_counted() {
    let mut config = job();
    config.time_based = true;
    config.ramp = Nanos::from_millis(50);
    config.runtime = Some(Nanos::from_millis(100));
    let results = run(config, device());
    assert_eq!(results.started, Tick::new(50_000_000));
    // An op that completes in the moment the ramp ends is a part of it.
    assert_eq!(results.directions.read.ios, 1000);
    assert_eq!(results.directions.read.clat.summary.count(), 1000);
    assert_eq!(ms(results.directions.read.runtime), 100);
}

#[test]
fn a_job_that_ends_in_its_ramp_reports_its_ops() {
    let mut config = job();
    config.ramp = Nanos::from_millis(500);
    config.pattern.mix = Mix::Write;
    config.sync.full_every = 128;
    // Latencies are counted many at once: some still wait when the job ends.
    config.bytes_per_pass = 250 << 12;
    let results = run(config, device());
    let writes = &results.directions.write;
    assert_eq!((writes.ios, results.syncs), (250, 1));
    assert_eq!(results.depth_at_issue.iter().sum::<u64>(), 251);
    // But nothing of it was measured.
    assert_eq!(writes.clat.summary.count() + writes.lat.summary.count(), 0);
    assert_eq!(results.sync.summary.count() + writes.bandwidth.count(), 0);
    assert_eq!(results.submit_sizes, [0; 7]);
}

#[test]
fn startdelay_precedes_the_first_op() {
    let mut config = job();
    config.start_delay = Nanos::from_millis(70);
    let results = run(config, device());
    assert_eq!(results.started, Tick::new(70_000_000));
    assert_eq!(ms(results.directions.read.runtime), 25);
}

#[test]
fn thinktime_follows_thinktime_blocks_ops() {
    let mut config = job();
    config.think = Some(Think {
        moves_schedule: false,
        time: Nanos::from_millis(1),
        spin: Nanos::ZERO,
        blocks: 4,
        count_issues: false,
        io_time: Nanos::ZERO,
    });
    let results = run(config, device());
    // 256 ops of 0.1 ms, and 63 or 64 pauses of 1 ms.
    let total = ms(results.directions.read.runtime);
    assert!((25 + 63..=25 + 64).contains(&total), "{total}");
}

#[test]
fn thinktime_iotime_pauses_after_io_time() {
    let mut config = job();
    config.think = Some(Think {
        moves_schedule: false,
        time: Nanos::from_millis(5),
        spin: Nanos::from_millis(1),
        blocks: u32::MAX,
        count_issues: false,
        io_time: Nanos::from_millis(10),
    });
    let results = run(config, device());
    assert_eq!(ms(results.directions.read.runtime), 25 + 2 * 5);
}

/// Runs sixteen writes per pass and returns the kinds of the syncs, all of which must be counted.
#[track_caller]
fn syncs_of(full_every: u32, data_every: u32, change: impl FnOnce(&mut WorkerConfig)) -> String {
    let mut config = job();
    config.pattern.mix = Mix::Write;
    config.bytes_per_pass = 16 * 4096;
    config.sync = SyncRules {
        full_every,
        data_every,
        ..SyncRules::default()
    };
    change(&mut config);
    let (results, engine, _) = common::run_on(config, device(), Vec::new());
    assert_eq!(results.sync.summary.count(), engine.syncs.len() as u64);
    let letter = |kind| match kind {
        SyncKind::Full => 'F',
        SyncKind::Data => 'd',
        SyncKind::Range(_) => 'r',
        SyncKind::FileSystem => 'S',
    };
    engine.syncs.iter().map(|&(kind, _)| letter(kind)).collect()
}

#[test]
fn fsync_follows_every_nth_write_but_the_last() {
    assert_eq!(syncs_of(4, 0, |_| {}), "FFF");
    assert_eq!(syncs_of(0, 4, |_| {}), "ddd");
    assert_eq!(syncs_of(1, 0, |_| {}), "F".repeat(15));
    assert_eq!(syncs_of(17, 16, |_| {}), "");
}

#[test]
fn fsync_replaces_fdatasync_due_at_the_same_write() {
    assert_eq!(syncs_of(4, 4, |_| {}), "FFF");
    assert_eq!(syncs_of(4, 3, |_| {}), "dFdFdFd");
    assert_eq!(syncs_of(4, 2, |_| {}), "dFdFdFd");
}

#[test]
fn a_sync_due_at_a_restart_is_made_once() {
    // Counted over all passes: after 4, 8, 12, 16, 20, 24, 28.
    assert_eq!(syncs_of(4, 0, |config| config.loops = 2), "F".repeat(7));
    assert_eq!(syncs_of(17, 0, |config| config.loops = 2), "F");
}

#[test]
fn reads_of_a_mix_are_not_synced() {
    let syncs = syncs_of(1, 0, |config| {
        config.pattern.mix = Mix::ReadWrite { read: 50 };
        config.pattern.sizes.read = SizeChoice::Fixed(4096);
        config.bytes_per_pass = 1 << 20;
    });
    // About half of 256 ops are writes.
    assert!((100..=156).contains(&syncs.len()), "{}", syncs.len());
}

#[test]
fn the_write_of_a_pair_is_synced() {
    let pairs = |config: &mut WorkerConfig| config.pattern.mix = Mix::TrimWrite;
    assert_eq!(syncs_of(1, 1, pairs), "F".repeat(15));
}

#[test]
fn end_fsync_is_made_and_not_counted() {
    let mut config = job();
    config.pattern.mix = Mix::Write;
    config.bytes_per_pass = 16 * 4096;
    config.sync = SyncRules {
        at_end: true,
        ..SyncRules::default()
    };
    let (results, engine, _) = common::run_on(config, device(), Vec::new());
    assert_eq!(results.sync.summary.count(), 0);
    assert_eq!(engine.syncs.len(), 1);
}

#[test]
fn a_mix_runs_both_directions() {
    let mut config = job();
    config.pattern.mix = Mix::ReadWrite { read: 70 };
    config.pattern.random = true;
    config.time_based = true;
    config.runtime = Some(Nanos::from_secs(2));
    let results = run(config, device());
    let (reads, writes) = (results.directions.read.ios, results.directions.write.ios);
    assert_eq!(reads + writes, 20_000);
    assert!((13_600..14_400).contains(&reads), "{reads}");
}

#[test]
fn samples_are_taken_every_half_second() {
    let mut config = job();
    config.time_based = true;
    config.runtime = Some(Nanos::from_secs(5));
    let results = run(config, device());
    let samples = results.directions.read.iops;
    assert!((9..=10).contains(&samples.count()), "{}", samples.count());
    // The op that completes in the moment of a sample is in the next one.
    assert!(
        samples.min() >= 9_998 && samples.max() == 10_000,
        "{samples:?}"
    );
}

#[test]
fn a_batch_is_submitted_and_reaped_together() {
    let mut config = deep_job(32);
    config.batching.submit = 8;
    config.batching.complete_max = 32;
    let results = run(config, device());
    assert_eq!(results.directions.read.ios, 256);
    assert_eq!(results.submit_sizes, [0, 0, 32, 0, 0, 0, 0]);
    assert_eq!(results.complete_sizes, [0, 0, 0, 0, 8, 0, 0]);
}

#[test]
fn a_full_queue_drains_to_iodepth_low() {
    let mut config = deep_job(8);
    config.batching.low = 2;
    config.bytes_per_pass = 62 * 4096;
    let results = run(config, device());
    // 8 at first; then nine times from 2 in flight to 8.
    assert_eq!(results.depth_at_issue, [0, 1, 1, 10, 10, 10, 10, 10, 10]);
}

#[test]
fn an_interrupt_reaps_what_is_in_flight() {
    let mut config = deep_job(32);
    config.time_based = true;
    config.runtime = Some(Nanos::from_secs(100));
    config.rate = PerDirection::all(None);
    let mut simulation = common::alone(config, device(), Vec::new());
    simulation.stop_at(Tick::new(1_000_050_000));
    let mut ran = simulation.run().expect("an end");
    assert_eq!(ran.storages[0].next(), None, "nothing is left in flight");
    let (results, _) = ran.jobs.remove(0);
    assert_eq!(results.directions.read.ios % 32, 0);
    assert_eq!(ms(results.directions.read.runtime), 1000);
}
