//! Where ops go, how large they are, and in which direction.
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

pub use error::PatternError;

/// Says where each op goes; see the module.
#[derive(Debug)]
pub struct Pattern {
    directions: Directions,
    kind: Kind,
    largest: u32,
    smallest: u32,
}

impl Pattern {
    /// Whether the configuration makes sense, without reserving anything.
    ///
    /// # Errors
    /// It contradicts itself, or no op fits into any file.
    pub fn check(config: &PatternConfig) -> Result<(), PatternError> {
        Checked::new(config).map(|_makes_sense| ())
    }

    /// Prepares the pattern and reserves all the memory it will need.
    ///
    /// # Errors
    /// The configuration contradicts itself, no op fits into any file, or there is no memory for
    /// the map.
    pub fn new(config: PatternConfig) -> Result<Self, PatternError> {
        let checked = Checked::new(&config)?;
        let kind = if !checked.plain {
            Kind::General(Box::new(General::new(&config, &checked)?))
        } else if !config.random {
            Kind::Sequential(Sequential::new(&config, &checked))
        } else if let Some(skewed) = Skewed::new(&config, &checked) {
            Kind::Skewed(skewed)
        } else {
            match Mapped::new(&config, &checked)? {
                Some(mapped) => Kind::Mapped(mapped),
                None => Kind::Uniform(Uniform::new(&config, &checked)),
            }
        };
        Ok(Self::with(kind, &config, &checked))
    }

    fn with(kind: Kind, config: &PatternConfig, checked: &Checked) -> Self {
        let directions = Directions::new(config.mix, config.seed);
        Self {
            directions,
            kind,
            largest: checked.largest,
            smallest: checked.smallest,
        }
    }

    /// The direction of the next op. For `Mix::TrimWrite` it is `Write` exactly when the last
    /// target was a trim; else one draw, so call it once per op.
    #[inline]
    pub fn draw_direction(&mut self) -> Direction {
        self.directions.draw()
    }

    /// The next op in the direction that is drawn for it; `None` when this pass is exhausted.
    #[inline]
    pub fn draw(&mut self) -> Option<Target> {
        let direction = self.draw_direction();
        self.next(direction)
    }

    /// The next op in `direction`, which must be one of the job's mix; `None` when this pass is
    /// exhausted: every block was visited, or every file is at its end.
    #[inline]
    pub fn next(&mut self, direction: Direction) -> Option<Target> {
        let target = match &mut self.kind {
            Kind::Uniform(source) => source.next(direction),
            Kind::Mapped(source) => source.next(direction),
            Kind::Skewed(source) => source.next(direction),
            Kind::Sequential(source) => source.next(direction),
            Kind::General(source) => source.next(direction),
        };
        self.directions.given(direction);
        target
    }

    /// As many ops as `out` holds, each with a drawn direction; fewer when the pass is exhausted.
    #[inline]
    pub fn fill(&mut self, out: &mut [Target]) -> usize {
        match &mut self.kind {
            Kind::Uniform(source) => fill_from(source, &mut self.directions, out),
            Kind::Mapped(source) => fill_from(source, &mut self.directions, out),
            Kind::Skewed(source) => fill_from(source, &mut self.directions, out),
            Kind::Sequential(source) => fill_from(source, &mut self.directions, out),
            Kind::General(source) => fill_from(source.as_mut(), &mut self.directions, out),
        }
    }

    /// What all ops of this pattern have in common, where they differ in nothing but the offset.
    pub(crate) fn common(&self) -> Option<Target> {
        let &Directions::Only(direction) = &self.directions else {
            return None;
        };
        let of_one_size = !matches!(self.kind, Kind::General(_));
        of_one_size.then_some(Target {
            direction,
            file: FileIndex::new(0),
            offset: 0,
            length: self.largest,
        })
    }

    /// The offsets of as many ops as `out` holds, of a pattern whose ops have all else in
    /// [`common`](Self::common); fewer when the pass is exhausted.
    #[inline]
    pub(crate) fn fill_offsets(&mut self, out: &mut [u64]) -> usize {
        match &mut self.kind {
            Kind::Uniform(source) => source.fill_offsets(out),
            Kind::Mapped(source) => source.fill_offsets(out),
            Kind::Skewed(source) => source.fill_offsets(out),
            Kind::Sequential(source) => source.fill_offsets(out),
            Kind::General(_) => fill_with(out, || self.draw().map(|target| target.offset)),
        }
    }

    /// Begins a new pass: no block was visited, positions are back at the start. The random
    /// streams go on, so the next pass takes another order.
    pub fn restart(&mut self) {
        self.directions.restart();
        match &mut self.kind {
            Kind::Uniform(_) | Kind::Skewed(_) => {}
            Kind::Mapped(source) => source.restart(),
            Kind::Sequential(source) => source.restart(),
            Kind::General(source) => source.restart(),
        }
    }

    /// The length in bytes of the largest op this pattern can give.
    #[must_use]
    #[inline]
    pub const fn largest(&self) -> u32 {
        self.largest
    }

    /// The length in bytes of the smallest op this pattern can give.
    #[must_use]
    #[inline]
    pub const fn smallest(&self) -> u32 {
        self.smallest
    }
}

/// Where one op goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Which way the data go.
    pub direction: Direction,
    /// Into or out of which file.
    pub file: FileIndex,
    /// The first byte, counted from the file's start.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

impl Default for Target {
    /// A read of nothing: what a table of targets holds before it is filled.
    fn default() -> Self {
        Self {
            direction: Direction::Read,
            file: FileIndex::new(0),
            offset: 0,
            length: 0,
        }
    }
}

/// The loops there are.
#[derive(Debug)]
enum Kind {
    Uniform(Uniform),
    Mapped(Mapped),
    Skewed(Skewed),
    Sequential(Sequential),
    General(Box<General>),
}

/// Gives the next target in a direction.
trait Source {
    fn next(&mut self, direction: Direction) -> Option<Target>;
}

/// One loop for each kind of source and for one or several directions.
#[inline]
fn fill_from<S: Source>(source: &mut S, directions: &mut Directions, out: &mut [Target]) -> usize {
    match directions {
        Directions::Only(direction) => fill_with(out, || source.next(*direction)),
        mixed => fill_with(out, || {
            let direction = mixed.draw();
            mixed.given(direction);
            source.next(direction)
        }),
    }
}

/// Fills `out` with what `next` gives, as long as it gives anything; how many that were.
#[inline]
fn fill_with<T>(out: &mut [T], mut next: impl FnMut() -> Option<T>) -> usize {
    for (index, place) in out.iter_mut().enumerate() {
        let Some(next) = next() else { return index };
        *place = next;
    }
    out.len()
}

/// The random streams that derive from a pattern's seed; the numbers never change their meaning.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
enum Stream {
    Offset = 0,
    Direction = 1,
    Size = 2,
    Percentage = 3,
    Base = 4,
    File = 5,
    Share = 6,
}

/// The seed of one of the streams.
fn seed_of(seed: u64, stream: Stream) -> u64 {
    fathom_core::stream_seed(seed, stream as u64)
}
