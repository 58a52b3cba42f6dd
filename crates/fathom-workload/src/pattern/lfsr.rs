//! Pseudo-random order that visits each block once per pass, without a map.
//!
//! A linear feedback shift register of `width` bits with a primitive feedback polynomial goes
//! through every value but 0 before it comes back. Block 0 gets a place of its own. The width is
//! the smallest whose values cover the blocks; those past the last are skipped, fewer than one per
//! block on average.

use super::{RandomStream, seed_of};

/// Register over the blocks 0..n.
#[derive(Debug)]
pub(super) struct Lfsr {
    /// 1..2^width.
    state: u64,
    feedback: u64,
    width: u32,
    blocks: u64,
    /// Blocks left in this pass.
    left: u64,
    /// Value of `left` at which block 0 is returned, below `blocks`.
    turn_of_0: u64,
}

impl Lfsr {
    /// Creates a register over `blocks` blocks, in an order that depends on the seed.
    pub(super) fn new(blocks: u64, seed: u64) -> Self {
        // Values 1..blocks must be there; the table begins at 3 bits.
        let width = (u64::BITS - blocks.saturating_sub(1).leading_zeros()).max(3);
        let most = u64::MAX >> (u64::BITS - width);
        let seed = seed_of(seed, RandomStream::Offset);
        Self {
            state: seed % most + 1,
            feedback: feedback(width),
            width,
            blocks,
            left: blocks,
            turn_of_0: seed.rotate_left(32) % blocks.max(1),
        }
    }

    /// Returns the next block; `None` when each was returned once.
    #[inline]
    pub(super) fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        if self.left == self.turn_of_0 {
            return Some(0);
        }
        loop {
            self.state = step(self.state, self.feedback);
            let block = scattered(self.state, self.width);
            if block < self.blocks {
                return Some(block);
            }
        }
    }

    /// Returns a register over the first `blocks` blocks, in an order that depends on this one's
    /// state.
    pub(super) fn shortened(&self, blocks: u64) -> Self {
        Self::new(blocks, self.state)
    }

    pub(super) const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Begins a new pass from the register's current state.
    pub(super) const fn restart(&mut self) {
        self.left = self.blocks;
    }
}

/// Returns the register's next value (Galois form, shifting right).
#[inline]
const fn step(state: u64, feedback: u64) -> u64 {
    (state >> 1) ^ (feedback & (state & 1).wrapping_neg())
}

/// Applies a bijection of the values of `width` bits that keeps 0: a register's neighbouring values
/// are each other's halves, and block numbers should not be.
#[inline]
const fn scattered(value: u64, width: u32) -> u64 {
    let mask = u64::MAX >> (u64::BITS - width);
    let half = width.div_ceil(2);
    // Odd factors and a shift by half the width are invertible.
    let value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask;
    let value = value ^ (value >> half);
    let value = value.wrapping_mul(0xbf58_476d_1ce4_e5b9) & mask;
    value ^ (value >> half)
}

/// Returns the feedback bits of a register of this width.
fn feedback(width: u32) -> u64 {
    let taps = TAPS[(width - 3) as usize];
    taps.iter()
        .fold(1 << (width - 1), |mask, tap| mask | 1 << (tap - 1))
}

/// The exponents of a primitive polynomial of degree 3, 4, … 64, apart from the degree itself and
/// 0, from the table of maximal-length taps in P. Alfke, "Efficient Shift Registers, LFSR Counters,
/// and Long Pseudo-Random Sequence Generators", Xilinx XAPP052, 1996.
const TAPS: [&[u32]; 62] = [
    &[2],
    &[3],
    &[3],
    &[5],
    &[6],
    &[6, 5, 4],
    &[5],
    &[7],
    &[9],
    &[6, 4, 1],
    &[4, 3, 1],
    &[5, 3, 1],
    &[14],
    &[15, 13, 4],
    &[14],
    &[11],
    &[6, 2, 1],
    &[17],
    &[19],
    &[21],
    &[18],
    &[23, 22, 17],
    &[22],
    &[6, 2, 1],
    &[5, 2, 1],
    &[25],
    &[27],
    &[6, 4, 1],
    &[28],
    &[22, 2, 1],
    &[20],
    &[27, 2, 1],
    &[33],
    &[25],
    &[5, 4, 3, 2, 1],
    &[6, 5, 1],
    &[35],
    &[38, 21, 19],
    &[38],
    &[41, 20, 19],
    &[42, 38, 37],
    &[43, 18, 17],
    &[44, 42, 41],
    &[45, 26, 25],
    &[42],
    &[47, 21, 20],
    &[40],
    &[49, 24, 23],
    &[50, 36, 35],
    &[49],
    &[52, 38, 37],
    &[53, 18, 17],
    &[31],
    &[55, 35, 34],
    &[50],
    &[39],
    &[58, 38, 37],
    &[59],
    &[60, 46, 45],
    &[61, 6, 5],
    &[62],
    &[63, 61, 60],
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the period of the register.
    fn period(width: u32) -> u64 {
        let feedback = feedback(width);
        let mut state = step(1, feedback);
        let mut steps = 1;
        while state != 1 {
            state = step(state, feedback);
            steps += 1;
        }
        steps
    }

    #[test]
    fn narrow_registers_visit_every_value() {
        for width in 3..=22 {
            assert_eq!(period(width), (1 << width) - 1, "{width} bits");
        }
    }

    /// Returns the product of two polynomials over one bit, modulo x^width + … of which `low` has
    /// the coefficients below the highest.
    fn product(a: u64, b: u64, width: u32, low: u64) -> u64 {
        let top = 1 << (width - 1);
        let mask = u64::MAX >> (u64::BITS - width);
        let (mut a, mut sum) = (a, 0);
        for bit in 0..width {
            if b >> bit & 1 == 1 {
                sum ^= a;
            }
            let over = a & top != 0;
            a = (a << 1) & mask ^ if over { low } else { 0 };
        }
        sum
    }

    fn power(exponent: u64, width: u32, low: u64) -> u64 {
        (0..64).rev().fold(1, |sum, bit| {
            let square = product(sum, sum, width, low);
            if exponent >> bit & 1 == 1 {
                product(square, 2, width, low)
            } else {
                square
            }
        })
    }

    /// x has the order 2^width − 1 modulo the polynomial: it divides that, and no proper divisor.
    #[test]
    fn every_polynomial_of_the_table_is_primitive() {
        for (width, primes) in (3..).zip(PRIMES) {
            let order = u64::MAX >> (u64::BITS - width);
            let product_of_all = primes.iter().fold(order, |rest, prime| {
                let mut rest = rest;
                while rest % prime == 0 {
                    rest /= prime;
                }
                rest
            });
            assert_eq!(
                product_of_all, 1,
                "the primes of 2^{width} − 1 are incomplete"
            );
            let taps = TAPS[(width - 3) as usize];
            let low = taps.iter().fold(1, |low, tap| low | 1 << tap);
            assert_eq!(power(order, width, low), 1, "{width} bits");
            for prime in primes {
                assert_ne!(power(order / prime, width, low), 1, "{width} bits, {prime}");
            }
        }
    }

    #[test]
    fn scattering_moves_each_value_to_another_place() {
        for width in 3..=16 {
            let mut seen = vec![false; 1 << width];
            for value in 0..1u64 << width {
                let place = usize::try_from(scattered(value, width)).unwrap();
                assert!(
                    !std::mem::replace(&mut seen[place], true),
                    "{width} bits, {value}"
                );
            }
            assert_eq!(scattered(0, width), 0);
        }
    }

    #[test]
    fn each_block_is_visited_once_per_pass() {
        for blocks in (0..70).chain([127, 128, 129, 1000, 4096, 5000]) {
            let mut lfsr = Lfsr::new(blocks, 0x89);
            for _ in 0..2 {
                let mut pass: Vec<u64> = std::iter::from_fn(|| lfsr.next()).collect();
                pass.sort_unstable();
                assert_eq!(pass, (0..blocks).collect::<Vec<_>>());
                lfsr.restart();
            }
        }
    }

    /// The prime factors of 2³ − 1, 2⁴ − 1, … 2⁶⁴ − 1.
    const PRIMES: [&[u64]; 62] = [
        &[7],
        &[3, 5],
        &[31],
        &[3, 7],
        &[127],
        &[3, 5, 17],
        &[7, 73],
        &[3, 11, 31],
        &[23, 89],
        &[3, 5, 7, 13],
        &[8191],
        &[3, 43, 127],
        &[7, 31, 151],
        &[3, 5, 17, 257],
        &[131_071],
        &[3, 7, 19, 73],
        &[524_287],
        &[3, 5, 11, 31, 41],
        &[7, 127, 337],
        &[3, 23, 89, 683],
        &[47, 178_481],
        &[3, 5, 7, 13, 17, 241],
        &[31, 601, 1801],
        &[3, 2731, 8191],
        &[7, 73, 262_657],
        &[3, 5, 29, 43, 113, 127],
        &[233, 1103, 2089],
        &[3, 7, 11, 31, 151, 331],
        &[2_147_483_647],
        &[3, 5, 17, 257, 65537],
        &[7, 23, 89, 599_479],
        &[3, 43691, 131_071],
        &[31, 71, 127, 122_921],
        &[3, 5, 7, 13, 19, 37, 73, 109],
        &[223, 616_318_177],
        &[3, 174_763, 524_287],
        &[7, 79, 8191, 121_369],
        &[3, 5, 11, 17, 31, 41, 61681],
        &[13367, 164_511_353],
        &[3, 7, 43, 127, 337, 5419],
        &[431, 9719, 2_099_863],
        &[3, 5, 23, 89, 397, 683, 2113],
        &[7, 31, 73, 151, 631, 23311],
        &[3, 47, 178_481, 2_796_203],
        &[2351, 4513, 13_264_529],
        &[3, 5, 7, 13, 17, 97, 241, 257, 673],
        &[127, 4_432_676_798_593],
        &[3, 11, 31, 251, 601, 1801, 4051],
        &[7, 103, 2143, 11119, 131_071],
        &[3, 5, 53, 157, 1613, 2731, 8191],
        &[6361, 69431, 20_394_401],
        &[3, 7, 19, 73, 87211, 262_657],
        &[23, 31, 89, 881, 3191, 201_961],
        &[3, 5, 17, 29, 43, 113, 127, 15_790_321],
        &[7, 32377, 524_287, 1_212_847],
        &[3, 59, 233, 1103, 2089, 3_033_169],
        &[179_951, 3_203_431_780_337],
        &[3, 5, 7, 11, 13, 31, 41, 61, 151, 331, 1321],
        &[2_305_843_009_213_693_951],
        &[3, 715_827_883, 2_147_483_647],
        &[7, 73, 127, 337, 92737, 649_657],
        &[3, 5, 17, 257, 641, 65537, 6_700_417],
    ];
}
