//! Several hosts that run one plan.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod clocks;
mod conducting;
mod every_order;
mod mangled;
mod many_ranks;
mod ranks;
