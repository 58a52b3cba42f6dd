//! A target on loopback, and hosts that keep to the protocol or do not.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod bad_peers;
mod bare_host;
mod commands;
mod connecting;
mod limits;
mod setup;
