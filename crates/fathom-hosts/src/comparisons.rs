//! Comparisons of the ranks' clocks with rank 0's: which rank to ping, and when.
//!
//! A series of pings is exchanged with one rank at a time. The first one finds a rank that naps,
//! and only has it listen; the trips of the next ones count. A rank's first series is at the gate
//! of its first wave, when neither side runs a job, and both spin for its length. Later series go
//! on beside the jobs: both sides nap, briefly, and a series is dropped if its bound is worse than
//! that of the line so far.

use std::collections::BTreeSet;

use fathom_core::{Nanos, Tick};

use crate::Rank;
use crate::offset::{Alignment, PingPong, RemoteClock};

/// Clocks of all ranks as rank 0 knows them, and the series of pings that goes on.
///
/// A step costs the same with any number of ranks, but for those that are due and have to wait.
#[derive(Debug)]
pub(crate) struct Comparisons {
    /// By rank; the first is rank 0's own.
    clocks: Vec<ComparedClock>,
    /// Ranks by the time from which their next series is due.
    due: BTreeSet<(Tick, Rank)>,
    series: Option<Series>,
    next_token: u32,
}

#[derive(Clone, Debug, Default)]
struct ComparedClock {
    clock: RemoteClock,
    /// Number of series so far.
    series: u32,
    /// A series goes on or is due.
    is_planned: bool,
}

/// Pings to one rank.
#[derive(Debug)]
struct Series {
    rank: Rank,
    /// Pings to be sent yet.
    left: u32,
    /// Number and time of the ping that is not answered yet.
    awaited: Option<(u32, Tick)>,
    trips: Vec<PingPong>,
    /// Time at which the answer is given up.
    until: Tick,
}

/// Step of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// This ping is to be sent, and its time passed to [`Comparisons::sent`].
    Ping {
        to: Rank,
        token: u32,
        /// Another one follows.
        more: bool,
    },
    /// The clock of this rank is known, or better than before.
    Compared(Rank),
}

impl Comparisons {
    /// Creates the comparisons of `ranks` ranks, none of which is due.
    pub(crate) fn new(ranks: u32) -> Self {
        Self {
            clocks: (0..ranks).map(|_| ComparedClock::default()).collect(),
            due: BTreeSet::new(),
            series: None,
            next_token: 0,
        }
    }

    /// Asks for the first comparison of a rank.
    pub(crate) fn demand(&mut self, now: Tick, rank: Rank) {
        let known = self.clocks.get_mut(rank.index());
        if let Some(known) = known.filter(|known| !known.is_planned) {
            known.is_planned = true;
            self.due.insert((now, rank));
        }
    }

    /// Gives up a rank that is gone.
    pub(crate) fn forget(&mut self, rank: Rank) {
        self.due.retain(|&(_, due)| due != rank);
        if self.series.as_ref().is_some_and(|one| one.rank == rank) {
            self.series = None;
        }
    }

    /// Takes the time at which the last ping was sent.
    pub(crate) fn sent(&mut self, at: Tick) {
        let awaited = self.series.as_mut().and_then(|one| one.awaited.as_mut());
        if let Some((_, sent)) = awaited {
            *sent = at;
        }
    }

    /// Takes an answer: the other clock, and ours when the answer came. One that is not awaited is
    /// ignored.
    pub(crate) fn handle_pong(&mut self, from: Rank, token: u32, remote: Tick, received: Tick) {
        let series = self.series.as_mut().filter(|series| series.rank == from);
        let Some(series) = series else {
            return;
        };
        let Some((_, sent)) = series.awaited.take_if(|(awaited, _)| *awaited == token) else {
            return;
        };
        series.trips.push(PingPong {
            sent,
            remote,
            received,
        });
        series.until = received + ANSWER_MAX;
        let spent = series.trips.first().map(|first| received - first.received);
        if series.trips.len() >= TRIPS_MIN && spent >= Some(SERIES_LENGTH) {
            series.left = 0;
        }
    }

    /// Returns the next step, if there is one now; `idle`: this process runs no job.
    pub(crate) fn poll(&mut self, now: Tick, idle: bool) -> Option<Step> {
        if self.series.is_none() {
            self.series = Some(self.begin(now, idle)?);
        }
        let series = self.series.as_mut()?;
        match series.awaited {
            Some(_) if now < series.until => return None,
            None if series.left > 0 => {
                series.left -= 1;
                let token = self.next_token;
                self.next_token = token.wrapping_add(1);
                series.awaited = Some((token, now));
                return Some(Step::Ping {
                    to: series.rank,
                    token,
                    more: series.left > 0,
                });
            }
            _ => {}
        }
        let ended = self.series.take()?;
        self.end(now, &ended).then_some(Step::Compared(ended.rank))
    }

    /// Returns the longest nap until the next step or answer.
    pub(crate) fn patience(&self, now: Tick, idle: bool) -> Nanos {
        match (&self.series, idle) {
            (Some(series), true) if series.trips.is_empty() => FIRST_NAP_IDLE,
            (Some(_), true) => Nanos::ZERO,
            (Some(series), false) if series.trips.is_empty() => FIRST_NAP,
            (Some(_), false) => LISTENING_NAP,
            (None, _) => match self.next_due(now, idle) {
                Some((at, _)) => at - now,
                None => Nanos::MAX,
            },
        }
    }

    /// Returns the clock of a rank.
    pub(crate) fn clock(&self, rank: Rank) -> Option<&RemoteClock> {
        Some(&self.clocks.get(rank.index())?.clock)
    }

    /// Begins the series that is due, if one is.
    fn begin(&mut self, now: Tick, idle: bool) -> Option<Series> {
        let (at, rank) = self.next_due(now, idle).filter(|(at, _)| *at <= now)?;
        self.due.remove(&(at, rank));
        Some(Series {
            rank,
            left: PINGS,
            awaited: None,
            trips: Vec::new(),
            until: now + FIRST_ANSWER_MAX,
        })
    }

    /// Returns the next series by time. A first one waits until this process runs no job.
    fn next_due(&self, now: Tick, idle: bool) -> Option<(Tick, Rank)> {
        let mut due = self.due.iter().copied();
        due.find(|&(at, rank)| at > now || idle || self.is_known(rank))
    }

    fn is_known(&self, rank: Rank) -> bool {
        let clock = self.clock(rank);
        clock.is_some_and(|clock| !clock.alignments().is_empty())
    }

    /// Adds the result of a series to the clock, and plans the next one. Returns whether the clock
    /// is better known now.
    fn end(&mut self, now: Tick, series: &Series) -> bool {
        let rank = series.rank;
        let Some(known) = self.clocks.get_mut(rank.index()) else {
            return false;
        };
        let Some(alignment) = Alignment::of(series.trips.iter().copied()) else {
            self.due.insert((now + RETRY_AFTER, rank));
            return false;
        };
        known.series = known.series.saturating_add(1);
        let pause = AGAIN_AFTER.get().saturating_mul(u64::from(known.series));
        self.due
            .insert((now + Nanos::new(pause).min(AGAIN_EVERY), rank));
        let is_first = known.clock.alignments().is_empty();
        let so_far = known.clock.offset_at(alignment.at).bound;
        let is_better = is_first || alignment.offset.bound < so_far;
        if is_better {
            known.clock.align(alignment);
        }
        is_better
    }
}

/// Pings of a series: the smallest of ten round trips on an idle network is within a few percent
/// of the smallest of a hundred (a guess for others).
const PINGS: u32 = 10;
/// Time after which a series of [`TRIPS_MIN`] trips ends, where round trips are long: 16 ranks in
/// turn take 50 ms at most.
const SERIES_LENGTH: Nanos = Nanos::from_millis(2);
const TRIPS_MIN: usize = 3;
/// Wait for the first answer: a rank that runs jobs looks every 50 ms.
const FIRST_ANSWER_MAX: Nanos = Nanos::from_millis(250);
/// Wait for each further answer, for which the rank listens.
const ANSWER_MAX: Nanos = Nanos::from_millis(20);
/// Pause after a series without an answer.
const RETRY_AFTER: Nanos = Nanos::from_millis(50);
/// Pause after the first series, which grows by the same after each: the second series shows the
/// drift.
const AGAIN_AFTER: Nanos = Nanos::from_secs(10);
/// Longest pause between series.
const AGAIN_EVERY: Nanos = Nanos::from_secs(30);
/// Naps while the first answer is awaited, without jobs here and beside them.
const FIRST_NAP_IDLE: Nanos = Nanos::from_micros(200);
const FIRST_NAP: Nanos = Nanos::from_millis(5);
/// Nap of a rank that awaits a ping or its answer beside its jobs: some twenty a series.
pub(crate) const LISTENING_NAP: Nanos = Nanos::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Rank = Rank::new(1);

    /// Answers a series whose trips take these µs, with a clock 7 s ahead; returns the steps.
    fn series(comparisons: &mut Comparisons, now: &mut Tick, trips_us: &[u64]) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut trips = trips_us.iter();
        while let Some(step) = comparisons.poll(*now, true) {
            steps.push(step);
            let (Step::Ping { to, token, .. }, Some(&us)) = (step, trips.next()) else {
                break;
            };
            comparisons.sent(*now);
            let trip = Nanos::from_micros(us);
            let middle = *now + Nanos::new(trip.get() / 2) + Nanos::from_secs(7);
            *now += trip;
            comparisons.handle_pong(to, token, middle, *now);
        }
        steps
    }

    fn bound_us(comparisons: &Comparisons) -> u64 {
        let last = comparisons
            .clock(ONE)
            .and_then(|clock| clock.alignments().last());
        last.map_or(0, |last| last.offset.bound.get() / 1_000)
    }

    #[test]
    fn a_rank_is_compared_once_it_waits_and_then_ever_more_rarely() {
        let (mut comparisons, mut now) = (Comparisons::new(2), Tick::ZERO);
        assert_eq!(comparisons.poll(now, true), None, "nobody waits");
        comparisons.demand(now, ONE);
        assert_eq!(comparisons.poll(now, false), None, "a job runs here");
        let steps = series(&mut comparisons, &mut now, &[1_900, 20, 900, 900, 900, 10]);
        assert_eq!(steps.len(), 6, "enough after 2 ms, of 10 pings: {steps:?}");
        assert_eq!(steps.last(), Some(&Step::Compared(ONE)));
        assert_eq!(bound_us(&comparisons), 10);
        comparisons.demand(now, ONE);
        let pauses = [10, 20, 30, 30].map(|pause_s| {
            let due = comparisons.patience(now, false);
            assert_eq!(due, Nanos::from_secs(pause_s));
            now += due;
            series(&mut comparisons, &mut now, &[20; 10]).len()
        });
        assert_eq!(pauses, [11; 4]);
        assert_eq!(comparisons.clock(ONE).unwrap().alignments().len(), 5);
    }

    #[test]
    fn a_series_that_knows_less_than_the_line_is_dropped() {
        let (mut comparisons, mut now) = (Comparisons::new(2), Tick::ZERO);
        comparisons.demand(now, ONE);
        let _first = series(&mut comparisons, &mut now, &[20; 10]);
        now += Nanos::from_secs(10);
        // 200 ppm of 10 s are 2 ms.
        let steps = series(&mut comparisons, &mut now, &[90_000; 10]);
        assert!(!steps.contains(&Step::Compared(ONE)), "{steps:?}");
        assert_eq!(comparisons.clock(ONE).unwrap().alignments().len(), 1);
    }

    #[test]
    fn a_silent_rank_is_asked_again_and_a_lost_one_is_not() {
        let (mut comparisons, mut now) = (Comparisons::new(3), Tick::ZERO);
        comparisons.demand(now, ONE);
        comparisons.demand(now, Rank::new(2));
        assert!(matches!(
            comparisons.poll(now, true),
            Some(Step::Ping { .. })
        ));
        assert_eq!(comparisons.poll(now, true), None);
        now += FIRST_ANSWER_MAX;
        assert_eq!(comparisons.poll(now, true), None, "given up");
        let next = comparisons.poll(now, true);
        assert!(
            matches!(next, Some(Step::Ping { to, .. }) if to.get() == 2),
            "{next:?}"
        );
        comparisons.forget(Rank::new(2));
        now += RETRY_AFTER;
        let next = comparisons.poll(now, true);
        assert!(matches!(next, Some(Step::Ping { to: ONE, .. })), "{next:?}");
        comparisons.handle_pong(ONE, 99, now, now);
        comparisons.handle_pong(Rank::new(2), 2, now, now);
        assert_eq!(comparisons.poll(now, true), None, "neither was awaited");
        comparisons.forget(ONE);
        assert_eq!(comparisons.patience(now, true), Nanos::MAX);
    }
}
