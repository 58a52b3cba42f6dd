//! Offsets and sizes of ops: translates `rw`, `bs*` and `random_*` into a `PatternConfig`.

use fathom_core::{Direction, PerDirection};
use fathom_job::{BlockSize, Options, RandomDistribution, ReadWrite, Size, ZoneLength, ZoneMode};
use fathom_workload::{
    AccessShare, BlockSequence, Distribution, FileRange, FileService, MapMode, Mix, PartLength,
    PatternConfig, Preconditioning, RandomGenerator, Sequencer, SizeChoice, Zones,
};

use super::FileSetup;
use super::notes::Warnings;
use crate::error::RunProblem;
use crate::plan_warning::PlanWarningKind;
use crate::problem_kind::ProblemKind;

/// Returns the access pattern over the given files.
pub fn pattern(
    options: &Options,
    files: Vec<FileRange>,
    seed: u64,
) -> Result<PatternConfig, RunProblem> {
    let smallest = PerDirection::from_fn(|direction| bounds(options, direction).0);
    let align = PerDirection::from_fn(|direction| {
        let given = options.blockalign[direction].filter(|&align| align > 0);
        given.unwrap_or(smallest[direction])
    });
    Ok(PatternConfig {
        mix: mix(options),
        random: draws(options),
        sequencer: sequencer(options),
        files,
        service: service(options),
        open_files: open_files(options),
        sizes: PerDirection::new(
            size_choice(options, Direction::Read)?,
            size_choice(options, Direction::Write)?,
            size_choice(options, Direction::Trim)?,
        ),
        map: map_mode(options, &align, &smallest),
        align,
        generator: generator(options),
        distribution: distribution(options.random_distribution),
        shares: access_shares(options),
        sequence: sequence(options),
        zones: zones(options),
        preconditioning: preconditioning(options),
        sizes_by_order: options.bs_is_seq_rand,
        // Ranges cut at visited blocks would have a smaller mean than the one asked for.
        keeps_sizes: options.trims.ranges > 1,
        percentage_random: options.percentage_random,
        seed,
    })
}

/// Returns true if the job writes or trims, or its engine changes files whatever its ops are.
pub fn writes(options: &Options) -> bool {
    uses(options, Direction::Write)
        || uses(options, Direction::Trim)
        || options.engine.always_writes
}

/// Returns true if the job issues ops of this direction, not counting verification.
pub fn uses(options: &Options, direction: Direction) -> bool {
    match &options.replay.found {
        Some(found) => found[direction],
        None => options.rw.directions().contains(&direction),
    }
}

/// Returns true if the job draws ops of this direction; a dry run (`verify_only`) issues none.
pub(crate) fn draws_in(options: &Options, direction: Direction) -> bool {
    match options.verification.dry_run {
        Some(rw) => rw.directions().contains(&direction),
        None => uses(options, direction),
    }
}

/// Ops of a job that its engine or file does not take.
pub struct Excess {
    /// The first of their directions.
    pub direction: Direction,
    /// Option that asks for them.
    pub option: &'static str,
    /// Advice on how to do without them.
    pub hint: String,
}

/// Returns the ops of a job in directions other than `taken`; `None` if it has none.
pub fn excess(options: &Options, taken: &[Direction]) -> Option<Excess> {
    let is_excess = |direction: &Direction| uses(options, *direction) && !taken.contains(direction);
    let excess: Vec<_> = Direction::ALL.into_iter().filter(is_excess).collect();
    let direction = *excess.first()?;
    let names = |of: &[Direction], between| {
        let names: Vec<_> = of.iter().map(|direction| direction.name()).collect();
        names.join(between)
    };
    // The log says what a replay does; `rw` has no effect on it.
    let (option, hint) = match options.replay.found {
        Some(_) => {
            let skipped = names(&excess, ",");
            let hint = format!("leave such ops out: `replay_skip={skipped}`");
            ("read_iolog", hint)
        }
        None => ("rw", format!("use `rw={}`", names(taken, "` or `rw="))),
    };
    Some(Excess {
        direction,
        option,
        hint,
    })
}

/// Returns the smallest and largest op of a direction, in bytes.
pub fn bounds(options: &Options, direction: Direction) -> (u64, u64) {
    match &options.block_sizes[direction] {
        BlockSize::Fixed(size) => (*size, *size),
        BlockSize::Range { min, max } => (*min, *max),
        BlockSize::Split(parts) => {
            let sizes = || parts.iter().map(|&(size, _)| size);
            (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0))
        }
    }
}

/// Returns the smallest op of all directions in use, in bytes; at least 1.
pub fn smallest(options: &Options) -> u64 {
    let smallest = sized(options)
        .map(|direction| bounds(options, direction).0)
        .min();
    smallest.unwrap_or(1).max(1)
}

/// Returns true if all ops have the same size.
pub(crate) fn has_one_size(options: &Options) -> bool {
    let mut bounds = sized(options).map(|direction| bounds(options, direction));
    let smallest = smallest(options);
    bounds.all(|(min, max)| (min, max) == (smallest, smallest))
}

/// Returns true if a pass ends when the random map is full instead of by the bytes of the range:
/// directions with different block sizes share the map, or some ops take no block from it.
pub(crate) fn may_outlast_range(options: &Options) -> bool {
    let has_map = draws(options)
        && !may_repeat(options)
        && !options.bs_is_seq_rand
        && options.random_generator != fathom_job::RandomGenerator::Lfsr;
    let uses_all = sized(options).all(|direction| options.percentage_random[direction] == 100);
    let every = options.rw_suffix.map_or(1, |suffix| suffix.number);
    has_map && (shares_map(options) || !uses_all || every > 1)
}

/// Returns true if the smallest op of a direction in use exceeds that of another, used or not.
fn shares_map(options: &Options) -> bool {
    let unit = |direction| bounds(options, direction).0;
    let smallest = Direction::ALL.into_iter().map(unit).min();
    let placed = |direction| match options.drawn_rw() {
        // The write repeats the offset of the trim.
        ReadWrite::TrimWrite => direction == Direction::Trim,
        _ => draws_in(options, direction),
    };
    let mut used = Direction::ALL.into_iter().filter(|&d| placed(d));
    used.any(|direction| smallest < Some(unit(direction)))
}

/// Returns the directions whose block sizes apply. With `bs_is_seq_rand`, the size for reads
/// applies to sequential ops and the size for writes to random ones.
pub fn sized(options: &Options) -> impl Iterator<Item = Direction> {
    let by_order = options.bs_is_seq_rand;
    Direction::ALL
        .into_iter()
        .filter(move |&direction| match by_order {
            true => direction != Direction::Trim,
            false => draws_in(options, direction),
        })
}

/// Returns `rw` as fio's header prints it.
pub fn rw_name(options: &Options) -> &'static str {
    match (options.rw, options.random) {
        (ReadWrite::Read, false) => "read",
        (ReadWrite::Read, true) => "randread",
        (ReadWrite::Write, false) => "write",
        (ReadWrite::Write, true) => "randwrite",
        (ReadWrite::Trim, false) => "trim",
        (ReadWrite::Trim, true) => "randtrim",
        (ReadWrite::Mixed, false) => "rw",
        (ReadWrite::Mixed, true) => "randrw",
        (ReadWrite::TrimWrite, false) => "trimwrite",
        (ReadWrite::TrimWrite, true) => "randtrimwrite",
    }
}

fn mix(options: &Options) -> Mix {
    match options.drawn_rw() {
        ReadWrite::Read => Mix::Read,
        ReadWrite::Write => Mix::Write,
        ReadWrite::Trim => Mix::Trim,
        ReadWrite::Mixed => Mix::ReadWrite {
            read: options.rwmixread.min(100),
        },
        ReadWrite::TrimWrite => Mix::TrimWrite,
    }
}

/// Returns true if offsets are random. With `rw=rand…:0`, as in fio, no op ever draws an offset, so
/// the ops are sequential.
fn draws(options: &Options) -> bool {
    let never = options.rw_suffix.is_some_and(|suffix| suffix.number == 0);
    options.random && !never
}

fn sequencer(options: &Options) -> Sequencer {
    let Some(suffix) = options.rw_suffix else {
        return Sequencer::None;
    };
    if !draws(options) {
        return match suffix.number {
            0 => Sequencer::None,
            skip => Sequencer::Skip(skip),
        };
    }
    let every = u32::try_from(suffix.number).unwrap_or(u32::MAX);
    if options.rw_identical {
        Sequencer::Repeat(every)
    } else {
        Sequencer::Every(every)
    }
}

fn size_choice(options: &Options, direction: Direction) -> Result<SizeChoice, RunProblem> {
    let narrow = |bytes: u64| {
        u32::try_from(bytes).map_err(|_| {
            RunProblem::new(
                ProblemKind::BlockSizeTooLarge,
                format!("block size {bytes} B: must be below 4 GiB"),
            )
        })
    };
    Ok(match &options.block_sizes[direction] {
        BlockSize::Fixed(size) => SizeChoice::Fixed(narrow(*size)?),
        BlockSize::Range { min, max } if min == max => SizeChoice::Fixed(narrow(*min)?),
        BlockSize::Range { min, max } if options.bs_unaligned => SizeChoice::Unaligned {
            min: narrow(*min)?,
            max: narrow(*max)?,
        },
        BlockSize::Range { min, max } => SizeChoice::Range {
            min: narrow(*min)?,
            max: narrow(*max)?,
        },
        BlockSize::Split(parts) => {
            let parts = parts
                .iter()
                .map(|&(size, share)| Ok((narrow(size)?, share)));
            SizeChoice::Split(parts.collect::<Result<_, RunProblem>>()?)
        }
    })
}

/// Returns the mode of the random map. It is off if blocks may repeat, and if offsets are not
/// multiples of the smallest op, since an op then covers parts of two blocks.
fn map_mode(options: &Options, align: &PerDirection<u64>, smallest: &PerDirection<u64>) -> MapMode {
    let shifted = Direction::ALL
        .into_iter()
        .any(|d| draws_in(options, d) && align[d] != smallest[d]);
    if may_repeat(options) || shifted {
        MapMode::Off
    } else if options.softrandommap {
        MapMode::Soft
    } else {
        MapMode::On
    }
}

/// Returns true if random blocks may repeat before all have been visited.
pub(super) fn may_repeat(options: &Options) -> bool {
    options.norandommap
        || options.random_distribution != RandomDistribution::Random
        || options.access_zones.is_some()
        || options.random_sequence.is_some()
}

/// Returns the blocks of `random_distribution=sequence`.
fn sequence(options: &Options) -> Option<BlockSequence> {
    let blocks = options
        .random_sequence
        .as_ref()
        .filter(|_| draws(options))?;
    Some(BlockSequence {
        blocks: blocks.clone(),
        stride: options.random_sequence_stride,
    })
}

/// Returns the parts of `random_distribution=zoned`.
fn access_shares(options: &Options) -> Option<PerDirection<Vec<AccessShare>>> {
    let zones = options.access_zones.as_ref().filter(|_| draws(options))?;
    let share = |zone: &fathom_job::AccessZone| AccessShare {
        percent: zone.access,
        part: match zone.length {
            ZoneLength::Percent(percent) => PartLength::Percent(percent),
            ZoneLength::Bytes(bytes) => PartLength::Bytes(bytes),
        },
    };
    let shares = |direction| zones[direction].iter().map(share).collect();
    Some(PerDirection::from_fn(shares))
}

/// Warns about zones of `zoned_abs` that a file is too short for.
pub(super) fn note_shares(options: &Options, files: &[FileSetup], warnings: &mut Warnings<'_>) {
    let Some(shares) = access_shares(options) else {
        return;
    };
    let bytes = |share: &AccessShare| match share.part {
        PartLength::Bytes(bytes) => bytes,
        PartLength::Percent(_) => 0,
    };
    let sum = |shares: &Vec<AccessShare>| shares.iter().map(bytes).fold(0, u64::saturating_add);
    let wanted = shares.iter().map(|(_, shares)| sum(shares)).max();
    let there = files.iter().map(|file| file.length).min();
    if let (Some(wanted), Some(there)) = (wanted, there)
        && wanted > there
    {
        warnings.add(
            PlanWarningKind::SharesBeyondFile,
            format!(
                "the zones of `random_distribution` take {wanted} B, but a file has {there} B: \
                 they are cut at its end, and those past it use its last block"
            ),
            "reduce the zones, or increase `size`",
        );
    }
}

fn zones(options: &Options) -> Option<Zones> {
    let zones = options.zones;
    (zones.mode == ZoneMode::Strided).then_some(Zones {
        size: zones.size,
        range: zones.range,
        skip: match zones.skip {
            Size::Bytes(bytes) => bytes,
            // The parser converts zones into bytes and rejects percentages.
            Size::Zones(_) | Size::Percent(_) => 0,
        },
    })
}

/// Returns the regions of `sprandom`.
fn preconditioning(options: &Options) -> Option<Preconditioning> {
    let device = &options.device;
    device.sprandom.then_some(Preconditioning {
        regions: device.spr_num_regions,
        over_provisioning: device.spr_op,
    })
}

/// Returns the file selection; `sequential` is round robin with one open file.
fn service(options: &Options) -> FileService {
    let spread = FileService::Spread;
    match options.file_service {
        fathom_job::FileService::RoundRobin(each) => FileService::RoundRobin(each),
        fathom_job::FileService::Random(each) => FileService::Random(each),
        fathom_job::FileService::Sequential => FileService::RoundRobin(1),
        fathom_job::FileService::Zipf(theta) => spread(Distribution::Zipf {
            theta,
            center: None,
        }),
        fathom_job::FileService::Pareto(h) => spread(Distribution::Pareto { h, center: None }),
        fathom_job::FileService::Normal(deviation) => spread(Distribution::Normal {
            deviation,
            center: None,
        }),
    }
}

fn open_files(options: &Options) -> u32 {
    match options.file_service {
        fathom_job::FileService::Sequential => 1,
        _ => options.openfiles.unwrap_or(u32::MAX),
    }
}

fn generator(options: &Options) -> RandomGenerator {
    match options.random_generator {
        fathom_job::RandomGenerator::Default => RandomGenerator::Tausworthe { explicit: false },
        fathom_job::RandomGenerator::Tausworthe => RandomGenerator::Tausworthe { explicit: true },
        fathom_job::RandomGenerator::Tausworthe64 => RandomGenerator::Tausworthe64,
        fathom_job::RandomGenerator::Lfsr => RandomGenerator::Lfsr,
    }
}

fn distribution(asked: RandomDistribution) -> Distribution {
    match asked {
        RandomDistribution::Random => Distribution::Uniform,
        RandomDistribution::Zipf(theta, center) => Distribution::Zipf { theta, center },
        RandomDistribution::Pareto(h, center) => Distribution::Pareto { h, center },
        RandomDistribution::Normal(deviation, center) => Distribution::Normal { deviation, center },
    }
}
