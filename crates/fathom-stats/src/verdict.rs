//! Verdict on a metric that was measured on both sides of a comparison.

use crate::RatioInterval;
use crate::comparisons::SIGNIFICANT;

/// Verdict on a change. That none was proved is not a proof of equality: it is `Unclear`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A proved change for the worse, beyond the tolerance.
    Worse,
    /// A proved change for the better, beyond the tolerance.
    Better,
    /// The whole interval is within the tolerance.
    Same,
    /// Anything else.
    Unclear,
}

/// Direction in which a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Improves {
    /// More is better, as of a rate.
    Upwards,
    /// Less is better, as of a latency.
    Downwards,
}

impl Verdict {
    /// Decides on the ratio of a metric to its baseline. `p_adjusted` is the p value of the test
    /// after Holm, and `tolerance` the relative change that is too small to matter, above 0.
    ///
    /// The tolerance reaches from 1 ÷ (1 + tolerance) to 1 + tolerance: with the sides exchanged,
    /// the verdict is the opposite one.
    #[must_use]
    pub fn of(ratio: &RatioInterval, p_adjusted: f64, tolerance: f64, improves: Improves) -> Self {
        let (least, most) = (1.0 / (1.0 + tolerance), 1.0 + tolerance);
        let is_more = ratio.middle > most;
        let is_less = ratio.middle < least;
        if p_adjusted <= SIGNIFICANT && (is_more || is_less) {
            return match is_more == (improves == Improves::Upwards) {
                true => Self::Better,
                false => Self::Worse,
            };
        }
        if ratio.low >= least && ratio.high <= most {
            Self::Same
        } else {
            Self::Unclear
        }
    }

    /// Returns the word in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Better => "better",
            Self::Same => "same",
            Self::Unclear => "unclear",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check([low, middle, high]: [f64; 3], p_adjusted: f64, want: &str) {
        let ratio = RatioInterval {
            middle,
            low,
            high,
            coverage: 0.95,
        };
        let verdict = Verdict::of(&ratio, p_adjusted, 0.02, Improves::Upwards);
        assert_eq!(verdict.word(), want, "{ratio:?}");
        // The sides exchanged, and the metric turned round.
        let exchanged = RatioInterval {
            middle: 1.0 / middle,
            low: 1.0 / high,
            high: 1.0 / low,
            coverage: 0.95,
        };
        let same = Verdict::of(&exchanged, p_adjusted, 0.02, Improves::Downwards);
        assert_eq!(same, verdict, "{exchanged:?}");
    }

    #[test]
    fn a_change_is_proved_and_beyond_the_tolerance() {
        check([1.03, 1.05, 1.07], 0.01, "better");
        check([0.93, 0.95, 0.97], 0.01, "worse");
        check([0.93, 0.95, 0.97], 0.05, "worse");
        check([0.93, 0.95, 0.97], 0.051, "unclear");
    }

    #[test]
    fn what_is_proved_but_small_is_the_same_only_if_it_surely_is() {
        check([1.005, 1.01, 1.015], 0.01, "same");
        check([1.005, 1.01, 1.03], 0.01, "unclear");
        check([0.99, 1.0, 1.01], 0.9, "same");
        check([0.9, 1.0, 1.1], 0.9, "unclear");
    }
}
