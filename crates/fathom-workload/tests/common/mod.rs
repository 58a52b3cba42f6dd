//! Default configurations, and targets as text.
#![allow(dead_code, reason = "each test program uses some of it")]
#![allow(unreachable_pub, reason = "shared between test programs")]

use fathom_core::{Nanos, PerDirection};
#[allow(unused_imports, reason = "each test program uses some of it")]
pub use fathom_workload::fixture::file;
use fathom_workload::{
    Measure, Mix, OpTarget, Pattern, PatternConfig, SizeChoice, WorkerConfig, fixture,
};

/// A kibibyte.
pub const K: u64 = 1024;

pub fn config(mix: Mix, random: bool, size: u32, length: u64) -> PatternConfig {
    PatternConfig {
        seed: 0x89,
        ..fixture::pattern(mix, random, size, length)
    }
}

/// Returns a job that makes one pass over its pattern at depth 1 and measures latencies.
pub fn job(pattern: PatternConfig) -> WorkerConfig {
    WorkerConfig {
        measure: Measure {
            bandwidth_sample: Nanos::new(100_000),
            iops_sample: Nanos::new(100_000),
            ..fixture::measure()
        },
        ..fixture::job(pattern)
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

/// Returns the rest of the pass, at most `limit` ops.
pub fn pass(pattern: &mut Pattern, limit: usize) -> Vec<OpTarget> {
    std::iter::from_fn(|| {
        let direction = pattern.draw_direction();
        pattern.next(direction)
    })
    .take(limit)
    .collect()
}

/// Formats targets: `r0+4` is a read of 4 KiB at 0, and `1:` before it names a file other than the
/// first.
pub fn text(targets: &[OpTarget]) -> String {
    let one = |t: &OpTarget| {
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
