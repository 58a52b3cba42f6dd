//! The block layer in front of a device: the queue of requests, the set of tags that says how many
//! there may be, and who gets the next one; and layers that stack over any block device.
//!
//! Nothing here blocks: a call returns that its caller must wait, or whom it has to wake. So the
//! same code serves threads that park and jobs of a simulation.
#![forbid(unsafe_code)]

mod admission;
mod bio;
mod buffer_pool;
mod deadline;
mod device_queues;
mod exchange;
mod held_back;
mod layers;
mod null;
mod pacer;
mod parameters;
mod pieces;
mod recorded;
mod request_queue;
mod scheduler;
mod seeks;
mod shared_memory;
mod sparse_bytes;
mod tag_set;
mod tag_words;
mod thread_buffers;
mod wait_queues;
mod wanted;

/// Atomics of the types shared between threads, replaceable by a model checker's.
mod sync {
    pub(crate) use core::sync::atomic;
    pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};
}

// Public items, listed once.
pub use admission::{Admission, AdmissionStatistics};
pub use bio::{Bio, Class, Limits};
pub use buffer_pool::{BufferConfig, BufferPool, Sharing};
pub use deadline::DeadlineConfig;
pub use exchange::{Exchange, HomeDevice, RemoteDevice, Rouse};
pub use layers::{
    Delay, DelayConfig, DelayTime, Faults, Faulty, LAYERS, Layer, LayerInfo, NamedLayer, Part,
    Stall, ZoneEvents, Zoned, ZonedConfig, layer, read_layers, split,
};
pub use null::Null;
pub use pacer::{
    AutoConfig, AutoStatistics, Beside, PacingConfig, RateConfig, RateStatistics, Tuner,
    TunerConfig,
};
pub use parameters::Parameters;
pub use recorded::Recorded;
pub use request_queue::{DonePiece, Progress, QueueConfig, RequestQueue};
pub use scheduler::SchedulerConfig;
pub use seeks::{SeekBucket, SeekCounts, moves_data};
pub use shared_memory::SharedMemory;
pub use sparse_bytes::SparseBytes;
pub use tag_set::{Asked, Policy, TagSet, TagSetConfig};
pub use tag_words::{Hint, Tag};
pub use wait_queues::{WaiterId, Wakes};
pub use wanted::{AdmissionClass, Wanted};
