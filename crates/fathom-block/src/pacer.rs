//! Pacers: policies that hold requests back before they ask for a buffer.

mod rate;
mod tuner;

pub use rate::{RateConfig, RateStatistics};
pub use tuner::{Tuner, TunerConfig};

use fathom_core::Tick;

use crate::admission::Wanted;
use crate::buffer_pool::BufferPool;
use rate::RatePacer;

/// Policy for requests beside the limit of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacingConfig {
    /// None: the pool is the only limit, if it has one.
    #[default]
    None,
    /// A credit of bytes per period.
    Rate(RateConfig),
}

/// Pacer of one thread.
#[derive(Debug)]
pub(crate) enum Pacer {
    /// Lets every request go on at once.
    None,
    Rate(Box<RatePacer>),
}

impl Pacer {
    pub(crate) fn new(config: &PacingConfig, pool: &BufferPool) -> Self {
        match config {
            PacingConfig::None => Self::None,
            PacingConfig::Rate(config) => Self::Rate(Box::new(RatePacer::new(config, pool))),
        }
    }

    /// Takes a request, unless it may go on at once.
    #[inline]
    pub(crate) fn hold(&mut self, wanted: Wanted, now: Tick) -> bool {
        match self {
            Self::None => false,
            Self::Rate(pacer) => pacer.hold(wanted, now),
        }
    }

    /// Returns the next request that may go on, of those held.
    pub(crate) fn pass(&mut self, load: &Load<'_>, now: Tick) -> Option<Wanted> {
        match self {
            Self::None => None,
            Self::Rate(pacer) => pacer.pass(load, now),
        }
    }

    /// Forgets a request, if it is held.
    pub(crate) fn withdraw(&mut self, id: u64, now: Tick) {
        match self {
            Self::None => {}
            Self::Rate(pacer) => pacer.withdraw(id, now),
        }
    }

    /// Returns the time at which `pass` may return more.
    pub(crate) fn next(&self) -> Option<Tick> {
        match self {
            Self::None => None,
            Self::Rate(pacer) => pacer.next(),
        }
    }

    /// Returns the number of requests held.
    pub(crate) fn held(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Rate(pacer) => pacer.held(),
        }
    }

    /// Returns true if operations in flight are counted per device, for all threads.
    pub(crate) const fn counts_devices(&self) -> bool {
        match self {
            Self::None => false,
            Self::Rate(pacer) => pacer.counts_devices(),
        }
    }

    /// Returns the counters of a rate pacer.
    pub(crate) fn rate_statistics(&self) -> Option<RateStatistics> {
        match self {
            Self::None => None,
            Self::Rate(pacer) => Some(pacer.statistics()),
        }
    }
}

/// Load of a thread that a pacer decides by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load<'a> {
    pub(crate) pool: &'a BufferPool,
    /// Bytes of the thread's requests that hold a buffer.
    pub(crate) in_use_bytes: u64,
}
