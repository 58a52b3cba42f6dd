//! `flow`: jobs that take turns in proportion to their weights.
//!
//! Members count their ops in a shared sum. A member may issue while its share of the sum is not
//! above its share of the weights, so at any time at least one may, and none starves. A member that
//! ends removes its weight and its ops from the sums.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fathom_core::Nanos;

/// State shared by the members of a flow.
#[derive(Debug, Default)]
pub struct Flow {
    weights: AtomicU64,
    ops: AtomicU64,
}

/// Weight of a job in a flow.
#[derive(Clone, Debug)]
pub struct FlowShare {
    /// The flow.
    pub flow: Arc<Flow>,
    /// Weight, ≥ 1.
    pub weight: u32,
    /// Sleep when it is not its turn; 0 for the shortest possible.
    pub sleep: Nanos,
}

impl FlowShare {
    /// Creates a member that has not joined yet.
    pub(crate) fn member(&self) -> FlowMember {
        FlowMember {
            share: self.clone(),
            ops: 0,
            is_in: false,
        }
    }
}

/// Membership of a job in a flow; dropping it leaves the flow.
#[derive(Debug)]
pub(crate) struct FlowMember {
    share: FlowShare,
    ops: u64,
    is_in: bool,
}

impl FlowMember {
    /// Joins the flow as if it always had been a member: it does not catch up on earlier ops of the
    /// others.
    pub(crate) fn join(&mut self) {
        if self.is_in {
            return;
        }
        let flow = &self.share.flow;
        let weight = u64::from(self.share.weight);
        // Relaxed, here and below: the sums publish no data, and a stale value only delays a turn.
        let others = flow.weights.load(Ordering::Relaxed);
        let ops = u128::from(flow.ops.load(Ordering::Relaxed)) * u128::from(weight);
        let caught_up = ops.checked_div(u128::from(others)).unwrap_or(0);
        self.ops = u64::try_from(caught_up).unwrap_or(u64::MAX);
        flow.ops.fetch_add(self.ops, Ordering::Relaxed);
        flow.weights.fetch_add(weight, Ordering::Relaxed);
        self.is_in = true;
    }

    /// Returns whether it is this member's turn.
    pub(crate) fn may_go(&self) -> bool {
        let flow = &self.share.flow;
        let all = flow.ops.load(Ordering::Relaxed);
        let weights = flow.weights.load(Ordering::Relaxed);
        let due = u128::from(all) * u128::from(self.share.weight);
        u128::from(self.ops) * u128::from(weights) <= due
    }

    /// Counts an issued op.
    pub(crate) fn went(&mut self) {
        self.ops += 1;
        self.share.flow.ops.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the time to wait before the next check.
    pub(crate) fn pause(&self) -> Nanos {
        self.share.sleep.max(RECHECK_INTERVAL)
    }

    /// Leaves the flow.
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

/// Shortest pause of a member before it checks its turn again: about the cost of a sleep itself.
const RECHECK_INTERVAL: Nanos = Nanos::from_micros(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_proportional_and_late_members_do_not_catch_up() {
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
