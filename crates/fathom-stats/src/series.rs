//! Mean of a series whose values depend on those before them.

use crate::student::t_quantile;

/// Mean of values that follow each other in time, by the fit of an AR(1) process: each value takes
/// over a share of the deviation of the one before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SeriesMean {
    /// Number of independent values that would give the mean as precisely.
    pub(crate) effective: f64,
    /// Standard error of the mean.
    error: f64,
}

impl SeriesMean {
    /// Fits the process to at least `VALUES_MIN` values; `None` of fewer.
    ///
    /// The correlation of neighbours that a sample has is too small by (1 + 4φ) ÷ n on average,
    /// because its mean was taken from the same values; this is corrected (Kendall 1954; Marriott
    /// and Pope 1954). A negative one is taken as 0: windows that take turns would make the
    /// interval narrower than their number warrants.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        if values.len() < VALUES_MIN {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        if squares <= 0.0 {
            return Some(Self {
                effective: count,
                error: 0.0,
            });
        }
        let neighbours = values.windows(2);
        let products: f64 = neighbours
            .map(|two| (two[0] - mean) * (two[1] - mean))
            .sum();
        let carried = (count * products / squares + 1.0) / (count - 4.0);
        let inflation = inflation(carried.clamp(0.0, CARRIED_MAX), count);
        // The squares around the sample's own mean lack the variance of that mean.
        let variance = squares / (count - inflation).max(1.0);
        Some(Self {
            effective: count / inflation,
            error: (variance * inflation / count).sqrt(),
        })
    }

    /// Returns the half-width of the interval that holds the true mean in 95 % of series.
    pub(crate) fn half_width(&self) -> f64 {
        let freedom = (self.effective - 1.0).max(1.0);
        t_quantile(0.975, freedom) * self.error
    }
}

/// Returns the factor by which the variance of a mean of `count` values exceeds that of independent
/// ones, if each carries over this share of its deviation.
fn inflation(carried: f64, count: f64) -> f64 {
    let left = 1.0 - carried;
    let ends = 2.0 * carried * (1.0 - libm::pow(carried, count)) / (count * left * left);
    ((1.0 + carried) / left - ends).clamp(1.0, count)
}

/// Largest share of a deviation carried over: beyond it a series has no mean to speak of.
const CARRIED_MAX: f64 = 0.999;

/// Least number of values of which the fit is defined, and then some.
const VALUES_MIN: usize = 8;
