//! Random orders: fixed for all versions, and distributed as configured.

use std::collections::BTreeMap;

use crate::common::{K, check, pass, random, range};
use fathom_core::PerDirection;
use fathom_workload::{
    Distribution, MapMode, Mix, Pattern, PatternConfig, RandomGenerator, SizeChoice,
};

// The order of a seed is part of the format: what one version wrote, another one verifies.

#[test]
fn the_order_of_a_seed_is_stable() {
    let plain = random(Mix::Read, 64 * K);
    check(
        plain.clone(),
        99,
        "r24+4 r16+4 r60+4 r52+4 r0+4 r4+4 r56+4 r8+4 r12+4 r20+4 r28+4 r32+4 r36+4 r40+4 \
         r44+4 r48+4",
    );
    check(
        PatternConfig {
            map: MapMode::Off,
            ..plain.clone()
        },
        12,
        "r24+4 r16+4 r60+4 r52+4 r0+4 r4+4 r56+4 r4+4 r4+4 r60+4 r60+4 r20+4",
    );
    check(
        PatternConfig {
            generator: RandomGenerator::Tausworthe64,
            ..plain.clone()
        },
        12,
        "r44+4 r20+4 r8+4 r32+4 r12+4 r36+4 r28+4 r16+4 r24+4 r48+4 r52+4 r4+4",
    );
    check(
        PatternConfig {
            generator: RandomGenerator::Lfsr,
            ..plain.clone()
        },
        99,
        "r4+4 r28+4 r52+4 r32+4 r56+4 r40+4 r20+4 r24+4 r16+4 r60+4 r44+4 r8+4 r12+4 \
         r0+4 r48+4 r36+4",
    );
    check(
        PatternConfig {
            mix: Mix::ReadWrite { read: 50 },
            ..plain.clone()
        },
        12,
        "r24+4 r16+4 r60+4 r52+4 w0+4 r4+4 r56+4 w8+4 w12+4 r20+4 r28+4 w32+4",
    );
    let shares = vec![(4096, 50), (8192, 30), (16384, 20)];
    let sizes = PerDirection::all(SizeChoice::Split(shares));
    check(
        PatternConfig {
            sizes,
            ..plain.clone()
        },
        99,
        "r24+8 r16+8 r60+4 r52+4 r0+16 r32+4 r56+4 r36+16",
    );
    check(
        PatternConfig {
            sizes: range(4096, 16384),
            ..plain
        },
        99,
        "r24+12 r16+8 r60+4 r52+4 r0+16 r36+8 r56+4 r44+8",
    );
}

/// The sums of such exponents exceed what a double holds.
#[test]
fn extreme_exponents_favour_the_first_or_the_last_rank() {
    let offsets = |theta| {
        let center = Some(0.0);
        let mut pattern = Pattern::new(PatternConfig {
            distribution: Distribution::Zipf { theta, center },
            ..random(Mix::Read, 4096 * K)
        })
        .expect("a pattern that makes sense");
        pass(&mut pattern, 1000).into_iter().map(|op| op.offset)
    };
    assert!(offsets(1e9).all(|offset| offset == 0));
    assert!(offsets(-1e9).all(|offset| offset == 4092 * K));
    // Of 1024 ranks the last 40 have all but 10⁻⁷ of the ops.
    assert!(offsets(-400.0).all(|offset| offset > 3900 * K));
}

#[test]
fn the_order_of_a_skewed_distribution_is_stable() {
    let with = |distribution| PatternConfig {
        distribution,
        ..random(Mix::Read, 4096 * K)
    };
    check(
        with(Distribution::Zipf {
            theta: 1.2,
            center: None,
        }),
        8,
        "r2056+4 r196+4 r3324+4 r2132+4 r3324+4 r3100+4 r2728+4 r1760+4",
    );
    check(
        with(Distribution::Zipf {
            theta: 0.8,
            center: Some(0.5),
        }),
        8,
        "r3180+4 r2148+4 r2068+4 r2412+4 r2072+4 r2568+4 r2264+4 r2084+4",
    );
    check(
        with(Distribution::Pareto {
            h: 0.2,
            center: None,
        }),
        8,
        "r1828+4 r3324+4 r3324+4 r3100+4 r3324+4 r3844+4 r196+4 r3324+4",
    );
    check(
        with(Distribution::Normal {
            deviation: 10.0,
            center: None,
        }),
        8,
        "r1384+4 r1308+4 r1680+4 r2196+4 r1228+4 r252+4 r2716+4 r1960+4",
    );
}

// The distributions against their closed forms.

/// Returns the share of ops on the most popular blocks, for each of these numbers of blocks.
fn popularity(distribution: Distribution, counts: &[usize]) -> Vec<f64> {
    let ops = 200_000;
    let mut pattern = Pattern::new(PatternConfig {
        distribution,
        ..random(Mix::Read, 4000 * K)
    })
    .expect("a pattern that makes sense");
    let mut hits = vec![0u32; 1000];
    for target in pass(&mut pattern, ops) {
        hits[usize::try_from(target.offset / 4096).expect("small")] += 1;
    }
    hits.sort_unstable_by(|a, b| b.cmp(a));
    let share = |&n: &usize| f64::from(hits[..n].iter().sum::<u32>()) / ops as f64;
    counts.iter().map(share).collect()
}

#[track_caller]
fn check_popularity(distribution: Distribution, want: &[(usize, f64)], within: f64) {
    let counts: Vec<usize> = want.iter().map(|&(count, _)| count).collect();
    for (got, (count, want)) in popularity(distribution, &counts).into_iter().zip(want) {
        assert!(
            (got - want).abs() < within,
            "{distribution:?}: {count} blocks have {got}, not {want}"
        );
    }
}

#[test]
fn a_zipf_gives_each_rank_its_share() {
    for theta in [0.5, 0.8, 1.2, 2.0] {
        let share = |n: u32| (1..=n).map(|i| f64::from(i).powf(-theta)).sum::<f64>();
        let want = [1, 2, 10, 100, 1000].map(|n| (n as usize, share(n) / share(1000)));
        for center in [None, Some(0.0), Some(1.0)] {
            // The approximation of Gray et al. is exact for two ranks and close for the others.
            check_popularity(Distribution::Zipf { theta, center }, &want[..2], 0.005);
            check_popularity(Distribution::Zipf { theta, center }, &want, 0.05);
        }
    }
}

#[test]
fn a_zipf_below_0_prefers_the_last_ranks_and_one_of_0_none() {
    for theta in [0.0, -0.5, -1.0, -2.0] {
        let share = |n: u32| (1..=n).map(|i| f64::from(i).powf(-theta)).sum::<f64>();
        let last = |n: u32| 1.0 - share(1000 - n) / share(1000);
        let want = [10, 100, 500].map(|n| (n as usize, last(n)));
        let center = None;
        check_popularity(Distribution::Zipf { theta, center }, &want, 0.05);
    }
}

#[test]
fn a_pareto_gives_the_hot_share_of_the_blocks_the_rest_of_the_ops() {
    // h = 0.2: 20 % of the blocks have 80 % of the ops.
    for h in [0.1, 0.2, 0.4] {
        let power = (1.0f64 - h).ln() / h.ln();
        let want =
            [1, 10, 200, 500].map(|n: u32| (n as usize, (f64::from(n) / 1000.0).powf(power)));
        check_popularity(Distribution::Pareto { h, center: None }, &want, 0.005);
    }
}

#[test]
fn a_normal_distribution_surrounds_its_center() {
    let with = |deviation, center| {
        let distribution = Distribution::Normal { deviation, center };
        let config = PatternConfig {
            distribution,
            ..random(Mix::Read, 4000 * K)
        };
        let targets = pass(&mut Pattern::new(config).unwrap(), 20_000);
        let blocks: Vec<f64> = targets.iter().map(|t| (t.offset / 4096) as f64).collect();
        let mean = blocks.iter().sum::<f64>() / 20_000.0;
        let variance = blocks.iter().map(|b| (b - mean).powi(2)).sum::<f64>() / 20_000.0;
        (mean, variance.sqrt())
    };
    let (mean, deviation) = with(10.0, Some(0.5));
    assert!(
        (mean - 500.0).abs() < 3.0 && (deviation - 100.0).abs() < 2.0,
        "{mean} {deviation}"
    );
    let (mean, deviation) = with(5.0, Some(0.3));
    assert!(
        (mean - 300.0).abs() < 2.0 && (deviation - 50.0).abs() < 1.0,
        "{mean} {deviation}"
    );
    // Scattered: as good as even.
    let (mean, deviation) = with(10.0, None);
    assert!(
        (mean - 500.0).abs() < 15.0 && (deviation - 289.0).abs() < 15.0,
        "{mean} {deviation}"
    );
}

#[test]
fn the_most_popular_block_is_at_the_center() {
    for (center, want) in [(0.0, 0), (0.25, 250), (0.5, 500), (1.0, 0)] {
        let distribution = Distribution::Zipf {
            theta: 1.5,
            center: Some(center),
        };
        let config = PatternConfig {
            distribution,
            ..random(Mix::Read, 4000 * K)
        };
        let mut hits = BTreeMap::new();
        for target in pass(&mut Pattern::new(config).unwrap(), 5000) {
            *hits.entry(target.offset / 4096).or_insert(0) += 1;
        }
        let most = hits.into_iter().max_by_key(|&(_, count)| count).unwrap();
        assert_eq!(most.0, want);
    }
}
