//! Steady-state detection over a series of samples, one per interval.

/// Criterion of the steady state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyCriterion {
    /// Largest distance of a sample from the mean.
    Deviation,
    /// Slope of the least-squares line, per interval.
    Slope,
}

/// Evaluation of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SteadyEvaluation {
    /// Mean of the samples.
    pub mean: f64,
    /// Deviation (not negative), or slope.
    pub value: f64,
}

impl SteadyEvaluation {
    /// Value compared with the limit: absolute, and in percent of the mean if so requested. A mean
    /// of zero is steady only if all samples are zero.
    #[must_use]
    pub fn criterion(&self, percent: bool) -> f64 {
        match percent {
            false => self.value.abs(),
            true if self.mean == 0.0 && self.value == 0.0 => 0.0,
            true => 100.0 * self.value.abs() / self.mean,
        }
    }
}

/// Evaluates a series; all zero for an empty one.
#[must_use]
pub fn evaluate_steady(samples: &[u64], how: SteadyCriterion) -> SteadyEvaluation {
    if samples.is_empty() {
        return SteadyEvaluation::default();
    }
    let count = samples.len() as f64;
    let mean = samples.iter().map(|&sample| sample as f64).sum::<f64>() / count;
    let value = match how {
        SteadyCriterion::Deviation => samples
            .iter()
            .map(|&sample| (sample as f64 - mean).abs())
            .fold(0.0, f64::max),
        SteadyCriterion::Slope => slope(samples.iter().map(|&sample| sample as f64), mean),
    };
    SteadyEvaluation { mean, value }
}

/// Measurement window of rounds, judged as SNIA does: "Solid State Storage Performance Test
/// Specification", version 2.0.2, definition of *Steady State*. Range and slope are compared with
/// shares of the mean; the specification has 20 % and 10 %, and five rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyWindow {
    /// Mean of the values.
    pub mean: f64,
    /// Largest value minus smallest value.
    pub range: f64,
    /// Largest value minus smallest value of the least-squares line over the window.
    pub excursion: f64,
}

impl SteadyWindow {
    /// Evaluates one value per round; `None` without values.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let slope = slope(values.iter().copied(), mean);
        Some(Self {
            mean,
            range: largest - smallest,
            excursion: slope.abs() * (values.len() - 1) as f64,
        })
    }

    /// Returns whether range and excursion are at most these shares of the mean. Values that are
    /// all 0 are steady.
    #[must_use]
    pub fn is_steady(&self, range: f64, slope: f64) -> bool {
        self.range <= range * self.mean && self.excursion <= slope * self.mean
    }
}

/// Returns the slope of the least-squares line, per interval.
fn slope(samples: impl ExactSizeIterator<Item = f64>, mean: f64) -> f64 {
    let middle = (samples.len() as f64 - 1.0) / 2.0;
    let (mut products, mut squares) = (0.0, 0.0);
    for (index, sample) in samples.enumerate() {
        let distance = index as f64 - middle;
        products += distance * (sample - mean);
        squares += distance * distance;
    }
    if squares == 0.0 {
        return 0.0;
    }
    products / squares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(samples: &[u64], how: SteadyCriterion, value: f64, percent: f64) {
        let evaluation = evaluate_steady(samples, how);
        assert!((evaluation.value - value).abs() < 1e-5, "{evaluation:?}");
        let criterion = evaluation.criterion(true);
        assert!((criterion - percent).abs() < 1e-4, "{criterion}");
    }

    /// Series measured with fio 3.33, and its verdict on them.
    #[test]
    fn series_are_judged_as_by_fio() {
        check(
            &[8_257_536, 8_228_864, 8_192_000],
            SteadyCriterion::Deviation,
            34_133.333_333,
            0.414_938,
        );
        check(
            &[2001, 2002, 1936],
            SteadyCriterion::Deviation,
            43.666_667,
            2.205_76,
        );
        check(&[2003, 1997, 2004], SteadyCriterion::Slope, 0.5, 0.024_988);
        check(
            &[8_167_399, 8_142_946, 8_274_084],
            SteadyCriterion::Slope,
            53_342.5,
            0.650_930,
        );
    }

    #[test]
    fn odd_series() {
        check(&[], SteadyCriterion::Slope, 0.0, 0.0);
        check(&[5], SteadyCriterion::Slope, 0.0, 0.0);
        check(&[0, 0], SteadyCriterion::Deviation, 0.0, 0.0);
        check(&[3, 2, 1], SteadyCriterion::Slope, -1.0, 50.0);
    }

    /// Worked by hand: with x from −2 to 2 the slope is Σ x·y / 10, the excursion 4 times that.
    #[test]
    fn windows_are_judged_as_by_snia() {
        for (values, mean, range, excursion, want) in [
            ([100.0, 98.0, 103.0, 101.0, 99.0], 100.2, 5.0, 0.4, true),
            // 20 % and 10 % exactly are within the limits.
            ([90.0, 110.0, 100.0, 100.0, 100.0], 100.0, 20.0, 4.0, true),
            ([95.0, 97.5, 100.0, 102.5, 105.0], 100.0, 10.0, 10.0, true),
            // The range is too large though the line is flat.
            ([100.0, 89.0, 100.0, 111.0, 100.0], 100.0, 22.0, 8.8, false),
            // The line rises too far though the range is small enough.
            ([94.0, 97.0, 100.0, 103.0, 106.0], 100.0, 12.0, 12.0, false),
            ([0.0; 5], 0.0, 0.0, 0.0, true),
        ] {
            let window = SteadyWindow::of(&values).unwrap();
            assert!((window.mean - mean).abs() < 1e-9, "{window:?}");
            assert!((window.range - range).abs() < 1e-9, "{window:?}");
            assert!((window.excursion - excursion).abs() < 1e-9, "{window:?}");
            // A hair more than the limits: sums are rounded.
            let is_steady = window.is_steady(0.2 + 1e-12, 0.1 + 1e-12);
            assert_eq!(is_steady, want, "{window:?}");
        }
        assert_eq!(SteadyWindow::of(&[]), None);
    }
}
