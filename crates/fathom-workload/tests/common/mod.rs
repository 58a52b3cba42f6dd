//! Configurations to begin with, and targets as text.
#![allow(dead_code, reason = "each test program uses some of it")]
#![allow(unreachable_pub, reason = "shared between test programs")]

use fathom_core::{Nanos, PerDirection};
use fathom_workload::{
    Batching, BufferConfig, BufferFill, Distribution, FileRange, FileService, LimitConfig, MapMode,
    Measure, Mix, Pattern, PatternConfig, RandomGenerator, Sequencer, SizeChoice, SyncRules,
    Target, Tolerate, WorkerConfig,
};

/// A kibibyte.
pub const K: u64 = 1024;

pub fn config(mix: Mix, random: bool, size: u32, length: u64) -> PatternConfig {
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
        sizes_by_order: false,
        service: FileService::RoundRobin(1),
        open_files: u32::MAX,
        seed: 0x89,
    }
}

/// A job that goes through its pattern once, at depth 1, and measures latencies.
pub fn job(pattern: PatternConfig) -> WorkerConfig {
    WorkerConfig {
        bytes_per_pass: pattern.files.iter().map(|file| file.length).sum(),
        pattern,
        depth: 1,
        batching: Batching {
            submit: 1,
            complete_min: 1,
            complete_max: 1,
            low: 1,
        },
        loops: 1,
        bytes_in_all: None,
        runtime: None,
        time_based: false,
        ramp: Nanos::ZERO,
        start_delay: Nanos::ZERO,
        rate: PerDirection::all(None),
        rate_min: PerDirection::all(None),
        rate_cycle: Nanos::from_millis(1000),
        serialize_overlap: false,
        sync_filesystems: Vec::new(),
        recreate_each_pass: false,
        fill: false,
        think: None,
        sync: SyncRules::default(),
        tolerate: Tolerate::default(),
        verify: None,
        buffers: BufferConfig {
            fill: BufferFill::Zero,
            refill: false,
            scramble: false,
            compress: None,
            dedupe: None,
        },
        measure: Measure {
            slat: true,
            clat: true,
            lat: true,
            bandwidth: true,
            slat_histogram: false,
            clat_histogram: true,
            lat_histogram: false,
            bandwidth_sample: Nanos::new(100_000),
            iops_sample: Nanos::new(100_000),
        },
        priorities: None,
        invalidate: false,
        limits: LimitConfig::default(),
    }
}

/// A range that ends with its file.
pub const fn file(offset: u64, length: u64) -> FileRange {
    FileRange {
        offset,
        length,
        file: offset.saturating_add(length),
    }
}

pub fn sequential(mix: Mix, length: u64) -> PatternConfig {
    config(mix, false, 4096, length)
}

pub fn random(mix: Mix, length: u64) -> PatternConfig {
    config(mix, true, 4096, length)
}

pub fn range(min: u32, max: u32) -> PerDirection<SizeChoice> {
    PerDirection::all(SizeChoice::Range { min, max })
}

/// The rest of the pass, but no more than `limit` ops.
pub fn pass(pattern: &mut Pattern, limit: usize) -> Vec<Target> {
    std::iter::from_fn(|| {
        let direction = pattern.draw_direction();
        pattern.next(direction)
    })
    .take(limit)
    .collect()
}

/// `r0+4` is a read of 4 KiB at 0; `1:` before it says that the file is not the first.
pub fn text(targets: &[Target]) -> String {
    let one = |t: &Target| {
        let file = if t.file.get() > 0 {
            format!("{}:", t.file.get())
        } else {
            String::new()
        };
        let letter = &t.direction.name()[..1];
        format!("{file}{letter}{}+{}", t.offset / K, u64::from(t.length) / K)
    };
    targets.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[track_caller]
pub fn check(config: PatternConfig, limit: usize, want: &str) {
    let targets = pass(
        &mut Pattern::new(config).expect("a pattern that makes sense"),
        limit,
    );
    assert_eq!(text(&targets), want);
}
