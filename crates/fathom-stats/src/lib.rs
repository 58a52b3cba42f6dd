//! Histograms, summaries and series that never allocate while a job runs, and the statistics of
//! repeated runs.
#![forbid(unsafe_code)]

mod change_points;
mod comparisons;
mod design;
mod histogram;
mod interpolated;
mod latency;
mod levels;
mod median;
mod normal;
mod order_effects;
mod rank_sum;
mod ranks;
mod ratio;
mod samples;
mod series;
mod signed_rank;
mod slot_counts;
mod steady;
mod student;
mod summary;
mod timeline;
mod verdict;
mod windows;
mod within_run;

// Public items, listed once.
pub use change_points::{ChangePoint, change_points};
pub use comparisons::{SIGNIFICANT, holm, repeats_to_prove};
pub use design::{smallest_effect, unstable};
pub use histogram::Histogram;
pub use interpolated::BEYOND_MIN;
pub use latency::Latency;
pub use levels::{BestLength, LevelAdvice, LevelGroup, Levels, RunCost};
pub use median::{MedianInterval, median};
pub use normal::standard_normal;
pub use order_effects::{OrderEffect, OrderedRun, effect_of_place, effect_of_predecessor};
pub use rank_sum::{SERIES_MAX, rank_sum};
pub use ratio::RatioInterval;
pub use samples::SampleStats;
pub use signed_rank::{DIFFERENCES_MAX, signed_rank};
pub use steady::{SteadyCriterion, SteadyEvaluation, SteadyWindow, evaluate_steady};
pub use student::t_quantile;
pub use summary::Summary;
pub use timeline::{Addition, Timeline};
pub use verdict::{Improves, Verdict};
pub use windows::{Window, Windows};
pub use within_run::{Interval, NoInterval, WithinRun};
