//! `latency_target`: search for the largest queue depth that meets a latency target.
//!
//! Each depth is tried for a window, from 1 upwards: doubled while ops meet the target, otherwise
//! halved towards the last good depth. At the depth found, counting restarts for one last window
//! and the job ends; with `run` it continues, keeps the earlier counts, and searches again. If even
//! depth 1 misses the target, the job ends if no op may be late, otherwise it continues at depth 1.
//! All of this is as in fio.

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
    /// Largest depth that met the target, 0 if none did; `None` if no window ended.
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
    ops: u64,
    late: u64,
    stage: Stage,
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

    /// Judges a completed op.
    pub(crate) fn completed(&mut self, latency: Nanos, now: Tick) -> LatencyVerdict {
        if self.stage == Stage::Over {
            return LatencyVerdict::GoOn;
        }
        self.ops += 1;
        self.late += u64::from(latency > self.target.latency);
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
        if is_good {
            self.go_up()
        } else {
            self.go_down()
        }
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
        self.met = Some(self.good);
        self.depth = (self.good + (self.bad - self.good) / 2).max(1);
        LatencyVerdict::GoOn
    }
}

/// 100 percent with six decimals.
pub(crate) const ALL_OPS: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that is late beyond `limit`; the depths that are tried, until it settles.
    fn depths(limit: u32, largest: u32, run: bool) -> (Vec<u32>, LatencyVerdict) {
        let target = LatencyTarget {
            latency: Nanos::new(100),
            window: Nanos::new(10),
            share: ALL_OPS,
            run,
        };
        let mut search = DepthSearch::new(target, largest);
        let mut tried = Vec::new();
        let mut now = Tick::ZERO;
        loop {
            tried.push(search.depth());
            now += Nanos::new(10);
            let latency = if search.depth() > limit { 101 } else { 100 };
            match search.completed(Nanos::new(latency), now) {
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
        let target = LatencyTarget {
            latency: Nanos::new(100),
            window: Nanos::new(10),
            share: 99_000_000,
            run: false,
        };
        let mut search = DepthSearch::new(target, 4);
        let mut found = |latency: u64, at: u64| {
            search.completed(Nanos::new(latency), Tick::new(at));
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
        let target = LatencyTarget {
            latency: Nanos::new(100),
            window: Nanos::new(10),
            share: 99_000_000,
            run: false,
        };
        let mut search = DepthSearch::new(target, 1);
        let verdicts = [(100, 10), (100, 20), (500, 30), (100, 40), (100, 50)];
        let verdicts =
            verdicts.map(|(latency, at)| search.completed(Nanos::new(latency), Tick::new(at)));
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
        let target = LatencyTarget {
            latency: Nanos::new(100),
            window: Nanos::new(10),
            share: 50_000_000,
            run: true,
        };
        let mut search = DepthSearch::new(target, 4);
        assert_eq!(
            search.completed(Nanos::new(500), Tick::new(1)),
            LatencyVerdict::GoOn
        );
        assert_eq!(
            search.completed(Nanos::new(5), Tick::new(10)),
            LatencyVerdict::GoOn
        );
        assert_eq!(search.depth(), 2);
        assert_eq!(
            search.completed(Nanos::new(500), Tick::new(20)),
            LatencyVerdict::GoOn
        );
        assert_eq!(search.depth(), 1);
    }
}
