//! One measured figure and its bound.

use std::fmt;

/// Measured figure, and its bound.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    /// The measured quantity.
    pub(crate) what: &'static str,
    pub(crate) value: f64,
    /// Unit of value and bound, or the whole of which a count is a part: `ms`, `of 200`.
    pub(crate) unit: &'static str,
    pub(crate) bound: Bound,
}

/// Bound of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Figure {
    /// Creates a figure that must not exceed `most`.
    pub(crate) const fn at_most(
        what: &'static str,
        value: f64,
        unit: &'static str,
        most: f64,
    ) -> Self {
        Self {
            what,
            value,
            unit,
            bound: Bound::AtMost(most),
        }
    }

    /// Creates a figure that must reach `least`.
    pub(crate) const fn at_least(
        what: &'static str,
        value: f64,
        unit: &'static str,
        least: f64,
    ) -> Self {
        Self {
            what,
            value,
            unit,
            bound: Bound::AtLeast(least),
        }
    }

    /// Returns whether the figure is reached; one that is not a number is not.
    pub(crate) fn is_met(&self) -> bool {
        match self.bound {
            Bound::AtMost(most) => self.value <= most,
            Bound::AtLeast(least) => self.value >= least,
        }
    }

    /// Returns the bound in words: `at most 100 ms`.
    pub(crate) fn bound_text(&self) -> String {
        match self.bound {
            Bound::AtMost(most) => format!("at most {most} {}", self.unit),
            Bound::AtLeast(least) => format!("at least {least} {}", self.unit),
        }
    }

    /// Returns the value with its unit; counts have no decimals.
    pub(crate) fn value_text(&self) -> String {
        let decimals = match self.value {
            value if value.fract() == 0.0 => 0,
            value if value.abs() < 10.0 => 3,
            _ => 1,
        };
        format!("{:.decimals$} {}", self.value, self.unit)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, bound) = (self.value_text(), self.bound_text());
        write!(f, "{}: {value} ({bound})", self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_met_on_its_side_of_the_bound() {
        assert!(Figure::at_most("a", 100.0, "ms", 100.0).is_met());
        assert!(!Figure::at_most("a", 100.1, "ms", 100.0).is_met());
        assert!(Figure::at_least("a", 95.0, "of 100", 95.0).is_met());
        assert!(!Figure::at_least("a", 94.0, "of 100", 95.0).is_met());
        assert!(!Figure::at_most("a", f64::NAN, "ms", 100.0).is_met());
    }

    #[test]
    fn a_figure_is_printed_with_its_bound() {
        let text = |value| Figure::at_most("list", value, "ms", 100.0).to_string();
        assert_eq!(text(7.0), "list: 7 ms (at most 100 ms)");
        assert_eq!(text(7.25), "list: 7.250 ms (at most 100 ms)");
        assert_eq!(text(70.25), "list: 70.2 ms (at most 100 ms)");
    }
}
