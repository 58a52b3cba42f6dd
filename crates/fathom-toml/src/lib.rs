//! TOML files of the program: machine files, target files, lab files.
//!
//! A reader asks each table for its keys ([`Fields`]); whatever is wrong is noted in the
//! [`Source`], with its place, and reported together.
#![forbid(unsafe_code)]

mod changes;
mod fields;
mod parameters;
mod source;
mod value;

// Public items, listed once.
pub use changes::{Change, ChangeError, ChangedFile, changed};
pub use fields::Fields;
pub use source::{FileKind, Source, TomlProblem, TomlProblemKind};
pub use value::{Entry, Value};
