//! General pattern: many files, mixed sizes, sequencers, skewed distributions.

use std::collections::VecDeque;

use fathom_core::{Direction, FileIndex, PerDirection, Taus88};

use crate::config::{Mix, PatternConfig, Sequencer};

use super::check::Checked;
use super::directions::share_of;
use super::draw::Draw;
use super::grid::Grids;
use super::sequence::Blocks;
use super::service::Service;
use super::shares::Shares;
use super::sizes::OpSizes;
use super::strided::Strided;
use super::{OpTarget, PatternError, RandomStream, Source, seed_of};

/// Pattern of any kind.
#[derive(Debug)]
pub(super) struct General {
    files: Vec<File>,
    service: Service,
    /// Sizes of ops whose offset is drawn.
    sizes: PerDirection<OpSizes>,
    /// Sizes of all other ops.
    sequential: PerDirection<OpSizes>,
    size_random: Taus88,
    way: Way,
    strided: Option<Box<Strided>>,
    /// Trims whose writes are still to be drawn, the oldest first. Only for `Mix::TrimWrite`.
    trimmed: VecDeque<OpTarget>,
    pairs: bool,
}

/// File with the positions of each direction.
#[derive(Debug)]
pub(super) struct File {
    pub(super) start: u64,
    /// First byte after the range.
    pub(super) end: u64,
    /// Size of the whole file; at least `end`.
    whole: u64,
    /// Offset of the next sequential op.
    pub(super) position: PerDirection<u64>,
    /// Offset of the last op.
    pub(super) last: PerDirection<Option<u64>>,
}

impl File {
    fn restart(&mut self) {
        self.position = PerDirection::all(self.start);
        self.last = PerDirection::all(None);
    }
}

/// Rule for the next offset.
#[derive(Debug)]
enum Way {
    /// Sequential; the position advances by this much more than the op.
    Sequential { gap: i64 },
    /// Lookahead.
    Random(Random),
}

#[derive(Debug)]
struct Random {
    grids: Grids,
    draw: Draw,
    shares: Option<Box<Shares>>,
    sequence: Option<Box<Blocks>>,
    sequencer: Sequencer,
    /// Ops until the next new offset.
    stay: u32,
    /// Number of draws out of 2³² that make an op random.
    share: PerDirection<u64>,
    share_random: Taus88,
}

impl General {
    pub(super) fn new(config: &PatternConfig, checked: &Checked) -> Result<Self, PatternError> {
        let files = config.files.iter().map(|range| File {
            start: range.offset,
            end: range.offset + range.length,
            whole: range.file.max(range.offset + range.length),
            position: PerDirection::all(range.offset),
            last: PerDirection::all(None),
        });
        Ok(Self {
            files: files.collect(),
            service: Service::new(config)?,
            sizes: checked.sizes.clone(),
            sequential: checked.sequential.clone(),
            size_random: Taus88::new(seed_of(config.seed, RandomStream::Size)),
            way: Way::new(config, checked)?,
            strided: config
                .zones
                .map(|zones| Box::new(Strided::new(zones, config.files.len()))),
            trimmed: VecDeque::new(),
            pairs: config.mix == Mix::TrimWrite,
        })
    }

    pub(super) fn reserve_pairs(&mut self, trims: usize) {
        if self.pairs {
            self.trimmed.reserve(trims);
        }
    }

    pub(super) fn restart(&mut self) {
        self.files.iter_mut().for_each(File::restart);
        self.service.restart();
        if let Some(strided) = &mut self.strided {
            strided.restart();
        }
        self.trimmed.clear();
        if let Way::Random(random) = &mut self.way {
            random.stay = 0;
            random.grids.restart();
        }
    }

    /// Draws an op in the next file that has one.
    fn place(&mut self, direction: Direction) -> Option<OpTarget> {
        loop {
            let file = self.service.next(direction)?;
            if let Some(target) = self.target_in(file, direction) {
                return Some(target);
            }
            if self.finished(direction, file) {
                return self.place_again(file, direction);
            }
        }
    }

    /// Marks the last file as finished; returns whether it starts over. Directions that share a map
    /// finish a file together.
    fn finished(&mut self, direction: Direction, file: u64) -> bool {
        let together = matches!(&self.way, Way::Random(random) if random.grids.share_maps());
        match together {
            true => self.service.finished_by_all(direction, file),
            false => self.service.finished(direction, file),
        }
    }

    /// Draws an op in a file that starts over, or in the next one with space for any.
    #[cold]
    fn place_again(&mut self, mut file: u64, direction: Direction) -> Option<OpTarget> {
        for _ in 0..self.files.len() {
            self.begin_again(file, direction);
            let target = self.target_in(file, direction);
            if target.is_some() {
                return target;
            }
            file = self.service.instead(file);
            let target = self.target_in(file, direction);
            if target.is_some() {
                return target;
            }
        }
        None
    }

    fn begin_again(&mut self, file: u64, direction: Direction) {
        // Cannot fail: the number of files was a usize.
        let index = usize::try_from(file).unwrap_or(usize::MAX);
        self.files[index].position[direction] = self.files[index].start;
        self.files[index].last[direction] = None;
        if let Way::Random(random) = &mut self.way {
            random.grids.restart_in(index, direction);
        }
    }

    #[inline]
    fn target_in(&mut self, number: u64, direction: Direction) -> Option<OpTarget> {
        // Cannot fail: the number of files was a usize.
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let (offset, length) = self.place_in(index, direction)?;
        let file = &mut self.files[index];
        file.last[direction] = Some(offset);
        file.position[direction] = self.way.position_after(file, offset, length);
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        Some(OpTarget {
            direction,
            file: FileIndex::new(number),
            offset,
            length,
        })
    }

    /// Draws an op in this file, if one is left.
    fn place_in(&mut self, index: usize, direction: Direction) -> Option<(u64, u32)> {
        if self.strided.is_some() {
            return self.place_in_zone(index, direction);
        }
        let file = &self.files[index];
        let sizes = &self.sequential[direction];
        let min = u64::from(sizes.min);
        let position = file.position[direction];
        let reach = sizes.reach(file.end, file.whole);
        let fits = position < file.end && reach - position >= min;
        let random = match &mut self.way {
            Way::Sequential { .. } if !fits => return None,
            Way::Sequential { .. } => {
                let room = reach - position;
                return Some((position, sizes.pick(&mut self.size_random, room)));
            }
            Way::Random(_) if file.end - file.start < min => return None,
            Way::Random(random) => random,
        };
        let next = fits.then_some(position);
        // Drawn for an op of another size, it may leave too few bytes for a sequential one.
        let last = file.last[direction].filter(|&last| reach.saturating_sub(last) >= min);
        if let Some(offset) = random.offset_without_draw(direction, next, last) {
            return Some((offset, sizes.pick(&mut self.size_random, reach - offset)));
        }
        let (block, distance) = match (&mut random.shares, &mut random.sequence) {
            (None, None) => random.grids.draw(&mut random.draw, index, direction)?,
            (_, Some(sequence)) => {
                let grid = random.grids.of(index, direction);
                let block = sequence.next(index, grid.blocks());
                grid.draw_from(&mut random.draw, (block, 1))?
            }
            (Some(shares), None) => {
                let grid = random.grids.of(index, direction);
                let part = shares.part(direction, grid.blocks(), grid.align());
                grid.draw_from(&mut random.draw, part)?
            }
        };
        let offset = file.start + distance;
        let sizes = &self.sizes[direction];
        let length = sizes.pick(&mut self.size_random, file.end - offset);
        let length = random.grids.claim(index, direction, block, length);
        Some((offset, length))
    }

    /// Draws an op in this file's zone, if one is left in its range.
    #[cold]
    fn place_in_zone(&mut self, index: usize, direction: Direction) -> Option<(u64, u32)> {
        let strided = self.strided.as_mut()?;
        let file = &mut self.files[index];
        if strided.move_on(index, file.end - file.start) {
            file.position = PerDirection::all(file.start + strided.start(index));
            if let Way::Random(random) = &mut self.way {
                random.grids.restart_of(index);
            }
        }
        let sizes = &self.sequential[direction];
        let min = u64::from(sizes.min);
        let zone = strided.zone(index, file);
        let position = match file.position[direction] {
            position if zone.contains(&position) => position,
            _ => zone.start,
        };
        let fits = position <= file.end && file.end - position >= min;
        let next = fits.then_some(position);
        let drawn = match &mut self.way {
            Way::Sequential { .. } => None,
            Way::Random(random) => {
                match random.offset_without_draw(direction, next, file.last[direction]) {
                    Some(_) => None,
                    None => Some(random),
                }
            }
        };
        let (offset, length) = match drawn {
            None => {
                let offset = next?;
                (offset, sizes.pick(&mut self.size_random, file.end - offset))
            }
            Some(random) => {
                let sizes = &self.sizes[direction];
                let room = file.end.min(zone.end).checked_sub(zone.start)?;
                let grid = random.grids.of(index, direction);
                let min = u64::from(sizes.min);
                let (block, distance) = grid.draw_within(&mut random.draw, room, min)?;
                let offset = zone.start + distance;
                let length = sizes.pick(&mut self.size_random, file.end - offset);
                (offset, grid.claim(block, length))
            }
        };
        strided.moved(index, length);
        Some((offset, length))
    }
}

impl Source for General {
    #[inline]
    fn next(&mut self, direction: Direction) -> Option<OpTarget> {
        if !self.pairs {
            return self.place(direction);
        }
        if direction == Direction::Write {
            let trim = self.trimmed.pop_front()?;
            return Some(OpTarget { direction, ..trim });
        }
        let trim = self.place(direction)?;
        self.trimmed.push_back(trim);
        Some(trim)
    }
}

impl Way {
    fn new(config: &PatternConfig, checked: &Checked) -> Result<Self, PatternError> {
        if !config.random {
            let gap = match config.sequencer {
                Sequencer::Skip(gap) => gap,
                _ => 0,
            };
            return Ok(Self::Sequential { gap });
        }
        let (grids, most) = Grids::new(config, checked)?;
        Ok(Self::Random(Random {
            grids,
            draw: Draw::new(config.generator, most, config.seed),
            shares: config
                .shares
                .as_ref()
                .map(|shares| Box::new(Shares::new(shares, config.seed))),
            sequence: config
                .sequence
                .as_ref()
                .map(|sequence| Box::new(Blocks::new(sequence, config.files.len()))),
            sequencer: config.sequencer,
            stay: 0,
            share: config
                .percentage_random
                .map(|percent| share_of(u32::from(percent))),
            share_random: Taus88::new(seed_of(config.seed, RandomStream::Percentage)),
        }))
    }

    /// Returns the offset of a sequential op after this one, as in fio: a gap that leads before the
    /// start counts from the end, one far enough beyond the end counts from the start.
    fn position_after(&self, file: &File, offset: u64, length: u32) -> u64 {
        let next = offset + u64::from(length);
        let Self::Sequential { gap } = *self else {
            return next;
        };
        if gap > 0 && next >= file.whole {
            return file.end; // no space: the pass is over
        }
        match (next - file.start).checked_add_signed(gap) {
            // Cannot overflow: `whole` is at least the range's end.
            Some(distance) if gap <= 0 || distance < file.whole => file.start + distance,
            _ if gap > 0 => file.start,
            _ => file.end.saturating_sub(gap.unsigned_abs()).max(file.start),
        }
    }
}

impl Random {
    /// Returns the offset of an op without a drawn block: one between two draws, or one made
    /// sequential by `percentage_random`. `next` is the next sequential offset, if there is space;
    /// `last` the offset of the last op.
    #[inline]
    fn offset_without_draw(
        &mut self,
        direction: Direction,
        next: Option<u64>,
        last: Option<u64>,
    ) -> Option<u64> {
        let (between, count) = match self.sequencer {
            Sequencer::None | Sequencer::Skip(_) => (None, 1),
            Sequencer::Every(count) => (next, count),
            Sequencer::Repeat(count) => (last, count),
        };
        if self.stay > 0 {
            self.stay -= 1;
            return between;
        }
        self.stay = count - 1;
        let share = self.share[direction];
        if share > u64::from(u32::MAX) || u64::from(self.share_random.next_u32()) < share {
            return None;
        }
        next
    }
}
