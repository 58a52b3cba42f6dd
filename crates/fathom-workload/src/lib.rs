//! State machine of an I/O job: patterns, rates, phases, and the loop.
#![forbid(unsafe_code)]

mod batch;
mod block_lives;
mod buffers;
mod compared;
mod complete;
mod config;
mod content;
mod depth_search;
mod dry_run;
mod ending;
mod exponential;
mod fast_path;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
mod flow;
mod issue;
mod job_limits;
mod limit_config;
mod log;
mod lookahead;
mod mismatch;
mod pair_lead;
mod path;
mod pattern;
mod pending;
mod priorities;
mod queue;
mod readback;
mod readback_ops;
mod recorder;
mod recording;
mod replay;
mod replenish;
mod results;
mod sampler;
mod schedule;
mod slots;
mod source;
mod stages;
mod stalls;
mod steady;
mod syncs;
mod think;
mod timeline;
mod timers;
mod tracking;
mod trim_ranges;
mod trims;
mod turn;
mod uniform_ops;
mod verify;
mod window_rate;
mod worker;
mod zones;

// Public items, listed once.
pub use block_lives::BlockLifetimes;
pub use config::{
    AccessShare, Batching, BlockSequence, BufferConfig, BufferFill, Compressible, Dedupe,
    Distribution, FileRange, FileService, MapMode, Measure, Mix, Pace, PartLength, PatternConfig,
    Preconditioning, PriorityChoice, PriorityShare, RandomGenerator, RangeSync, Rate, RateProcess,
    Repeated, Sequencer, SizeChoice, SyncRules, Think, Tolerate, TrimRule, VerifyBacklog,
    VerifyConfig, VerifyMethod, WorkerConfig, Zones,
};
pub use depth_search::{FoundDepth, LatencyTarget};
pub use fathom_checksum::{CHECKSUMS, Checksum, HeaderLayout, META};
pub use flow::{Flow, FlowShare};
pub use limit_config::LimitConfig;
pub use log::{
    Batch, Dropped, JobLog, LogChannel, LogConfig, LogEntry, LogItem, LoggedOp, Series, WhenFull,
};
pub use pattern::{OpTarget, Pattern, PatternError};
pub use recording::{RECORDING_CHUNK_OPS, RecordingError, RecordingSink};
pub use replay::{FeedStatus, ReplayConfig, ReplayFeed, ReplayKind, ReplayOp};
pub use results::{
    DirectionResults, JobActivity, JobError, Phase, PriorityLatency, Results, ToleratedErrors,
    WorkerProgress,
};
pub use stalls::ObservedStall;
pub use steady::{Figure, SteadyGroup, SteadyRule, SteadySample, SteadyStatus};
pub use timeline::{GroupTimeline, WindowLatency};
pub use turn::turn;
pub use verify::{
    Change, Check, CheckedBlocks, Checker, Content, DumpedBlock, EntryMemory, Expected, FileState,
    FoundMismatch, Generation, GenerationMap, Header, HeaderUnfit, KeptMemory, MapLayout, Mismatch,
    Mismatches, Stamp, StateError, SyncNumber, Verifier, VerifyError, VerifyState, map_layout,
};
pub use worker::{ConfigError, Worker};
pub use zones::{ResetRule, ZoneAccess, ZoneSet};
