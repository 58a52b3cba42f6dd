//! Many hosts as one run: their ranks start together, and their clocks are compared.
//!
//! ```text
//!            a report each second, and at each change
//!  Member ─────────────────────────────────────────────► Conductor   beside rank 0
//!  (one   ◄───────────────────────────────────────────── RemoteClock of each rank
//!  a rank)   an order in answer, and when something begins
//! ```
//!
//! Nothing here does I/O or reads a clock: messages and `now` go in, messages come out. [`Ranks`]
//! joins the parts over a [`Link`], such as MPI, and a clock that its caller lends. No rank waits
//! for a message: it asks its [`Member`] while it naps. Each message has the whole state of its
//! sender, as far as the receiver needs it; lost, doubled and late ones do no harm.
//!
//! * The common clock is that of rank 0. Waves are agreed in it; each rank gets a time on its own
//!   clock, with the bound of the error ([`RemoteClock`]).
//! * A run of one wave on one rank takes the same path as any other.
//! * Decoders trust no peer: a message is at most 64 KiB, and each field is checked.
#![forbid(unsafe_code)]

mod bulk;
mod checklist;
mod comparisons;
mod conductor;
mod decoding;
mod encoding;
mod error;
mod events;
mod file_fetch;
#[cfg(feature = "fixture")]
pub mod fixture;
mod frames;
mod gather;
mod link;
mod member;
mod messages;
mod offset;
mod rank;
mod ranks;
mod seat;
mod spread;
mod text;

// Public items, listed once.
pub use bulk::{BulkLink, BulkMessage, Item, PIECE_BYTES_MAX, TEXT_LENGTH_MAX};
pub use checklist::Refusal;
pub use conductor::{BadRankCount, Conductor, SILENCE_MAX, START_LEAD};
pub use encoding::MESSAGE_BYTES_MAX;
pub use error::{MessageError, MessageErrorKind};
pub use events::{Event, Output};
pub use file_fetch::FileFetch;
pub use frames::{Channel, FRAME_BYTES_MAX, Frames, WINDOW};
pub use gather::{AT_ONCE_MAX, Gather, GatherError, GatherOutput, PATIENCE};
pub use link::{Link, LinkError};
pub use member::{Gate, Member, REPORT_EVERY, Verdict};
pub use messages::{
    Checks, CommonTime, FILES_MAX, Message, Order, Progress, REFUSALS_MAX, Report, Stage, Start,
    StopReason, TooManyFiles,
};
pub use offset::{
    ALIGNMENTS_MAX, Alignment, DRIFT_MAX_PPM, Offset, PingPong, RemoteClock, WANDER_PPM,
};
pub use rank::{FileKey, RANKS_MAX, Rank, Wave};
pub use ranks::{ClockComparison, Ranks, RanksOptions, WaveSpan};
pub use spread::{Mark, Spread};
pub use text::{TEXT_BYTES_MAX, Text};
