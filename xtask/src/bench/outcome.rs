//! Verdicts: comparison of measured pairs with a required figure.

use super::pairs::Pair;
use super::row::{Check, Figure, KEPT, Row};
use super::statistics::Spread;

/// One check of a row, with its result.
#[derive(Debug)]
pub(crate) struct Outcome<'a> {
    pub(crate) row: &'a Row,
    pub(crate) check: &'a Check,
    pub(crate) result: Result<Measured, Skipped>,
}

/// Reason why a row could not be measured on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Skipped(pub(crate) String);

/// Summary of the pairs of one check.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) other: Spread,
    pub(crate) fathom: Spread,
    ratio: Spread,
    difference: Spread,
}

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The result reaches the figure.
    Reached,
    /// The result does not, but its 95 % interval contains the figure.
    WithinNoise,
    /// Neither does.
    FellShort,
}

impl Verdict {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Reached => "reached",
            Self::WithinNoise => "within noise",
            Self::FellShort => "falls short",
        }
    }
}

impl Measured {
    /// Summarises pairs, of which there must be at least one.
    pub(crate) fn new(pairs: &[Pair]) -> Self {
        let spread = |value: fn(&Pair) -> f64| {
            let values: Vec<f64> = pairs.iter().map(value).collect();
            Spread::of(&values)
        };
        let both: Vec<_> = pairs.iter().map(|pair| (pair.fathom, pair.other)).collect();
        Self {
            other: spread(|pair| pair.other),
            fathom: spread(|pair| pair.fathom),
            ratio: Spread::of_ratios(&both),
            difference: spread(|pair| pair.fathom - pair.other),
        }
    }

    /// Returns the spread that a figure applies to.
    fn spread_of(&self, figure: Figure) -> &Spread {
        match figure {
            Figure::AtLeast(_) | Figure::AtMost(_) | Figure::Held(_) => &self.ratio,
            Figure::NoMore => &self.difference,
            Figure::Limit(_) | Figure::Floor(_) => &self.fathom,
        }
    }

    /// Compares the result with a figure.
    pub(crate) fn verdict(&self, figure: Figure) -> Verdict {
        let spread = self.spread_of(figure);
        let (least, most) = match figure {
            Figure::AtLeast(least) | Figure::Floor(least) => (least, f64::INFINITY),
            Figure::AtMost(most) | Figure::Limit(most) => (f64::NEG_INFINITY, most),
            Figure::NoMore => (f64::NEG_INFINITY, 0.0),
            Figure::Held(share) => (1.0 - share, 1.0 + share),
        };
        if (least..=most).contains(&spread.middle) {
            Verdict::Reached
        } else if spread.low <= most && spread.high >= least {
            Verdict::WithinNoise
        } else {
            Verdict::FellShort
        }
    }

    /// Formats the result, the range of its pairs and its interval.
    pub(crate) fn shown(&self, check: &Check) -> [String; 3] {
        let spread = self.spread_of(check.figure);
        let show = |value: f64| match check.figure {
            Figure::AtLeast(_) | Figure::AtMost(_) => format!("{value:.2} ×"),
            Figure::Held(_) => format!("{value:.4} ×"),
            Figure::Limit(_) | Figure::Floor(_) | Figure::NoMore => check.measure.show(value),
        };
        let mut result = show(spread.middle);
        // A count repeats exactly: it has neither range nor interval.
        let range = |from: f64, to: f64| match from.total_cmp(&to) {
            std::cmp::Ordering::Equal => "–".to_owned(),
            _ => range(&show(from), &show(to), &result),
        };
        let ranges = [
            range(spread.smallest, spread.largest),
            range(spread.low, spread.high),
        ];
        // A ratio of values of which one is negative means nothing.
        if check.figure == Figure::NoMore && self.other.middle > 0.0 && self.fathom.middle > 0.0 {
            result = format!("{result} ({:.2} ×)", self.ratio.middle);
        }
        let [all, interval] = ranges;
        [result, all, interval]
    }
}

/// Formats a range of values that are formatted like `result`, without its unit where all three
/// have the same.
fn range(from: &str, to: &str, result: &str) -> String {
    let [from, to, result] =
        [from, to, result].map(|text| text.split_once(' ').unwrap_or((text, "")));
    if from.1 == result.1 && to.1 == result.1 {
        let to_word = if from.0.starts_with('-') {
            " to "
        } else {
            "–"
        };
        return format!("{}{to_word}{}", from.0, to.0);
    }
    format!("{} {}–{} {}", from.0, from.1, to.0, to.1)
}

impl Outcome<'_> {
    /// Returns whether the benchmark fails because of this check.
    pub(crate) fn is_failure(&self) -> bool {
        let figure = self.check.figure;
        self.result
            .as_ref()
            .is_ok_and(|measured| measured.verdict(figure) == Verdict::FellShort)
    }

    /// Returns whether the check compares a count with the kept one.
    pub(crate) fn is_growth(&self) -> bool {
        self.check.beside == KEPT && matches!(self.check.figure, Figure::AtMost(_))
    }

    /// Formats one line for the terminal.
    pub(crate) fn line(&self) -> String {
        let name = format!("{}{}", self.row.name, self.check.measure.suffix());
        match &self.result {
            Err(Skipped(why)) => format!("{name}: skipped: {why}"),
            Ok(measured) => {
                let [result, range, interval] = measured.shown(self.check);
                let [other, fathom] = self.sides(measured);
                let verdict = measured.verdict(self.check.figure).word();
                format!(
                    "{name}: {result} [{range}; 95 % {interval}] ({other}, fathom {fathom}), \
                     figure {}: {verdict}",
                    self.check,
                )
            }
        }
    }

    /// Formats the values of both sides, the other side's with its name.
    pub(crate) fn sides(&self, measured: &Measured) -> [String; 2] {
        let show = |spread: &Spread| self.check.measure.show(spread.middle);
        let other = format!("{} {}", self.check.beside, show(&measured.other));
        [other, show(&measured.fathom)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::Measure;
    use super::*;

    #[track_caller]
    fn check(figure: Figure, pairs: &[(f64, f64)], want: Verdict) {
        let pairs: Vec<Pair> = pairs
            .iter()
            .map(|&(other, fathom)| Pair { other, fathom })
            .collect();
        let measured = Measured::new(&pairs);
        assert_eq!(measured.verdict(figure), want);
    }

    #[test]
    fn a_figure_is_reached_missed_or_in_doubt() {
        check(Figure::AtLeast(4.0), &[(1.0, 4.5); 5], Verdict::Reached);
        check(Figure::AtLeast(4.0), &[(1.0, 3.5); 5], Verdict::FellShort);
        let mixed = [(1.0, 0.9), (1.0, 0.96), (1.0, 0.98), (1.0, 1.0), (1.0, 1.1)];
        check(Figure::AtLeast(1.0), &mixed, Verdict::WithinNoise);
        check(Figure::AtMost(0.97), &mixed, Verdict::WithinNoise);
        check(Figure::AtMost(1.05), &[(100.0, 106.0)], Verdict::FellShort);
        check(Figure::AtMost(1.05), &[(100.0, 105.0)], Verdict::Reached);
        check(Figure::Limit(16.0), &[(20.0, 16.0); 5], Verdict::Reached);
        check(Figure::Limit(30.0), &[(20.0, 31.0); 5], Verdict::FellShort);
    }

    #[test]
    fn a_range_has_the_digits_of_its_result() {
        let check = Check {
            measure: Measure::KeptLines,
            beside: "without a log",
            figure: Figure::Floor(8e6),
        };
        let pairs =
            [49_804_710.0, 51_400_000.0, 51_995_943.0].map(|fathom| Pair { other: 0.0, fathom });
        let shown = Measured::new(&pairs).shown(&check);
        assert_eq!(shown[..2], ["51.4 M lines/s", "49.8–52.0"]);
        assert_eq!(
            range("999.0 k IOPS", "1.10 M IOPS", "1.00 M IOPS"),
            "999.0 k IOPS–1.10 M IOPS"
        );
    }

    #[test]
    fn values_that_may_be_negative_are_compared_by_difference() {
        check(Figure::NoMore, &[(-1.0, -2.0); 5], Verdict::Reached);
        check(Figure::NoMore, &[(-2.0, -1.0); 5], Verdict::FellShort);
        let check = Check {
            measure: Measure::ShareOfClat(500),
            beside: "fio",
            figure: Figure::NoMore,
        };
        let shown = |other, fathom| {
            let pairs = [Pair { other, fathom }; 2];
            Measured::new(&pairs).shown(&check)
        };
        assert_eq!(shown(-4000.0, -2000.0)[0], "2.00 µs");
        assert_eq!(range("-3.0 µs", "0.1 µs", "-1.0 µs"), "-3.0 to 0.1");
        assert_eq!(shown(4000.0, 1000.0)[..2], ["-3.00 µs (0.25 ×)", "–"]);
    }

    #[test]
    fn a_rate_is_missed_on_either_side() {
        check(Figure::Held(0.001), &[(1e6, 1.0005e6)], Verdict::Reached);
        check(Figure::Held(0.001), &[(1e6, 1.002e6)], Verdict::FellShort);
        check(Figure::Held(0.001), &[(1e6, 0.998e6)], Verdict::FellShort);
    }
}
