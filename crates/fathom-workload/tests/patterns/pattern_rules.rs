//! Rules of patterns, as in fio.

use std::collections::{BTreeMap, HashSet};

use crate::common::{K, check, config, file, pass, random, range, sequential, text};
use fathom_core::{Direction, PerDirection};
use fathom_workload::{
    Distribution, FileRange, MapMode, Mix, OpTarget, Pattern, PatternConfig, PatternError,
    RandomGenerator, Sequencer, SizeChoice,
};

// The rules, seen in fio 3.33's write_iolog where it has them.

#[test]
fn sequential_ops_stop_before_a_tail_that_does_not_fit() {
    check(sequential(Mix::Read, 10 * K), 9, "r0+4 r4+4");
}

#[test]
fn a_sequential_op_of_one_size_needs_only_to_begin_in_its_range() {
    let part = |offset, length, whole| {
        let mut config = sequential(Mix::Read, 0);
        config.files = vec![FileRange {
            file: whole,
            ..file(offset, length)
        }];
        config
    };
    check(part(0, 10 * K, 64 * K), 9, "r0+4 r4+4 r8+4");
    check(part(4 * K, 10 * K, 16 * K), 9, "r4+4 r8+4 r12+4");
    check(part(4 * K, 10 * K, 16 * K - 1), 9, "r4+4 r8+4");
    check(part(4 * K, K, 16 * K), 9, "r4+4");
    // Blocks are drawn inside, and sizes that vary are cut there.
    let mut drawn = part(0, 10 * K, 64 * K);
    drawn.random = true;
    assert_eq!(pass(&mut Pattern::new(drawn).unwrap(), 9).len(), 2);
    let mut varied = part(0, 10 * K, 64 * K);
    varied.sizes = range(2048, 4096);
    let targets = pass(&mut Pattern::new(varied).unwrap(), 9);
    assert!(
        targets
            .iter()
            .all(|t| t.offset + u64::from(t.length) <= 10 * K)
    );
    // Sequential ops between drawn ones are sequential ops.
    let mut some = part(0, 10 * K, 64 * K);
    (some.random, some.map) = (true, MapMode::Off);
    some.percentage_random = PerDirection::all(0);
    check(some, 3, "r0+4 r4+4 r8+4");
}

#[test]
fn a_short_range_takes_one_op_if_the_file_continues() {
    let mut config = sequential(Mix::Write, 0);
    let part = |length, whole| FileRange {
        file: whole,
        ..file(0, length)
    };
    config.files = vec![part(K, 4 * K), part(K, 3 * K), part(0, 4 * K)];
    check(config.clone(), 9, "w0+4");
    config.files = vec![part(K, 3 * K), part(0, 4 * K)];
    let refused = Pattern::new(config).unwrap_err();
    assert!(
        matches!(refused, PatternError::TooSmall { .. }),
        "{refused}"
    );
}

#[test]
fn directions_of_a_sequential_mix_have_own_positions() {
    let mut pattern = Pattern::new(sequential(Mix::ReadWrite { read: 50 }, 64 * K)).unwrap();
    let order = [
        Direction::Read,
        Direction::Write,
        Direction::Write,
        Direction::Read,
    ];
    let targets = order.map(|direction| pattern.next(direction).unwrap());
    assert_eq!(text(&targets), "r0+4 w0+4 w4+4 r4+4");
}

#[test]
fn a_gap_follows_each_op_and_wraps() {
    let gap = |bytes| PatternConfig {
        sequencer: Sequencer::Skip(bytes),
        ..sequential(Mix::Read, 16 * K)
    };
    check(gap(4096), 6, "r0+4 r8+4 r0+4 r8+4 r0+4 r8+4");
    check(gap(-4096), 4, "r0+4 r0+4 r0+4 r0+4");
    check(gap(-8192), 6, "r0+4 r8+4 r4+4 r0+4 r8+4 r4+4");
    check(gap(i64::MIN), 3, "r0+4 r0+4 r0+4");
    check(gap(i64::MAX), 3, "r0+4 r0+4 r0+4");
}

#[test]
fn a_pass_with_gaps_ends_with_its_file_or_for_lack_of_space() {
    let with = |gap, range| {
        let mut config = sequential(Mix::Read, 0);
        config.sequencer = Sequencer::Skip(gap);
        config.files = vec![range];
        config
    };
    let part = |offset, length, whole| FileRange {
        file: whole,
        ..file(offset, length)
    };
    check(with(8192, file(0, 16 * K)), 4, "r0+4 r12+4");
    check(with(8192, file(0, 18 * K)), 4, "r0+4 r12+4 r0+4 r12+4");
    check(with(4096, file(0, 18 * K)), 4, "r0+4 r8+4");
    check(
        with(8192, file(16 * K, 66 * K)),
        9,
        "r16+4 r28+4 r40+4 r52+4 r64+4 r76+4",
    );
    check(with(8192, part(0, 16 * K, 100 * K)), 4, "r0+4 r12+4");
    check(with(4096, part(0, 16 * K, 100 * K)), 4, "r0+4 r8+4");
    check(
        with(8192, part(0, 18 * K, 24 * K)),
        4,
        "r0+4 r12+4 r0+4 r12+4",
    );
    check(with(8192, part(0, 18 * K, 25 * K)), 4, "r0+4 r12+4");
}

#[test]
fn a_backward_gap_counts_from_the_end_of_the_range() {
    let mut config = PatternConfig {
        sequencer: Sequencer::Skip(-8192),
        ..sequential(Mix::Read, 64 * K)
    };
    config.files[0].offset = 100 * K;
    check(config, 4, "r100+4 r156+4 r152+4 r148+4");
}

#[test]
fn files_take_turns_until_each_is_finished() {
    let mut config = sequential(Mix::Read, 8 * K);
    config.files.push(file(4 * K, 4 * K));
    config.files.push(file(0, 3 * K));
    config.files.push(file(0, 13 * K));
    check(config, 99, "r0+4 1:r4+4 3:r0+4 r4+4 3:r4+4 3:r8+4");
}

#[test]
fn each_trim_is_followed_by_the_write_of_its_block() {
    check(sequential(Mix::TrimWrite, 8 * K), 9, "t0+4 w0+4 t4+4 w4+4");
    let targets = pass(
        &mut Pattern::new(random(Mix::TrimWrite, 64 * K)).unwrap(),
        99,
    );
    assert_eq!(targets.len(), 32);
    for pair in targets.chunks(2) {
        assert_eq!(pair[0].direction, Direction::Trim);
        assert_eq!(
            pair[1],
            OpTarget {
                direction: Direction::Write,
                ..pair[0]
            }
        );
    }
}

#[test]
fn a_sequential_op_that_does_not_fit_the_range_is_made_smaller() {
    let mut config = sequential(Mix::Read, 10 * K);
    config.sizes = PerDirection::all(SizeChoice::Split(vec![(4096, 1), (16384, 99)]));
    check(config.clone(), 9, "r0+4 r4+4");
    config.sizes = range(2048, 65536);
    let lengths = pass(&mut Pattern::new(config).unwrap(), 99);
    assert_eq!(
        lengths.iter().map(|t| u64::from(t.length)).sum::<u64>(),
        10 * K
    );
}

#[test]
fn sizes_of_a_split_are_rounded_down_to_multiples_of_the_smallest() {
    let mut config = PatternConfig {
        map: MapMode::Off,
        ..random(Mix::Read, 1024 * K)
    };
    let shares = vec![(4096, 40), (5000, 30), (12288, 30), (9, 0)];
    config.sizes = PerDirection::all(SizeChoice::Split(shares));
    let targets = pass(&mut Pattern::new(config).unwrap(), 5000);
    let mut counts = BTreeMap::new();
    for target in targets {
        *counts.entry(target.length).or_insert(0u32) += 1;
    }
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [4096, 12288]);
    // 3500 of 5000 expected; standard deviation 32.
    assert!(counts[&4096].abs_diff(3500) < 200, "{counts:?}");
}

/// The smallest and a share of the largest, rounded down to a multiple of the smallest: of eight
/// equal parts of 8 KiB, three give 3 KiB, three 6 KiB, and two would give 9 KiB.
#[test]
fn a_range_is_drawn_in_multiples_of_the_smallest_up_to_the_largest() {
    let mut config = PatternConfig {
        map: MapMode::Off,
        ..random(Mix::Read, 1 << 40)
    };
    config.sizes = range(3072, 8192);
    config.align = PerDirection::all(3072);
    let mut counts = BTreeMap::new();
    for target in pass(&mut Pattern::new(config).unwrap(), 8000) {
        *counts.entry(target.length).or_insert(0u32) += 1;
    }
    assert_eq!(
        counts.keys().copied().collect::<Vec<_>>(),
        [3072, 6144, 8192]
    );
    // 3, 3 and 2 eighths expected.
    assert!(counts[&3072].abs_diff(3000) < 200 && counts[&8192].abs_diff(2000) < 200);
}

#[test]
fn a_new_offset_is_drawn_every_nth_op() {
    let with = |sequencer, want_steps: &[i64]| {
        let config = PatternConfig {
            sequencer,
            ..random(Mix::Read, 1 << 40)
        };
        let targets = pass(&mut Pattern::new(config).unwrap(), 400);
        for group in targets.chunks(4) {
            let first = group[0].offset;
            for (target, step) in group.iter().zip(want_steps) {
                assert_eq!(target.offset, first.checked_add_signed(*step).unwrap());
            }
        }
        let starts: HashSet<u64> = targets.iter().step_by(4).map(|t| t.offset).collect();
        assert_eq!(starts.len(), 100);
    };
    with(Sequencer::Every(4), &[0, 4096, 8192, 12288]);
    with(Sequencer::Repeat(4), &[0, 0, 0, 0]);
}

#[test]
fn a_repeated_offset_leaves_room_for_the_op() {
    let mut config = PatternConfig {
        sequencer: Sequencer::Repeat(4),
        sizes_by_order: true,
        map: MapMode::Off,
        ..random(Mix::Write, 64 * K)
    };
    config.sizes.read = SizeChoice::Fixed(16 << 10);
    let targets = pass(&mut Pattern::new(config).unwrap(), 400);
    assert_eq!(targets.len(), 400);
    for target in targets {
        let end = target.offset + u64::from(target.length);
        assert!(end <= 64 * K, "{target:?}");
    }
}

#[test]
fn percentage_random_makes_the_other_ops_sequential() {
    let mut config = PatternConfig {
        map: MapMode::Off,
        ..random(Mix::Read, 1 << 40)
    };
    config.percentage_random = PerDirection::all(30);
    let targets = pass(&mut Pattern::new(config.clone()).unwrap(), 10_000);
    let sequential = targets
        .windows(2)
        .filter(|pair| pair[1].offset == pair[0].offset + 4096);
    // 7000 expected; standard deviation 46.
    assert!(sequential.count().abs_diff(7000) < 300);
    config.percentage_random = PerDirection::all(0);
    let targets = pass(&mut Pattern::new(config).unwrap(), 100);
    assert!(
        targets
            .iter()
            .zip(0..)
            .all(|(target, block)| target.offset == block * 4096)
    );
}

#[test]
fn the_share_of_reads_is_as_configured() {
    for read in [0, 1, 30, 70, 100] {
        let mut pattern = Pattern::new(random(Mix::ReadWrite { read }, 1 << 40)).unwrap();
        let mut targets = vec![OpTarget::default(); 20_000];
        assert_eq!(pattern.fill(&mut targets), 20_000);
        let reads = targets
            .iter()
            .filter(|t| t.direction == Direction::Read)
            .count();
        // Standard deviation at most 71.
        assert!(
            reads.abs_diff(200 * usize::from(read)) < 400,
            "{read} %: {reads}"
        );
    }
}

#[test]
fn more_than_32_bits_of_blocks_are_reached_unless_tausworthe32_is_explicit() {
    let with = |explicit| {
        let mut config = PatternConfig {
            map: MapMode::Off,
            ..config(Mix::Read, true, 1, 1 << 40)
        };
        config.generator = RandomGenerator::Tausworthe { explicit };
        let targets = pass(&mut Pattern::new(config).unwrap(), 1000);
        targets
            .iter()
            .filter(|target| target.offset % 256 != 0)
            .count()
    };
    assert_eq!(with(true), 0);
    assert!(with(false) > 900);
}

#[test]
fn a_soft_map_is_omitted_for_lack_of_memory() {
    // 2⁶³ blocks of a byte: no machine has the memory.
    let mut config = config(Mix::Read, true, 1, 1 << 63);
    let error = Pattern::new(config.clone()).unwrap_err();
    assert_eq!(error, PatternError::NoMemory { bytes: 1 << 60 });
    config.map = MapMode::Soft;
    assert!(
        Pattern::new(config)
            .unwrap()
            .next(Direction::Read)
            .is_some()
    );
}

#[test]
fn blockalign_disables_the_map() {
    let mut config = random(Mix::Read, 64 * K);
    config.align = PerDirection::all(8192);
    let targets = pass(&mut Pattern::new(config).unwrap(), 100);
    assert_eq!(targets.len(), 100);
    assert!(
        targets
            .iter()
            .all(|target| target.offset % 8192 == 0 && target.length == 4096)
    );
}

#[test]
fn the_next_pass_has_another_order() {
    let mut pattern = Pattern::new(random(Mix::Read, 256 * K)).unwrap();
    let first = pass(&mut pattern, 999);
    pattern.restart();
    let second = pass(&mut pattern, 999);
    assert_eq!((first.len(), second.len()), (64, 64));
    assert_ne!(first, second);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a flat table, one entry a case")]
fn invalid_configurations_are_refused_with_a_reason() {
    let base = || random(Mix::Read, 64 * K);
    let refused = |config: PatternConfig| Pattern::new(config).unwrap_err().to_string();
    let file = |offset, length| vec![file(offset, length)];
    let sizes = |choice| PerDirection::all(choice);
    for (config, want) in [
        (
            PatternConfig {
                files: vec![],
                ..base()
            },
            "no files to work on",
        ),
        (
            PatternConfig {
                files: file(0, 0),
                ..base()
            },
            "larger than the range to work on, 0 B",
        ),
        (
            PatternConfig {
                files: file(9, 4095),
                ..base()
            },
            "4096 B of reads is larger",
        ),
        (
            PatternConfig {
                files: file(u64::MAX, 4096),
                ..base()
            },
            "more than 2^64 bytes",
        ),
        (
            PatternConfig {
                sizes: sizes(SizeChoice::Fixed(0)),
                ..base()
            },
            "size of reads is 0",
        ),
        (
            PatternConfig {
                sizes: range(8, 4),
                ..base()
            },
            "smallest, 8 B, is larger",
        ),
        (
            PatternConfig {
                sizes: sizes(SizeChoice::Split(vec![])),
                ..base()
            },
            "add up to 0 %",
        ),
        (
            PatternConfig {
                sizes: sizes(SizeChoice::Split(vec![(0, 50), (9, 50)])),
                ..base()
            },
            "size of reads is 0",
        ),
        (
            PatternConfig {
                align: PerDirection::all(0),
                ..base()
            },
            "alignment of reads is 0",
        ),
        (
            PatternConfig {
                mix: Mix::ReadWrite { read: 101 },
                ..base()
            },
            "101 % is more than",
        ),
        (
            PatternConfig {
                percentage_random: PerDirection::all(200),
                ..base()
            },
            "200 % is more",
        ),
        (
            PatternConfig {
                sequencer: Sequencer::Skip(1),
                ..base()
            },
            "this one is random",
        ),
        (
            PatternConfig {
                sequencer: Sequencer::Every(0),
                ..base()
            },
            "every 0 ops",
        ),
        (
            PatternConfig {
                sequencer: Sequencer::Repeat(2),
                random: false,
                ..base()
            },
            "for random",
        ),
        (
            PatternConfig {
                distribution: Distribution::Zipf {
                    theta: 1.0,
                    center: None,
                },
                ..base()
            },
            "theta 1 is not a number other than 1",
        ),
        (
            PatternConfig {
                distribution: Distribution::Pareto {
                    h: f64::NAN,
                    center: None,
                },
                ..base()
            },
            "h NaN is not between 0 and 1",
        ),
        (
            PatternConfig {
                distribution: Distribution::Normal {
                    deviation: 5.0,
                    center: Some(1.5),
                },
                ..base()
            },
            "center 1.5 is not",
        ),
    ] {
        let error = refused(config);
        assert!(error.contains(want), "{error:?} should contain {want:?}");
    }
}

#[test]
fn sizes_of_an_unused_direction_do_not_matter() {
    let mut config = random(Mix::Read, 64 * K);
    config.sizes.write = SizeChoice::Fixed(0);
    config.align.trim = 0;
    assert_eq!(pass(&mut Pattern::new(config).unwrap(), 99).len(), 16);
}
