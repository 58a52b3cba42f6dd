//! The words every other crate speaks: ticks, ops, the engine trait, seeded generators, bit sets.
//!
//! Nothing here does I/O, reads a clock or takes a lock.
#![forbid(unsafe_code)]

mod direction;
mod engine;
mod op;
mod time;

// Public items, listed once.
pub use direction::{Direction, PerDirection, SyncKind};
pub use engine::{Capabilities, Engine, EngineError, Step, Submitted};
pub use op::{Completion, FileIndex, Op, OpKind, Outcome, Slot};
pub use time::{Nanos, Tick};
