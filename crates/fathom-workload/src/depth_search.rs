//! `latency_target`: search for the largest queue depth that meets a latency target.
//!
//! Each depth is tried for a window, from 1 upwards: doubled while ops meet the target, otherwise
//! halved towards the last good depth. At the depth found, counting restarts for one last window
//! and the job ends; with `run` it continues, keeps the earlier counts, and searches again. If even
//! depth 1 misses the target, the job ends if no op may be late, otherwise it continues at depth 1.
//! All of this is as in fio.
//!
//! Ops that were issued before the depth changed do not count: their latencies are those of the
//! depth before. fio drains the queue instead.

use fathom_core::{Nanos, Tick};

/// Configuration of a latency target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyTarget {
    /// Target latency.
    pub latency: Nanos,
    /// Time for which each depth is tried.
    pub window: Nanos,
    /// Ops per 100,000,000 that must meet the target (percent with six decimals).
    pub share: u64,
    /// Continue after the depth is found.
    pub run: bool,
}

/// Result of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoundDepth {
    /// Depth on trial when the job ended.
    pub depth: u32,
    /// Largest depth that met the target, 0 if not even 1 did; `None` if that is not known.
    pub met: Option<u32>,
}

/// State of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DepthSearch {
    target: LatencyTarget,
    largest: u32,
    depth: u32,
    /// Largest depth that met the target.
    good: u32,
    /// Smallest depth that missed it.
    bad: u32,
    /// As in [`FoundDepth`]: `good` stays when depth 1 misses the target again.
    met: Option<u32>,
    window_began: Tick,
    /// First op, by sequence number, that was issued at this depth.
    first_op: u64,
    ops: u64,
    late: u64,
    stage: Stage,
}

/// A completed op, as the search sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JudgedOp {
    /// Sequence number.
    pub(crate) sequence: u64,
    /// Latency.
    pub(crate) latency: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Searching,
    Last,
    /// The job drains: its last ops decide nothing.
    Over,
}

/// Consequence of an op's latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LatencyVerdict {
    /// No consequence.
    GoOn,
    /// The depth is found: restart counting.
    Final,
    /// The last window is over.
    Done,
    /// Even depth 1 misses the target, and no op may be late.
    Hopeless,
}

impl DepthSearch {
    /// Creates a search among depths up to `largest`.
    pub(crate) fn new(target: LatencyTarget, largest: u32) -> Self {
        Self {
            target,
            largest,
            depth: 1,
            good: 0,
            bad: largest.saturating_add(1),
            met: None,
            window_began: Tick::ZERO,
            first_op: 0,
            ops: 0,
            late: 0,
            stage: Stage::Searching,
        }
    }

    /// Returns the depth on trial.
    pub(crate) const fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns what the search has found so far.
    pub(crate) const fn found(&self) -> FoundDepth {
        FoundDepth {
            depth: self.depth,
            met: self.met,
        }
    }

    /// Returns the target latency.
    pub(crate) const fn target(&self) -> Nanos {
        self.target.latency
    }

    /// Begins with the job.
    pub(crate) fn begin(&mut self, now: Tick) {
        self.window_began = now;
    }

    /// Judges a completed op. `next_op` is the sequence number that the next op will have.
    pub(crate) fn completed(&mut self, op: JudgedOp, next_op: u64, now: Tick) -> LatencyVerdict {
        if self.stage == Stage::Over || op.sequence < self.first_op {
            return LatencyVerdict::GoOn;
        }
        self.ops += 1;
        self.late += u64::from(op.latency > self.target.latency);
        // If no op may be late, the first late one decides.
        let settled = self.late > 0 && self.target.share >= ALL_OPS;
        if !settled && now - self.window_began < self.target.window {
            return LatencyVerdict::GoOn;
        }
        let in_time = u128::from(self.ops - self.late) * u128::from(ALL_OPS);
        let is_good = in_time >= u128::from(self.ops) * u128::from(self.target.share);
        self.ops = 0;
        self.late = 0;
        self.window_began = now;
        let depth = self.depth;
        let verdict = if is_good {
            self.go_up()
        } else {
            self.go_down()
        };
        if self.depth != depth {
            self.first_op = next_op;
        }
        verdict
    }

    fn go_up(&mut self) -> LatencyVerdict {
        self.met = Some(self.good.max(self.depth));
        if self.stage == Stage::Last && !self.target.run {
            self.stage = Stage::Over;
            return LatencyVerdict::Done;
        }
        self.good = self.good.max(self.depth);
        let next = match self.bad {
            bad if bad > self.largest => self.depth.saturating_mul(2).min(self.largest),
            bad => self.good + (bad - self.good) / 2,
        };
        if next != self.depth {
            self.depth = next;
            return LatencyVerdict::GoOn;
        }
        let is_new = self.stage != Stage::Last;
        self.stage = Stage::Last;
        if is_new && !self.target.run {
            LatencyVerdict::Final
        } else {
            LatencyVerdict::GoOn
        }
    }

    fn go_down(&mut self) -> LatencyVerdict {
        self.stage = Stage::Searching;
        if self.depth == 1 {
            self.met = Some(0);
            return match self.target.share {
                ALL_OPS.. => LatencyVerdict::Hopeless,
                _ => LatencyVerdict::GoOn,
            };
        }
        self.bad = self.depth;
        // A depth that was good before may be so no longer.
        if self.good >= self.bad {
            self.good = 0;
        }
        // 0 would say that depth 1 has missed the target, but it is still to be tried.
        self.met = Some(self.good).filter(|&good| good > 0);
        self.depth = (self.good + (self.bad - self.good) / 2).max(1);
        LatencyVerdict::GoOn
    }
}

/// 100 percent with six decimals.
pub(crate) const ALL_OPS: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 ns in windows of 10 ns.
    const fn target(share: u64, run: bool) -> LatencyTarget {
        LatencyTarget {
            latency: Nanos::new(100),
            window: Nanos::new(10),
            share,
            run,
        }
    }

    /// Judges an op that was issued at the depth on trial.
    fn judge(search: &mut DepthSearch, latency: u64, at: u64) -> LatencyVerdict {
        let op = JudgedOp {
            sequence: search.first_op,
            latency: Nanos::new(latency),
        };
        search.completed(op, search.first_op + 1, Tick::new(at))
    }

    /// A device that is late beyond `limit`; the depths that are tried, until it settles.
    fn depths(limit: u32, largest: u32, run: bool) -> (Vec<u32>, LatencyVerdict) {
        let target = target(ALL_OPS, run);
        let mut search = DepthSearch::new(target, largest);
        let mut tried = Vec::new();
        let mut now = 0;
        loop {
            tried.push(search.depth());
            now += 10;
            let latency = if search.depth() > limit { 101 } else { 100 };
            match judge(&mut search, latency, now) {
                LatencyVerdict::GoOn if tried.len() < 20 => {}
                end => return (tried, end),
            }
        }
    }

    #[test]
    fn the_largest_good_depth_is_found() {
        assert_eq!(
            depths(100, 8, false),
            (vec![1, 2, 4, 8], LatencyVerdict::Final)
        );
        assert_eq!(
            depths(5, 32, false),
            (vec![1, 2, 4, 8, 6, 5], LatencyVerdict::Final)
        );
        assert_eq!(depths(1, 32, false), (vec![1, 2, 1], LatencyVerdict::Final));
        assert_eq!(depths(0, 32, false), (vec![1], LatencyVerdict::Hopeless));
        assert_eq!(depths(1, 1, false), (vec![1], LatencyVerdict::Final));
    }

    #[test]
    fn the_depth_that_met_the_target_last_is_told() {
        let target = target(99_000_000, false);
        let mut search = DepthSearch::new(target, 4);
        let mut found = |latency: u64, at: u64| {
            let _verdict = judge(&mut search, latency, at);
            (search.found().depth, search.found().met)
        };
        assert_eq!(found(100, 1), (1, None), "within the first window");
        assert_eq!(found(100, 10), (2, Some(1)));
        assert_eq!(found(101, 20), (1, Some(1)));
        assert_eq!(found(101, 30), (1, Some(0)), "not even depth 1, by now");
        assert_eq!(found(100, 40), (1, Some(1)));
    }

    #[test]
    fn ops_after_the_last_window_decide_nothing() {
        let target = target(99_000_000, false);
        let mut search = DepthSearch::new(target, 1);
        let verdicts = [(100, 10), (100, 20), (500, 30), (100, 40), (100, 50)];
        let verdicts = verdicts.map(|(latency, at)| judge(&mut search, latency, at));
        let [first, second, rest @ ..] = verdicts;
        assert_eq!(
            (first, second),
            (LatencyVerdict::Final, LatencyVerdict::Done)
        );
        assert_eq!(rest, [LatencyVerdict::GoOn; 3]);
        assert_eq!(search.found().met, Some(1));
    }

    #[test]
    fn a_share_of_late_ops_is_allowed() {
        let target = target(50_000_000, true);
        let mut search = DepthSearch::new(target, 4);
        assert_eq!(judge(&mut search, 500, 1), LatencyVerdict::GoOn);
        assert_eq!(judge(&mut search, 5, 10), LatencyVerdict::GoOn);
        assert_eq!(search.depth(), 2);
        assert_eq!(judge(&mut search, 500, 20), LatencyVerdict::GoOn);
        assert_eq!(search.depth(), 1);
    }

    #[test]
    fn a_depth_that_is_still_to_be_tried_has_not_missed_the_target() {
        let target = target(99_000_000, true);
        let mut search = DepthSearch::new(target, 2);
        let mut found = |latency: u64, at: u64| {
            let _verdict = judge(&mut search, latency, at);
            (search.found().depth, search.found().met)
        };
        assert_eq!(found(100, 10), (2, Some(1)));
        assert_eq!(found(100, 20), (2, Some(2)));
        assert_eq!(found(101, 30), (1, None), "slower than before");
        assert_eq!(found(101, 40), (1, Some(0)));
    }

    #[test]
    fn ops_issued_before_the_depth_changed_do_not_count() {
        let target = target(ALL_OPS, false);
        let mut search = DepthSearch::new(target, 2);
        let mut completed = |sequence, latency, at| {
            let latency = Nanos::new(latency);
            let op = JudgedOp { sequence, latency };
            let verdict = search.completed(op, sequence + 2, Tick::new(at));
            (verdict, search.depth())
        };
        assert_eq!(completed(0, 100, 10), (LatencyVerdict::GoOn, 2));
        assert_eq!(completed(1, 101, 20), (LatencyVerdict::GoOn, 2));
        assert_eq!(completed(2, 101, 30), (LatencyVerdict::GoOn, 1));
        assert_eq!(completed(3, 101, 40), (LatencyVerdict::GoOn, 1));
        assert_eq!(completed(4, 100, 50), (LatencyVerdict::Final, 1));
    }
}
