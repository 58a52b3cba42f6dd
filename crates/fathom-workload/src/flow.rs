//! `flow`: jobs that take turns in proportion to their weights.
//!
//! Members count their ops in a shared sum. A member may issue while its share of the sum is not
//! above its share of the weights, so at any time at least one may, and none starves. A member that
//! ends removes its weight and its ops from the sums.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fathom_core::{Nanos, Tick};

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
    /// Sleep when it is not its turn; 0 to check again at once, and to sleep if it is far off.
    pub sleep: Nanos,
}

impl FlowShare {
    /// Creates a member that has not joined yet.
    pub(crate) fn member(&self) -> FlowMember {
        FlowMember {
            share: self.clone(),
            ops: 0,
            is_in: false,
            waits_since: None,
        }
    }
}

/// Membership of a job in a flow; dropping it leaves the flow.
#[derive(Debug)]
pub(crate) struct FlowMember {
    share: FlowShare,
    ops: u64,
    is_in: bool,
    /// Time at which it was not its turn for the first time since its last op.
    waits_since: Option<Tick>,
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
        self.waits_since = None;
        self.share.flow.ops.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the time to wait before the next check.
    pub(crate) fn pause(&mut self, now: Tick) -> Nanos {
        let waits_since = *self.waits_since.get_or_insert(now);
        match self.share.sleep {
            Nanos::ZERO if now - waits_since < PATIENCE => RECHECK_AWAKE,
            sleep => sleep.max(RECHECK_ASLEEP),
        }
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

/// Pause before a check of a member that just waits its turn: too short to sleep. Two jobs whose
/// ops take less than a wake-up would otherwise hand over to each other once per wake-up.
const RECHECK_AWAKE: Nanos = Nanos::from_micros(1);
/// Time after which it sleeps between checks, because the others are slow: a few wake-ups.
const PATIENCE: Nanos = Nanos::from_micros(200);
/// Shortest sleep before a check: about the cost of a sleep itself.
const RECHECK_ASLEEP: Nanos = Nanos::from_micros(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_sleeps_if_its_turn_is_far() {
        let share = FlowShare {
            flow: Arc::default(),
            weight: 1,
            sleep: Nanos::ZERO,
        };
        let mut member = share.member();
        assert_eq!(member.pause(Tick::ZERO), RECHECK_AWAKE);
        assert_eq!(member.pause(Tick::ZERO + PATIENCE), RECHECK_ASLEEP);
        member.went();
        assert_eq!(member.pause(Tick::ZERO + PATIENCE), RECHECK_AWAKE);
        let sleep = Nanos::from_millis(3);
        let mut member = FlowShare { sleep, ..share }.member();
        assert_eq!(member.pause(Tick::ZERO), sleep);
    }

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
