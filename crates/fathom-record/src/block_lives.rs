//! Lives of a job's blocks.

use serde::{Deserialize, Serialize};

/// Blocks of a job's files, in units of its trims, by their states at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockLivesRecord {
    /// Never written.
    pub unwritten: u64,
    /// Trimmed last.
    pub trimmed: u64,
    /// Written last.
    pub written: u64,
    /// A trim failed.
    pub trim_failure: u64,
    /// A write failed.
    pub write_failure: u64,
    /// Numbers of trims before a failure, ascending, each with its number of blocks.
    pub failed_after_trims: Vec<(u32, u64)>,
}

impl BlockLivesRecord {
    /// Adds the blocks of another job.
    pub fn merge(&mut self, other: &Self) {
        let sum = |left: &mut u64, right: u64| *left = left.saturating_add(right);
        sum(&mut self.unwritten, other.unwritten);
        sum(&mut self.trimmed, other.trimmed);
        sum(&mut self.written, other.written);
        sum(&mut self.trim_failure, other.trim_failure);
        sum(&mut self.write_failure, other.write_failure);
        for &(trims, blocks) in &other.failed_after_trims {
            match self
                .failed_after_trims
                .binary_search_by_key(&trims, |row| row.0)
            {
                Ok(place) => sum(&mut self.failed_after_trims[place].1, blocks),
                Err(place) => self.failed_after_trims.insert(place, (trims, blocks)),
            }
        }
    }

    /// Returns the number of trims that this share of the failed blocks did not survive, in
    /// percent; `None` if none failed.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<u32> {
        let failed: u64 = self.failed_after_trims.iter().map(|row| row.1).sum();
        let rank = failed as f64 * percent / 100.0;
        let mut sum = 0;
        let row = self.failed_after_trims.iter().find(|row| {
            sum += row.1;
            sum as f64 >= rank
        });
        Some(row.or(self.failed_after_trims.last())?.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_of_two_jobs_are_one_distribution() {
        let one = |rows: &[(u32, u64)]| BlockLivesRecord {
            written: 2,
            failed_after_trims: rows.to_vec(),
            ..BlockLivesRecord::default()
        };
        let mut sum = one(&[(3, 1), (9, 4)]);
        sum.merge(&one(&[(0, 2), (9, 3)]));
        assert_eq!(
            sum,
            BlockLivesRecord {
                written: 4,
                ..one(&[(0, 2), (3, 1), (9, 7)])
            }
        );
        let percentiles = [1.0, 20.0, 21.0, 30.0, 31.0, 100.0].map(|p| sum.percentile(p));
        assert_eq!(percentiles, [0, 0, 3, 3, 9, 9].map(Some));
        assert_eq!(one(&[]).percentile(50.0), None);
    }
}
