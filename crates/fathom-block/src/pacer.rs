//! Pacers: policies that hold requests back before they ask for a buffer.

mod auto;
mod auto_shared;
mod device_speeds;
mod epoch;
mod rate;
mod search;
mod setting;
mod sweep;
mod trial;
mod tuner;

pub use auto::AutoConfig;
pub(crate) use auto_shared::AutoShared;
pub use auto_shared::AutoStatistics;
pub use rate::{RateConfig, RateStatistics};
pub use setting::Beside;
pub use tuner::{Tuner, TunerConfig};

use fathom_core::{Nanos, Tick};

use crate::buffer_pool::BufferPool;
use crate::wanted::Wanted;
use auto::AutoPacer;
use rate::RatePacer;

/// Policy for requests beside the limit of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacingConfig {
    /// None: the pool is the only limit, if it has one.
    #[default]
    None,
    /// A credit of bytes per period.
    Rate(RateConfig),
    /// The fewest bytes in flight that keep full bandwidth, found by measurement.
    Auto(AutoConfig),
}

/// Pacer of one thread.
#[derive(Debug)]
pub(crate) enum Pacer {
    /// Lets every request go on at once.
    None,
    Rate(Box<RatePacer>),
    Auto(Box<AutoPacer>),
}

impl Pacer {
    pub(crate) fn new(config: &PacingConfig, pool: &BufferPool, thread: u32) -> Self {
        match config {
            PacingConfig::None => Self::None,
            PacingConfig::Rate(config) => Self::Rate(Box::new(RatePacer::new(config, pool))),
            PacingConfig::Auto(config) => {
                Self::Auto(Box::new(AutoPacer::new(*config, pool, thread)))
            }
        }
    }

    /// Holds a request and returns true, unless it may go on at once; `is_blocked` while others
    /// wait for buffers.
    #[inline]
    pub(crate) fn hold(&mut self, wanted: Wanted, is_blocked: bool, now: Tick) -> bool {
        match self {
            Self::None => false,
            Self::Rate(pacer) => pacer.hold(wanted, now),
            Self::Auto(pacer) => pacer.hold(wanted, is_blocked),
        }
    }

    /// Returns the next request that may go on, of those held.
    #[inline]
    pub(crate) fn pass(&mut self, load: &Load<'_>, now: Tick) -> Option<Wanted> {
        match self {
            Self::None => None,
            Self::Rate(pacer) => pacer.pass(load, now),
            Self::Auto(pacer) => pacer.pass(),
        }
    }

    /// Takes what is due at the end of a turn.
    #[inline]
    pub(crate) fn turn(&mut self, now: Tick) {
        if let Self::Auto(pacer) = self {
            pacer.turn(now);
        }
    }

    /// Counts a request that goes on to wait for a buffer.
    #[inline]
    pub(crate) fn begin(&mut self, pool: &BufferPool, wanted: &Wanted) {
        match self {
            Self::None => {}
            Self::Rate(pacer) => pacer.begin(pool, wanted.device),
            Self::Auto(pacer) => pacer.begin(wanted),
        }
    }

    /// Counts a request that ends, or that is withdrawn after it had begun if `moved` is false.
    #[inline]
    pub(crate) fn end(&mut self, pool: &BufferPool, device: u32, bytes: u32, moved: bool) {
        match self {
            Self::None => {}
            Self::Rate(pacer) => pacer.end(pool, device),
            Self::Auto(pacer) => pacer.end(device, bytes, moved),
        }
    }

    /// Notes how long a device took for a command.
    #[inline]
    pub(crate) fn served(&mut self, device: u32, took: Nanos) {
        if let Self::Auto(pacer) = self {
            pacer.served(device, took);
        }
    }

    /// Forgets a request, if it is held.
    pub(crate) fn withdraw(&mut self, id: u64, now: Tick) {
        match self {
            Self::None => {}
            Self::Rate(pacer) => pacer.withdraw(id, now),
            Self::Auto(pacer) => pacer.withdraw(id),
        }
    }

    /// Returns the time at which `pass` may return more.
    pub(crate) fn next(&self) -> Option<Tick> {
        match self {
            Self::None => None,
            Self::Rate(pacer) => pacer.next(),
            Self::Auto(pacer) => pacer.next(),
        }
    }

    /// Returns the number of requests held.
    pub(crate) fn held(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Rate(pacer) => pacer.held(),
            Self::Auto(pacer) => pacer.held(),
        }
    }

    /// Returns the counters of a rate pacer.
    pub(crate) fn rate_statistics(&self) -> Option<RateStatistics> {
        match self {
            Self::Rate(pacer) => Some(pacer.statistics()),
            Self::None | Self::Auto(_) => None,
        }
    }

    /// Returns the state of an automatic pacer.
    pub(crate) fn auto_statistics(&self) -> Option<AutoStatistics> {
        match self {
            Self::Auto(pacer) => Some(pacer.statistics()),
            Self::None | Self::Rate(_) => None,
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
