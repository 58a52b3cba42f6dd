//! `steadystate`: a job, or the jobs of a group, end when their figures have become steady.
//!
//! Each member samples its figures per interval, on a grid that starts with the first member. Once
//! all members have reported an interval, it enters the window; a full window is judged.
//!
//! # What this costs
//! A lock per interval and an atomic load per turn for each member; nothing for other jobs.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fathom_core::{Nanos, Tick};
use fathom_stats::{SteadyCriterion, SteadyEvaluation, evaluate_steady};

/// Criterion of a steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyRule {
    /// Observed figure.
    pub figure: Figure,
    /// Slope or deviation.
    pub criterion: SteadyCriterion,
    /// Limit, in the figure's unit or in percent of its mean.
    pub limit: f64,
    /// The limit is in percent.
    pub percent: bool,
    /// Intervals in the window, ≥ 1.
    pub intervals: usize,
    /// Length of an interval.
    pub interval: Nanos,
    /// Time before observation starts.
    pub ramp: Nanos,
}

/// Observed figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Ops per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// Mean latency, ns.
    Latency,
}

/// Figures of a whole group in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SteadySample {
    /// Ops per second.
    pub iops: u64,
    /// Bytes per second.
    pub bytes_per_s: u64,
    /// Mean latency; 0 without ops.
    pub lat_ns: u64,
}

/// Group of jobs that ends when it is steady.
#[derive(Debug)]
pub struct SteadyGroup {
    rule: SteadyRule,
    attained: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Start of the grid.
    base: Option<Tick>,
    /// First and end interval of each member; the end is `u64::MAX` while it runs.
    members: Vec<(u64, u64)>,
    /// Intervals not yet reported by all members, from this number on.
    first_open: u64,
    open: VecDeque<Open>,
    window: VecDeque<SteadySample>,
    evaluation: SteadyEvaluation,
}

#[derive(Clone, Copy, Debug, Default)]
struct Open {
    told: usize,
    sample: SteadySample,
    latency_sum: u128,
    ops: u64,
}

/// State of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SteadyStatus {
    /// The steady state was reached.
    pub attained: bool,
    /// Judgement of the last full window.
    pub evaluation: SteadyEvaluation,
    /// The window, oldest first.
    pub window: Vec<SteadySample>,
}

impl SteadyGroup {
    /// Creates a group without members.
    #[must_use]
    pub fn new(rule: SteadyRule) -> Self {
        Self {
            rule,
            attained: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// Returns the criterion.
    #[must_use]
    pub const fn rule(&self) -> &SteadyRule {
        &self.rule
    }

    /// Returns the state.
    #[must_use]
    pub fn standing(&self) -> SteadyStatus {
        let state = self.lock();
        SteadyStatus {
            attained: self.is_attained(),
            evaluation: state.evaluation,
            window: state.window.iter().copied().collect(),
        }
    }

    fn is_attained(&self) -> bool {
        // Relaxed: the flag publishes no data.
        self.attained.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a member from `now` on; returns its number and its first interval.
    fn join(&self, now: Tick) -> (usize, u64) {
        let mut state = self.lock();
        let base = *state.base.get_or_insert(now + self.rule.ramp);
        // A member that starts just after the first one joins at the same interval.
        let late = (now - base).get() + self.rule.interval.get() / 2;
        let first = (late / self.rule.interval.get()).max(state.first_open);
        state.members.push((first, u64::MAX));
        (state.members.len() - 1, first)
    }

    /// Returns the start of an interval.
    fn begins(&self, interval: u64) -> Tick {
        let base = self.lock().base.unwrap_or_default();
        base + Nanos::new(self.rule.interval.get().saturating_mul(interval))
    }

    /// Returns the number of intervals that have ended.
    fn ended(&self, now: Tick) -> u64 {
        let base = self.lock().base.unwrap_or_default();
        (now - base).get() / self.rule.interval.get()
    }

    fn tell(&self, interval: u64, own: SteadySample, ops: u64) {
        let mut state = self.lock();
        let Some(place) = interval.checked_sub(state.first_open) else {
            return;
        };
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        while state.open.len() <= place {
            state.open.push_back(Open::default());
        }
        let open = &mut state.open[place];
        open.told += 1;
        open.sample.iops += own.iops;
        open.sample.bytes_per_s += own.bytes_per_s;
        open.latency_sum += u128::from(own.lat_ns) * u128::from(ops);
        open.ops += ops;
        self.close(&mut state);
    }

    fn leave(&self, member: usize, next: u64) {
        let mut state = self.lock();
        state.members[member].1 = next;
        self.close(&mut state);
    }

    /// Moves intervals that all members have reported into the window.
    fn close(&self, state: &mut State) {
        while let Some(open) = state.open.front().copied() {
            let number = state.first_open;
            let takes_part = |part: &&(u64, u64)| (part.0..part.1).contains(&number);
            if open.told < state.members.iter().filter(takes_part).count() {
                return;
            }
            state.open.pop_front();
            state.first_open += 1;
            self.take(state, open);
        }
    }

    fn take(&self, state: &mut State, open: Open) {
        if self.is_attained() {
            return;
        }
        let mean = open.latency_sum.checked_div(u128::from(open.ops));
        if state.window.len() == self.rule.intervals {
            state.window.pop_front();
        }
        state.window.push_back(SteadySample {
            lat_ns: u64::try_from(mean.unwrap_or(0)).unwrap_or(u64::MAX),
            ..open.sample
        });
        if state.window.len() < self.rule.intervals {
            return;
        }
        let figure = |sample: &SteadySample| match self.rule.figure {
            Figure::Iops => sample.iops,
            Figure::Bandwidth => sample.bytes_per_s,
            Figure::Latency => sample.lat_ns,
        };
        let samples: Vec<u64> = state.window.iter().map(figure).collect();
        state.evaluation = evaluate_steady(&samples, self.rule.criterion);
        if state.evaluation.criterion(self.rule.percent) <= self.rule.limit {
            // Relaxed: see above.
            self.attained.store(true, Ordering::Relaxed);
        }
    }
}

/// Membership of a job in a steady-state group.
#[derive(Debug)]
pub(crate) struct SteadyWatch {
    group: Arc<SteadyGroup>,
    member: Option<usize>,
    interval: u64,
    /// End of the current interval, or start of the first; `MAX` after the last.
    next: Tick,
    /// Start of counting; `None` before the first interval.
    since: Option<Tick>,
    seen: Totals,
}

/// Totals of a job at some time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) ios: u64,
    pub(crate) bytes: u64,
    pub(crate) latency_ns: f64,
}

impl SteadyWatch {
    /// Creates a membership that has not begun.
    pub(crate) const fn new(group: Arc<SteadyGroup>) -> Self {
        Self {
            group,
            member: None,
            interval: 0,
            next: Tick::MAX,
            since: None,
            seen: Totals {
                ios: 0,
                bytes: 0,
                latency_ns: 0.0,
            },
        }
    }

    /// Returns whether the job is to end.
    pub(crate) fn is_attained(&self) -> bool {
        self.group.is_attained()
    }

    /// Returns the time of the next sample.
    pub(crate) const fn next(&self) -> Tick {
        self.next
    }

    /// Begins with the job's measurement.
    pub(crate) fn begin(&mut self, now: Tick) {
        if self.member.is_none() {
            let (member, first) = self.group.join(now);
            self.member = Some(member);
            self.interval = first;
            self.next = self.group.begins(first).max(now);
        }
        self.since = None;
    }

    /// Samples the figures since the last sample, given the job's totals at `now`.
    ///
    /// Intervals that ended since then share them: a thread that was away for seconds would
    /// otherwise report what it did in the microseconds after them as the rate of a second.
    pub(crate) fn sample(&mut self, done: Totals, now: Tick) {
        let ended = self.group.ended(now);
        if let Some(since) = self.since {
            let span = (now - since).get().max(1);
            let ios = done.ios.saturating_sub(self.seen.ios);
            let per_second = |count: u64| {
                let span = u128::from(span);
                let rate = (u128::from(count) * 1_000_000_000 + span / 2) / span;
                u64::try_from(rate).unwrap_or(u64::MAX)
            };
            let latency = (done.latency_ns - self.seen.latency_ns).max(0.0) / ios.max(1) as f64;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a mean latency, not negative; the cast saturates"
            )]
            let sample = SteadySample {
                iops: per_second(ios),
                bytes_per_s: per_second(done.bytes.saturating_sub(self.seen.bytes)),
                lat_ns: latency as u64,
            };
            let end = ended.max(self.interval + 1);
            for interval in self.interval..end {
                self.group.tell(interval, sample, ios);
            }
            self.interval = end;
        }
        self.since = Some(now);
        self.seen = done;
        self.next = self.group.begins(ended.max(self.interval) + 1);
    }

    /// Ends the membership.
    pub(crate) fn end(&mut self) {
        self.next = Tick::MAX;
        if let Some(member) = self.member.take() {
            self.group.leave(member, self.interval);
        }
    }
}

impl Drop for SteadyWatch {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the IOPS in the window of a job that does 1000 ops per second, but for the time in
    /// which it is stopped, and is sampled at these milliseconds at the earliest.
    fn sampled(times: &[u64]) -> Vec<u64> {
        let group = Arc::new(SteadyGroup::new(SteadyRule {
            figure: Figure::Iops,
            criterion: SteadyCriterion::Deviation,
            limit: 0.0,
            percent: false,
            intervals: 100,
            interval: Nanos::from_secs(1),
            ramp: Nanos::ZERO,
        }));
        let at = |ms: u64| Tick::new(ms * 1_000_000);
        let mut watch = SteadyWatch::new(Arc::clone(&group));
        watch.begin(at(0));
        let mut ios = 0;
        let mut last = 0;
        for &ms in times {
            // Of a longer time it did only the last millisecond.
            ios += if ms - last > 1000 { 1 } else { ms - last };
            last = ms;
            if at(ms) >= watch.next() {
                let totals = Totals {
                    ios,
                    ..Totals::default()
                };
                watch.sample(totals, at(ms));
            }
        }
        let window = group.standing().window;
        window.iter().map(|sample| sample.iops).collect()
    }

    #[test]
    fn each_interval_has_its_sample() {
        let times: Vec<u64> = (0..=3000).collect();
        assert_eq!(sampled(&times), [1000, 1000, 1000]);
    }

    #[test]
    fn intervals_of_a_stall_share_a_sample() {
        let times: Vec<u64> = (0..=1000).chain(5000..=7000).collect();
        assert_eq!(sampled(&times), [1000, 0, 0, 0, 0, 1000, 1000]);
    }

    #[test]
    fn a_stall_before_the_first_interval_is_no_sample() {
        let times: Vec<u64> = (2500..=4000).collect();
        assert_eq!(sampled(&times), [1000, 1000, 1000, 1000]);
    }
}
