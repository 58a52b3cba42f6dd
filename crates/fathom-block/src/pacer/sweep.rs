//! Sweep over all limits, down from none and back up.

use super::epoch::Measured;
use super::setting::{Beside, UNLIMITED};

/// Measurements at limits that halve, each of them made twice.
#[derive(Debug)]
pub(super) struct Sweep {
    points: Vec<Point>,
    at: usize,
    is_down: bool,
    demand: u64,
}

/// Limit that a sweep found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    pub(super) limit: u64,
    pub(super) rate: f64,
    pub(super) bandwidth: f64,
    pub(super) above: Option<Beside>,
    pub(super) below: Option<Beside>,
    /// Largest demand of an epoch.
    pub(super) demand: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Point {
    limit: u64,
    rate: f64,
    bandwidth: f64,
    waited: f64,
    is_measured: bool,
}

impl Sweep {
    /// Begins a sweep, whose first measurement was made without a limit.
    pub(super) fn new(measured: &Measured) -> Self {
        let halves = (1..64).map(|power| measured.peak >> power);
        let halves = halves.take_while(|limit| *limit >= measured.largest.max(1));
        let limits = std::iter::once(UNLIMITED).chain(halves);
        let point = |limit| Point {
            limit,
            ..Point::default()
        };
        Self {
            points: limits.map(point).collect(),
            at: 0,
            is_down: true,
            demand: 0,
        }
    }

    /// Takes what was measured; returns the next limit, or `None` at the end.
    pub(super) fn add(&mut self, measured: &Measured) -> Option<u64> {
        self.demand = self.demand.max(measured.demand);
        let best = self.best();
        let point = &mut self.points[self.at];
        point.add(measured);
        let falls = point.rate < best * FALL;
        if self.is_down && !falls && self.at + 1 < self.points.len() {
            self.at += 1;
        } else if self.at > 0 {
            self.is_down = false;
            self.at -= 1;
        } else {
            return None;
        }
        Some(self.points[self.at].limit)
    }

    /// Returns the lowest limit that is as good as the best.
    pub(super) fn choose(&self) -> Chosen {
        let (best, open) = (self.best(), self.points[0].rate);
        let is_good = |point: &Point| {
            let holds_back = point.waited >= WAITED_MIN || point.rate > open * (1.0 + GAIN_MIN);
            point.rate >= best * (1.0 - SLACK) && holds_back
        };
        let place = self.points.iter().rposition(is_good).unwrap_or(0);
        let point = self.points[place];
        let above = place.checked_sub(1).map(|above| self.points[above]);
        let below = self.points.get(place + 1);
        let below = below.filter(|point| point.is_measured);
        let beside = |point: &Point| Beside::new(point.limit, point.bandwidth);
        Chosen {
            limit: point.limit,
            rate: point.rate,
            bandwidth: point.bandwidth,
            above: above.as_ref().map(beside),
            below: below.map(beside),
            demand: self.demand,
        }
    }

    fn best(&self) -> f64 {
        let rates = self.points.iter().map(|point| point.rate);
        rates.fold(0.0, f64::max)
    }
}

impl Point {
    /// Takes another measurement at the same limit. The better one counts: what stalls a target for
    /// a moment only ever makes it slower.
    fn add(&mut self, measured: &Measured) {
        if measured.rate > self.rate {
            (self.rate, self.bandwidth) = (measured.rate, measured.bandwidth);
            self.waited = measured.waited;
        }
        self.is_measured = true;
    }
}

/// A sweep goes no lower once bandwidth is below this part of the best: what halves from there on
/// is sure, and costs bandwidth to look at.
const FALL: f64 = 0.7;
/// Shortfall from the best of a sweep that may be noise: two epochs are compared with the maximum
/// of many. Later trials distinguish it from a loss.
const SLACK: f64 = 0.015;
/// Part of the bytes that have to wait at a limit, or it is too high to hold anything back.
pub(super) const WAITED_MIN: f64 = 0.25;
/// Gain that recommends a limit at which little waits: fewer buffers alone do not, since a queue
/// that is empty most of the time would be filled.
pub(super) const GAIN_MIN: f64 = 0.02;
