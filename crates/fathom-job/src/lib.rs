//! Parser of fio's job language: turns job files and command lines into a plan, with diagnostics.
//!
//! [`parse`] takes a command line and returns what to run or print, or every error in it. All
//! access to files and the machine goes through [`Environment`].
//!
//! ```text
//! command line ─► getopt ─┐
//!                         ├─► build: one layer of options per job ─► check ─► Plan
//! job files ─► lines ─────┘       each option through its row of `table`
//! ```
#![forbid(unsafe_code)]

mod arithmetic;
mod build;
mod bytes_pattern;
mod check;
mod clients;
mod command_line;
mod compatibility;
mod debug;
mod defaults;
mod device;
mod diagnostics;
mod engines;
mod environment;
mod file;
mod findings;
mod getopt;
mod help;
mod includes;
mod invocation;
mod layer;
mod lifecycle;
mod lines;
mod logs;
mod named_files;
mod names;
mod number;
mod numbering;
mod placement;
mod plan;
mod problem;
mod process;
mod rank;
mod rank_keywords;
mod rank_place;
mod readback_options;
mod reading;
mod reference;
mod refuse;
mod replay;
mod reporter;
mod secrets;
mod shifted;
mod showcmd;
mod source;
mod substitute;
mod suggest;
mod switch_values;
mod switches;
mod table;
#[cfg(test)]
mod testing;
mod time;
mod url_passwords;
mod verification;
mod vocabulary;
mod workload;

// Public items, listed once.
pub use clients::{ClientGroup, Clients, Launched, of_one_host};
pub use command_line::{parse, parse_leniently};
pub use compatibility::compatibility_markdown;
pub use debug::{DebugOptions, debug_line, option_lines};
pub use device::{DataPlacement, DeviceOptions, StreamChoice, TrimOptions};
pub use diagnostics::{Diagnostic, Diagnostics, Severity};
pub use environment::Environment;
pub use file::JOB_FILE_BYTES_MAX;
pub use help::option_examples;
pub use includes::{WholeJobFile, with_includes};
pub use invocation::{Dialect, Invocation, RefusedInvocation, SelfTest};
pub use lifecycle::{ExitWhat, LifecycleOptions, SteadyFigure, SteadyState, Unified};
pub use logs::{LogFull, LogOptions, LogValue};
pub use named_files::NamedFile;
pub use names::{engine_files, file_names, only_file};
pub use numbering::Numbering;
pub use placement::{PlacementOptions, RankList, RankShift};
pub use plan::{
    BlockSize, ClockSource, ContinueOnError, CpuPolicy, Fallocate, IdleProfile, Job, Options, Plan,
    PriorityShare, RandomDistribution, RandomGenerator, RateProcess, SequencerSuffix, Settings,
    ShowMode, Size, Typed, Verify,
};
pub use problem::FioLevel;
pub use process::{MemoryPolicy, Nodes, ProcessOptions};
pub use rank::{Rank, StartTime};
pub use rank_keywords::depends_on_rank;
pub use rank_place::{KnownRanks, RankPlace};
pub use readback_options::ReadbackOptions;
pub use reference::{OptionReference, Reference, SwitchReference};
pub use replay::ReplayOptions;
pub use source::Origin;
pub use suggest::closest;
pub use verification::VerificationOptions;
pub use workload::{
    AccessZone, ContentOptions, DedupeMode, FadviseHint, FileOptions, FileService, LockFile,
    MemoryKind, MemoryOptions, OffloadKick, RangeSync, ReadWrite, ZoneLength, ZoneMode,
    ZoneOptions,
};
