//! Trims of several ranges (`num_range`).
//!
//! ```text
//!  pattern: a b c d e f │ end     num_range=4
//!           └──┬──┘ └┬┘
//!             op    op           an op has the offset of its first range, the bytes of all
//! ```

use fathom_core::{Engine, Tick, TrimRange};

use crate::config::WorkerConfig;
use crate::pattern::OpTarget;
use crate::worker::Worker;

/// Ranges of the next trim.
#[derive(Debug)]
pub(crate) struct TrimRanges {
    /// Largest number.
    max: usize,
    drawn: Vec<TrimRange>,
}

impl TrimRanges {
    /// Reserves the ranges of a job's trims; `None` if they have one.
    pub(crate) fn new(config: &WorkerConfig) -> Option<Box<Self>> {
        let max = config.trim_ranges as usize;
        (max > 1).then(|| {
            let drawn = Vec::with_capacity(max);
            Box::new(Self { max, drawn })
        })
    }
}

impl Worker {
    /// Returns the op that begins with `target` and has as many ranges as the job's trims have, as
    /// far as the pass and the file of `target` go; its ranges are those of the next slot.
    #[inline]
    pub(crate) fn with_more_ranges<E: Engine>(
        &mut self,
        engine: &mut E,
        target: OpTarget,
        now: Tick,
    ) -> OpTarget {
        match self.trim_ranges.is_some() {
            false => target,
            true => self.draw_ranges(engine, target, now),
        }
    }

    fn draw_ranges<E: Engine>(&mut self, engine: &mut E, first: OpTarget, now: Tick) -> OpTarget {
        let (Some(ranges), Some(slot)) = (&mut self.trim_ranges, self.queue.slots.peek()) else {
            return first;
        };
        ranges.drawn.clear();
        ranges.drawn.push(range(&first));
        let mut whole = first;
        while ranges.drawn.len() < ranges.max
            && u64::from(whole.length) < self.source.pass.remaining
            && let Some(next) = self.source.draw(now)
        {
            if next.file != first.file {
                // A command is for one device.
                self.source.held = Some(next);
                break;
            }
            ranges.drawn.push(range(&next));
            // Cannot overflow: the largest block times the number of ranges has 32 bits, which the
            // job language sees to.
            whole.length += next.length;
        }
        engine.set_ranges(slot, &ranges.drawn);
        whole
    }
}

const fn range(target: &OpTarget) -> TrimRange {
    TrimRange {
        offset: target.offset,
        length: target.length,
    }
}
