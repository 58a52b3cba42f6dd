//! Statistics of comparison, beside published figures and SciPy.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod beside_scipy;
mod methods;
mod models;
mod timeline;
mod within_run;
