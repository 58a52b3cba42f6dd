//! Invariants of every pattern, whatever its configuration.

use std::collections::HashSet;

use crate::common::{config, pass};
use fathom_core::{Direction, PerDirection};
use fathom_workload::{
    Distribution, FileRange, FileService, MapMode, Mix, OpTarget, Pattern, PatternConfig,
    RandomGenerator, Sequencer, SizeChoice,
};
use proptest::prelude::*;

fn size_choice() -> impl Strategy<Value = SizeChoice> {
    let unit = prop_oneof![Just(1u32), Just(512), Just(3000), 1u32..5000];
    (unit, 1u32..20, 0u32..700, 1u8..99).prop_map(|(unit, times, odd, share)| match times % 5 {
        4 => SizeChoice::Unaligned {
            min: unit,
            max: unit * times + odd,
        },
        0 => SizeChoice::Fixed(unit),
        1 => SizeChoice::Range {
            min: unit,
            max: unit * times + odd,
        },
        2 => SizeChoice::Split(vec![(unit, share), (unit * times + odd, 100 - share)]),
        _ => SizeChoice::Split(vec![
            (unit * times, share),
            (unit, 99 - share),
            (unit * 2, 1),
        ]),
    })
}

#[expect(clippy::too_many_lines, reason = "a flat table, one entry a case")]
fn any_config() -> impl Strategy<Value = PatternConfig> {
    let sequencer = (0u32..6, -20_000i64..20_000, 1u32..6);
    let behind = prop_oneof![Just(0u64), 0u64..50_000];
    let file =
        (0u64..100_000, 0u64..100_000, behind).prop_map(|(offset, length, behind)| FileRange {
            offset,
            length,
            file: offset + length + behind,
        });
    let generator = prop_oneof![
        Just(RandomGenerator::Tausworthe { explicit: false }),
        Just(RandomGenerator::Tausworthe64),
        Just(RandomGenerator::Lfsr),
    ];
    let distribution = prop_oneof![
        4 => Just(Distribution::Uniform),
        1 => Just(Distribution::Zipf { theta: 1.1, center: None }),
        1 => Just(Distribution::Pareto { h: 0.3, center: Some(0.9) }),
        1 => Just(Distribution::Normal { deviation: 40.0, center: None }),
    ];
    let percent = prop_oneof![3 => Just(100u8), 1 => 0u8..=100];
    (
        (
            0usize..5,
            any::<bool>(),
            any::<bool>(),
            any::<u64>(),
            percent,
            sequencer,
        ),
        proptest::collection::vec(file, 1..5),
        (
            size_choice(),
            size_choice(),
            any::<bool>(),
            1u64..9000,
            any::<bool>(),
        ),
        (generator, distribution),
    )
        .prop_map(|(basic, files, sizes, (generator, distribution))| {
            let (mix, random, map, seed, percent, (kind, gap, count)) = basic;
            let (read, write, same, align, own_align) = sizes;
            let min = |choice: &SizeChoice| match choice {
                SizeChoice::Fixed(size)
                | SizeChoice::Range { min: size, .. }
                | SizeChoice::Unaligned { min: size, .. } => *size,
                SizeChoice::Split(sizes) => sizes
                    .iter()
                    .filter(|s| s.1 > 0)
                    .map(|s| s.0)
                    .min()
                    .expect("a share"),
            };
            let write = if same { read.clone() } else { write };
            let sizes = PerDirection::new(read.clone(), write, read);
            PatternConfig {
                mix: MIXES[mix],
                random,
                sequencer: match (kind, random) {
                    (0, true) => Sequencer::Every(count),
                    (1, true) => Sequencer::Repeat(count),
                    (0, false) => Sequencer::Skip(gap),
                    _ => Sequencer::None,
                },
                files,
                align: if own_align {
                    PerDirection::all(align)
                } else {
                    PerDirection::from_fn(|d| u64::from(min(&sizes[d])))
                },
                sizes,
                map: if map { MapMode::On } else { MapMode::Off },
                generator,
                distribution,
                percentage_random: PerDirection::all(percent),
                shares: None,
                sequence: None,
                zones: None,
                preconditioning: None,
                sizes_by_order: false,
                keeps_sizes: false,
                service: FileService::RoundRobin(1),
                open_files: u32::MAX,
                seed,
            }
        })
}

const MIXES: [Mix; 5] = [
    Mix::Read,
    Mix::Write,
    Mix::Trim,
    Mix::ReadWrite { read: 60 },
    Mix::TrimWrite,
];

/// Returns all ops of a pass that draws its directions, and their numbers in a shared map.
fn shared_pass(config: &PatternConfig) -> (Vec<OpTarget>, HashSet<u64>) {
    let targets = pass(
        &mut Pattern::new(config.clone()).expect("a pattern that makes sense"),
        9999,
    );
    let number = |target: &OpTarget| target.offset / config.align[target.direction];
    let numbers = targets.iter().map(number).collect();
    (targets, numbers)
}

#[test]
fn directions_with_a_shared_map_end_when_one_finds_no_block() {
    let mut ends = HashSet::new();
    for seed in 0..50 {
        let mut config = config(Mix::ReadWrite { read: 50 }, true, 4096, 1 << 20);
        config.sizes.write = SizeChoice::Fixed(8192);
        config.align.write = 8192;
        config.seed = seed;
        let (targets, numbers) = shared_pass(&config);
        // Each op has a bit of its own, with the number that its block has in its direction.
        assert_eq!(numbers.len(), targets.len());
        // It ends when a write draws into a run of taken blocks that goes on to its last one.
        assert!(numbers.contains(&127), "{} ops", targets.len());
        ends.insert(targets.len());
    }
    let (first, last) = (ends.iter().min().unwrap(), ends.iter().max().unwrap());
    assert!(*first < 120 && *last > 150, "{first} to {last} ops");
}

#[test]
fn an_unused_direction_counts_for_a_shared_map() {
    let early = |change: fn(&mut PatternConfig)| {
        let passes = (0..20).map(|seed| {
            let mut config = config(Mix::Write, true, 8192, 1 << 20);
            config.seed = seed;
            change(&mut config);
            shared_pass(&config).0.len()
        });
        passes.filter(|&ops| ops < 128).count()
    };
    assert!(early(|config| config.sizes.trim = SizeChoice::Fixed(1024)) > 15);
    assert_eq!(
        early(|config| config.sizes.read = SizeChoice::Fixed(16384)),
        0
    );
    assert_eq!(early(|config| config.sizes.read = SizeChoice::Fixed(0)), 0);
}

#[test]
fn a_file_that_ends_in_a_shared_map_ends_for_all_directions() {
    let mut config = config(Mix::ReadWrite { read: 50 }, true, 4096, 1 << 20);
    config.sizes.write = SizeChoice::Fixed(16384);
    config.align.write = 16384;
    config.files = vec![config.files[0]; 3];
    config.open_files = 1;
    let (targets, _) = shared_pass(&config);
    let files: Vec<usize> = targets.iter().map(|target| target.file.index()).collect();
    assert!(files.is_sorted() && files.last() == Some(&2), "{files:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn ops_stay_in_their_file_and_repeat_with_the_seed(config in any_config()) {
        let Ok(mut pattern) = Pattern::new(config.clone()) else { return Ok(()) };
        let (least, most) = (pattern.smallest(), pattern.largest());
        let mut targets = pass(&mut pattern, 300);
        pattern.restart();
        targets.extend(pass(&mut pattern, 300));
        for target in &targets {
            let range = config.files[target.file.index()];
            let range_end = range.offset + range.length;
            prop_assert!((range.offset..range_end).contains(&target.offset));
            let end = target.offset + u64::from(target.length);
            prop_assert!(end <= range.file);
            prop_assert!((least..=most).contains(&target.length));
        }
        // Batches of any size give the same ops as one at a time.
        let mut twin = Pattern::new(config).unwrap();
        let mut again = Vec::new();
        for _ in 0..2 {
            let mut left = 300;
            for size in [1, 7, 2, 32].into_iter().cycle() {
                let mut out = vec![OpTarget::default(); size.min(left)];
                let count = twin.fill(&mut out);
                again.extend_from_slice(&out[..count]);
                left -= count;
                if count < out.len() || left == 0 {
                    break;
                }
            }
            twin.restart();
        }
        prop_assert_eq!(targets, again);
    }

    #[test]
    fn a_map_has_every_block_visited_exactly_once(config in any_config()) {
        let choice = config.sizes.read.clone();
        let min = match &choice {
            SizeChoice::Fixed(size)
                | SizeChoice::Range { min: size, .. }
                | SizeChoice::Unaligned { min: size, .. } => *size,
            SizeChoice::Split(sizes) => {
                sizes.iter().filter(|s| s.1 > 0).map(|s| s.0).min().expect("a share")
            }
        };
        let lfsr = config.generator == RandomGenerator::Lfsr;
        let config = PatternConfig {
            random: true,
            map: MapMode::On,
            sequencer: Sequencer::None,
            distribution: Distribution::Uniform,
            percentage_random: PerDirection::all(100),
            shares: None,
            sequence: None,
            zones: None,
            sizes_by_order: false,
            keeps_sizes: false,
            service: FileService::RoundRobin(1),
            open_files: u32::MAX,
            // Ops of several sizes overlap without a map.
            sizes: PerDirection::all(if lfsr { SizeChoice::Fixed(min) } else { choice }),
            align: PerDirection::all(u64::from(min)),
            ..config
        };
        let Ok(mut pattern) = Pattern::new(config.clone()) else { return Ok(()) };
        for _ in 0..2 {
            let mut seen = HashSet::new();
            for target in pass(&mut pattern, usize::MAX) {
                let pair = config.mix == Mix::TrimWrite;
                if pair && target.direction == Direction::Write {
                    continue;
                }
                let first = (target.offset - config.files[target.file.index()].offset)
                    / u64::from(min);
                for block in first..first + u64::from(target.length.div_ceil(min)) {
                    prop_assert!(seen.insert((target.file, block)));
                }
            }
            let blocks: u64 = config.files.iter().map(|file| file.length / u64::from(min)).sum();
            prop_assert_eq!(seen.len() as u64, blocks);
            pattern.restart();
        }
    }

    /// One file or several, the special loop or the general one: the draws are the same.
    #[test]
    fn a_file_too_small_for_any_op_changes_nothing(
        mix in 0usize..4,
        random in any::<bool>(),
        map in any::<bool>(),
        seed in any::<u64>(),
        blocks in 1u64..500,
        behind in 0u64..2000,
    ) {
        let mix = MIXES[mix];
        let mut plain = config(mix, random, 512, blocks * 512 + 9);
        plain.files[0].file += behind;
        plain.seed = seed;
        plain.map = if map { MapMode::On } else { MapMode::Off };
        let mut general = plain.clone();
        general.files.push(FileRange {
            offset: 0,
            length: 511,
            file: 511,
        });
        let (mut plain, mut general) =
            (Pattern::new(plain).unwrap(), Pattern::new(general).unwrap());
        for _ in 0..2 {
            prop_assert_eq!(pass(&mut plain, 700), pass(&mut general, 700));
            plain.restart();
            general.restart();
        }
    }
}
