//! What an I/O job does next, and when: patterns, rates, phases, and the loop.
#![forbid(unsafe_code)]

mod config;

// Public items, listed once.
pub use config::{
    Batching, BufferConfig, BufferFill, Distribution, FileRange, MapMode, Measure, Mix, Pace,
    PatternConfig, RandomGenerator, Rate, RateProcess, Sequencer, SizeChoice, SyncRules, Think,
    Tolerate, VerifyConfig, VerifyMethod, WorkerConfig,
};
