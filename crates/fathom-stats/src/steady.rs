//! Steady-state detection over a series of samples, one per interval.

/// Criterion of the steady state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// By the largest distance of a sample from the mean.
    Deviation,
    /// By the slope of the least-squares line, per interval.
    Slope,
}

/// Evaluation of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Judged {
    /// The mean of the samples.
    pub mean: f64,
    /// The deviation (not negative), or the slope.
    pub value: f64,
}

impl Judged {
    /// Value compared with the limit: without its sign, in percent of the mean where that was asked
    /// for. A mean of zero is steady only if nothing else ever came.
    #[must_use]
    pub fn criterion(&self, percent: bool) -> f64 {
        match percent {
            false => self.value.abs(),
            true if self.mean == 0.0 && self.value == 0.0 => 0.0,
            true => 100.0 * self.value.abs() / self.mean,
        }
    }
}

/// Judges a series; nothing comes of an empty one.
#[must_use]
pub fn judge(samples: &[u64], how: Judge) -> Judged {
    if samples.is_empty() {
        return Judged::default();
    }
    let count = samples.len() as f64;
    let mean = samples.iter().map(|&sample| sample as f64).sum::<f64>() / count;
    let value = match how {
        Judge::Deviation => samples
            .iter()
            .map(|&sample| (sample as f64 - mean).abs())
            .fold(0.0, f64::max),
        Judge::Slope => slope(samples, mean),
    };
    Judged { mean, value }
}

/// The least-squares line's rise by one interval.
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
    fn check(samples: &[u64], how: Judge, value: f64, percent: f64) {
        let judged = judge(samples, how);
        assert!((judged.value - value).abs() < 1e-5, "{judged:?}");
        let criterion = judged.criterion(true);
        assert!((criterion - percent).abs() < 1e-4, "{criterion}");
    }

    /// Series of fio 3.33, with what it said of them.
    #[test]
    fn series_are_judged_as_by_fio() {
        check(
            &[8_257_536, 8_228_864, 8_192_000],
            Judge::Deviation,
            34_133.333_333,
            0.414_938,
        );
        check(&[2001, 2002, 1936], Judge::Deviation, 43.666_667, 2.205_76);
        check(&[2003, 1997, 2004], Judge::Slope, 0.5, 0.024_988);
        check(
            &[8_167_399, 8_142_946, 8_274_084],
            Judge::Slope,
            53_342.5,
            0.650_930,
        );
    }

    #[test]
    fn odd_series() {
        check(&[], Judge::Slope, 0.0, 0.0);
        check(&[5], Judge::Slope, 0.0, 0.0);
        check(&[0, 0], Judge::Deviation, 0.0, 0.0);
        check(&[3, 2, 1], Judge::Slope, -1.0, 50.0);
    }
}
