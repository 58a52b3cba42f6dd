//! Verification by the device (`verify_mode=compare`).
//!
//! ```text
//! write to read back ─► its content, in the buffer ─► Compare ─► the same: verified
//!                                                        └─► other data: read, and checked here
//! ```
//!
//! A device does not say which byte differs, so that a rejected block is read, and checked as
//! without the option.

use fathom_core::{Completion, Engine, Errno, Slot};

use crate::readback::{Readback, is_whole};
use crate::tracking::Tracking;
use crate::verify::LoggedWrite;
use crate::worker::Worker;

/// State of the comparison in a slot, where the device compares a write that is read back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// There is none: the device returns the data.
    #[default]
    None,
    /// The device was asked to compare.
    Requested,
    /// The device has found other data, which are read now.
    Rejected,
}

impl Worker {
    /// Turns the read of a write into a comparison by the device, if the job asks for that and all
    /// blocks of the write may still be there. The read is prepared next, in `slot`.
    pub(crate) fn compare_readback<E: Engine>(
        &mut self,
        engine: &mut E,
        slot: Slot,
        written: &LoggedWrite,
    ) {
        if let (Some(readback), Some(tracking)) = (&mut self.readback, self.tracking.as_deref())
            && readback.begin_comparison(slot, written, tracking)
        {
            let buffer = &mut engine.buffer(slot)[..written.length as usize];
            readback.put_content(buffer, written);
            engine.compare_next(slot);
        }
    }

    /// Returns whether an op was a comparison, and the device has found other data.
    pub(crate) fn is_rejected_comparison(&self, completion: Completion) -> bool {
        let differs = completion.result == Errno::EILSEQ.result();
        let readback = self.readback.as_ref().filter(|_| differs);
        readback.is_some_and(|own| own.comparison(completion.slot) == Comparison::Requested)
    }

    /// Reads the blocks that the device has rejected, in the same slot.
    #[cold]
    pub(crate) fn read_rejected(&mut self, slot: Slot) {
        if self.recorder.has_failed() {
            return self.release_failed(slot);
        }
        if let Some(readback) = &mut self.readback {
            readback.set_comparison(slot, Comparison::Rejected);
        }
        self.queue.retry.push(slot);
    }
}

impl Readback {
    /// Begins the comparison of a write, if the job asks for it and all of the write may still be
    /// there.
    fn begin_comparison(&mut self, slot: Slot, written: &LoggedWrite, tracking: &Tracking) -> bool {
        let compares = !self.comparisons.is_empty();
        let is_requested =
            compares && !written.trimmed && is_whole(written, self.verifier.interval(), tracking);
        if is_requested {
            self.set_comparison(slot, Comparison::Requested);
        }
        is_requested
    }

    fn set_comparison(&mut self, slot: Slot, to: Comparison) {
        if let Some(own) = self.comparisons.get_mut(slot.index()) {
            *own = to;
        }
    }

    fn comparison(&self, slot: Slot) -> Comparison {
        let own = self.comparisons.get(slot.index());
        own.copied().unwrap_or_default()
    }

    /// Ends the comparison of a slot, and returns its last state.
    pub(crate) fn end_comparison(&mut self, slot: Slot) -> Comparison {
        let was = self.comparison(slot);
        self.set_comparison(slot, Comparison::None);
        was
    }
}
