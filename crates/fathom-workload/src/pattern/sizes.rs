//! Op sizes.

use fathom_core::{Direction, Taus88};

use crate::config::SizeChoice;

use super::PatternError;
use super::directions::share_of;

/// Op sizes of one direction; 1 ≤ `min` ≤ every size ≤ `max`.
#[derive(Clone, Debug)]
pub(super) struct OpSizes {
    pub(super) min: u32,
    pub(super) max: u32,
    choice: Choice,
}

#[derive(Clone, Debug)]
enum Choice {
    Fixed,
    Range,
    /// Any number of bytes.
    Unaligned,
    /// Each size with the number of draws (out of 2³²) that give it or one before it.
    Split(Box<[(u64, u32)]>),
}

impl OpSizes {
    pub(super) fn new(choice: &SizeChoice, direction: Direction) -> Result<Self, PatternError> {
        let sizes = match choice {
            SizeChoice::Fixed(size) => Self {
                min: *size,
                max: *size,
                choice: Choice::Fixed,
            },
            SizeChoice::Range { min, max } | SizeChoice::Unaligned { min, max } if min > max => {
                return Err(PatternError::SizesReversed {
                    direction,
                    min: *min,
                    max: *max,
                });
            }
            SizeChoice::Range { min, max } if min == max => Self {
                min: *min,
                max: *max,
                choice: Choice::Fixed,
            },
            SizeChoice::Range { min, max } => Self {
                min: *min,
                max: *max,
                choice: Choice::Range,
            },
            SizeChoice::Unaligned { min, max } => Self {
                min: *min,
                max: *max,
                choice: Choice::Unaligned,
            },
            SizeChoice::Split(shares) => Self::split(shares, direction)?,
        };
        if sizes.min == 0 {
            Err(PatternError::NoSize { direction })
        } else {
            Ok(sizes)
        }
    }

    /// As in fio, sizes are rounded down to multiples of the smallest; sizes without a share do
    /// not count.
    fn split(shares: &[(u32, u8)], direction: Direction) -> Result<Self, PatternError> {
        let sum: u32 = shares.iter().map(|&(_, share)| u32::from(share)).sum();
        if sum != 100 {
            return Err(PatternError::Shares { direction, sum });
        }
        let used = || shares.iter().filter(|&&(_, share)| share > 0);
        let min = used().map(|&(size, _)| size).min().unwrap_or(0);
        if min == 0 {
            return Err(PatternError::NoSize { direction });
        }
        let mut before = 0;
        let steps: Box<[_]> = used()
            .map(|&(size, share)| {
                before += u32::from(share);
                (share_of(before), size - size % min)
            })
            .collect();
        let max = steps.iter().map(|&(_, size)| size).max().unwrap_or(min);
        let choice = if max == min {
            Choice::Fixed
        } else {
            Choice::Split(steps)
        };
        Ok(Self { min, max, choice })
    }

    /// Returns the sizes of an unused direction.
    pub(super) const fn none() -> Self {
        Self {
            min: 1,
            max: 1,
            choice: Choice::Fixed,
        }
    }

    /// Returns whether all ops have one size.
    pub(super) const fn fixed(&self) -> bool {
        matches!(self.choice, Choice::Fixed)
    }

    /// Returns the end of the bytes that a sequential op may use, for a range that ends at `end` in
    /// a file of `whole` bytes. As in fio, an op of the one size there is needs only to begin in
    /// the range; sizes that vary are cut at its end.
    #[inline]
    pub(super) const fn reach(&self, end: u64, whole: u64) -> u64 {
        if self.fixed() && whole > end {
            whole
        } else {
            end
        }
    }

    /// Draws a size of at most `room` bytes; `room` ≥ `min`. A fixed size takes no random number.
    #[inline]
    pub(super) fn pick(&self, random: &mut Taus88, room: u64) -> u32 {
        debug_assert!(room >= u64::from(self.min));
        let size = match &self.choice {
            Choice::Fixed => return self.min,
            Choice::Range => {
                // min + ⌊max·u⌋, rounded down to a multiple of min, and no more than max: fio's
                // rule. It gives some sizes more than their share.
                let steps = scaled(self.max, random.next_u32()) / self.min;
                self.min.saturating_mul(steps + 1).min(self.max)
            }
            Choice::Unaligned => {
                let more = scaled(self.max, random.next_u32());
                self.min.saturating_add(more).min(self.max)
            }
            Choice::Split(steps) => {
                let r = u64::from(random.next_u32());
                let step = steps.iter().find(|&&(below, _)| r < below);
                step.map_or(self.max, |&(_, size)| size)
            }
        };
        if u64::from(size) <= room {
            size
        } else {
            self.cut(room)
        }
    }

    /// Returns the largest size of at most `room` bytes.
    #[cold]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "called when room is below a u32"
    )]
    fn cut(&self, room: u64) -> u32 {
        match &self.choice {
            Choice::Fixed => self.min,
            Choice::Range => (room - room % u64::from(self.min)) as u32,
            Choice::Unaligned => room as u32,
            Choice::Split(steps) => {
                let fitting = steps.iter().map(|&(_, size)| size);
                fitting
                    .filter(|&size| u64::from(size) <= room)
                    .max()
                    .unwrap_or(self.min)
            }
        }
    }
}

/// ⌊`bound` · `r` / 2³²⌋.
#[inline]
fn scaled(bound: u32, r: u32) -> u32 {
    ((u64::from(bound) * u64::from(r)) >> 32) as u32
}
