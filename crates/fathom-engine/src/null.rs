//! `null`: every op succeeds at once and nothing is done.
//!
//! What a job costs on this engine is what the tool itself costs, so every step here is a few
//! instructions.

use fathom_core::{
    Capabilities, Completion, Engine, EngineError, FileIndex, Op, Slot, Submitted, Tick,
};
use fathom_sys::clock::Clock;

use crate::EngineConfig;

/// An engine that does nothing: synchronous with one slot, asynchronous with more.
#[derive(Debug)]
pub struct Null {
    clock: Clock,
    depth: u32,
    /// Completions in the order of their ops; a power of two of them, at least `depth`.
    ///
    /// ```text
    ///  ── reaped ──┬── submitted ──┬── prepared ──┬── free ──
    ///            head          submitted         tail            (mod 2³², then & mask)
    /// ```
    ring: Box<[Completion]>,
    /// The number of places less one.
    mask: u32,
    head: u32,
    submitted: u32,
    tail: u32,
}

impl Null {
    pub(crate) fn start(config: &EngineConfig) -> Self {
        let places = config.depth.next_power_of_two() as usize;
        Self {
            clock: config.clock,
            depth: config.depth,
            mask: config.depth.next_power_of_two() - 1,
            ring: vec![Completion::default(); places].into_boxed_slice(),
            head: 0,
            submitted: 0,
            tail: 0,
        }
    }

    #[inline]
    fn place(&self, number: u32) -> usize {
        (number & self.mask) as usize
    }
}

impl Engine for Null {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "null",
            synchronous: self.depth == 1,
            moves_data: false,
            queued_sync: true,
            queued_trim: true,
        }
    }

    fn open(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        Ok(())
    }

    fn close(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        Ok(())
    }

    fn invalidate(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        Ok(())
    }

    #[inline]
    fn buffer(&mut self, _slot: Slot) -> &mut [u8] {
        &mut []
    }

    #[inline]
    fn prepare(&mut self, op: &Op) {
        debug_assert!(self.tail.wrapping_sub(self.head) < self.depth);
        let place = self.place(self.tail);
        self.ring[place] = Completion {
            slot: op.slot,
            // As every kernel does: at most 2 GiB less a byte at once.
            result: op.length.min(i32::MAX.unsigned_abs()).cast_signed(),
        };
        self.tail = self.tail.wrapping_add(1);
    }

    #[inline(always)]
    fn submit(&mut self, _want: u32) -> Submitted {
        if self.depth > 1 {
            self.submitted = self.tail;
            let now = self.clock.now();
            return Submitted::Issued { issue: now, now };
        }
        // Synchronous: the call lies between two readings, as with every engine of that family.
        let issue = self.clock.now();
        self.submitted = self.tail;
        Submitted::Issued {
            issue,
            now: self.clock.now(),
        }
    }

    #[inline]
    fn reap(&mut self, out: &mut [Completion]) -> usize {
        let mut count = 0;
        for entry in out {
            if self.head == self.submitted {
                break;
            }
            *entry = self.ring[self.place(self.head)];
            self.head = self.head.wrapping_add(1);
            count += 1;
        }
        count
    }

    #[inline]
    fn wait(&mut self, min: u32, _until: Option<Tick>) -> Result<(), EngineError> {
        debug_assert!(
            self.submitted.wrapping_sub(self.head) >= min,
            "everything submitted has completed"
        );
        Ok(())
    }
}
