//! Random plans: jobs that write, trim and read a few files, and one fault.

use std::sync::Arc;

use fathom_core::{Direction, Nanos, PerDirection, Xoshiro256};
use fathom_sim::DataFault;
use fathom_workload::{
    Checksum, Distribution, FileRange, GenerationMap, HeaderLayout, MapLayout, MapMode, Mix,
    PatternConfig, SizeChoice, Verifier, VerifyBacklog, VerifyConfig, VerifyMethod, WorkerConfig,
    Zones, fixture, map_layout,
};

use crate::oracle::{Planned, SECTOR};

/// Bytes between the starts of two files on the storage.
pub(crate) const FILE_BYTES: u64 = 1 << 20;

/// Jobs on files, and the fault that the storage has.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) files: u64,
    pub(crate) jobs: Vec<JobPlan>,
    pub(crate) fault: Option<Planned>,
    /// All writers stamp alike, so each may check all blocks.
    pub(crate) uniform: bool,
    /// Completions late in a million.
    pub(crate) late_ppm: u32,
    pub(crate) seed: u64,
}

/// Job and its files, by number.
#[derive(Debug)]
pub(crate) struct JobPlan {
    pub(crate) config: WorkerConfig,
    pub(crate) files: Vec<usize>,
    /// Bytes from one header to the next.
    pub(crate) interval: u32,
    pub(crate) starts: Nanos,
}

impl JobPlan {
    /// Returns what the blocks of two jobs must have in common if each is to check the other's.
    fn format(&self) -> (u32, u32) {
        let config = self.config.verify.as_ref().unwrap();
        let pattern = &self.config.pattern;
        let verifier = Verifier::new(config, &pattern.sizes.write, pattern.seed).unwrap();
        (verifier.interval(), verifier.period())
    }
}

impl Plan {
    /// Returns whether patterns of five bytes go on in intervals, so that only reading back tells
    /// what they should be.
    pub(crate) fn lacks_starts(&self) -> bool {
        let is_short = |job: &JobPlan| {
            let verify = job.config.verify.as_ref();
            verify.is_some_and(|verify| verify.pattern.is_some() && verify.interval.is_some())
        };
        self.jobs.iter().any(is_short)
    }
}

/// Kinds of faults; 0 is none.
pub(crate) const FAULTS: u64 = 8;

/// Draws a plan.
pub(crate) fn draw(seed: u64, fault: u64) -> Plan {
    let mut random = Xoshiro256::new(seed);
    let files = 1 + random.below(2);
    let block = 512 << random.below(4);
    let alike = random.below(4) > 0;
    let method = method(&mut random);
    // Distance of headers, where they are closer than blocks; all blocks are a multiple of it.
    let header = (random.below(4) == 0).then_some(block.min(1024));
    let sizes = sizes(&mut random, block);
    let count = 1 + random.below(3);
    let mut jobs: Vec<JobPlan> = (0..count)
        .map(|number| {
            let sizes = match alike {
                true => sizes.clone(),
                false => self::sizes(&mut random, block),
            };
            job(&mut random, number, (files, block), sizes, (method, header))
        })
        .collect();
    let uniform = jobs.iter().all(|job| job.format() == jobs[0].format());
    share_maps(&mut jobs, files, uniform);
    Plan {
        files,
        jobs,
        fault: fault_of(&mut random, fault),
        uniform,
        late_ppm: if random.below(2) > 0 { 300_000 } else { 0 },
        seed,
    }
}

fn method(random: &mut Xoshiro256) -> VerifyMethod {
    let checksums = ["crc32c", "md5", "xxhash", "crc16", "sha1"];
    match random.below(7) {
        5 => VerifyMethod::Pattern,
        6 => VerifyMethod::PatternHeader,
        n => VerifyMethod::Checksum(Checksum::find(checksums[n as usize]).unwrap()),
    }
}

fn sizes(random: &mut Xoshiro256, block: u32) -> SizeChoice {
    match random.below(4) {
        0 => SizeChoice::Range {
            min: block,
            max: 4 * block,
        },
        1 => SizeChoice::Split(vec![(block, 50), (2 * block, 30), (4 * block, 20)]),
        _ => SizeChoice::Fixed(block << random.below(2)),
    }
}

/// Returns the largest divisor of all sizes.
pub(crate) fn unit(sizes: &SizeChoice) -> u32 {
    match sizes {
        SizeChoice::Fixed(size) => *size,
        SizeChoice::Range { min, .. } | SizeChoice::Unaligned { min, .. } => *min,
        SizeChoice::Split(sizes) => sizes[0].0,
    }
}

fn job(
    random: &mut Xoshiro256,
    number: u64,
    (files, block): (u64, u32),
    sizes: SizeChoice,
    (method, header): (VerifyMethod, Option<u32>),
) -> JobPlan {
    let length = u64::from(block) * (8 + random.below(56));
    let offset = u64::from(block) * random.below(3);
    let first = random.below(files);
    let files: Vec<usize> = match random.below(3) {
        0 => (0..files as usize).collect(),
        _ => vec![first as usize],
    };
    let unit = unit(&sizes);
    let mut pattern = fixture::pattern(mix(random, number), random.below(4) > 0, block, length);
    pattern.files = vec![range(offset, length); files.len()];
    pattern.sizes = PerDirection::all(sizes);
    pattern.align = PerDirection::all(u64::from(unit));
    if random.below(3) == 0 {
        let smallest = (block >> random.below(3)).max(512);
        pattern.sizes.read = self::sizes(random, smallest);
        pattern.align.read = u64::from(self::unit(&pattern.sizes.read));
    }
    pattern.seed = random.below(1 << 40);
    vary(random, &mut pattern, block, length);
    let mut config = fixture::job(pattern);
    config.bytes_per_pass = length * files.len() as u64 * (1 + random.below(3));
    config.depth = 1 << random.below(7);
    config.batching = fixture::batching(config.depth);
    config.loops = 1 + u32::try_from(random.below(3)).unwrap();
    config.serialize_overlap = config.depth > 1 && random.below(4) == 0;
    if random.below(6) == 0 {
        config.time_based = true;
        config.runtime = Some(Nanos::from_millis(5 + random.below(20)));
    }
    if !config.time_based && random.below(6) == 0 {
        config.limits.ops = Some(20 + random.below(100));
    }
    let verify = verify(random, number, method, header);
    let interval = verify.interval.unwrap_or(unit);
    config.verify = Some(verify);
    JobPlan {
        config,
        files,
        interval,
        starts: Nanos::from_micros(random.below(2) * random.below(5000)),
    }
}

/// Returns the mix of a job; the first one always writes.
fn mix(random: &mut Xoshiro256, number: u64) -> Mix {
    match (number, random.below(8)) {
        (_, 0) => Mix::TrimWrite,
        (_, 1 | 2) => Mix::ReadWrite { read: 30 },
        // A job that only reads would check what earlier runs wrote, too.
        (1.., 3) => Mix::ReadWrite { read: 95 },
        (1.., 4) => Mix::Trim,
        _ => Mix::Write,
    }
}

const fn range(offset: u64, length: u64) -> FileRange {
    FileRange {
        offset,
        length,
        file: FILE_BYTES,
    }
}

fn vary(random: &mut Xoshiro256, pattern: &mut PatternConfig, block: u32, length: u64) {
    match random.below(6) {
        0 => pattern.map = MapMode::Off,
        1 => {
            pattern.map = MapMode::Off;
            // Blocks overlap in part.
            pattern.align = PerDirection::all(u64::from(block / 2).max(SECTOR));
        }
        2 => {
            pattern.map = MapMode::Off;
            pattern.distribution = Distribution::Zipf {
                theta: 1.2,
                center: None,
            };
        }
        3 if pattern.random && length >= 16 * u64::from(block) => {
            pattern.map = MapMode::Off;
            pattern.zones = Some(Zones {
                size: 4 * u64::from(block),
                range: 8 * u64::from(block),
                skip: 0,
            });
        }
        _ => {}
    }
}

fn verify(
    random: &mut Xoshiro256,
    number: u64,
    method: VerifyMethod,
    interval: Option<u32>,
) -> VerifyConfig {
    let backlog = (random.below(3) == 0).then(|| VerifyBacklog {
        writes: 1 + random.below(16),
        reads: 1 + random.below(20),
    });
    let layouts = [HeaderLayout::Fio3_42, HeaderLayout::Fio3_33];
    VerifyConfig {
        pattern: pattern_of(method),
        interval,
        layout: layouts[random.below(2) as usize],
        backlog,
        thread: 1 + u16::try_from(number).unwrap(),
        ..VerifyConfig::new(method)
    }
}

/// Returns the pattern of the methods that compare one.
fn pattern_of(method: VerifyMethod) -> Option<Vec<u8>> {
    matches!(method, VerifyMethod::Pattern | VerifyMethod::PatternHeader)
        .then(|| vec![1, 2, 3, 4, 5])
}

/// Gives the jobs maps of their files, as the setup of a run does.
fn share_maps(jobs: &mut [JobPlan], files: u64, uniform: bool) {
    let maps: Vec<Option<Arc<GenerationMap>>> = (0..files as usize)
        .map(|file| {
            let layouts = jobs.iter().filter_map(|job| {
                let index = job.files.iter().position(|number| *number == file)?;
                Some(map_layout(&job.config.pattern, index, job.interval))
            });
            let layout: Option<MapLayout> = layouts.reduce(|a, b| a.merged(&b));
            layout.map(|layout| Arc::new(GenerationMap::new(layout).shared(uniform)))
        })
        .collect();
    for job in jobs {
        let of = |file: &usize| maps[*file].clone();
        job.config.generations = job.files.iter().map(of).collect();
    }
}

fn fault_of(random: &mut Xoshiro256, fault: u64) -> Option<Planned> {
    let write = |fault| (Direction::Write, fault);
    let bit = random.below(8 * 1024 * 4);
    let (direction, fault) = match fault {
        1 => write(DataFault::Flipped(bit)),
        2 => write(DataFault::Lost),
        3 => write(DataFault::Misdirected(
            (1 + random.below(8)).cast_signed() * 4096,
        )),
        4 => write(DataFault::Torn(
            u32::try_from(SECTOR * random.below(8)).unwrap(),
        )),
        5 => (Direction::Read, DataFault::Stale),
        6 => (Direction::Read, DataFault::Flipped(bit)),
        _ => return None,
    };
    Some(Planned {
        direction,
        number: random.below(150),
        fault,
    })
}
