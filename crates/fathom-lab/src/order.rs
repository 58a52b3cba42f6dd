//! Order of the runs: drawn from the lab's seed, so that neither drift nor neighbours favour a
//! variant.
//!
//! ```text
//! round 0: cell 3 (fair, plain) · cell 0 (plain, fair) · …      each repeat back to back,
//! round 1: cell 1 (plain, fair) · cell 3 (plain, fair) · …      in an order drawn anew
//! ```
//!
//! A curve has two parts, each with rounds of its own: loads follow from all runs at the maximum.

use fathom_core::{Xoshiro256, stream_seed};

use crate::LabPlan;
use crate::lab_plan::{CurveLoad, Load};

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

/// Part of a lab: its cells get all of their repeats before the next part begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All cells, of a lab without a curve.
    All,
    /// The cells at the closed-loop maximum.
    Maxima,
    /// The cells at shares of it.
    Shares,
}

impl Part {
    /// Returns the parts of a lab, in their order.
    pub(crate) const fn of(plan: &LabPlan) -> &'static [Self] {
        match plan.curve {
            None => &[Self::All],
            Some(_) => &[Self::Maxima, Self::Shares],
        }
    }

    /// Returns the numbers of its cells.
    pub(crate) fn cells(self, plan: &LabPlan) -> impl Iterator<Item = usize> {
        (0..plan.cells.len()).filter(move |cell| self.has(plan, *cell))
    }

    /// Returns its runs of a round, in [`order`]; places count from its own first run.
    pub(crate) fn order(self, plan: &LabPlan, round: u32) -> Vec<Slot> {
        let mut slots = order(plan, round);
        slots.retain(|slot| self.has(plan, slot.cell));
        for (place, slot) in slots.iter_mut().enumerate() {
            slot.place = place;
        }
        slots
    }

    fn has(self, plan: &LabPlan, cell: usize) -> bool {
        match (self, plan.curve_load(cell)) {
            (Self::All, _) => true,
            (Self::Maxima, load) => load == Some(CurveLoad::Max),
            (Self::Shares, load) => load != Some(CurveLoad::Max),
        }
    }

    /// Returns the number of runs in a round.
    fn runs(self, plan: &LabPlan) -> u64 {
        (self.cells(plan).count() * plan.variants.len()) as u64
    }
}

/// Returns the number of a run among all of its lab, if no cell stops early.
pub(crate) fn run_number(plan: &LabPlan, slot: &Slot) -> u64 {
    let mut before = 0;
    for part in Part::of(plan) {
        if part.has(plan, slot.cell) {
            return before + u64::from(slot.repeat) * part.runs(plan) + slot.place as u64;
        }
        before += u64::from(plan.judge.repeats.max) * part.runs(plan);
    }
    before
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
