//! Order in which queued requests go to the device.

use std::collections::VecDeque;

use fathom_core::Tick;

use crate::bio::Class;
use crate::deadline::{Deadline, DeadlineConfig, Queued};

/// Scheduler of a queue, named as in sysfs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerConfig {
    /// `none`: first come, first served; only the device has tags.
    None,
    /// `mq-deadline`.
    Deadline(DeadlineConfig),
}

#[derive(Debug)]
pub(crate) enum Scheduler {
    None(VecDeque<u32>),
    Deadline(Box<Deadline>),
}

impl Scheduler {
    pub(crate) fn new(config: SchedulerConfig, capacity: usize) -> Self {
        match config {
            SchedulerConfig::None => Self::None(VecDeque::with_capacity(capacity)),
            SchedulerConfig::Deadline(config) => {
                Self::Deadline(Box::new(Deadline::new(config, capacity)))
            }
        }
    }

    pub(crate) fn insert(&mut self, id: u32, request: Queued) {
        match self {
            Self::None(queue) => queue.push_back(id),
            Self::Deadline(deadline) => deadline.insert(id, request),
        }
    }

    pub(crate) fn take(&mut self, now: Tick) -> Option<u32> {
        match self {
            Self::None(queue) => queue.pop_front(),
            Self::Deadline(deadline) => deadline.take(now),
        }
    }

    /// Returns a queued request that may end at `offset`.
    pub(crate) fn before(&self, class: Class, writes: bool, offset: u64) -> Option<u32> {
        match self {
            Self::None(_) => None,
            Self::Deadline(deadline) => deadline.before(class, writes, offset),
        }
    }

    /// Returns a queued request that begins at `offset`, if it may be extended to the front.
    pub(crate) fn at(&self, class: Class, writes: bool, offset: u64) -> Option<u32> {
        match self {
            Self::None(_) => None,
            Self::Deadline(deadline) => deadline.at(class, writes, offset),
        }
    }

    pub(crate) fn begins_at(&mut self, id: u32, offset: u64) {
        if let Self::Deadline(deadline) = self {
            deadline.begins_at(id, offset);
        }
    }
}
