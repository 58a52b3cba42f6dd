//! fio's job language: files, options and command lines into a plan, with diagnostics.
#![forbid(unsafe_code)]

mod plan;

// Public items, listed once.
pub use plan::{
    BlockSize, ClockSource, ContinueOnError, CpuPolicy, EtaMode, Fallocate, Job, Options, Origin,
    OutputFormat, Plan, RandomDistribution, RandomGenerator, RateProcess, ReadWrite,
    SequencerSuffix, Settings, Size, Typed, Verify,
};
