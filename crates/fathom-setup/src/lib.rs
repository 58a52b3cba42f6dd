//! Setup of a run, shared by the thread driver, virtual time and lint.
//!
//! ```text
//! Plan ─► translate ─► check ─► JobSetup per clone ─► a driver ─► Outcome ─► collect ─► JobRecord
//! ```
//!
//! Nothing here starts an engine or a thread, and nothing is created or written.
#![forbid(unsafe_code)]

pub mod caveats;
pub mod check;
pub mod collect;
pub mod debug_output;
mod error;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod groups;
pub mod lifecycle;
mod live_latencies;
pub mod merge;
pub mod outcome;
mod plan_warning;
mod preflight;
mod problem_kind;
pub mod recording;
pub mod replay;
mod session;
pub mod status;
#[cfg(test)]
mod testing;
pub mod timelines;
pub mod translate;
pub mod validity;

// Public items, listed once.
pub use error::{RunError, RunProblem};
pub use live_latencies::{
    LatenciesSoFar, LatencyMeter, LivePercentiles, all_latencies, latencies_since,
};
pub use plan_warning::{PlanWarning, PlanWarningKind};
pub use preflight::{Host, Preflight, preflight, preflight_accepted};
pub use problem_kind::ProblemKind;
pub use session::{
    JobSnapshot, JobState, LayoutProgress, REPORT_EVERY_MIN, RunEvent, Session, Snapshot,
};
