//! Clocks whose truth is known: the bound holds always, whatever the links and the drift are.

use fathom_core::{Nanos, Tick};
use fathom_hosts::{Alignment, PingPong, RemoteClock};
use proptest::prelude::*;

/// Another host's clock: true offset at our time 0, and its drift, both by our clock.
#[derive(Clone, Copy, Debug)]
struct Truth {
    offset_ns: i64,
    drift_ppb: i64,
}

impl Truth {
    /// Returns its reading when ours is `ours`, rounded down as a clock's reading is.
    fn reading(self, ours: u64) -> u64 {
        let drift = i128::from(ours) * i128::from(self.drift_ppb);
        let ns = i128::from(ours) + i128::from(self.offset_ns) + drift.div_euclid(1_000_000_000);
        u64::try_from(ns).expect("an hour after the origin")
    }
}

/// Delay of a link: a fixed part per direction, and jitter on top.
#[derive(Clone, Debug)]
struct Trips {
    there_ns: u64,
    back_ns: u64,
    jitter: Vec<(u64, u64)>,
}

fn truth() -> impl Strategy<Value = Truth> {
    // Readings are positive: an hour is more than any offset here.
    (
        -3_000_000_000_000i64..3_000_000_000_000,
        -50_000i64..=50_000,
    )
        .prop_map(|(offset_ns, drift_ppb)| Truth {
            offset_ns,
            drift_ppb,
        })
}

fn trips() -> impl Strategy<Value = Trips> {
    let jitter = prop::collection::vec((0..300_000u64, 0..300_000u64), 1..10);
    (100..5_000_000u64, 100..5_000_000u64, jitter).prop_map(|(there_ns, back_ns, jitter)| Trips {
        there_ns,
        back_ns,
        jitter,
    })
}

/// Compares the clocks at `from`, one ping after the other.
fn align(truth: Truth, trips: &Trips, from: u64) -> Alignment {
    let mut now = from;
    let series = trips.jitter.iter().map(|(out, home)| {
        let sent = now;
        let arrived = sent + trips.there_ns + out;
        let received = arrived + trips.back_ns + home;
        now = received + 1_000;
        PingPong {
            sent: Tick::new(sent),
            remote: Tick::new(truth.reading(arrived)),
            received: Tick::new(received),
        }
    });
    Alignment::of(series).expect("a ping-pong")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn the_truth_is_within_the_bound(
        truth in truth(),
        trips in prop::collection::vec(trips(), 1..5),
        pauses in prop::collection::vec(1_000_000..600_000_000_000u64, 5),
        moments in prop::collection::vec(0..3_600_000_000_000u64, 20),
    ) {
        let mut clock = RemoteClock::ours();
        // An hour after the origin, so that no reading is negative.
        let hour = 3_600_000_000_000;
        let mut from = hour;
        for (trips, pause) in trips.iter().zip(&pauses) {
            clock.align(align(truth, trips, from));
            from += pause;
        }
        let near = clock.alignments().iter().map(|one| one.at.get());
        for moment in near.chain(moments.into_iter().map(|moment| hour + moment)) {
            let (remote, bound) = clock.to_remote(Tick::new(moment));
            let error = remote.get().abs_diff(truth.reading(moment));
            prop_assert!(error <= bound.get(), "{error} ns, not {bound}");
            let (ours, bound) = clock.to_ours(Tick::new(truth.reading(moment)));
            let error = ours.get().abs_diff(moment);
            prop_assert!(error <= bound.get(), "back: {error} ns, not {bound}");
        }
    }

    /// A bound that holds because it is enormous would be of no use.
    #[test]
    fn the_bound_is_near_half_of_the_smallest_round_trip(
        truth in truth(),
        trips in trips(),
    ) {
        let mut clock = RemoteClock::ours();
        let hour = 3_600_000_000_000;
        let minute = 60_000_000_000;
        clock.align(align(truth, &trips, hour));
        clock.align(align(truth, &trips, hour + minute));
        let smallest = trips.jitter.iter().map(|(out, home)| out + home).min().unwrap();
        let half = (smallest + trips.there_ns + trips.back_ns).div_ceil(2);
        let at_end = clock.alignments()[1].offset.bound;
        prop_assert!(at_end.get() <= half + half / 1_000 + 2, "{at_end}, not {half}");
        // Halfway through a minute 1 ppm of 30 s is added, ten seconds later a third of the ends.
        let middle = clock.offset_at(Tick::new(hour + minute / 2)).bound.get();
        prop_assert!(middle <= half + half / 1_000 + 30_100, "{middle}");
        let later = clock.offset_at(Tick::new(hour + minute) + Nanos::from_secs(10)).bound.get();
        prop_assert!(later <= half + half / 2 + 10_100, "{later}");
        let drift = clock.drift_ppb().unwrap();
        // Both ends may be off by half of a trip.
        let error = half * 2_020 / (minute / 1_000_000) + 10;
        prop_assert!(drift.abs_diff(truth.drift_ppb) <= error, "{drift}");
    }
}
