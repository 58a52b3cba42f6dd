//! Numbers in fio's text format: a few digits and a unit prefix.

/// System of unit prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefix {
    /// Ki, Mi, Gi… in steps of 1024.
    Binary,
    /// k, M, G… in steps of 1000.
    Decimal,
}

impl Prefix {
    /// Returns the system that `kb_base` selects.
    pub(crate) const fn of_base(kb_base: u64) -> Self {
        if kb_base == 1000 {
            Self::Decimal
        } else {
            Self::Binary
        }
    }

    /// Returns the other system, printed in parentheses.
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Binary => Self::Decimal,
            Self::Decimal => Self::Binary,
        }
    }

    const fn step(self) -> u64 {
        match self {
            Self::Binary => 1024,
            Self::Decimal => 1000,
        }
    }

    const fn names(self) -> [&'static str; 7] {
        match self {
            Self::Binary => ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"],
            Self::Decimal => ["", "k", "M", "G", "T", "P", "E"],
        }
    }
}

/// Formats `value` with at most `digits` digits before the point and a prefix; decimals fill the
/// rest.
///
/// A value that fits is printed without a prefix. Otherwise it is divided by the prefix's step
/// until it fits, and the remainder of the last division alone gives the decimals; where there is
/// no room for one, the number is rounded.
pub(crate) fn compact(value: u64, digits: u32, prefix: Prefix) -> String {
    compact_from(value, digits, prefix, 0)
}

/// Formats a value that is already scaled by prefix number `power` (1: Ki or k).
pub(crate) fn compact_from(value: u64, digits: u32, prefix: Prefix, power: usize) -> String {
    let step = prefix.step();
    let names = prefix.names();
    let (mut whole, mut rest, mut index) = (value, None, power.min(names.len() - 1));
    while length(whole) > digits && index < names.len() - 1 {
        rest = Some(whole % step);
        whole /= step;
        index += 1;
    }
    let name = names[index];
    let Some(rest) = rest else {
        return format!("{whole}{name}");
    };
    let decimals = digits.saturating_sub(length(whole)).saturating_sub(1) as usize;
    if decimals == 0 {
        let rounded = whole + u64::from(rest * 2 >= step);
        return format!("{rounded}{name}");
    }
    let fraction = format!("{:.decimals$}", rest as f64 / step as f64);
    match fraction.strip_prefix("0.") {
        Some(fraction) => format!("{whole}.{fraction}{name}"),
        // Rounded up to one.
        None => format!("{}.{}{name}", whole + 1, "0".repeat(decimals)),
    }
}

/// Returns the number of decimal digits of `value`.
const fn length(value: u64) -> u32 {
    match value.checked_ilog10() {
        Some(exponent) => exponent + 1,
        None => 1,
    }
}

/// Returns `part` as a percentage of `whole`; 0 if `whole` is 0.
pub(crate) fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        100.0 * part / whole
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::Prefix::{Binary, Decimal};
    use super::*;

    #[track_caller]
    fn check(value: u64, digits: u32, prefix: Prefix, want: &str) {
        assert_eq!(compact(value, digits, prefix), want);
    }

    #[test]
    fn as_fio_prints_them() {
        // Seen in outputs of fio 3.33 and 3.42, with the default of four digits.
        check(5280, 4, Decimal, "5280");
        check(85_333, 4, Decimal, "85.3k");
        check(3_919_618, 4, Decimal, "3920k");
        check(1_956_465, 4, Decimal, "1956k");
        check(10_000, 4, Decimal, "10.0k");
        check(46_545, 4, Decimal, "46.5k");
        check(4096, 4, Binary, "4096");
        check(16_384, 4, Binary, "16.0Ki");
        check(2_048_000, 4, Binary, "2000Ki");
        check(409_497, 4, Binary, "400Ki");
        check(409_497, 4, Decimal, "409k");
        check(8_013_681_735, 4, Binary, "7642Mi");
        check(8_013_681_735, 4, Decimal, "8014M");
        check(16_035_377_152, 4, Binary, "14.9Gi");
        check(13_712_303, 4, Binary, "13.1Mi");
        check(65_536, 4, Decimal, "65.5k");
        check(1_048_576, 4, Binary, "1024Ki");
        check(10_240, 4, Binary, "10.0Ki");
        // Smallest and largest latency have six digits.
        check(3_605_370, 6, Decimal, "3605.4k");
        check(1_660_680, 6, Decimal, "1660.7k");
        check(825_377, 6, Decimal, "825377");
        check(8_028_200, 6, Decimal, "8028.2k");
        // `significant_figures=8`.
        check(16_777_216_000, 8, Binary, "16384000Ki");
        check(16_777_216_000, 8, Decimal, "16777216k");
    }

    #[test]
    fn rounding_carries() {
        check(99_990, 4, Decimal, "100.0k");
        check(9_999_900, 4, Decimal, "10000k");
        check(99_999_600, 5, Decimal, "100000k");
        check(999_999_999, 5, Decimal, "1000.0M");
    }

    #[test]
    fn ends_of_the_range() {
        check(0, 4, Binary, "0");
        check(u64::MAX, 4, Binary, "16.0Ei");
        check(u64::MAX, 4, Decimal, "18.4E");
        check(u64::MAX, 1, Decimal, "18E");
        check(u64::MAX, 0, Decimal, "18E");
        check(u64::MAX, 40, Decimal, "18446744073709551615");
    }

    #[test]
    fn a_value_may_start_at_a_prefix() {
        assert_eq!(compact_from(7872, 4, Binary, 1), "7872Ki");
        assert_eq!(compact_from(40_040, 4, Binary, 1), "39.1Mi");
        assert_eq!(compact_from(5, 4, Binary, 99), "5Ei");
    }
}
