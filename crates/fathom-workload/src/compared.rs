//! Verification by the device (`verify_mode=compare`).
//!
//! ```text
//! write to read back ─► its content, in the buffer ─► Compare ─► the same: verified
//!                                                        └─► other data: read, and checked here
//! ```
//!
//! A device does not say which byte differs, so what it rejects is read and checked as without it.

use fathom_core::{Completion, Engine, Errno, Slot};

use crate::readback::Readback;
use crate::tracking::Tracking;
use crate::verify::LoggedWrite;
use crate::worker::Worker;

/// Part of the device in the read of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// It returns the data.
    #[default]
    None,
    /// It compares the data.
    Asked,
    /// It has found other data, and returns them.
    Differs,
}

impl Worker {
    /// Has the read of a write compared by the device, if the job asks for it and all blocks of the
    /// write may still be there. The read is prepared next, in `slot`.
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
    pub(crate) fn was_compared(&self, completion: Completion) -> bool {
        let differs = completion.result == Errno::EILSEQ.result();
        let readback = self.readback.as_ref().filter(|_| differs);
        readback.is_some_and(|own| own.comparison(completion.slot) == Comparison::Asked)
    }

    /// Has the blocks that the device has found different read, in the same slot.
    #[cold]
    pub(crate) fn read_different(&mut self, slot: Slot) {
        if self.recorder.has_failed() {
            return self.release_failed(slot);
        }
        if let Some(readback) = &mut self.readback {
            readback.set_comparison(slot, Comparison::Differs);
        }
        self.queue.retry.push(slot);
    }
}

impl Readback {
    /// Notes that the device compares a write, if the job asks for it and the write is all there.
    fn begin_comparison(&mut self, slot: Slot, written: &LoggedWrite, tracking: &Tracking) -> bool {
        let compares = !self.comparisons.is_empty();
        let is_asked = compares && !written.trimmed && self.holds_all(written, tracking);
        if is_asked {
            self.set_comparison(slot, Comparison::Asked);
        }
        is_asked
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

    /// Ends the comparison of a slot, and returns how it went.
    pub(crate) fn end_comparison(&mut self, slot: Slot) -> Comparison {
        let was = self.comparison(slot);
        self.set_comparison(slot, Comparison::None);
        was
    }
}
