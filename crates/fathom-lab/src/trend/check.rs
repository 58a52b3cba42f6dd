//! Check of the newest runs: did they change for the worse?

use fathom_record::MetricName;
use fathom_stats::{RatioInterval, holm, rank_sum};
use serde_json::Value;

use super::{Trend, TrendChange, is_worse, middle, newest};

/// Check of many series at once.
///
/// A change point for the worse counts among the newest [`RECENT`] runs: later it is a state that
/// was accepted. The newest [`NEWEST`] runs are held against those since the last change before
/// them, too, because no division shows a change on its first day.
///
/// Each series is judged by itself, at [`PROVED`]: a correction over all of them would leave 5 runs
/// against 5 no p value that is small enough from the second series on. The price is reported
/// instead, as [`by_chance`](Self::by_chance).
#[derive(Clone, Debug, Default)]
pub struct TrendCheck {
    trends: Vec<Trend>,
    tolerance: f64,
}

/// The newest runs against those before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewestRuns {
    /// p value of the exact rank-sum test.
    pub p: f64,
    /// The same after Holm, over all series of the check; nothing is decided by it.
    pub p_holm: f64,
    /// Ratio of the newest runs to those before.
    pub ratio: Option<RatioInterval>,
    /// They are proved to be worse, by more than the tolerance.
    pub is_worse: bool,
}

impl NewestRuns {
    /// Returns the size of the difference in words: `-6.8 % [-7.5, -6.1] worse`.
    #[must_use]
    pub fn size(&self) -> String {
        super::size(self.ratio.as_ref(), self.is_worse)
    }

    /// Returns the ratio as JSON.
    #[must_use]
    pub fn ratio_json(&self) -> Value {
        super::ratio_json(self.ratio.as_ref())
    }
}

impl TrendCheck {
    /// Creates a check. A change by less than `tolerance`, as a share, is too small to count.
    #[must_use]
    pub const fn new(tolerance: f64) -> Self {
        Self {
            trends: Vec::new(),
            tolerance,
        }
    }

    /// Adds a series.
    pub fn add(&mut self, metric: MetricName, values: Vec<f64>) {
        self.trends.push(Trend::of(metric, values));
    }

    /// Returns the series, in the order in which they were added.
    #[must_use]
    pub fn trends(&self) -> &[Trend] {
        &self.trends
    }

    /// Returns the newest runs of each series; `None` where fewer runs are before them than there
    /// are newest ones.
    #[must_use]
    pub fn newest_runs(&self) -> Vec<Option<NewestRuns>> {
        let tested: Vec<_> = self.trends.iter().map(sides).collect();
        let p_values = tested.iter().flatten();
        let p_values: Vec<f64> = p_values
            .map(|(before, newest)| rank_sum(before, newest))
            .collect();
        let mut adjusted = p_values.iter().zip(holm(&p_values));
        let runs = tested.iter().zip(&self.trends).map(|(sides, trend)| {
            let (before, newest) = (*sides)?;
            let (&p, p_holm) = adjusted.next()?;
            let (low, high) = (middle(before), middle(newest));
            Some(NewestRuns {
                p,
                p_holm,
                ratio: RatioInterval::of_series(newest, before),
                is_worse: p <= PROVED
                    && is_worse(&trend.metric, low, high)
                    && self.is_large(low, high),
            })
        });
        runs.collect()
    }

    /// Returns the largest number of `tested` series without a change that are expected to be found
    /// worse by chance: half of [`PROVED`] each, as the other half is for the better, once for the
    /// change points and once for the newest runs.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a number of series")]
    pub fn by_chance(tested: usize) -> f64 {
        PROVED * tested as f64
    }

    /// Returns the last change of a series, if it is recent and for the worse.
    #[must_use]
    pub fn recent_change<'a>(&self, trend: &'a Trend) -> Option<&'a TrendChange> {
        let recent = trend.values.len().saturating_sub(RECENT);
        let last = trend.changes.last().filter(|change| change.at >= recent);
        last.filter(|change| change.is_worse && self.is_large(change.before, change.after))
    }

    fn is_large(&self, before: f64, after: f64) -> bool {
        let most = 1.0 + self.tolerance;
        after > before * most || after * most < before
    }
}

/// Returns the runs before the newest ones, from the last change on, and the newest ones.
fn sides(trend: &Trend) -> Option<(&[f64], &[f64])> {
    let cut = trend.values.len().checked_sub(NEWEST)?;
    let changes = trend.changes.iter().map(|change| change.at);
    // A change among the newest runs, or so near before them that no runs are left to compare with,
    // is what is asked for, not a beginning.
    let from = changes.rev().find(|at| at + NEWEST <= cut).unwrap_or(0);
    let before = newest(&trend.values[from..cut], true);
    (before.len() >= NEWEST).then(|| (before, &trend.values[cut..]))
}

/// Number of the newest runs that are held against those before: 5 against 5 are the fewest with
/// which p can be 0.01.
pub const NEWEST: usize = 5;

/// Number of the newest runs among which a change counts as new.
pub const RECENT: usize = 10;

/// Largest p value of a change, of each series.
pub const PROVED: f64 = 0.01;
