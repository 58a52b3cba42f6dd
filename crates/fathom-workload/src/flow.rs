//! `flow`: jobs that take turns in proportion to their weights.
//!
//! Each member counts its ops in a sum that all share. It may go on as long as its share of the
//! sum is not above its share of the weights; so at any time at least one may, and nobody waits
//! for ever. A member that ends takes its weight and its ops out of the sums.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fathom_core::Nanos;

/// What the members of one flow share.
#[derive(Debug, Default)]
pub struct Flow {
    weights: AtomicU64,
    ops: AtomicU64,
}

/// A job's part in a flow.
#[derive(Clone, Debug)]
pub struct FlowShare {
    /// The flow.
    pub flow: Arc<Flow>,
    /// Its weight, ≥ 1.
    pub weight: u32,
    /// How long it sleeps when others come first; zero: as short as can be.
    pub sleep: Nanos,
}

impl FlowShare {
    /// A member that has not yet joined.
    pub(crate) fn member(&self) -> FlowMember {
        FlowMember {
            share: self.clone(),
            ops: 0,
            is_in: false,
        }
    }
}

/// A job in a flow; leaves it when dropped.
#[derive(Debug)]
pub(crate) struct FlowMember {
    share: FlowShare,
    ops: u64,
    is_in: bool,
}

impl FlowMember {
    /// Takes part from now on, as if it always had: it need not make up for what the others did
    /// before.
    pub(crate) fn join(&mut self) {
        if self.is_in {
            return;
        }
        let flow = &self.share.flow;
        let weight = u64::from(self.share.weight);
        // Relaxed, here and below: the sums guard nothing, and being right a little later is as
        // good.
        let others = flow.weights.load(Ordering::Relaxed);
        let ops = u128::from(flow.ops.load(Ordering::Relaxed)) * u128::from(weight);
        let caught_up = ops.checked_div(u128::from(others)).unwrap_or(0);
        self.ops = u64::try_from(caught_up).unwrap_or(u64::MAX);
        flow.ops.fetch_add(self.ops, Ordering::Relaxed);
        flow.weights.fetch_add(weight, Ordering::Relaxed);
        self.is_in = true;
    }

    /// Whether it is its turn.
    pub(crate) fn may_go(&self) -> bool {
        let flow = &self.share.flow;
        let all = flow.ops.load(Ordering::Relaxed);
        let weights = flow.weights.load(Ordering::Relaxed);
        let due = u128::from(all) * u128::from(self.share.weight);
        u128::from(self.ops) * u128::from(weights) <= due
    }

    /// An op of its was issued.
    pub(crate) fn went(&mut self) {
        self.ops += 1;
        self.share.flow.ops.fetch_add(1, Ordering::Relaxed);
    }

    /// How long to wait before it looks again.
    pub(crate) fn pause(&self) -> Nanos {
        self.share.sleep.max(LOOK_AGAIN)
    }

    /// Takes no part any more.
    pub(crate) fn leave(&mut self) {
        if std::mem::take(&mut self.is_in) {
            let flow = &self.share.flow;
            let weight = u64::from(self.share.weight);
            flow.weights.fetch_sub(weight, Ordering::Relaxed);
            flow.ops.fetch_sub(self.ops, Ordering::Relaxed);
        }
    }
}

impl Drop for FlowMember {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The pause of a member that is to sleep as short as can be: about what a sleep costs anyway.
const LOOK_AGAIN: Nanos = Nanos::from_micros(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_in_proportion_and_a_late_comer_makes_up_for_nothing() {
        let flow = Arc::new(Flow::default());
        let member = |weight| {
            FlowShare {
                flow: Arc::clone(&flow),
                weight,
                sleep: Nanos::ZERO,
            }
            .member()
        };
        let run = |members: &mut [FlowMember], rounds: u32| {
            let before: Vec<u64> = members.iter().map(|member| member.ops).collect();
            for _ in 0..rounds {
                let going = members.iter_mut().filter(|member| member.may_go());
                assert!(
                    going.map(FlowMember::went).count() > 0,
                    "somebody may always go"
                );
            }
            let after = members
                .iter()
                .zip(before)
                .map(|(member, before)| member.ops - before);
            after.collect::<Vec<_>>()
        };
        let mut members = vec![member(3), member(1)];
        members.iter_mut().for_each(FlowMember::join);
        let ops = run(&mut members, 4_000);
        assert!(ops[0].abs_diff(ops[1] * 3) <= 4, "{ops:?}");
        members.push(member(4));
        members[2].join();
        let ops = run(&mut members, 4_000);
        assert!(ops[2].abs_diff(ops[0] + ops[1]) <= 8, "{ops:?}");
        // The others have left: nothing holds the last one back.
        members.truncate(1);
        assert_eq!(run(&mut members, 100), [100]);
    }
}
