//! Each block once in a pass, in an order that looks random, with no memory of the blocks.
//!
//! A linear feedback shift register of `width` bits with a primitive feedback polynomial goes
//! through every value but 0 before it comes back. The width is the smallest whose values cover
//! the blocks; values past them are skipped, fewer than one per block on average.

use super::{Stream, seed_of};

/// A register over the blocks 0..n.
#[derive(Debug)]
pub(super) struct Lfsr {
    /// 1..2^width.
    state: u64,
    feedback: u64,
    width: u32,
    blocks: u64,
    /// Blocks that this pass has not given yet.
    left: u64,
}

impl Lfsr {
    /// A register that gives `blocks` blocks in an order that depends on the seed.
    pub(super) fn new(blocks: u64, seed: u64) -> Self {
        // Values 1..=blocks must be there; the table begins at 3 bits.
        let width = (u64::BITS - blocks.leading_zeros()).max(3);
        let most = u64::MAX >> (u64::BITS - width);
        let state = seed_of(seed, Stream::Offset) % most + 1;
        Self {
            state,
            feedback: feedback(width),
            width,
            blocks,
            left: blocks,
        }
    }

    /// The next block; `None` when each was given once.
    #[inline]
    pub(super) fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        loop {
            self.state = step(self.state, self.feedback);
            let value = scattered(self.state, self.width);
            if value <= self.blocks {
                return Some(value - 1);
            }
        }
    }

    /// Begins a new pass from where the register stands.
    pub(super) const fn restart(&mut self) {
        self.left = self.blocks;
    }
}

/// The register's next value (the Galois form, shifting right).
#[inline]
const fn step(state: u64, feedback: u64) -> u64 {
    (state >> 1) ^ (feedback & (state & 1).wrapping_neg())
}

/// A bijection of the values of `width` bits that keeps 0: a register's neighbouring values are
/// each other's halves, and block numbers should not be.
#[inline]
const fn scattered(value: u64, width: u32) -> u64 {
    let mask = u64::MAX >> (u64::BITS - width);
    let half = width.div_ceil(2);
    // Odd factors and a shift by half the width: each step can be undone.
    let value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask;
    let value = value ^ (value >> half);
    let value = value.wrapping_mul(0xbf58_476d_1ce4_e5b9) & mask;
    value ^ (value >> half)
}

/// The feedback bits of the register of this width.
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
