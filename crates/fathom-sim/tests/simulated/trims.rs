//! Trims of written blocks while a job verifies: their number, their contents, their faults.

use crate::common::{Rig, bytes_of, device, file_of, job, run_on};
use fathom_core::{Direction, Errno, Nanos, PerDirection};
use fathom_sim::{DataFault, FaultKind, InjectedFault, ModelFile};
use fathom_workload::{
    Checksum, FileRange, MapMode, Mix, Pace, Rate, RateProcess, Results, SizeChoice, TrimRule,
    VerifyBacklog, VerifyConfig, VerifyMethod, WorkerConfig,
};

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 64;

/// Returns a job that writes 64 blocks, trims a share of them, and verifies all.
fn trimming(percent: u8, depth: u32, rule: Option<(u64, u64)>) -> WorkerConfig {
    let mut config = job();
    config.pattern.mix = Mix::Write;
    config.pattern.random = true;
    config.pattern.files = vec![FileRange {
        offset: BLOCK,
        length: BLOCKS * BLOCK,
        file: (BLOCKS + 1) * BLOCK,
    }];
    config.bytes_per_pass = BLOCKS * BLOCK;
    config.depth = depth;
    config.batching.low = depth;
    config.verify = Some(VerifyConfig {
        trims: Some(TrimRule {
            percent,
            writes: rule.map(|rule| rule.0),
            batch: rule.map_or(u64::MAX, |rule| rule.1),
        }),
        ..VerifyConfig::new(VerifyMethod::Checksum(Checksum::find("crc32c").unwrap()))
    });
    config
}

fn run(config: WorkerConfig, rig: Rig) -> (Results, ModelFile) {
    let bytes = vec![0xee; usize::try_from((BLOCKS + 1) * BLOCK).unwrap()];
    let (results, _, mut files) = run_on(config, rig, vec![file_of(&bytes)]);
    (results, files.remove(0))
}

/// Returns the numbers of reads, writes and trims.
fn ops(results: &Results) -> [u64; 3] {
    let ops = PerDirection::from_fn(|direction| results.directions[direction].ios);
    [ops.read, ops.write, ops.trim]
}

fn zeroed_blocks(file: &ModelFile) -> u64 {
    let block = usize::try_from(BLOCK).unwrap();
    let is_zero = |number| {
        bytes_of(file, number * BLOCK, block)
            .iter()
            .all(|&byte| byte == 0)
    };
    (0..=BLOCKS).filter(|&number| is_zero(number)).count() as u64
}

#[test]
fn the_chosen_blocks_are_trimmed_and_verified_as_zeros() {
    for depth in [1, 8] {
        for rule in [
            None,
            Some((8, 8)),
            Some((10, 3)),
            Some((1, 1)),
            Some((1000, 5)),
        ] {
            for (percent, trims) in [(0, 0..=0), (30, 8..=32), (100, BLOCKS..=BLOCKS)] {
                let (results, file) = run(trimming(percent, depth, rule), device());
                let [reads, writes, trimmed] = ops(&results);
                let what = format!("{percent} % {rule:?} depth {depth}");
                assert_eq!(results.error, None, "{what}");
                assert_eq!((reads, writes), (BLOCKS, BLOCKS), "{what}");
                assert!(trims.contains(&trimmed), "{what}: {trimmed}");
                assert_eq!(zeroed_blocks(&file), trimmed, "{what}");
            }
        }
    }
}

/// Writes and trims count together; the blocks that are chosen then are trimmed all the same.
#[test]
fn trims_count_as_ops() {
    for (limit, backlog, each) in [(5, 1, 3), (8, 1, 4), (8, 4, 4), (9, 4, 5), (7, 5, 5)] {
        let mut config = trimming(100, 1, Some((backlog, backlog)));
        config.limits.ops = Some(limit);
        let (results, _) = run(config, device());
        assert_eq!(results.error, None);
        assert_eq!(
            ops(&results),
            [each; 3],
            "{limit} ops, trims after {backlog}"
        );
    }
    // A pair is one op.
    for depth in [1, 8] {
        let mut config = pairs(depth);
        config.limits.ops = Some(7);
        let (results, _) = run(config, device());
        assert_eq!(ops(&results), [7; 3], "depth {depth}");
    }
}

#[test]
fn trims_have_a_runtime_and_a_latency() {
    let (results, _) = run(trimming(100, 1, None), device());
    let trims = &results.directions.trim;
    assert_eq!(trims.runtime, results.directions.write.runtime);
    assert_eq!(trims.clat.summary.count(), BLOCKS);
    assert_eq!(trims.bytes, BLOCKS * BLOCK);
}

fn with_fault(number: u64, kind: FaultKind) -> Rig {
    let direction = Direction::Trim;
    let faults = vec![InjectedFault {
        number,
        direction,
        kind,
    }];
    Rig { faults, ..device() }
}

#[test]
fn a_lost_trim_is_found_unless_zeros_are_not_expected() {
    let lost = || with_fault(7, FaultKind::Data(DataFault::Lost));
    for rule in [None, Some((4, 4))] {
        let (results, _) = run(trimming(50, 4, rule), lost());
        let error = results.error.expect("an error");
        assert_eq!(error.errno, Errno::EILSEQ);
        assert_eq!(error.activity.name(), "verify");
        assert!(
            error
                .detail
                .unwrap_or_default()
                .contains("trim: verify failed")
        );
        let mut config = trimming(50, 4, rule);
        config.verify.as_mut().unwrap().zeros_after_trim = false;
        let (results, _) = run(config, lost());
        assert_eq!(results.error, None);
        let [reads, writes, trims] = ops(&results);
        assert_eq!((reads, writes), (BLOCKS - trims, BLOCKS));
    }
}

#[test]
fn a_failed_trim_ends_the_job() {
    let (results, _) = run(trimming(50, 4, None), with_fault(3, FaultKind::Error(95)));
    let error = results.error.expect("an error");
    assert_eq!((error.errno.get(), error.activity.name()), (95, "trim"));
}

/// Overlapping writes of several sizes, trims among them, backlogs of both.
#[test]
fn blocks_that_are_written_and_trimmed_at_random_give_no_false_alarm() {
    let mut trims = 0;
    for seed in 0..300 {
        let pick = |shift: u32, of: u64| ((seed * 0x9e37_79b9) >> shift) % of;
        let depth = [1, 2, 8, 32][usize::try_from(pick(3, 4)).unwrap()];
        let rule = [None, Some((1, 1)), Some((7, 3)), Some((16, 40))];
        let rule = rule[usize::try_from(pick(7, 4)).unwrap()];
        let mut config = trimming(
            [10, 50, 100][usize::try_from(pick(11, 3)).unwrap()],
            depth,
            rule,
        );
        config.pattern.seed = seed;
        config.bytes_per_pass = 200 * BLOCK;
        config.pattern.map = MapMode::Off;
        config.loops = 1 + u32::try_from(pick(17, 3)).unwrap();
        config.serialize_overlap = pick(19, 2) == 0;
        if pick(23, 2) == 0 {
            config.pattern.sizes.write = SizeChoice::Range {
                min: 4096,
                max: 20_480,
            };
        }
        if pick(26, 3) == 0 {
            config.pattern.mix = Mix::ReadWrite { read: 30 };
        }
        if pick(29, 2) == 0 {
            config.verify.as_mut().unwrap().backlog = Some(VerifyBacklog {
                writes: 5,
                reads: 5,
            });
        }
        let (results, _) = run(config, device());
        assert_eq!(results.error, None, "seed {seed}");
        trims += ops(&results)[2];
    }
    assert!(trims > 3000, "{trims}");
}

/// The write of a pair must not overtake its trim.
#[test]
fn pairs_of_a_trim_and_a_write_leave_the_write() {
    for depth in [1, 8] {
        let (results, file) = run(pairs(depth), device());
        assert_eq!(results.error, None, "depth {depth}");
        assert_eq!(ops(&results), [BLOCKS, BLOCKS, BLOCKS], "depth {depth}");
        assert_eq!(zeroed_blocks(&file), 0, "depth {depth}");
    }
}

/// A block may be drawn again before its write is.
#[test]
fn pairs_of_one_block_keep_their_order() {
    for seed in 1..40 {
        let mut config = pairs(8);
        config.pattern.map = MapMode::Off;
        config.pattern.seed = seed;
        config.pattern.files[0].length = 4 * BLOCK;
        let (results, file) = run(config, device());
        assert_eq!(results.error, None, "seed {seed}");
        let [_, writes, trims] = ops(&results);
        assert_eq!((writes, trims), (BLOCKS, BLOCKS), "seed {seed}");
        assert_eq!(zeroed_blocks(&file), 0, "seed {seed}");
    }
}

#[test]
fn pairs_reach_the_depth() {
    let mut config = pairs(8);
    config.verify = None;
    let (results, _) = run(config, device());
    // 128 ops of 100 us, eight at a time.
    assert_eq!(results.ended - results.started, Nanos::from_micros(1600));
}

/// Trims ahead of the first write would make it late for its schedule.
#[test]
fn pairs_with_rates_follow_one_another() {
    let mut config = pairs(8);
    config.verify = None;
    let rate = Rate {
        pace: Pace::Ops(1000),
        process: RateProcess::Linear,
    };
    config.rate = PerDirection::all(Some(rate));
    let (results, _) = run(config, device());
    for direction in [Direction::Trim, Direction::Write] {
        let resp = results.directions[direction].resp.as_ref().unwrap();
        let most = resp.summary.max();
        assert!(most <= 200_000, "{direction:?}: {most} ns");
    }
}

/// Returns a job that trims and writes 64 blocks, and verifies them.
fn pairs(depth: u32) -> WorkerConfig {
    let mut config = trimming(0, depth, None);
    config.pattern.mix = Mix::TrimWrite;
    config.verify.as_mut().unwrap().trims = None;
    config
}
