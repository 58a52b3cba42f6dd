//! Virtual time: an event-driven scheduler and modelled devices behind the engine trait.
//!
//! The workers are those of the thread driver; only clock and device are modelled. Nothing here
//! reads a clock, sleeps or starts a thread: the same workers on the same models give the same
//! results on every host.
#![forbid(unsafe_code)]

mod array;
mod constant;
mod data_fault;
mod direct;
mod distribution;
mod driver;
mod engine;
mod files;
mod flash_map;
mod hdd;
mod idle;
mod models;
mod noise;
mod platter;
mod ran;
mod ssd;
mod stack;
mod storage;
mod watch;

// Public items, listed once.
pub use array::Array;
pub use constant::Constant;
pub use data_fault::DataFault;
pub use direct::{Direct, FaultKind, InjectedFault};
pub use distribution::{Drawn, Latencies};
pub use driver::Simulation;
pub use engine::{EngineSpec, ModelEngine};
pub use files::ModelFile;
pub use hdd::{Hdd, HddConfig, WriteCache};
pub use idle::DeepIdle;
pub use models::{MODELS, Model, ModelInfo, read_model};
pub use noise::{NOISE_KEYS, Neighbour, NoiseConfig, Noisy, TimeLine, Wander};
pub use platter::{PlatterConfig, Zone};
pub use ran::{Ran, Stuck};
pub use ssd::{Ssd, SsdConfig};
pub use stack::{HostConfig, Stack};
pub use storage::{JobId, ModelledStorage, Request, StorageEvent, SubmitResult};
pub use watch::{Orders, Watch};
