//! Contract between the worker, which decides, and an engine, which acts.
//!
//! One worker owns one engine. The calling order of a turn is
//!
//! ```text
//! prepare(op)…  →  submit(want)  →  reap(out)…  →  [the driver: wait(min, until)]
//! ```
//!
//! An engine decides nothing: no retry, no reordering of its own, no hidden fallback.

use std::os::fd::BorrowedFd;

use crate::{
    Completion, EngineError, EngineStep, Errno, FileIndex, Op, Slot, Tick, TrimRange, Zone,
    ZoneAction,
};

/// Performs ops through a kernel, a network or a model, and returns completions.
///
/// Invariants, checked by the conformance suite for every engine:
/// * each prepared op completes exactly once, with its own slot;
/// * a slot's buffer belongs to the engine from `prepare` until `reap` has returned its completion;
/// * at most `depth` ops (fixed at creation) are in flight;
/// * dropping an engine with ops in flight waits for them, or leaks their buffers.
pub trait Engine {
    /// Returns the engine's properties, constant over its lifetime.
    fn capabilities(&self) -> Capabilities;

    /// Opens a file of the job's list. Opening an open file is a programming error. By default
    /// nothing, as `close` and `invalidate`: for engines without files.
    ///
    /// # Errors
    /// The errno of the failed system call, with the path.
    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        let _no_file = file;
        Ok(())
    }

    /// Closes a file; none of its ops may be in flight.
    ///
    /// # Errors
    /// The errno of the failed system call, with the path.
    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        let _no_file = file;
        Ok(())
    }

    /// Drops the file's clean pages from the page cache, if it has any.
    ///
    /// # Errors
    /// The errno of the failed system call, with the path.
    fn invalidate(&mut self, file: FileIndex) -> Result<(), EngineError> {
        let _no_file = file;
        Ok(())
    }

    /// Changes the state of a zone of a file, of which no op may be in flight. The call returns
    /// when the device is done.
    ///
    /// # Errors
    /// The errno of the failed system call, with the path; `EOPNOTSUPP` from an engine that cannot
    /// manage zones.
    fn manage_zone(
        &mut self,
        file: FileIndex,
        action: ZoneAction,
        zone: &Zone,
    ) -> Result<(), EngineError> {
        let _unsupported = (file, zone);
        Err(without_zones(action.name()))
    }

    /// Returns the state of the zone that contains the byte `offset` of a file, from the device.
    ///
    /// # Errors
    /// As [`manage_zone`](Self::manage_zone).
    fn report_zone(&mut self, file: FileIndex, offset: u64) -> Result<Zone, EngineError> {
        let _unsupported = (file, offset);
        Err(without_zones("report zones"))
    }

    /// Advances the connection to a peer, and returns whether it is complete. Waits for 100 ms at
    /// most, so that the driver sees a stop request. The driver repeats the call before the first
    /// op, outside of what is measured.
    ///
    /// # Errors
    /// The errno of the failed system call, with the peer.
    fn connect(&mut self) -> Result<bool, EngineError> {
        Ok(true)
    }

    /// Ends ops in flight that may otherwise wait for ever, for a peer or a program. They complete,
    /// as [`Completion::ENDED`] or as they happen to. The driver calls it when the job issues no
    /// more ops, perhaps several times.
    fn cancel(&mut self) {}

    /// Returns the buffer of a slot that is not in flight; empty if the engine moves no data
    /// (`Capabilities::moves_data` is false).
    fn buffer(&mut self, slot: Slot) -> &mut [u8];

    /// Sets the ranges of the trim that is prepared next in a slot, which is not in flight. The
    /// trim has the offset of the first and the sum of their lengths. Called before each trim of a
    /// job whose trims have several ranges, which needs an engine with
    /// [`EngineInfo::trim_ranges`](crate::EngineInfo::trim_ranges).
    ///
    /// # Panics
    /// The engine has no such trims.
    fn set_ranges(&mut self, slot: Slot, ranges: &[TrimRange]) {
        let _unsupported = (slot, ranges);
        unreachable!("a job of several ranges per trim needs an engine that has them");
    }

    /// Turns the read that is prepared next, in this slot, into a comparison: the device compares
    /// its blocks with the slot's buffer instead of returning them. The op completes with `EILSEQ`
    /// if they differ. Called for jobs with
    /// [`OptionEffect::ComparedReadback`](crate::OptionEffect::ComparedReadback) alone.
    ///
    /// # Panics
    /// The engine has no such command.
    fn compare_next(&mut self, slot: Slot) {
        let _unsupported = slot;
        unreachable!("a job that compares on the device needs an engine that does so");
    }

    /// Queues an op; an asynchronous engine makes no system call. A synchronous engine may perform
    /// the op here or in `submit`.
    fn prepare(&mut self, op: &Op);

    /// Queues reads or writes that equal `op` except for slot, offset and sequence number: one for
    /// each of `slots`, with the next offset of `offset`, numbered on from `op`. An engine may
    /// compute once what they share.
    #[inline]
    fn prepare_many(&mut self, op: &Op, slots: &[Slot], mut offset: impl FnMut() -> u64)
    where
        Self: Sized,
    {
        for (&slot, sequence) in slots.iter().zip(op.sequence..) {
            self.prepare(&Op {
                slot,
                offset: offset(),
                sequence,
                ..*op
            });
        }
    }

    /// Submits all queued ops, in one system call that may also run task work and wait for `want`
    /// completions. Failures of single ops are returned as completions.
    fn submit(&mut self, want: u32) -> Submitted;

    /// Collects completions without waiting and returns the number of entries filled in `out`.
    fn reap(&mut self, out: &mut [Completion]) -> usize;

    /// Returns the time after a system call that the last `reap` made, once: the completion time of
    /// what it returned. `None` if it made none: the time before it stands for such a reap.
    #[inline]
    fn reaped_at(&mut self) -> Option<Tick> {
        None
    }

    /// Sleeps until `min` completions can be reaped or the clock passes `until`; `min` is at most
    /// the number in flight. Called by the driver, never by the worker. An engine whose ops may
    /// wait for ever returns every 100 ms, so that the driver sees a stop request.
    ///
    /// # Errors
    /// The errno of the failed system call; the engine can no longer be used.
    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError>;

    /// Sends ops that were submitted but held back, to go with those that replace the completions
    /// to be reaped. The driver calls it before it leaves the engine alone for a while.
    fn send_held(&mut self) {}

    /// Hands the buffer of a slot that is not in flight to the next thread that uses it. Only
    /// buffers that several threads use in turn have a use for it
    /// ([`EngineInfo::shares_buffers`](crate::EngineInfo::shares_buffers)).
    fn release(&mut self, slot: Slot) {
        let _own_buffers = slot;
    }

    /// Returns a descriptor that is readable while there may be completions to reap, the same one
    /// over the engine's lifetime; `None` if the engine has none and must be polled. For drivers
    /// that wait for other things, too.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns a description of the latest op that failed with this errno, if the engine knows more
    /// than the errno says: a status of the device.
    fn explain(&self, errno: Errno) -> Option<String> {
        let _says_all = errno;
        None
    }
}

/// Returns the error of an engine that cannot manage zones.
#[cold]
#[must_use]
pub fn without_zones(call: &'static str) -> EngineError {
    EngineError {
        step: EngineStep::Call(call),
        target: "engine without zones".to_owned(),
        errno: Some(Errno::EOPNOTSUPP),
        hint: String::new(),
    }
}

/// Passes methods of [`Engine`] on to the engine in a field, for engines around another one: those
/// that have a default, which the wrapper would have if it left one out, and `buffer`. A wrapper
/// answers `invalidate`, `descriptor` and `explain` itself.
#[macro_export]
macro_rules! pass_to_engine {
    ($engine:ident) => {
        fn manage_zone(
            &mut self,
            file: $crate::FileIndex,
            action: $crate::ZoneAction,
            zone: &$crate::Zone,
        ) -> Result<(), $crate::EngineError> {
            self.$engine.manage_zone(file, action, zone)
        }

        fn report_zone(
            &mut self,
            file: $crate::FileIndex,
            offset: u64,
        ) -> Result<$crate::Zone, $crate::EngineError> {
            self.$engine.report_zone(file, offset)
        }

        fn connect(&mut self) -> Result<bool, $crate::EngineError> {
            self.$engine.connect()
        }

        fn cancel(&mut self) {
            self.$engine.cancel();
        }

        fn buffer(&mut self, slot: $crate::Slot) -> &mut [u8] {
            self.$engine.buffer(slot)
        }

        fn set_ranges(&mut self, slot: $crate::Slot, ranges: &[$crate::TrimRange]) {
            self.$engine.set_ranges(slot, ranges);
        }

        fn compare_next(&mut self, slot: $crate::Slot) {
            self.$engine.compare_next(slot);
        }

        fn reaped_at(&mut self) -> Option<$crate::Tick> {
            self.$engine.reaped_at()
        }

        fn send_held(&mut self) {
            self.$engine.send_held();
        }

        fn release(&mut self, slot: $crate::Slot) {
            self.$engine.release(slot);
        }
    };
}

/// Boxed engines, so that rare engines share one compiled loop.
impl<E: Engine + ?Sized> Engine for Box<E> {
    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        (**self).open(file)
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        (**self).close(file)
    }

    fn invalidate(&mut self, file: FileIndex) -> Result<(), EngineError> {
        (**self).invalidate(file)
    }

    fn manage_zone(
        &mut self,
        file: FileIndex,
        action: ZoneAction,
        zone: &Zone,
    ) -> Result<(), EngineError> {
        (**self).manage_zone(file, action, zone)
    }

    fn report_zone(&mut self, file: FileIndex, offset: u64) -> Result<Zone, EngineError> {
        (**self).report_zone(file, offset)
    }

    fn connect(&mut self) -> Result<bool, EngineError> {
        (**self).connect()
    }

    fn cancel(&mut self) {
        (**self).cancel();
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        (**self).buffer(slot)
    }

    fn set_ranges(&mut self, slot: Slot, ranges: &[TrimRange]) {
        (**self).set_ranges(slot, ranges);
    }

    fn compare_next(&mut self, slot: Slot) {
        (**self).compare_next(slot);
    }

    fn prepare(&mut self, op: &Op) {
        (**self).prepare(op);
    }

    fn submit(&mut self, want: u32) -> Submitted {
        (**self).submit(want)
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        (**self).reap(out)
    }

    fn reaped_at(&mut self) -> Option<Tick> {
        (**self).reaped_at()
    }

    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        (**self).wait(min, until)
    }

    fn send_held(&mut self) {
        (**self).send_held();
    }

    fn release(&mut self, slot: Slot) {
        (**self).release(slot);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (**self).descriptor()
    }

    fn explain(&self, errno: Errno) -> Option<String> {
        (**self).explain(errno)
    }
}

/// Result of `submit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// All ops were accepted.
    Issued {
        /// Issue time of the ops. Asynchronous: after the call. Synchronous: just before it.
        issue: Tick,
        /// Time after the call; equals `issue` for asynchronous engines. Also the completion time
        /// of the ops reaped next, and the start time of the next op.
        now: Tick,
    },
    /// Not all ops were accepted: no tag is free, or another job holds a file's lock. The driver
    /// waits and the worker submits again; the wait counts as slat.
    Blocked,
}

/// Properties of an engine, constant over its lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Name in job files: `psync`, `io_uring`.
    pub name: &'static str,
    /// Ops complete inside `submit`, or in the `wait` that follows if they wait for a peer: depth
    /// is 1 and there is no slat.
    pub synchronous: bool,
    /// Buffers reach a device: content matters and can be verified.
    pub moves_data: bool,
    /// Rule for `OpKind::Sync`.
    pub syncs: Queueing,
    /// Rule for `Direction::Trim`.
    pub trims: Queueing,
}

/// Rule for preparing ops of one kind while others are in flight, which the worker keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// They are queued like reads and writes.
    Queued,
    /// Each is performed inside `submit` and prepared alone, while others may be in flight.
    Inline,
    /// As `Inline`, with nothing else in flight: the queue is drained first.
    Alone,
}

/// Request of a worker's turn to its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Call again with a later time.
    Again,
    /// Wait until `min` completions can be reaped or until `until`, whichever is first; with `min`
    /// 0, a plain sleep.
    Wait {
        /// Completions to wait for; 0 for none.
        min: u32,
        /// Latest time of the next call.
        until: Option<Tick>,
        /// Spin instead of sleeping (`thinktime_spin`).
        spin: bool,
    },
    /// The engine blocked in `submit`; call again once it is woken.
    Blocked,
    /// The worker has finished; nothing is in flight.
    Done,
}
