//! Conformance suite of engines: the guarantees of the contract on which a worker relies.
//!
//! A crate with an engine of its own has a test bench that implements [`Subject`], and a function
//! that runs a case on each configuration of the engine. [`conformance!`] makes tests of the cases:
//!
//! ```
//! use fathom_conformance::{Subject, conformance};
//!
//! struct Bench {
//!     // The engine, its storage, and an `Account`.
//! }
//! # impl Subject for Bench {
//! #     fn engine(&mut self) -> &mut dyn fathom_core::Engine { unreachable!() }
//! #     fn account(&self) -> &fathom_conformance::Account { unreachable!() }
//! #     fn account_mut(&mut self) -> &mut fathom_conformance::Account { unreachable!() }
//! #     fn stored(&mut self, _block: u32) -> Vec<u8> { Vec::new() }
//! #     fn now(&self) -> fathom_core::Tick { fathom_core::Tick::ZERO }
//! # }
//!
//! /// Runs a case at several depths.
//! fn each(case: impl Fn(&mut Bench)) {
//!     // A new engine each time, with blocks that hold `content`.
//! }
//!
//! conformance!(each);
//! ```
#![forbid(unsafe_code)]

mod account;
pub mod cases;
mod options;
mod subject;

pub use account::Account;
pub use options::option_values;
pub use subject::{BLOCK, BLOCKS, Subject, content};
