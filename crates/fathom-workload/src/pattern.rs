//! Patterns: offset, size and direction of each op.
//!
//! ```text
//! direction ─► file (`service`) ───► offset ─► size ─► Target
//!    │            │                    │         └ fixed, range, split; cut at the range's end
//!    │            │                    │           and, with a map, at the next taken block
//!    │            │                    └ sequential position per direction, or a drawn block
//!    │            └ a finished file is not visited again in this pass
//!    └ the only one, a draw per op, or trim and write in turn
//! ```
//!
//! A pattern decides and does nothing else: same configuration, same targets. Each stage draws
//! from a random stream of its own, so that the offsets of a job do not change when its mix does.
//! The kinds of pattern that matter for speed have loops of their own (`plain`); everything else
//! goes through `general`, which gives the same targets wherever both can.

mod check;
mod directions;
mod draw;
mod error;
mod general;
mod grid;
mod lfsr;
mod plain;
mod power;
mod precondition;
mod sequence;
mod service;
mod shares;
mod sizes;
mod spread;
mod strided;

use fathom_core::{Direction, FileIndex};

use crate::config::PatternConfig;

use check::Checked;
use directions::Directions;
use general::General;
use plain::{Blocks, Mapped, Sequential, Skewed, Uniform};
use precondition::Precondition;

pub use error::PatternError;

/// Generator of a job's targets.
///
/// Create it with [`Pattern::new`], which reserves the map of visited blocks; take targets until
/// there is none, then [`restart`](Self::restart) it for the next pass. A target costs a random
/// number or two and, with a map, one cache miss; drawing many at a time hides the latter.
#[derive(Debug)]
pub struct Pattern {
    directions: Directions,
    kind: PatternLoop,
    largest: u32,
    smallest: u32,
}

impl Pattern {
    /// Checks the configuration without reserving memory.
    ///
    /// # Errors
    /// The configuration is inconsistent, or no op fits into any file.
    pub fn check(config: &PatternConfig) -> Result<(), PatternError> {
        Checked::new(config).map(|_makes_sense| ())
    }

    /// Prepares the pattern and reserves all the memory it will need.
    ///
    /// # Errors
    /// The configuration is inconsistent, no op fits into any file, or there is no memory for the
    /// map.
    pub fn new(config: PatternConfig) -> Result<Self, PatternError> {
        let checked = Checked::new(&config)?;
        let kind = if let Some(precondition) = Precondition::new(&config, &checked)? {
            PatternLoop::Precondition(Box::new(precondition))
        } else if !checked.plain {
            PatternLoop::General(Box::new(General::new(&config, &checked)?))
        } else if !config.random {
            PatternLoop::Sequential(Sequential::new(&config, &checked))
        } else if let Some(skewed) = Skewed::new(&config, &checked) {
            PatternLoop::Skewed(skewed)
        } else {
            match Mapped::new(&config, &checked)? {
                Some(mapped) => PatternLoop::Mapped(mapped),
                None => PatternLoop::Uniform(Uniform::new(&config, &checked)),
            }
        };
        Ok(Self::with(kind, &config, &checked))
    }

    fn with(kind: PatternLoop, config: &PatternConfig, checked: &Checked) -> Self {
        let directions = Directions::new(config.mix, config.seed);
        Self {
            directions,
            kind,
            largest: checked.largest,
            smallest: checked.smallest,
        }
    }

    /// Reserves memory for the writes of `trims` trims that are drawn before the first of them:
    /// see [`next`](Self::next).
    pub(crate) fn reserve_pairs(&mut self, trims: usize) {
        if let PatternLoop::General(source) = &mut self.kind {
            source.reserve_pairs(trims);
        }
    }

    /// Draws the direction of the next op; call it once per op. For `Mix::TrimWrite` it is `Write`
    /// exactly if the last target was a trim.
    #[inline]
    pub fn draw_direction(&mut self) -> Direction {
        self.directions.draw()
    }

    /// Draws the next op and its direction; `None` when the pass is exhausted.
    #[inline]
    pub fn draw(&mut self) -> Option<OpTarget> {
        let direction = self.draw_direction();
        self.next(direction)
    }

    /// Draws the next op in `direction`, which must be part of the mix; `None` when the pass is
    /// exhausted: every block was visited, or every file is at its end. With `Mix::TrimWrite` each
    /// write is that of the oldest trim which has none yet.
    #[inline]
    pub fn next(&mut self, direction: Direction) -> Option<OpTarget> {
        let target = match &mut self.kind {
            PatternLoop::Uniform(source) => source.next(direction),
            PatternLoop::Mapped(source) => source.next(direction),
            PatternLoop::Skewed(source) => source.next(direction),
            PatternLoop::Sequential(source) => source.next(direction),
            PatternLoop::General(source) => source.next(direction),
            PatternLoop::Precondition(source) => source.next(direction),
        };
        self.directions.given(direction);
        target
    }

    /// Fills `out` with ops, each with a drawn direction; fewer when the pass is exhausted.
    #[inline]
    pub fn fill(&mut self, out: &mut [OpTarget]) -> usize {
        match &mut self.kind {
            PatternLoop::Uniform(source) => fill_from(source, &mut self.directions, out),
            PatternLoop::Mapped(source) => fill_from(source, &mut self.directions, out),
            PatternLoop::Skewed(source) => fill_from(source, &mut self.directions, out),
            PatternLoop::Sequential(source) => fill_from(source, &mut self.directions, out),
            PatternLoop::General(source) => fill_from(source.as_mut(), &mut self.directions, out),
            PatternLoop::Precondition(source) => {
                fill_from(source.as_mut(), &mut self.directions, out)
            }
        }
    }

    /// Returns the common target of ops that differ only in offset, if they do.
    pub(crate) fn common(&self) -> Option<OpTarget> {
        let &Directions::Only(direction) = &self.directions else {
            return None;
        };
        let of_one_size = !matches!(self.kind, PatternLoop::General(_));
        of_one_size.then_some(OpTarget {
            direction,
            file: FileIndex::new(0),
            offset: 0,
            length: self.largest,
        })
    }

    /// Fills `out` with the offsets of ops that otherwise equal [`common`](Self::common); fewer
    /// when the pass is exhausted.
    #[inline]
    pub(crate) fn fill_offsets(&mut self, out: &mut [u64]) -> usize {
        match &mut self.kind {
            PatternLoop::Uniform(source) => source.fill_offsets(out),
            PatternLoop::Mapped(source) => source.fill_offsets(out),
            PatternLoop::Skewed(source) => source.fill_offsets(out),
            PatternLoop::Sequential(source) => source.fill_offsets(out),
            PatternLoop::General(_) | PatternLoop::Precondition(_) => {
                fill_with(out, || self.draw().map(|target| target.offset))
            }
        }
    }

    /// Begins a new pass: no block is visited, positions are at the start. Random streams continue,
    /// so the next pass has another order.
    pub fn restart(&mut self) {
        self.directions.restart();
        match &mut self.kind {
            PatternLoop::Uniform(_) | PatternLoop::Skewed(_) => {}
            PatternLoop::Mapped(source) => source.restart(),
            PatternLoop::Sequential(source) => source.restart(),
            PatternLoop::General(source) => source.restart(),
            PatternLoop::Precondition(source) => source.restart(),
        }
    }

    /// Returns the length in bytes of the largest possible op.
    #[must_use]
    #[inline]
    pub const fn largest(&self) -> u32 {
        self.largest
    }

    /// Returns the length in bytes of the smallest possible op.
    #[must_use]
    #[inline]
    pub const fn smallest(&self) -> u32 {
        self.smallest
    }
}

/// Target of one op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpTarget {
    /// Direction.
    pub direction: Direction,
    /// File.
    pub file: FileIndex,
    /// Byte offset in the file.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

impl Default for OpTarget {
    /// Empty read, the initial value in tables of targets.
    fn default() -> Self {
        Self {
            direction: Direction::Read,
            file: FileIndex::new(0),
            offset: 0,
            length: 0,
        }
    }
}

/// Specialised loop of a pattern.
#[derive(Debug)]
enum PatternLoop {
    Uniform(Uniform),
    Mapped(Mapped),
    Skewed(Skewed),
    Sequential(Sequential),
    General(Box<General>),
    Precondition(Box<Precondition>),
}

/// Source of targets in a direction.
trait Source {
    fn next(&mut self, direction: Direction) -> Option<OpTarget>;
}

/// Fills `out` from a source: one loop per kind of source, and per one or several directions.
#[inline]
fn fill_from<S: Source>(
    source: &mut S,
    directions: &mut Directions,
    out: &mut [OpTarget],
) -> usize {
    match directions {
        Directions::Only(direction) => fill_with(out, || source.next(*direction)),
        mixed => fill_with(out, || {
            let direction = mixed.draw();
            mixed.given(direction);
            source.next(direction)
        }),
    }
}

/// Fills `out` from `next` until it returns `None`; returns the number of items.
#[inline]
fn fill_with<T>(out: &mut [T], mut next: impl FnMut() -> Option<T>) -> usize {
    for (index, place) in out.iter_mut().enumerate() {
        let Some(next) = next() else { return index };
        *place = next;
    }
    out.len()
}

/// Random streams derived from a pattern's seed; the numbers never change their meaning.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
enum RandomStream {
    Offset = 0,
    Direction = 1,
    Size = 2,
    Percentage = 3,
    Base = 4,
    File = 5,
    Share = 6,
    Again = 7,
    Outdated = 8,
}

/// Returns the seed of a stream.
fn seed_of(seed: u64, stream: RandomStream) -> u64 {
    fathom_core::stream_seed(seed, stream as u64)
}
