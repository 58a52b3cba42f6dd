//! What jobs share: a device, with or without a queue in front of it, as the driver sees it.
//!
//! ```text
//!  jobs ── submit ──► Storage ── advance ──► Completed, Woken ──► the driver calls the jobs again
//! ```
//!
//! The driver moves the clock from one moment to the next in which something happens. It never
//! calls `advance` past `next`, so what `advance` puts out happens at the `now` it was given.

use fathom_block::SeekCounts;
use fathom_core::{OpKind, Slot, Tick};

/// What stands behind the engines of any number of jobs.
pub trait Storage {
    /// A job hands over an op at `now`. After [`Taken::Blocked`] the job sleeps until an
    /// [`Event::Woken`] of its own, and then hands over the same op again.
    fn submit(&mut self, job: JobId, request: &Request, now: Tick) -> Taken;

    /// When something happens next; `None` while nothing is in flight and nobody waits.
    fn next(&self) -> Option<Tick>;

    /// What happens up to `now`, in its order, is added to `out`. `now` is at most `next`.
    fn advance(&mut self, now: Tick, out: &mut Vec<Event>);

    /// Has the distances between requests counted, those of before `from` forgotten.
    fn count_seeks(&mut self, from: Tick);

    /// What the device was given; `None` where nobody asked for it.
    fn seeks(&self) -> Option<&SeekCounts>;
}

impl<S: Storage + ?Sized> Storage for Box<S> {
    fn submit(&mut self, job: JobId, request: &Request, now: Tick) -> Taken {
        (**self).submit(job, request, now)
    }

    fn next(&self) -> Option<Tick> {
        (**self).next()
    }

    fn advance(&mut self, now: Tick, out: &mut Vec<Event>) {
        (**self).advance(now, out);
    }

    fn count_seeks(&mut self, from: Tick) {
        (**self).count_seeks(from);
    }

    fn seeks(&self) -> Option<&SeekCounts> {
        (**self).seeks()
    }
}

/// A job's place in the simulation, in the order they were added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(u32);

impl JobId {
    /// The job with this number, counted from 0.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The job's number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The job's number, to index a table with.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An op as the storage sees it: on the device, not in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The job's slot; with the job it names the op until it completes.
    pub slot: Slot,
    /// What it does.
    pub kind: OpKind,
    /// Where on the device, in bytes; 0 for a sync.
    pub offset: u64,
    /// Bytes to move or discard; 0 for a sync.
    pub length: u32,
    /// The kernel's I/O priority, class and level, as in [`Op`](fathom_core::Op).
    pub priority: u16,
}

/// Whether the storage took an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Taken {
    /// It completes in time.
    Yes,
    /// There is no room: the job sleeps until it is woken.
    Blocked,
}

/// What happens in the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An op is done.
    Completed {
        /// Whose it was.
        job: JobId,
        /// Which.
        slot: Slot,
        /// Bytes moved, or a negated errno.
        result: i32,
    },
    /// An op says that it is done, and nothing was moved: a device that lies.
    Forgotten {
        /// Whose it was.
        job: JobId,
        /// Which.
        slot: Slot,
        /// What it says.
        result: i32,
    },
    /// A job that was blocked may hand over its op again; it may be blocked again.
    Woken {
        /// Which job.
        job: JobId,
    },
}
