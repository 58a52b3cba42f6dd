//! Random seeds, one per job, so that a plan draws the same numbers on every machine.

use fathom_job::Job;

/// Returns the seed of a section: `randseed`, else the default, or entropy with `randrepeat=0`.
pub(crate) fn base(
    randseed: Option<u64>,
    randrepeat: bool,
    entropy: &mut dyn FnMut() -> u64,
) -> u64 {
    match randseed {
        Some(seed) => seed,
        None if randrepeat => DEFAULT_SEED,
        None => entropy(),
    }
}

/// Returns the base of a section for the rank in whose place it works; with `allrandrepeat`, all
/// ranks have that of rank 0.
pub(crate) fn of_section(base: u64, job: &Job) -> u64 {
    match job.options.allrandrepeat {
        true => base,
        false => of_rank(base, job.place.rank.rank),
    }
}

/// Returns the base of a rank: rank 0's is that of a run alone, the others' derive from it.
fn of_rank(base: u64, rank: u32) -> u64 {
    match rank {
        0 => base,
        rank => mix(base.rotate_left(32) ^ mix(u64::from(rank))),
    }
}

/// Returns the seed of one job: the base mixed with its thread number, so that clones differ.
pub(crate) fn of_job(base: u64, number: u32) -> u64 {
    mix(base ^ mix(u64::from(number)))
}

/// Returns a number in `low..=high` that depends on the seed and the purpose.
pub(crate) fn within(seed: u64, purpose: u64, low: u64, high: u64) -> u64 {
    let span = u128::from(high.saturating_sub(low)) + 1;
    let drawn = (u128::from(mix(seed ^ mix(purpose))) * span) >> 64;
    low + u64::try_from(drawn).unwrap_or(0)
}

/// Returns entropy of the system, by way of the random keys of the standard library's hash maps.
pub fn entropy() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// SplitMix64's output function (Steele, Lea and Flood 2014): a bijection that spreads every bit.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// fio's default for `randseed`, according to its documentation and output.
const DEFAULT_SEED: u64 = 0x89;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn randseed_wins_and_the_default_is_fixed() {
        let mut never = || -> u64 { panic!("asked the system") };
        assert_eq!(base(Some(7), false, &mut never), 7);
        assert_eq!(base(None, true, &mut never), 0x89);
        assert_eq!(
            base(Some(0x89), true, &mut never),
            base(None, true, &mut never)
        );
        assert_eq!(base(None, false, &mut || 42), 42);
    }

    #[test]
    fn clones_differ_and_repeat() {
        assert_ne!(of_job(0x89, 1), of_job(0x89, 2));
        assert_eq!(of_job(0x89, 1), of_job(0x89, 1));
        // Pinned: later versions must replay the records of earlier ones.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn ranks_differ_and_rank_0_is_a_run_alone() {
        assert_eq!(of_rank(0x89, 0), 0x89);
        let all: std::collections::HashSet<u64> = (0..100)
            .flat_map(|rank| (0..100).map(move |job| of_job(of_rank(0x89, rank), job)))
            .collect();
        assert_eq!(all.len(), 100 * 100);
    }

    #[test]
    fn draws_stay_within_their_range() {
        for seed in 0..1000 {
            assert!((5..=9).contains(&within(seed, 1, 5, 9)));
            assert_eq!(within(seed, 1, 5, 5), 5);
            within(seed, 2, 0, u64::MAX);
        }
    }
}
