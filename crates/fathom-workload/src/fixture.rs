//! Default configurations for tests, which change single fields of them.

use fathom_core::{Nanos, PerDirection};

use crate::{
    Batching, BufferConfig, BufferFill, Distribution, FileRange, FileService, LimitConfig, MapMode,
    Measure, Mix, PatternConfig, RandomGenerator, Sequencer, SizeChoice, SyncRules, Tolerate,
    WorkerConfig,
};

/// Returns a pattern of `size`-byte ops on one file of `length` bytes, each block once.
#[must_use]
pub fn pattern(mix: Mix, random: bool, size: u32, length: u64) -> PatternConfig {
    PatternConfig {
        mix,
        random,
        sequencer: Sequencer::None,
        files: vec![file(0, length)],
        sizes: PerDirection::all(SizeChoice::Fixed(size)),
        align: PerDirection::all(u64::from(size)),
        map: MapMode::On,
        generator: RandomGenerator::Tausworthe { explicit: false },
        distribution: Distribution::Uniform,
        percentage_random: PerDirection::all(100),
        shares: None,
        sequence: None,
        zones: None,
        preconditioning: None,
        sizes_by_order: false,
        keeps_sizes: false,
        service: FileService::RoundRobin(1),
        open_files: u32::MAX,
        seed: 7,
    }
}

/// Returns a range that ends with its file.
#[must_use]
pub const fn file(offset: u64, length: u64) -> FileRange {
    FileRange {
        offset,
        length,
        file: offset.saturating_add(length),
    }
}

/// Returns a job that makes one pass over its pattern at depth 1, measures all latencies, and
/// has no rate and no limit.
#[must_use]
pub fn job(pattern: PatternConfig) -> WorkerConfig {
    WorkerConfig {
        bytes_per_pass: pattern.files.iter().map(|file| file.length).sum(),
        pattern,
        depth: 1,
        batching: batching(1),
        loops: 1,
        bytes_in_all: None,
        runtime: None,
        time_based: false,
        ramp: Nanos::ZERO,
        start_delay: Nanos::ZERO,
        rate: PerDirection::all(None),
        rate_min: PerDirection::all(None),
        rate_cycle: Nanos::from_secs(1),
        serialize_overlap: false,
        sync_filesystems: Vec::new(),
        recreate_each_pass: false,
        trim_ranges: 1,
        fill: false,
        think: None,
        sync: SyncRules::default(),
        tolerate: Tolerate::default(),
        verify: None,
        is_dry_run: false,
        generations: Vec::new(),
        buffers: BufferConfig {
            fill: BufferFill::Zero,
            refill: false,
            scramble: false,
            compress: None,
            dedupe: None,
        },
        measure: measure(),
        timeline: None,
        priorities: None,
        invalidate: false,
        block_lives: None,
        zoned: None,
        limits: LimitConfig::default(),
        replay: None,
        records: false,
    }
}

/// Returns fio's default batching at a depth: ops submitted and reaped one at a time.
#[must_use]
pub const fn batching(depth: u32) -> Batching {
    Batching {
        submit: 1,
        complete_min: 1,
        complete_max: 1,
        low: depth,
    }
}

/// Returns fio's default measurements, all latencies with a histogram of clat.
#[must_use]
pub fn measure() -> Measure {
    Measure {
        slat: true,
        clat: true,
        lat: true,
        bandwidth: true,
        slat_histogram: false,
        clat_histogram: true,
        lat_histogram: false,
        bandwidth_sample: Nanos::from_millis(500),
        iops_sample: Nanos::from_millis(500),
    }
}
