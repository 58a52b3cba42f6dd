//! TOML files of the program: machine files, target files.
//!
//! A reader asks each table for its keys ([`Fields`]); whatever is wrong is noted in the
//! [`Source`], with its place, and reported together.
#![forbid(unsafe_code)]

mod fields;
mod parameters;
mod source;

// Public items, listed once.
pub use fields::Fields;
pub use source::{FileKind, Source, TomlProblem, TomlProblemKind};
