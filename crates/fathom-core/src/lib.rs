//! Vocabulary of all crates: ticks, ops, engines and block devices, errnos, seeded generators,
//! block maps.
//!
//! Nothing here does I/O, reads a clock or takes a lock.
#![forbid(unsafe_code)]

mod block_device;
mod block_map;
mod completion_list;
mod data_buffer;
mod direction;
mod engine;
mod engine_error;
mod engine_info;
mod engine_values;
mod errno;
mod op;
mod output_format;
mod placement;
mod priority;
mod random;
mod stop_request;
mod time;
mod zone;

/// Atomics of the types shared between threads, replaceable by a model checker's.
mod sync {
    pub(crate) use core::sync::atomic;
}

// Public items, listed once.
pub use block_device::{BlockDevice, Command, CommandData, Finished, Geometry};
pub use block_map::{BlockMap, NoMemory};
pub use completion_list::{CompletionList, CompletionReader};
pub use data_buffer::DataBuffer;
pub use direction::{Direction, PerDirection, SyncKind};
pub use engine::{Capabilities, Engine, Queueing, Step, Submitted, without_zones};
pub use engine_error::{EngineError, EngineStep};
pub use engine_info::{
    Batches, EngineInfo, EngineOption, JobEnd, NameWork, OptionEffect, OptionKind, OptionWord,
    RemoteFile, SlotLimit, Storage, Synchronous, Work,
};
pub use engine_values::{EngineValues, OptionValue};
pub use errno::Errno;
pub use op::{Completion, FileIndex, Op, OpKind, Outcome, Slot, TrimRange};
pub use output_format::OutputFormat;
pub use placement::PlacementRange;
pub use priority::IoPriority;
pub use random::{SplitMix64, Taus88, Taus88x4, Taus258, Xoshiro256, stream_seed};
pub use stop_request::StopRequest;
pub use time::{Nanos, Tick};
pub use zone::{WriteArea, Zone, ZoneAction, ZoneCondition, ZoneKind, ZoneReport};
