//! Recorded I/O, to be replayed: fio's I/O logs (versions 2 and 3) and the kernel's blktrace.
//!
//! ```text
//! bytes ─► Decoder ─► Event ─► Transform ─► Event ─► Survey, or the ops of a replay
//!          names, times, what is open       scale, align, skip, redirect
//! ```
//!
//! Nothing here reads a file: the caller passes bytes, in pieces of any size, and receives events.
//! Memory is bounded by the number of file names in the log, never by its length.
#![forbid(unsafe_code)]

mod blktrace;
mod decoder;
mod error;
mod event;
mod merge;
mod names;
mod survey;
mod text;
mod transform;
mod writer;

// Public items, listed once.
pub use decoder::{Decoder, Notes};
pub use error::{IologError, IologErrorKind, Place};
pub use event::{Action, Event, LogFile, LogFileName};
pub use merge::{MergeInput, MergedRecord, TimeScale};
pub use survey::{FileSurvey, Survey};
pub use transform::{Changes, Transform};
pub use writer::{can_name, write_action, write_add, write_header};
