//! Figures of a run in progress, for its views: a terminal (`--live`) and a page (`--serve`).
//!
//! ```text
//!  jobs ──► snapshot, twice a second ──► LiveState ──► Figures ──► terminal
//!           (the watcher's thread)                        └──────► page, /metrics
//! ```
//!
//! The watcher makes the figures whether or not anybody looks; views take the latest ones, so a
//! slow view misses some and delays nothing.

mod figures;
mod heat;
mod hub;
mod state;
mod tracks;

pub(crate) use figures::{AlikeJobs, Figures, RunPhase};
#[cfg(feature = "live")]
pub(crate) use figures::{DirectionRow, LatencyRow, Row, SHOWN_PERCENTILES};
#[cfg(feature = "live")]
pub(crate) use heat::HeatRow;
pub(crate) use hub::Hub;
pub(crate) use state::LiveState;
#[cfg(feature = "live")]
pub(crate) use tracks::Column;
pub(crate) use tracks::{Track, within};

use fathom_core::Nanos;

/// Interval between two states of the figures: often enough for an eye, rare enough to cost little.
pub(crate) const INTERVAL: Nanos = Nanos::from_millis(500);
