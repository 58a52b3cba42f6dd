//! Histograms, summaries and series that never allocate while a job runs.
#![forbid(unsafe_code)]

mod histogram;
mod latency;
mod ratio;
mod samples;
mod steady;
mod summary;

// Public items, listed once.
pub use histogram::Histogram;
pub use latency::Latency;
pub use ratio::{RatioInterval, median};
pub use samples::SampleStats;
pub use steady::{SteadyCriterion, SteadyEvaluation, evaluate_steady};
pub use summary::Summary;
