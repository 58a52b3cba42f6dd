//! Blocks in a given order, repeated.

use crate::config::BlockSequence;

/// Order of blocks, with the position of each file.
#[derive(Debug)]
pub(super) struct Blocks {
    blocks: Box<[u64]>,
    stride: bool,
    /// Per file: index of the next number, and the shift of all numbers, in blocks.
    places: Box<[(usize, u64)]>,
}

impl Blocks {
    pub(super) fn new(sequence: &BlockSequence, files: usize) -> Self {
        Self {
            blocks: sequence.blocks.clone().into_boxed_slice(),
            stride: sequence.stride,
            places: vec![(0, 0); files].into_boxed_slice(),
        }
    }

    /// Returns the next block of a file with `blocks` blocks; the first one without an order.
    pub(super) fn next(&mut self, file: usize, blocks: u64) -> u64 {
        let (place, moved) = &mut self.places[file];
        let block = self.blocks.get(*place).map_or(0, |block| block + *moved);
        *place += 1;
        if *place >= self.blocks.len() {
            *place = 0;
            if self.stride {
                *moved = (*moved + self.blocks.len() as u64) % blocks.max(1);
            }
        }
        block % blocks.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stride: bool, blocks: u64, want: &[u64]) {
        let sequence = BlockSequence {
            blocks: vec![2, 0, 1],
            stride,
        };
        let mut order = Blocks::new(&sequence, 1);
        let got: Vec<u64> = want.iter().map(|_| order.next(0, blocks)).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn numbers_repeat_in_order() {
        check(false, 12, &[2, 0, 1, 2, 0, 1, 2]);
        check(true, 12, &[2, 0, 1, 5, 3, 4, 8, 6, 7, 11, 9, 10, 2]);
        check(false, 2, &[0, 0, 1]);
    }
}
