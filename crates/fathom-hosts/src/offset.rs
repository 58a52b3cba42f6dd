//! Another host's clock, compared with ours by ping-pongs.
//!
//! ```text
//! ours      sent ───────────── middle ───────────── received
//!                 ping ╲                   ╱ pong
//! theirs                 ╲─── remote ─────╱
//! ```
//!
//! The other clock was read between `sent` and `received`, whatever the two directions took, so its
//! offset differs from `remote − middle` by half of the round trip at most. The smallest round trip
//! of a series has the tightest bound; a mean would be worse. Comparisons at different times make
//! a line, whose slope is the drift.
//!
//! The bounds rest on two assumptions about the clocks: [`DRIFT_MAX_PPM`] and [`WANDER_PPM`]. A
//! clock that is set while a run goes on breaks them; the clocks of runs are monotonic.

use fathom_core::{Nanos, Tick};

/// Ping that was answered: two readings of our clock around one of the other's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingPong {
    /// Our clock, before the ping was sent.
    pub sent: Tick,
    /// The other clock, when it answered.
    pub remote: Tick,
    /// Our clock, after the answer came.
    pub received: Tick,
}

/// Offset of another clock: its reading minus ours, and how far the truth may be from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Offset {
    /// Reading of the other clock minus ours.
    pub offset_ns: i64,
    /// Largest error of the offset.
    pub bound: Nanos,
}

/// Comparison of another clock with ours at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Alignment {
    /// Our clock at that moment.
    pub at: Tick,
    /// Result.
    pub offset: Offset,
}

impl Alignment {
    /// Compares clocks by the ping-pong with the smallest round trip; `None` without any.
    ///
    /// The bound is half of the round trip, and what the clocks drift apart in it.
    #[must_use]
    pub fn of(series: impl IntoIterator<Item = PingPong>) -> Option<Self> {
        let trips = series.into_iter().filter(|one| one.received >= one.sent);
        let best = trips.min_by_key(|one| one.received - one.sent)?;
        let trip = (best.received - best.sent).get();
        let at = best.sent + Nanos::new(trip / 2);
        let half = i128::from(trip.div_ceil(2));
        Some(Self {
            at,
            offset: Offset {
                offset_ns: narrow(ns(best.remote) - ns(at)),
                bound: Nanos::new(positive(half + apart(half, DRIFT_MAX_PPM))),
            },
        })
    }
}

/// Another host's clock: a line through its comparisons with ours.
///
/// Between two comparisons the offset is interpolated, beyond them extrapolated. Where they are too
/// close to each other to tell the slope, the last offset is kept, and the bound grows by the
/// largest drift instead. At most [`ALIGNMENTS_MAX`] are kept; then a new one replaces the last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RemoteClock {
    /// By time; empty for our own clock.
    alignments: Vec<Alignment>,
}

impl RemoteClock {
    /// Returns our own clock, which has no offset.
    #[must_use]
    pub const fn ours() -> Self {
        Self {
            alignments: Vec::new(),
        }
    }

    /// Adds a comparison; one that is not later than the last is ignored.
    pub fn align(&mut self, alignment: Alignment) {
        if self.last().is_some_and(|last| last.at >= alignment.at) {
            return;
        }
        if self.alignments.len() == ALIGNMENTS_MAX {
            self.alignments.pop();
        }
        self.alignments.push(alignment);
    }

    /// Returns the offset at a time of our clock.
    #[must_use]
    pub fn offset_at(&self, at: Tick) -> Offset {
        let later = self.alignments.partition_point(|one| one.at <= at);
        match (
            later.checked_sub(1).map(|index| self.alignments[index]),
            self.alignments.get(later),
        ) {
            (Some(before), Some(after)) => between(before, *after, at),
            (Some(end), None) | (None, Some(&end)) => self.beyond(end, at),
            (None, None) => Offset::default(),
        }
    }

    /// Converts a time of our clock, with the bound of the error.
    #[must_use]
    pub fn to_remote(&self, ours: Tick) -> (Tick, Nanos) {
        let offset = self.offset_at(ours);
        (tick(ns(ours) + i128::from(offset.offset_ns)), offset.bound)
    }

    /// Converts a time of the other clock, with the bound of the error.
    #[must_use]
    pub fn to_ours(&self, remote: Tick) -> (Tick, Nanos) {
        let mut offset = self.last().map_or(Offset::default(), |last| last.offset);
        let mut ours = tick(ns(remote) - i128::from(offset.offset_ns));
        // Each step shrinks the error by the drift, 2 · 10⁻⁴: four turn an hour into under 1 ns.
        for _ in 0..4 {
            offset = self.offset_at(ours);
            ours = tick(ns(remote) - i128::from(offset.offset_ns));
        }
        (ours, offset.bound + Nanos::new(1))
    }

    /// Returns the drift in parts per billion, positive if the other clock is faster; `None` where
    /// the comparisons cannot tell it.
    #[must_use]
    pub fn drift_ppb(&self) -> Option<i64> {
        let line = self.line()?;
        Some(narrow(line.rise * 1_000_000_000 / line.run))
    }

    /// Returns the comparisons, by time.
    #[must_use]
    pub fn alignments(&self) -> &[Alignment] {
        &self.alignments
    }

    fn last(&self) -> Option<&Alignment> {
        self.alignments.last()
    }

    /// Returns the offset before the first comparison or after the last, which is `end`.
    fn beyond(&self, end: Alignment, at: Tick) -> Offset {
        let span = ns(at) - ns(end.at);
        let (moved, error) = match self.line() {
            Some(line) => (
                line.rise * span / line.run,
                (line.error * span.abs()).div_euclid(line.run) + 2 + apart(span, WANDER_PPM),
            ),
            None => (0, apart(span, DRIFT_MAX_PPM)),
        };
        Offset {
            offset_ns: narrow(i128::from(end.offset.offset_ns) + moved),
            bound: Nanos::new(positive(bound(end) + error)),
        }
    }

    /// Returns the line through the first and the last comparison, if it says more than the general
    /// bound: that clocks drift by at most [`DRIFT_MAX_PPM`].
    fn line(&self) -> Option<Line> {
        let (first, last) = (self.alignments.first()?, self.last()?);
        let run = ns(last.at) - ns(first.at);
        let error = bound(*first) + bound(*last);
        let rise = i128::from(last.offset.offset_ns) - i128::from(first.offset.offset_ns);
        (run > 0 && error * MILLION <= run * DRIFT_MAX_PPM).then_some(Line { rise, run, error })
    }
}

/// Line through two offsets.
struct Line {
    /// Change of the offset.
    rise: i128,
    /// Time between them, above 0.
    run: i128,
    /// Largest error of the change.
    error: i128,
}

/// Returns the offset between two comparisons: the error of the line is the same mixture of theirs,
/// and what the drift may have changed within the segment.
fn between(before: Alignment, after: Alignment, at: Tick) -> Offset {
    let (since, until) = (ns(at) - ns(before.at), ns(after.at) - ns(at));
    let run = since + until;
    let mix = |from: i128, to: i128| (from * until + to * since) / run;
    let [from, to] = [before, after].map(|one| i128::from(one.offset.offset_ns));
    let error = mix(bound(before), bound(after)) + 2 + apart(since.min(until), WANDER_PPM);
    Offset {
        offset_ns: narrow(mix(from, to)),
        bound: Nanos::new(positive(error)),
    }
}

/// Returns how far clocks are apart after `span` if they differ by `ppm` parts per million, rounded
/// up.
fn apart(span: i128, ppm: i128) -> i128 {
    span.abs() * ppm / MILLION + 1
}

fn bound(alignment: Alignment) -> i128 {
    i128::from(alignment.offset.bound.get())
}

fn ns(tick: Tick) -> i128 {
    i128::from(tick.get())
}

fn tick(ns: i128) -> Tick {
    Tick::new(positive(ns))
}

/// Converts to the nearest `u64`.
fn positive(number: i128) -> u64 {
    u64::try_from(number.max(0)).unwrap_or(u64::MAX)
}

/// Converts to the nearest `i64`.
fn narrow(number: i128) -> i64 {
    let sign = if number < 0 { i64::MIN } else { i64::MAX };
    i64::try_from(number).unwrap_or(sign)
}

/// Largest difference in speed between two clocks: quartz of servers is made to 50 ppm or better,
/// and a kernel that follows a time server corrects by less than the rest.
pub const DRIFT_MAX_PPM: i128 = 200;

/// Largest change of that difference during a run: the kernel's measured frequencies move by tenths
/// of it with the temperature of a room (a guess for others).
pub const WANDER_PPM: i128 = 1;

/// Comparisons kept of a clock: one before and one after each wave of any job file so far.
pub const ALIGNMENTS_MAX: usize = 256;

const MILLION: i128 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const fn ping(sent: u64, remote: u64, received: u64) -> PingPong {
        PingPong {
            sent: Tick::new(sent),
            remote: Tick::new(remote),
            received: Tick::new(received),
        }
    }

    fn aligned(at_s: u64, offset_ns: i64, bound_ns: u64) -> Alignment {
        Alignment {
            at: Tick::ZERO + Nanos::from_secs(at_s),
            offset: Offset {
                offset_ns,
                bound: Nanos::new(bound_ns),
            },
        }
    }

    #[track_caller]
    fn check(clock: &RemoteClock, at_s: u64, offset_ns: i64, bound_ns: u64) {
        let got = clock.offset_at(Tick::ZERO + Nanos::from_secs(at_s));
        let bound = Nanos::new(bound_ns);
        assert_eq!(got, Offset { offset_ns, bound });
    }

    #[test]
    fn the_smallest_round_trip_counts() {
        let series = [ping(100, 990, 300), ping(400, 1455, 500), ping(600, 9, 900)];
        let alignment = Alignment::of(series).unwrap();
        assert_eq!(alignment.at, Tick::new(450));
        assert_eq!(alignment.offset.offset_ns, 1005);
        assert_eq!(alignment.offset.bound, Nanos::new(51));
        assert_eq!(Alignment::of([]), None);
        assert_eq!(Alignment::of([ping(2, 5, 1)]), None, "time went backwards");
    }

    #[test]
    fn one_comparison_knows_no_drift_and_two_make_a_line() {
        let mut clock = RemoteClock::ours();
        check(&clock, 7, 0, 0);
        assert_eq!(clock.drift_ppb(), None);
        clock.align(aligned(10, 5_000, 1_000));
        check(&clock, 10, 5_000, 1_001);
        // 200 ppm of a second.
        check(&clock, 11, 5_000, 201_001);
        clock.align(aligned(20, 505_000, 1_000));
        assert_eq!(clock.drift_ppb(), Some(50_000));
        // Halfway: the bounds of the ends, and 1 ppm of 5 s.
        check(&clock, 15, 255_000, 1_000 + 2 + 5_001);
        // A second later: a tenth of both bounds more.
        check(&clock, 21, 555_000, 1_000 + 200 + 2 + 1_001);
        check(&clock, 9, -45_000, 1_000 + 200 + 2 + 1_001);
    }

    #[test]
    fn comparisons_too_close_together_make_no_line() {
        let mut clock = RemoteClock::ours();
        clock.align(aligned(10, 0, 1_000_000));
        clock.align(aligned(11, 1_000_000, 1_000_000));
        assert_eq!(clock.drift_ppb(), None);
        check(&clock, 12, 1_000_000, 1_000_000 + 200_001);
        // Not later: ignored.
        clock.align(aligned(11, 7, 1));
        assert_eq!(clock.alignments().len(), 2);
    }

    #[test]
    fn many_comparisons_take_bounded_memory() {
        let mut clock = RemoteClock::ours();
        for second in 1..1000_i64 {
            clock.align(aligned(second.unsigned_abs(), second * 1_000, 10));
        }
        assert_eq!(clock.alignments().len(), ALIGNMENTS_MAX);
        assert_eq!(clock.alignments().last(), Some(&aligned(999, 999_000, 10)));
    }

    #[test]
    fn extremes_saturate() {
        let mut clock = RemoteClock::ours();
        clock.align(Alignment::of([ping(0, u64::MAX, u64::MAX)]).unwrap());
        assert!(clock.to_remote(Tick::MAX).1 > Nanos::new(u64::MAX / 2));
        clock.align(Alignment::of([ping(u64::MAX - 1, 0, u64::MAX)]).unwrap());
        for at in [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
            let _ = (clock.to_remote(Tick::new(at)), clock.to_ours(Tick::new(at)));
        }
    }
}
