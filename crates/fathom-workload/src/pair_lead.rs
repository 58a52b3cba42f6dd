//! Order of the trims and writes of `trimwrite`.
//!
//! ```text
//!  lead of 1:  t1 w1 t2 w2 t3 w3 …
//!  lead of 4:  t1 t2 t3 t4 w1 t5 w2 t6 w3 …
//! ```
//!
//! A write must not overtake the trim of its block, so that with a lead of 1 no more than one pair
//! would be in flight. With a lead of the depth, the trim that a write waits for is the oldest op
//! in flight.

use fathom_core::{Capabilities, Direction, Queueing};

use crate::config::WorkerConfig;
use crate::pattern::OpTarget;

/// Trims that are drawn before the write of the first of them.
#[derive(Debug)]
pub(crate) struct PairLead {
    /// Largest number.
    most: u32,
    /// Trims whose writes are still to be drawn.
    trims: u32,
    /// Bytes of these writes.
    bytes: u64,
}

impl PairLead {
    /// Returns the lead of a job on an engine with these capabilities, which takes `depth` ops.
    ///
    /// One pair follows the other where trims run alone; with rates (`has_rates`) or pauses, as
    /// writes would be late for a schedule that begins with the first op; and on zones, because a
    /// write fills the zone that its trim has reset: the next one needs a reset in between.
    pub(crate) fn new(
        config: &WorkerConfig,
        engine: Capabilities,
        depth: u32,
        has_rates: bool,
    ) -> Self {
        let is_paced = has_rates || config.think.is_some();
        let in_turn = engine.trims != Queueing::Queued || is_paced || config.zoned.is_some();
        Self {
            most: if in_turn { 1 } else { depth },
            trims: 0,
            bytes: 0,
        }
    }

    /// Returns the largest number of trims whose writes are still to be drawn.
    pub(crate) const fn most(&self) -> usize {
        self.most as usize
    }

    /// Returns whether trims wait for their writes: none stays without, even where the bytes of the
    /// pass end in the middle of a pair.
    pub(crate) const fn owes_writes(&self) -> bool {
        self.trims > 0
    }

    /// Returns the direction of the next op, if the pass has `bytes` and the job `ops` (pairs count
    /// as one) to issue: no trim begins that is beyond them.
    pub(crate) fn next(&self, bytes: u64, ops: u64) -> Direction {
        let has_room = bytes > self.bytes && ops > u64::from(self.trims);
        match self.trims < self.most && has_room {
            true => Direction::Trim,
            false => Direction::Write,
        }
    }

    /// Counts a drawn op.
    pub(crate) fn drew(&mut self, target: &OpTarget) {
        let bytes = u64::from(target.length);
        match target.direction {
            Direction::Trim => {
                self.trims += 1;
                self.bytes += bytes;
            }
            _ => {
                self.trims = self.trims.saturating_sub(1);
                self.bytes = self.bytes.saturating_sub(bytes);
            }
        }
    }

    /// Starts over, with a trim.
    pub(crate) const fn restart(&mut self) {
        self.trims = 0;
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::FileIndex;

    use super::*;

    /// Returns the order of the ops of `pairs` pairs, of which the job may issue `ops`.
    fn order(most: u32, pairs: u64, ops: u64) -> String {
        order_within(most, pairs * 2 * 4096, ops)
    }

    fn order_within(most: u32, bytes: u64, ops: u64) -> String {
        let mut lead = PairLead {
            most,
            trims: 0,
            bytes: 0,
        };
        let (mut bytes, mut ops) = (bytes, ops);
        let mut order = String::new();
        while (bytes > 0 || lead.owes_writes()) && ops > 0 {
            let direction = lead.next(bytes, ops);
            let target = OpTarget {
                direction,
                file: FileIndex::new(0),
                offset: 0,
                length: 4096,
            };
            lead.drew(&target);
            bytes = u64::saturating_sub(bytes, 4096);
            ops -= u64::from(direction == Direction::Write);
            order.push_str(&direction.name()[..1]);
        }
        order
    }

    #[test]
    fn trims_lead_and_all_are_written() {
        assert_eq!(order(1, 3, u64::MAX), "twtwtw");
        assert_eq!(order(4, 6, u64::MAX), "ttttwtwtwwww");
        assert_eq!(order(4, 6, 2), "ttww");
        assert_eq!(order(4, 2, u64::MAX), "ttww");
        // Two pairs and a half.
        assert_eq!(order_within(1, 5 * 4096, u64::MAX), "twtwtw");
        assert_eq!(order_within(4, 5 * 4096, u64::MAX), "tttwww");
    }
}
