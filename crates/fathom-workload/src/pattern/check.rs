//! Checks of a pattern's configuration.

use fathom_core::{Direction, PerDirection};

use crate::config::{
    Distribution, FileRange, FileService, MapMode, Mix, PatternConfig, RandomGenerator, Sequencer,
};

use super::PatternError;
use super::sizes::OpSizes;

/// Checked configuration, with the facts derived from it.
#[derive(Debug)]
pub(super) struct Checked {
    /// Directions whose ops get an offset of their own; the write of a trim-write pair does not.
    pub(super) placed: PerDirection<bool>,
    /// Sizes of ops whose offset is drawn.
    pub(super) sizes: PerDirection<OpSizes>,
    /// Sizes of all other ops.
    pub(super) sequential: PerDirection<OpSizes>,
    pub(super) largest: u32,
    pub(super) smallest: u32,
    /// One file, one size for all directions, no rare option: a specialised loop applies.
    pub(super) plain: bool,
    /// Visited blocks are marked in a map.
    pub(super) map: MapMode,
    /// Smallest op of any direction, used or not, if all directions share a map of such blocks.
    pub(super) shared_unit: Option<u32>,
}

impl Checked {
    pub(super) fn new(config: &PatternConfig) -> Result<Self, PatternError> {
        let placed = placed(config.mix);
        check_percentages(config)?;
        check_sequencer(config)?;
        check_distribution(config.distribution)?;
        if let FileService::Spread(distribution) = config.service {
            check_distribution(distribution)?;
        }
        let (sizes, sequential) = both_sizes(config, placed)?;
        check_ranges(config, placed, &sizes)?;
        check_ranges(config, placed, &sequential)?;
        check_zones(config, placed, &sizes)?;
        check_shares(config, placed)?;
        let used = || {
            Direction::ALL
                .into_iter()
                .filter(|&direction| placed[direction])
        };
        let aligned = used().all(|d| config.align[d] == u64::from(sizes[d].min));
        let uniform = config.distribution == Distribution::Uniform
            && config.shares.is_none()
            && config.sequence.is_none();
        let lfsr = config.generator == RandomGenerator::Lfsr;
        let no_map = !config.random || !aligned || !uniform || lfsr;
        let map = if no_map { MapMode::Off } else { config.map };
        let own = used().map(|d| sizes[d].min).max();
        let shared_unit = smallest_of_all(config)
            .filter(|unit| map != MapMode::Off && own > Some(*unit))
            .filter(|_| config.zones.is_none() && !config.sizes_by_order);
        let plain = is_plain(config, placed, &sizes) && (!config.random || aligned && !lfsr);
        Ok(Self {
            placed,
            largest: used()
                .map(|d| sizes[d].max.max(sequential[d].max))
                .max()
                .unwrap_or(0),
            smallest: used()
                .map(|d| sizes[d].min.min(sequential[d].min))
                .min()
                .unwrap_or(0),
            plain: plain && shared_unit.is_none(),
            map,
            shared_unit,
            sizes,
            sequential,
        })
    }
}

/// Returns the smallest op of any direction, used or not; `None` without valid sizes.
fn smallest_of_all(config: &PatternConfig) -> Option<u32> {
    let sized = Direction::ALL
        .into_iter()
        .filter_map(|direction| OpSizes::new(&config.sizes[direction], direction).ok());
    sized.map(|sizes| sizes.min).min()
}

/// Returns the sizes of random ops and of sequential ones.
fn both_sizes(
    config: &PatternConfig,
    placed: PerDirection<bool>,
) -> Result<(PerDirection<OpSizes>, PerDirection<OpSizes>), PatternError> {
    if config.sizes_by_order {
        let sizes = |direction| OpSizes::new(&config.sizes[direction], direction);
        let (sequential, random) = (sizes(Direction::Read)?, sizes(Direction::Write)?);
        return Ok((PerDirection::all(random), PerDirection::all(sequential)));
    }
    let sizes = PerDirection::new(
        sizes_of(config, Direction::Read, placed)?,
        sizes_of(config, Direction::Write, placed)?,
        sizes_of(config, Direction::Trim, placed)?,
    );
    Ok((sizes.clone(), sizes))
}

/// Returns the directions whose ops get an offset of their own.
fn placed(mix: Mix) -> PerDirection<bool> {
    let (read, write, trim) = match mix {
        Mix::Read => (true, false, false),
        Mix::Write => (false, true, false),
        Mix::ReadWrite { read } => (read > 0, read < 100, false),
        Mix::Trim | Mix::TrimWrite => (false, false, true),
    };
    PerDirection::new(read, write, trim)
}

/// Returns whether no rare option is used, alignment and distribution apart.
fn is_plain(
    config: &PatternConfig,
    placed: PerDirection<bool>,
    sizes: &PerDirection<OpSizes>,
) -> bool {
    let mut used = Direction::ALL
        .into_iter()
        .filter(|&direction| placed[direction]);
    let first = used.clone().next().unwrap_or(Direction::Read);
    let single = used.clone().count() == 1;
    let size = sizes[first].min;
    config.files.len() == 1
        && config.mix != Mix::TrimWrite
        && config.sequencer == Sequencer::None
        && config.zones.is_none()
        && config.shares.is_none()
        && config.sequence.is_none()
        && !config.sizes_by_order
        && (config.random || single)
        && used.all(|d| {
            sizes[d].fixed()
                && sizes[d].min == size
                && (!config.random || config.percentage_random[d] == 100)
        })
}

fn sizes_of(
    config: &PatternConfig,
    direction: Direction,
    placed: PerDirection<bool>,
) -> Result<OpSizes, PatternError> {
    // The sizes of an unused direction do not matter, valid or not.
    if !placed[direction] {
        return Ok(OpSizes::none());
    }
    if config.random && config.align[direction] == 0 {
        return Err(PatternError::NoAlignment { direction });
    }
    OpSizes::new(&config.sizes[direction], direction)
}

fn check_ranges(
    config: &PatternConfig,
    placed: PerDirection<bool>,
    sizes: &PerDirection<OpSizes>,
) -> Result<(), PatternError> {
    for (file, range) in config.files.iter().enumerate() {
        if range.offset.checked_add(range.length).is_none() {
            return Err(PatternError::RangeOverflow { file });
        }
    }
    if config.files.is_empty() {
        return Err(PatternError::NoFiles);
    }
    for (direction, _) in placed.iter().filter(|&(_, &placed)| placed) {
        let sizes = &sizes[direction];
        let room = |range: &FileRange| match config.random {
            true => range.length,
            // Cannot overflow: the range's end was checked.
            false => sizes.reach(range.offset + range.length, range.file) - range.offset,
        };
        let begun = config.files.iter().filter(|range| range.length > 0);
        let length = begun.map(room).max().unwrap_or(0);
        let size = sizes.min;
        if u64::from(size) > length {
            return Err(PatternError::TooSmall {
                direction,
                size,
                length,
            });
        }
    }
    Ok(())
}

/// Checks that zones are not empty and an op fits into their range.
fn check_zones(
    config: &PatternConfig,
    placed: PerDirection<bool>,
    sizes: &PerDirection<OpSizes>,
) -> Result<(), PatternError> {
    let Some(zones) = config.zones else {
        return Ok(());
    };
    if zones.size == 0 || zones.range == 0 {
        return Err(PatternError::EmptyZone);
    }
    for (direction, _) in placed.iter().filter(|&(_, &placed)| placed) {
        let size = sizes[direction].min;
        if config.random && u64::from(size) > zones.range {
            return Err(PatternError::TooSmall {
                direction,
                size,
                length: zones.range,
            });
        }
    }
    Ok(())
}

/// Checks that the shares of a direction's parts add up to 100.
fn check_shares(config: &PatternConfig, placed: PerDirection<bool>) -> Result<(), PatternError> {
    for (direction, shares) in config.shares.iter().flat_map(PerDirection::iter) {
        let sum = shares.iter().map(|share| u32::from(share.percent)).sum();
        if placed[direction] && sum != 100 {
            return Err(PatternError::AccessShares { direction, sum });
        }
    }
    Ok(())
}

fn check_percentages(config: &PatternConfig) -> Result<(), PatternError> {
    let check = |what, value| {
        if value > 100 {
            Err(PatternError::Percent { what, value })
        } else {
            Ok(())
        }
    };
    if let Mix::ReadWrite { read } = config.mix {
        check("share of reads", read)?;
    }
    for (_, &value) in config.percentage_random.iter() {
        check("share of random ops", value)?;
    }
    Ok(())
}

fn check_sequencer(config: &PatternConfig) -> Result<(), PatternError> {
    match (config.sequencer, config.random) {
        (Sequencer::Skip(_), true) | (Sequencer::Every(_) | Sequencer::Repeat(_), false) => {
            Err(PatternError::WrongSequencer {
                random: config.random,
            })
        }
        (Sequencer::Every(0) | Sequencer::Repeat(0), true) => Err(PatternError::NoRepeat),
        _ => Ok(()),
    }
}

fn check_distribution(distribution: Distribution) -> Result<(), PatternError> {
    let check = |what, value: f64, fits, allowed| {
        if fits {
            Ok(())
        } else {
            Err(PatternError::Distribution {
                what,
                value,
                allowed,
            })
        }
    };
    let center = match distribution {
        Distribution::Uniform => None,
        Distribution::Zipf { theta, center } => {
            let fits = theta.is_finite() && theta != 1.0;
            check("theta", theta, fits, "a number other than 1")?;
            center
        }
        Distribution::Pareto { h, center } => {
            check("h", h, h > 0.0 && h < 1.0, "between 0 and 1")?;
            center
        }
        Distribution::Normal { deviation, center } => {
            let fits = (0.0..=100.0).contains(&deviation);
            check("deviation", deviation, fits, "between 0 and 100")?;
            center
        }
    };
    let center = center.unwrap_or(0.0);
    check(
        "center",
        center,
        (0.0..=1.0).contains(&center),
        "between 0 and 1",
    )
}
