//! Order of the runs: drawn from the lab's seed, so that neither drift nor neighbours favour a
//! variant.
//!
//! ```text
//! round 0: cell 3 (fair, plain) · cell 0 (plain, fair) · …      each repeat back to back,
//! round 1: cell 1 (plain, fair) · cell 3 (plain, fair) · …      in an order drawn anew
//! ```

use fathom_core::{Xoshiro256, stream_seed};

use crate::LabPlan;
use crate::lab_plan::Load;

/// Run of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Number of the cell.
    pub cell: usize,
    /// Number of the repeat of its cell, which is that of the round.
    pub repeat: u32,
    /// Index of the variant.
    pub variant: usize,
    /// Place in the round, from 0.
    pub place: usize,
    /// Seed of the offsets: variants of a repeat share it, unless each is the baseline.
    pub seed: u64,
    /// Load that is asked for; `None` for that of the job.
    pub load: Option<Load>,
}

/// Returns the runs of a round: one repeat of each cell, the cells in drawn order, each with its
/// variants back to back in drawn order. The same plan and round give the same order.
#[must_use]
pub fn order(plan: &LabPlan, round: u32) -> Vec<Slot> {
    let mut random = Xoshiro256::new(stream_seed(plan.seed ^ ORDER, round.into()));
    let mut cells: Vec<usize> = (0..plan.cells.len()).collect();
    shuffle(&mut cells, &mut random);
    let mut slots = Vec::with_capacity(cells.len() * plan.variants.len());
    for cell in cells {
        let mut variants: Vec<usize> = (0..plan.variants.len()).collect();
        shuffle(&mut variants, &mut random);
        for variant in variants {
            slots.push(Slot {
                cell,
                repeat: round,
                variant,
                place: slots.len(),
                seed: seed_of(plan, cell, round, variant),
                load: None,
            });
        }
    }
    slots
}

/// Returns the seed of a run's offsets.
pub(crate) fn seed_of(plan: &LabPlan, cell: usize, round: u32, variant: usize) -> u64 {
    let of_round = stream_seed(plan.seed ^ OFFSETS, round.into());
    let of_repeat = stream_seed(of_round, cell as u64);
    match plan.a_a {
        true => stream_seed(of_repeat, variant as u64),
        false => of_repeat,
    }
}

/// Shuffles after Fisher and Yates.
fn shuffle(items: &mut [usize], random: &mut Xoshiro256) {
    for end in (1..items.len()).rev() {
        let drawn = random.below(end as u64 + 1);
        items.swap(end, usize::try_from(drawn).unwrap_or(end));
    }
}

/// Streams of the lab's seed: equal seeds of the order and of the offsets must not meet.
const ORDER: u64 = 0x6f72_6465_7200_0001;
const OFFSETS: u64 = 0x6f66_6673_6574_0002;
