//! Identity of a write, as the headers of its blocks carry it.

/// Short form of a write's identity: 29 bits mixed from the time, the number and the job in the
/// headers of its blocks.
///
/// Every layout of the header has these. The time distinguishes a run from an earlier one of the
/// same job, whose blocks are alike in all else and would pass for this run's. Two writes of one
/// block share a generation by a chance of 1 in 2²⁹. Exact numbers were rejected: they take twice
/// the memory, and the part of them that fits repeats at round distances, which passes over files
/// of round sizes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation(u32);

impl Generation {
    /// Number of significant bits.
    pub(crate) const BITS: u32 = 29;

    /// Creates the generation of a write from what its headers say.
    #[must_use]
    #[inline]
    pub const fn new(time_ns: u64, sequence: u64, thread: u16) -> Self {
        // The shorter layout has 16 bits of the number: enough to tell writes of one nanosecond
        // apart.
        let number = (sequence & 0xffff) << 16 | thread as u64;
        let mixed = time_ns.wrapping_mul(GOLDEN) ^ number.wrapping_mul(NUMBER_FACTOR);
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(GOLDEN);
        Self((mixed >> (64 - Self::BITS)) as u32)
    }

    /// Creates a generation from the low bits of a word.
    #[inline]
    pub(crate) const fn from_low_bits(word: u32) -> Self {
        Self(word & ((1 << Self::BITS) - 1))
    }

    /// Returns the bits.
    #[inline]
    pub(crate) const fn get(self) -> u32 {
        self.0
    }
}

/// 2⁶⁴ divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// Odd number without structure, from SplitMix64.
const NUMBER_FACTOR: u64 = 0xbf58_476d_1ce4_e5b9;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Neighbouring times, numbers and jobs, and numbers at round distances.
    #[test]
    fn writes_that_differ_in_one_thing_have_other_generations() {
        let mut seen = HashSet::new();
        let mut count = 0;
        for n in 0..1000 {
            let round = 1_000_000 * n;
            for generation in [
                Generation::new(77 + n, 5, 1),
                Generation::new(round + (1 << 40), 5, 1),
                Generation::new(9, 100 + n, 1),
                Generation::new(9, 5, 100 + u16::try_from(n).unwrap()),
            ] {
                count += 1;
                seen.insert(generation.get());
            }
        }
        // Of 4000 random numbers of 29 bits, 0.015 pairs are alike.
        assert!(seen.len() + 1 >= count, "{} of {count}", seen.len());
    }
}
