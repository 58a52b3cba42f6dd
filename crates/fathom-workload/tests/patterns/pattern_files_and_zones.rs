//! File selection, zones, and parts of a range with shares of their own. Sequences that are written
//! out are those of fio 3.33's `write_iolog`.

use std::collections::{BTreeMap, HashSet};

use crate::common::{K, check, config, file, pass, random, sequential};
use fathom_core::PerDirection;
use fathom_workload::{
    AccessShare, Distribution, FileService, MapMode, Mix, PartLength, Pattern, PatternConfig,
    PatternError, RandomGenerator, Sequencer, SizeChoice, Zones,
};

fn files(count: usize, length: u64) -> PatternConfig {
    PatternConfig {
        files: vec![file(0, length); count],
        ..sequential(Mix::Read, length)
    }
}

#[test]
fn files_take_turns_of_several_ops() {
    let service = FileService::RoundRobin(2);
    let config = PatternConfig {
        service,
        ..files(3, 12 * K)
    };
    check(
        config,
        99,
        "r0+4 r4+4 1:r0+4 1:r4+4 2:r0+4 2:r4+4 r8+4 1:r8+4 2:r8+4",
    );
}

#[test]
fn a_file_is_opened_when_another_is_finished() {
    let open = |open_files| PatternConfig {
        open_files,
        ..files(4, 8 * K)
    };
    check(
        open(2),
        99,
        "r0+4 1:r0+4 r4+4 1:r4+4 2:r0+4 3:r0+4 2:r4+4 3:r4+4",
    );
    check(
        open(1),
        99,
        "r0+4 r4+4 1:r0+4 1:r4+4 2:r0+4 2:r4+4 3:r0+4 3:r4+4",
    );
    let mut uneven = open(2);
    uneven.files[0].length = 4 * K;
    check(uneven, 99, "r0+4 1:r0+4 1:r4+4 2:r0+4 2:r4+4 3:r0+4 3:r4+4");
}

#[test]
fn randomly_served_files_are_finished_once() {
    for (service, open_files) in [
        (FileService::Random(1), u32::MAX),
        (FileService::Random(3), u32::MAX),
        (FileService::Random(1), 3),
    ] {
        let config = PatternConfig {
            service,
            open_files,
            ..files(20, 16 * K)
        };
        let mut pattern = Pattern::new(config).unwrap();
        let mut orders = HashSet::new();
        for _ in 0..2 {
            let targets = pass(&mut pattern, 999);
            let places: HashSet<_> = targets.iter().map(|t| (t.file, t.offset)).collect();
            assert_eq!((targets.len(), places.len()), (80, 80), "{service:?}");
            orders.insert(targets.iter().map(|t| t.file.get()).collect::<Vec<_>>());
            pattern.restart();
        }
        assert_eq!(orders.len(), 2, "{service:?} draws the same order again");
    }
}

#[test]
fn random_service_keeps_a_file_for_its_turn() {
    let config = PatternConfig {
        service: FileService::Random(4),
        ..files(8, 1024 * K)
    };
    let targets = pass(&mut Pattern::new(config).unwrap(), 400);
    assert!(
        targets
            .chunks(4)
            .all(|four| four.iter().all(|t| t.file == four[0].file))
    );
}

#[test]
fn files_from_a_distribution_start_over() {
    let zipf = Distribution::Zipf {
        theta: 1.2,
        center: None,
    };
    for random in [false, true] {
        let config = PatternConfig {
            service: FileService::Spread(zipf),
            random,
            ..files(10, 16 * K)
        };
        let targets = pass(&mut Pattern::new(config).unwrap(), 10_000);
        assert_eq!(targets.len(), 10_000);
        let mut counts = BTreeMap::new();
        for target in &targets {
            *counts.entry(target.file).or_insert(0u32) += 1;
        }
        let mut counts: Vec<_> = counts.into_values().collect();
        counts.sort_unstable();
        // Of all ops 40.5 % go to the most popular of ten files, 2.6 % to the least.
        assert!(counts[9].abs_diff(4052) < 250, "{counts:?}");
        assert!(counts[0].abs_diff(256) < 80, "{counts:?}");
    }
}

#[test]
fn a_file_without_space_is_skipped() {
    let spread = FileService::Spread(Distribution::Normal {
        deviation: 30.0,
        center: None,
    });
    let mut config = PatternConfig {
        service: spread,
        ..files(3, 2 * K)
    };
    config.files[2].length = 8 * K;
    check(config, 4, "2:r0+4 2:r4+4 2:r0+4 2:r4+4");
}

fn zones(size: u64, range: u64, skip: u64) -> Option<Zones> {
    Some(Zones { size, range, skip })
}

#[test]
fn zones_are_visited_in_order_and_repeat() {
    let with = |size, range, skip| PatternConfig {
        zones: zones(size * K, range * K, skip * K),
        ..sequential(Mix::Read, 64 * K)
    };
    check(
        with(8, 8, 8),
        10,
        "r0+4 r4+4 r16+4 r20+4 r32+4 r36+4 r48+4 r52+4 r0+4 r4+4",
    );
    check(
        with(8, 16, 0),
        10,
        "r0+4 r4+4 r16+4 r20+4 r32+4 r36+4 r48+4 r52+4 r0+4 r4+4",
    );
    // The last zone is cut by the end of the file: there the pass ends.
    check(
        with(8, 16, 4),
        99,
        "r0+4 r4+4 r20+4 r24+4 r40+4 r44+4 r60+4",
    );
    // A zone of more bytes than it has room for is gone through again.
    check(
        with(16, 8, 0),
        8,
        "r0+4 r4+4 r0+4 r4+4 r8+4 r12+4 r8+4 r12+4",
    );
    check(
        with(16, 10, 0),
        8,
        "r0+4 r4+4 r8+4 r0+4 r10+4 r14+4 r18+4 r10+4",
    );
    check(
        PatternConfig {
            sequencer: Sequencer::Skip(4096),
            ..with(16, 32, 0)
        },
        9,
        "r0+4 r8+4 r16+4 r24+4 r32+4 r40+4 r48+4 r56+4 r0+4",
    );
}

/// Within a zone, no block repeats before all have come, with a map and with a shift register, and
/// no block outside of it comes.
#[test]
fn random_ops_visit_each_block_of_their_zone_once() {
    for (size, range, skip) in [
        (16, 16, 0),
        (16, 16, 8),
        (8, 32, 4),
        (64, 16, 0),
        (12, 20, 3),
    ] {
        for generator in [
            RandomGenerator::Tausworthe { explicit: false },
            RandomGenerator::Lfsr,
        ] {
            let config = PatternConfig {
                zones: zones(size * K, range * K, skip * K),
                generator,
                ..random(Mix::Read, 230 * K)
            };
            let targets = pass(&mut Pattern::new(config).unwrap(), 500);
            assert_eq!(targets.len(), 500);
            let (mut start, mut moved, mut seen) = (0, 0, HashSet::new());
            for target in &targets {
                if moved >= size * K {
                    start += (range + skip) * K;
                    start = if start < 230 * K { start } else { 0 };
                    (moved, seen) = (0, HashSet::new());
                }
                let room = (start + range * K).min(230 * K);
                let places = usize::try_from((room - start) / (4 * K)).unwrap();
                if seen.len() == places {
                    seen.clear();
                }
                let end = target.offset + u64::from(target.length);
                assert!(target.offset >= start && end <= room, "{target:?} {start}");
                assert!(seen.insert(target.offset), "{size} {range} {generator:?}");
                moved += 4 * K;
            }
        }
    }
}

/// The last zone has space for one op, at a block that the distribution would never draw; the draw
/// once looped forever.
#[test]
fn a_skewed_draw_fits_into_a_short_last_zone() {
    let peak_beyond = Distribution::Normal {
        deviation: 0.001,
        center: Some(0.9),
    };
    let config = PatternConfig {
        zones: zones(4 * K, 1024 * K, 0),
        distribution: peak_beyond,
        ..random(Mix::Read, 1028 * K)
    };
    let targets = pass(&mut Pattern::new(config).unwrap(), 4);
    let last: Vec<_> = targets.iter().map(|t| t.offset / (1024 * K)).collect();
    assert_eq!(last, [0, 1, 0, 1]);
    assert_eq!(targets[1].offset, 1024 * K);
}

/// Drawing among all 2³⁸ blocks until one fits would take hours.
#[test]
fn a_short_last_zone_is_not_searched_for() {
    let long = 1 << 50;
    let config = PatternConfig {
        zones: zones(8 * K, long, 0),
        generator: RandomGenerator::Lfsr,
        ..random(Mix::Read, long + 12 * K)
    };
    let targets = pass(&mut Pattern::new(config).unwrap(), 8);
    for pair in [&targets[2..4], &targets[6..8]] {
        assert!(pair.iter().all(|target| target.offset >= long), "{pair:?}");
        assert_ne!(pair[0].offset, pair[1].offset);
    }
}

#[test]
fn without_a_map_offsets_in_a_zone_may_repeat() {
    let config = PatternConfig {
        zones: zones(64 * K, 64 * K, 0),
        map: MapMode::Off,
        ..random(Mix::Read, 128 * K)
    };
    let targets = pass(&mut Pattern::new(config).unwrap(), 32);
    let places: HashSet<_> = targets.iter().map(|t| t.offset).collect();
    assert!(places.len() < 32);
    assert!(targets[..16].iter().all(|t| t.offset < 64 * K));
    assert!(targets[16..].iter().all(|t| t.offset >= 64 * K));
}

fn share(percent: u8, part: PartLength) -> AccessShare {
    AccessShare { percent, part }
}

#[test]
fn parts_get_their_share_of_the_ops() {
    let percent = |access, size| share(access, PartLength::Percent(size));
    let bytes = |access, size| share(access, PartLength::Bytes(size * K));
    for parts in [
        vec![
            percent(60, 10),
            percent(30, 20),
            percent(8, 30),
            percent(2, 40),
        ],
        vec![
            bytes(60, 400),
            bytes(30, 800),
            bytes(8, 1200),
            bytes(2, 1600),
        ],
    ] {
        let config = PatternConfig {
            shares: Some(PerDirection::all(parts)),
            map: MapMode::Off,
            ..random(Mix::Read, 4000 * K)
        };
        let targets = pass(&mut Pattern::new(config).unwrap(), 20_000);
        let mut counts = [0_u32; 4];
        let mut places = HashSet::new();
        for target in targets {
            let part = [400, 1200, 2400, 4000]
                .iter()
                .position(|end| target.offset < end * K);
            counts[part.unwrap()] += 1;
            places.insert(target.offset);
        }
        let wanted = [12_000, 6000, 1600, 400];
        // Five standard deviations of the largest.
        let far = |(count, want): (&u32, u32)| count.abs_diff(want) > 350;
        assert!(!counts.iter().zip(wanted).any(far), "{counts:?}");
        // All 300 places of the first two parts come, and most of the others.
        assert!(places.len() > 800, "{}", places.len());
    }
}

#[test]
fn shares_must_add_up_to_100() {
    let config = PatternConfig {
        shares: Some(PerDirection::all(vec![share(99, PartLength::Percent(50))])),
        ..random(Mix::Read, 64 * K)
    };
    let refused = Pattern::check(&config);
    assert!(matches!(
        refused,
        Err(PatternError::AccessShares { sum: 99, .. })
    ));
    let config = PatternConfig {
        zones: zones(0, 4096, 0),
        ..sequential(Mix::Read, 64 * K)
    };
    assert_eq!(Pattern::check(&config), Err(PatternError::EmptyZone));
}

#[test]
fn sequential_and_random_ops_have_sizes_of_their_own() {
    let config = PatternConfig {
        sizes: PerDirection::new(
            SizeChoice::Fixed(4096),
            SizeChoice::Fixed(8192),
            SizeChoice::Fixed(1),
        ),
        sizes_by_order: true,
        percentage_random: PerDirection::all(50),
        map: MapMode::Off,
        ..random(Mix::Read, 1024 * K)
    };
    let targets = pass(&mut Pattern::new(config).unwrap(), 1000);
    let mut next = 0;
    let mut sequential = 0_u32;
    for target in targets {
        let goes_on = target.offset == next;
        // One random op in 256 goes by chance where a sequential one would.
        sequential += u32::from(target.length == 4096);
        assert!(goes_on || target.length == 8192);
        next = target.offset + u64::from(target.length);
    }
    assert!(sequential.abs_diff(500) < 80, "{sequential}");
}

#[test]
fn unaligned_sizes_are_of_any_length() {
    let mut config = config(Mix::Read, false, 1000, 1024 * K);
    config.sizes = PerDirection::all(SizeChoice::Unaligned {
        min: 1000,
        max: 3000,
    });
    let targets = pass(&mut Pattern::new(config).unwrap(), 9999);
    let lengths: HashSet<_> = targets.iter().map(|t| t.length).collect();
    assert!(lengths.len() > 200, "{}", lengths.len());
    assert!(lengths.iter().all(|length| (1000..=3000).contains(length)));
    let ends: Vec<_> = targets
        .iter()
        .map(|t| t.offset + u64::from(t.length))
        .collect();
    assert!(
        ends.iter()
            .zip(&targets[1..])
            .all(|(end, next)| *end == next.offset)
    );
    assert!(1024 * K - ends[ends.len() - 1] < 1000);
}
