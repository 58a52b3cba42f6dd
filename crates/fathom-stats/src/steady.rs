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
        SteadyCriterion::Slope => slope(samples, mean),
    };
    SteadyEvaluation { mean, value }
}

/// Returns the slope of the least-squares line, per interval.
fn slope(samples: &[u64], mean: f64) -> f64 {
    let middle = (samples.len() as f64 - 1.0) / 2.0;
    let (mut products, mut squares) = (0.0, 0.0);
    for (index, &sample) in samples.iter().enumerate() {
        let distance = index as f64 - middle;
        products += distance * (sample as f64 - mean);
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
}
