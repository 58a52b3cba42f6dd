//! `null`: every op succeeds at once without I/O.
//!
//! A job on this engine measures the tool's own cost, so each step here is a few instructions.

use fathom_core::{
    Capabilities, Completion, Engine, EngineError, EngineInfo, Op, Queueing, Slot, Storage,
    Submitted, Synchronous, Tick,
};
use fathom_sys::clock::Clock;

use crate::EngineConfig;

/// Facts about `null`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    synchronous: Synchronous::AtDepthOne,
    storage: Storage::None,
    ..EngineInfo::new("null", "no I/O at all; measures the overhead of the tool")
};

/// Engine without I/O: synchronous with one slot, asynchronous with more.
#[derive(Debug)]
pub struct Null {
    clock: Clock,
    depth: u32,
    /// Ring of completions, in the order of the ops. Its size is a power of two, at least `depth`.
    ///
    /// ```text
    ///  ── reaped ──┬── submitted ──┬── prepared ──┬── free ──
    ///            head          submitted         tail            (wrapping; index = & (size − 1))
    /// ```
    ring: Box<[Completion]>,
    head: usize,
    submitted: usize,
    tail: usize,
}

impl Null {
    pub(crate) fn start(config: &EngineConfig) -> Self {
        let places = config.depth.next_power_of_two() as usize;
        Self {
            clock: config.clock,
            depth: config.depth,
            ring: vec![Completion::default(); places].into_boxed_slice(),
            head: 0,
            submitted: 0,
            tail: 0,
        }
    }

    /// Returns the index of a counter; in range by the mask, so the compiler omits the bounds
    /// check.
    #[inline]
    fn place(&self, number: usize) -> usize {
        number & (self.ring.len() - 1)
    }
}

impl Engine for Null {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: INFO.name,
            synchronous: INFO.synchronous.at_depth(self.depth),
            moves_data: false,
            syncs: Queueing::Queued,
            trims: Queueing::Queued,
        }
    }

    #[inline]
    fn buffer(&mut self, _slot: Slot) -> &mut [u8] {
        &mut []
    }

    #[inline]
    fn prepare(&mut self, op: &Op) {
        debug_assert!(self.tail.wrapping_sub(self.head) < self.depth as usize);
        let place = self.place(self.tail);
        self.ring[place] = Completion {
            slot: op.slot,
            result: result_of(op),
        };
        self.tail = self.tail.wrapping_add(1);
    }

    #[inline]
    fn prepare_many(&mut self, op: &Op, slots: &[Slot], _offset: impl FnMut() -> u64) {
        debug_assert!(slots.len() <= self.depth as usize);
        let result = result_of(op);
        let mut tail = self.tail;
        for &slot in slots {
            let place = self.place(tail);
            self.ring[place] = Completion { slot, result };
            tail = tail.wrapping_add(1);
        }
        self.tail = tail;
    }

    #[inline(always)]
    fn submit(&mut self, _want: u32) -> Submitted {
        if self.depth > 1 {
            self.submitted = self.tail;
            let now = self.clock.now();
            return Submitted::Issued { issue: now, now };
        }
        // Synchronous: two clock reads around the call, as in every engine of that family, so that
        // the tool's cost is comparable.
        let issue = self.clock.now();
        self.submitted = self.tail;
        Submitted::Issued {
            issue,
            now: self.clock.now(),
        }
    }

    #[inline]
    fn reap(&mut self, out: &mut [Completion]) -> usize {
        let ready = self.submitted.wrapping_sub(self.head);
        if let ([one], 1..) = (&mut *out, ready) {
            *one = self.ring[self.place(self.head)];
            self.head = self.head.wrapping_add(1);
            return 1;
        }
        let count = ready.min(out.len());
        // Two copies: up to the end of the ring, and the rest from its start.
        let from = self.place(self.head);
        let first = count.min(self.ring.len() - from);
        let (out, rest) = out[..count].split_at_mut(first);
        out.copy_from_slice(&self.ring[from..][..first]);
        rest.copy_from_slice(&self.ring[..rest.len()]);
        self.head = self.head.wrapping_add(count);
        count
    }

    #[inline]
    fn wait(&mut self, min: u32, _until: Option<Tick>) -> Result<(), EngineError> {
        debug_assert!(
            self.submitted.wrapping_sub(self.head) >= min as usize,
            "everything submitted has completed"
        );
        Ok(())
    }
}

/// Returns the result of an op: its length, capped as in every kernel at 2 GiB less a byte.
#[inline]
fn result_of(op: &Op) -> i32 {
    op.length.min(Completion::BYTES_MAX).cast_signed()
}
