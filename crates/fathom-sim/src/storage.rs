//! Storage as the driver sees it: a device that jobs share, with or without a queue in front.
//!
//! ```text
//!  jobs ── submit ──► Storage ── advance ──► Completed, Woken ──► the driver calls the jobs again
//! ```
//!
//! The driver moves the clock from event to event. It never calls `advance` past `next`, so every
//! event that `advance` returns happens at the `now` it was given.

use fathom_block::SeekCounts;
use fathom_core::{Errno, OpKind, Slot, Tick, Zone, ZoneAction};

use crate::data_fault::DataFault;

/// Storage behind the engines of any number of jobs.
pub trait ModelledStorage {
    /// Submits an op of a job at `now`. After [`SubmitResult::Blocked`] the job sleeps until its
    /// [`StorageEvent::Woken`] and submits the same op again.
    fn submit(&mut self, job: JobId, request: &Request, now: Tick) -> SubmitResult;

    /// Returns the time of the next event; `None` while nothing is in flight and no job waits.
    fn next(&self) -> Option<Tick>;

    /// Appends the events up to `now`, in order, to `out`. `now` is at most `next`.
    fn advance(&mut self, now: Tick, out: &mut Vec<StorageEvent>);

    /// Changes the state of the zone of the device that begins at `start`, at once.
    ///
    /// # Errors
    /// As [`BlockDevice::manage_zone`](fathom_core::BlockDevice::manage_zone).
    fn manage_zone(&mut self, action: ZoneAction, start: u64) -> Result<(), Errno>;

    /// Returns the state of the zone of the device that contains `offset`, if it has zones.
    fn zone(&self, offset: u64) -> Option<Zone>;

    /// Starts counting seek distances, of requests from `from` on.
    fn count_seeks(&mut self, from: Tick);

    /// Returns the seek counts, if they are counted.
    fn seeks(&self) -> Option<&SeekCounts>;
}

impl<S: ModelledStorage + ?Sized> ModelledStorage for Box<S> {
    fn submit(&mut self, job: JobId, request: &Request, now: Tick) -> SubmitResult {
        (**self).submit(job, request, now)
    }

    fn next(&self) -> Option<Tick> {
        (**self).next()
    }

    fn advance(&mut self, now: Tick, out: &mut Vec<StorageEvent>) {
        (**self).advance(now, out);
    }

    fn manage_zone(&mut self, action: ZoneAction, start: u64) -> Result<(), Errno> {
        (**self).manage_zone(action, start)
    }

    fn zone(&self, offset: u64) -> Option<Zone> {
        (**self).zone(offset)
    }

    fn count_seeks(&mut self, from: Tick) {
        (**self).count_seeks(from);
    }

    fn seeks(&self) -> Option<&SeekCounts> {
        (**self).seeks()
    }
}

/// Number of a job in the simulation, in order of addition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(u32);

impl JobId {
    /// Creates the id of the job with this number, from 0.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Op as the storage sees it: addressed on the device, not in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Slot of the job; together with the job it identifies the op until it completes.
    pub slot: Slot,
    /// Kind of op.
    pub kind: OpKind,
    /// Byte offset on the device; 0 for a sync.
    pub offset: u64,
    /// Bytes to move or discard; 0 for a sync.
    pub length: u32,
    /// I/O priority of the kernel, class and level, as in [`Op`](fathom_core::Op).
    pub priority: u16,
}

/// Answer of a storage to an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SubmitResult {
    /// The op was accepted and will complete.
    Accepted,
    /// No tag or request is free: the job sleeps until it is woken.
    Blocked,
}

/// Event in a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageEvent {
    /// An op completed.
    Completed {
        /// Job of the op.
        job: JobId,
        /// Slot of the op.
        slot: Slot,
        /// Bytes moved, or a negated errno.
        result: i32,
    },
    /// An op completed, but its data are not what they should be.
    Faulty {
        /// Job of the op.
        job: JobId,
        /// Slot of the op.
        slot: Slot,
        /// Reported result.
        result: i32,
        /// Fault of the data.
        fault: DataFault,
    },
    /// A blocked job may submit its op again, and may be blocked again.
    Woken {
        /// Woken job.
        job: JobId,
    },
}
