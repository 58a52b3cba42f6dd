//! Powers with a fixed exponent, several times faster than `libm`'s and, like it, with identical
//! bits on every host: only sums and products of doubles are used, rounded as IEEE 754 prescribes.
//!
//! x^p = 2^(p · log₂ x), where x = 2^e · m with 1 ≤ m < 2. The leading bits of m choose a table's
//! row, what is left of m is near 1, and so is what is left of the power: short polynomials do.

use std::sync::LazyLock;

/// Function that raises numbers to a fixed power.
#[derive(Clone, Copy, Debug)]
pub(super) struct Power {
    exponent: f64,
    tables: &'static Tables,
}

/// By the leading bits of a mantissa, or of the fraction of a logarithm.
#[derive(Debug)]
struct Tables {
    /// About 1/m in the middle of each row, and the binary logarithm of what it is exactly 1 over.
    logarithms: [(f64, f64); ROWS],
    /// 2^(row/ROWS).
    powers: [f64; ROWS],
}

impl Power {
    pub(super) fn new(exponent: f64) -> Self {
        Self {
            exponent,
            tables: &TABLES,
        }
    }

    /// `x` to the power, within a few parts in 10¹⁴, for a normal `x` above 0 and a result of at
    /// most 1; what would be below 2⁻¹⁰⁰⁰ (so also 0, if the exponent is above 0) is about that.
    #[inline]
    pub(super) fn of(&self, x: f64) -> f64 {
        let logarithm = (self.exponent * self.binary_logarithm(x)).max(LOGARITHM_MIN);
        self.two_to(logarithm)
    }

    #[inline]
    fn binary_logarithm(&self, x: f64) -> f64 {
        let bits = x.to_bits();
        let exponent = (bits >> 52) as i32 - 1023;
        let (inverse, logarithm) = self.tables.logarithms[row(bits >> (52 - ROW_BITS))];
        let mantissa = f64::from_bits(bits & MANTISSA | ONE);
        // |rest| ≤ 2⁻⁸; what the series leaves out is below rest⁶/6 < 10⁻¹⁵.
        let rest = mantissa * inverse - 1.0;
        let square = rest * rest;
        let series =
            (rest - 0.5 * square) + square * rest * (1.0 / 3.0 - 0.25 * rest + 0.2 * square);
        f64::from(exponent) + (logarithm + series * std::f64::consts::LOG2_E)
    }

    /// 2^y for −1000 ≤ y ≤ 1.
    #[inline]
    fn two_to(&self, y: f64) -> f64 {
        // The sum leaves no room for fractions: y in steps of 1/ROWS stands in its last bits.
        let shifted = y * ROWS as f64 + TO_INTEGER;
        let steps = shifted.to_bits();
        let rest = y - (shifted - TO_INTEGER) * (1.0 / ROWS as f64);
        // |z| < 0.003; what the series leaves out is below z⁵/120 < 10⁻¹⁴.
        let z = rest * std::f64::consts::LN_2;
        let square = z * z;
        let series = 1.0 + (z + square * (0.5 + z * (1.0 / 6.0) + square * (1.0 / 24.0)));
        // Wraps into the exponent's place: the whole steps are the power's exponent.
        let scale = (steps >> ROW_BITS).wrapping_add(1023) << 52;
        f64::from_bits(scale) * (self.tables.powers[row(steps)] * series)
    }
}

impl Tables {
    #[expect(clippy::cast_precision_loss, reason = "rows are few")]
    fn new() -> Self {
        Self {
            logarithms: std::array::from_fn(|row| {
                let inverse = 1.0 / (1.0 + (row as f64 + 0.5) / ROWS as f64);
                (inverse, -libm::log2(inverse))
            }),
            powers: std::array::from_fn(|row| libm::exp2(row as f64 / ROWS as f64)),
        }
    }
}

/// Returns the row that the last bits select.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "only the last bits count")]
const fn row(bits: u64) -> usize {
    bits as usize % ROWS
}

/// Read only; 3 KiB, so that they stay in the L1 cache.
static TABLES: LazyLock<Tables> = LazyLock::new(Tables::new);

const ROW_BITS: u32 = 7;
const ROWS: usize = 1 << ROW_BITS;
/// The bits of a double's mantissa.
const MANTISSA: u64 = (1 << 52) - 1;
/// The bits of 1.0.
const ONE: u64 = 1023 << 52;
/// 1.5 · 2⁵²: doubles of this size are integers, and the two's complement of one that was added
/// stands in the last bits.
const TO_INTEGER: f64 = 6_755_399_441_055_744.0;
/// Smallest logarithm; smaller ones would leave the range of normal doubles.
const LOGARITHM_MIN: f64 = -1000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(x: f64, exponent: f64) {
        let (got, want) = (Power::new(exponent).of(x), libm::pow(x, exponent));
        assert!(
            (got / want - 1.0).abs() < 5e-14 * (1.0 + libm::log(want).abs()),
            "{x}^{exponent} is {want}, not {got}"
        );
    }

    #[test]
    fn powers_agree_with_libm() {
        for step in 1..=10_000 {
            let x = f64::from(step) / 10_000.0;
            for exponent in [0.046, 0.5, 1.0, 2.5, 7.2, 66.0] {
                check(x, exponent);
            }
            // A Zipf's: bases above 1 and exponents below 0.
            for exponent in [-10.0, -1.0, -0.25] {
                check(1.0 / x, exponent);
            }
        }
        check(1.0 / (1_u64 << 53) as f64, 7.2);
        check(1.0 + f64::EPSILON, -10.0);
    }

    #[test]
    fn a_power_of_zero_is_almost_zero() {
        assert!(Power::new(7.2).of(0.0) < 1e-300);
        assert!(Power::new(0.046).of(0.0) < 1e-14);
    }

    #[test]
    fn powers_have_the_same_bits_everywhere() {
        let bits = [0.1, 0.37, 0.999].map(|x| Power::new(7.2).of(x).to_bits());
        let want = [
            4_499_359_807_020_864_936,
            4_560_316_209_949_938_519,
            4_607_117_767_657_965_773,
        ];
        assert_eq!(bits, want);
    }
}
