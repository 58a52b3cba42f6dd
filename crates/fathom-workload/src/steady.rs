//! `steadystate`: a job, or the jobs of a group, end when what they do has become steady.
//!
//! Every member counts what it did in each interval, on a grid that begins with the first of
//! them. When all that take part have told of an interval, it joins the window; when the window
//! is full, it is judged.
//!
//! # What this costs
//! A lock once an interval for each job that watches, and a load a turn; nothing for the others.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fathom_core::{Direction, Nanos, Tick};
use fathom_stats::{Judge, Judged, judge};

use crate::worker::Worker;

/// When a group counts as steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyRule {
    /// What is looked at.
    pub figure: Figure,
    /// How.
    pub judge: Judge,
    /// At most this: of the figure's unit, or percent of its mean.
    pub limit: f64,
    /// The limit is in percent.
    pub percent: bool,
    /// Intervals in the window, ≥ 1.
    pub intervals: usize,
    /// The length of one.
    pub interval: Nanos,
    /// Nothing is looked at before.
    pub ramp: Nanos,
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Ops per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// The mean latency, ns.
    Latency,
}

/// What all jobs of a group did in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SteadySample {
    /// Ops per second.
    pub iops: u64,
    /// Bytes per second.
    pub bytes_per_s: u64,
    /// The mean latency, ns; 0 without ops.
    pub lat_ns: u64,
}

/// A group that may become steady.
#[derive(Debug)]
pub struct SteadyGroup {
    rule: SteadyRule,
    attained: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Where the grid begins.
    base: Option<Tick>,
    /// First interval and end of each member's part; the end is `u64::MAX` while it goes on.
    members: Vec<(u64, u64)>,
    /// Intervals that not all have told of, from this number on.
    first_open: u64,
    open: VecDeque<Open>,
    window: VecDeque<SteadySample>,
    judged: Judged,
}

#[derive(Clone, Copy, Debug, Default)]
struct Open {
    told: usize,
    sample: SteadySample,
    latency_sum: u128,
    ops: u64,
}

/// How a group stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SteadyStanding {
    /// It became steady.
    pub attained: bool,
    /// What the last full window came to.
    pub judged: Judged,
    /// The window, oldest first.
    pub window: Vec<SteadySample>,
}

impl SteadyGroup {
    /// A group in which nothing has happened.
    #[must_use]
    pub fn new(rule: SteadyRule) -> Self {
        Self {
            rule,
            attained: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// Its rule.
    #[must_use]
    pub const fn rule(&self) -> &SteadyRule {
        &self.rule
    }

    /// How it stands.
    #[must_use]
    pub fn standing(&self) -> SteadyStanding {
        let state = self.lock();
        SteadyStanding {
            attained: self.is_attained(),
            judged: state.judged,
            window: state.window.iter().copied().collect(),
        }
    }

    fn is_attained(&self) -> bool {
        // Relaxed: the flag carries no data.
        self.attained.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody takes part from `now` on: its number, and its first interval.
    fn join(&self, now: Tick) -> (usize, u64) {
        let mut state = self.lock();
        let base = *state.base.get_or_insert(now + self.rule.ramp);
        // Who starts a moment after the first one takes part from the same interval on.
        let late = (now - base).get() + self.rule.interval.get() / 2;
        let first = (late / self.rule.interval.get()).max(state.first_open);
        state.members.push((first, u64::MAX));
        (state.members.len() - 1, first)
    }

    /// When an interval begins.
    fn begins(&self, interval: u64) -> Tick {
        let base = self.lock().base.unwrap_or_default();
        base + Nanos::new(self.rule.interval.get().saturating_mul(interval))
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

    /// Takes in the intervals that all have told of.
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
        state.judged = judge(&samples, self.rule.judge);
        if state.judged.criterion(self.rule.percent) <= self.rule.limit {
            // Relaxed: see above.
            self.attained.store(true, Ordering::Relaxed);
        }
    }
}

/// A job's part in a group that may become steady.
#[derive(Debug)]
pub(crate) struct SteadyWatch {
    group: Arc<SteadyGroup>,
    member: Option<usize>,
    interval: u64,
    /// The end of the interval, or the begin of the first one; `MAX` when it watches no more.
    next: Tick,
    /// When counting began; `None` before the first interval.
    since: Option<Tick>,
    seen: Seen,
}

/// What a job had done at some moment.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    ios: u64,
    bytes: u64,
    latency_ns: f64,
}

impl SteadyWatch {
    /// A part that has not begun.
    pub(crate) const fn new(group: Arc<SteadyGroup>) -> Self {
        Self {
            group,
            member: None,
            interval: 0,
            next: Tick::MAX,
            since: None,
            seen: Seen {
                ios: 0,
                bytes: 0,
                latency_ns: 0.0,
            },
        }
    }

    /// Whether the job is to end.
    pub(crate) fn is_attained(&self) -> bool {
        self.group.is_attained()
    }

    /// When it wants to be looked at.
    pub(crate) const fn next(&self) -> Tick {
        self.next
    }

    /// The job begins to measure.
    fn begin(&mut self, now: Tick) {
        if self.member.is_none() {
            let (member, first) = self.group.join(now);
            self.member = Some(member);
            self.interval = first;
            self.next = self.group.begins(first).max(now);
        }
        self.since = None;
    }

    fn look(&mut self, done: Seen, now: Tick) {
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
            self.group.tell(self.interval, sample, ios);
            self.interval += 1;
        }
        self.since = Some(now);
        self.seen = done;
        self.next = self
            .group
            .begins(self.interval + 1)
            .max(now + Nanos::new(1));
    }

    /// The job has ended.
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

impl Worker {
    /// Measuring begins, and with it the watch for a steady state.
    pub(crate) fn watch_from(&mut self, now: Tick) {
        if let Some(steady) = &mut self.steady {
            steady.begin(now);
        }
    }

    /// Looks whether the job has become steady, if that is due.
    pub(crate) fn watch_steadiness(&mut self, now: Tick) {
        let done = Direction::ALL.map(|direction| self.recorder.measured(direction));
        let latency_ns = self.recorder.latency_sum_ns();
        if let Some(steady) = self.steady.as_mut().filter(|steady| now >= steady.next()) {
            let seen = Seen {
                ios: done.iter().map(|(ios, _)| ios).sum(),
                bytes: done.iter().map(|(_, bytes)| bytes).sum(),
                latency_ns,
            };
            steady.look(seen, now);
        }
    }
}
