//! `cargo xtask bench truth`: how much of a latency, and of a schedule, is the tool's own.
//!
//! ```text
//! kernel:  submission … issue to the device ════════ completion … reap
//! log:     └─────────────────────── clat, lat ─────────────────────┘
//! own share = logged latency − (completion − issue)
//! ```
//!
//! Both programs run the same job, alternating, with a log of each op; both are traced by this
//! tool, in the same way. Ops are joined with requests by offset, which is why each offset is read
//! once: fio's log has times in milliseconds, too coarse for a join by time.

mod clat;
mod rows;
mod schedule;

pub(crate) use rows::ROWS;

use anyhow::{Result, bail};

use super::pairs::{Bench, Pair, in_turn};
use super::programs::Program;
use super::row::{Measure, Row};

/// Comparison of the truth of two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    /// Own share of the latencies.
    Share,
    /// Deviation from the schedule of a rate, ops per second.
    Schedule(u32),
}

/// Runs one pair of a row and returns it for each check.
pub(crate) fn sample(
    bench: &Bench,
    row: &Row,
    truth: Truth,
    fathom_first: bool,
) -> Result<Vec<Pair>> {
    let run = |program| match truth {
        Truth::Share => clat::values(bench, row, program),
        Truth::Schedule(rate) => schedule::values(bench, row, program, rate),
    };
    let (other, fathom) = in_turn(
        fathom_first,
        || run(Program::Fio),
        || run(Program::FathomRun),
    )?;
    let both = other.into_iter().zip(fathom);
    Ok(both.map(|(other, fathom)| Pair { other, fathom }).collect())
}

/// Returns the value at this share of sorted values, nearest rank.
fn percentile<T: Copy>(sorted: &[T], per_mille: usize) -> Result<T> {
    let rank = (sorted.len() * per_mille).div_ceil(1000).max(1);
    match sorted.get(rank - 1) {
        Some(value) => Ok(*value),
        None => bail!("no op was measured"),
    }
}

/// Returns the per mille of a measure's percentile.
const fn per_mille(measure: Measure) -> usize {
    match measure {
        Measure::ShareOfClat(per_mille) | Measure::ShareOfLat(per_mille) => per_mille as usize,
        _ => 999,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let values: Vec<u32> = (1..=1000).collect();
        for (at, want) in [(500, 500), (990, 990), (999, 999), (0, 1), (1000, 1000)] {
            assert_eq!(percentile(&values, at).expect("values"), want);
        }
        assert_eq!(percentile(&[7], 500).expect("a value"), 7);
        assert!(percentile::<u32>(&[], 500).is_err());
    }
}
