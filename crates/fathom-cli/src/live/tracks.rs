//! Course of all jobs, or of a group: rate and latencies by second, for the last minutes.

use std::collections::VecDeque;
use std::ops::Range;

use fathom_core::{Direction, Nanos, PerDirection};
use fathom_setup::{LatenciesSoFar, Snapshot, all_latencies, latencies_since};
use fathom_stats::Histogram;
use serde::Serialize;

use super::heat::{self, HeatCounts};

/// Course of some jobs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Track {
    /// "all", or the group.
    pub(crate) name: String,
    /// Seconds, the last one not over.
    pub(crate) columns: VecDeque<Column>,
    #[serde(skip)]
    jobs: Range<usize>,
    /// State at the last snapshot.
    #[serde(skip)]
    last: Totals,
}

/// Ops that completed in a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Column {
    /// Start of the second, since the first job started.
    pub(crate) at_s: u64,
    /// Time in it that was looked at; 0 in a gap.
    pub(crate) span_ns: u64,
    /// Reads, writes and trims.
    pub(crate) ios: [u64; 3],
    /// Bytes of each.
    pub(crate) bytes: [u64; 3],
    /// Ops by row of latency, in all directions.
    pub(crate) heat: HeatCounts,
}

#[derive(Clone, Debug, Default)]
struct Totals {
    elapsed: Nanos,
    ios: [u64; 3],
    bytes: [u64; 3],
    latencies: PerDirection<Histogram>,
}

impl Track {
    /// Creates the course of these jobs, by their places in a snapshot.
    pub(crate) fn new(name: String, jobs: Range<usize>) -> Self {
        Self {
            name,
            columns: VecDeque::with_capacity(COLUMNS_MAX),
            jobs,
            last: Totals::default(),
        }
    }

    /// Adds the ops since the last snapshot to the second in which this one was taken.
    pub(crate) fn add(&mut self, snapshot: &Snapshot) {
        let now = Totals::of(snapshot, &self.jobs);
        let last = std::mem::replace(&mut self.last, now);
        let now = &self.last;
        // A snapshot at the end of a second is of that second.
        let at_s = (now.elapsed.get().saturating_sub(1)) / SECOND_NS;
        open(&mut self.columns, at_s);
        let Some(column) = self.columns.back_mut() else {
            return;
        };
        column.span_ns += (now.elapsed - last.elapsed).get();
        for place in 0..3 {
            column.ios[place] += now.ios[place].saturating_sub(last.ios[place]);
            column.bytes[place] += now.bytes[place].saturating_sub(last.bytes[place]);
        }
        for direction in Direction::ALL {
            let new = latencies_since(&now.latencies[direction], &last.latencies[direction]);
            heat::add(&mut column.heat, &new);
        }
    }
}

#[cfg(any(test, feature = "live"))]
impl Column {
    /// Returns a number of ops or bytes in the column per second; 0 in a gap.
    pub(crate) fn per_second(&self, amount: u64) -> u64 {
        per_second(amount, self.span_ns)
    }
}

/// Returns an amount per second; 0 if the time is none.
pub(crate) fn per_second(amount: u64, span_ns: u64) -> u64 {
    let scaled = u128::from(amount) * u128::from(SECOND_NS);
    let per_s = scaled.checked_div(u128::from(span_ns)).unwrap_or(0);
    u64::try_from(per_s).unwrap_or(u64::MAX)
}

/// Makes a second the last column. Seconds without a snapshot become gaps.
fn open(columns: &mut VecDeque<Column>, at_s: u64) {
    let first = at_s.saturating_sub(COLUMNS_MAX as u64 - 1);
    let next = columns.back().map_or(at_s, |last| last.at_s + 1);
    for at_s in next.max(first)..=at_s {
        columns.push_back(Column {
            at_s,
            ..Column::default()
        });
    }
    while columns.front().is_some_and(|column| column.at_s < first) {
        columns.pop_front();
    }
}

impl Totals {
    fn of(snapshot: &Snapshot, jobs: &Range<usize>) -> Self {
        let mut totals = Self {
            elapsed: snapshot.elapsed,
            ..Self::default()
        };
        for job in snapshot.jobs.get(jobs.clone()).unwrap_or_default() {
            for direction in Direction::ALL {
                totals.ios[direction.index()] += job.ios[direction];
                totals.bytes[direction.index()] += job.bytes[direction];
            }
        }
        totals.latencies = PerDirection::from_fn(|direction| {
            all_latencies(within(&snapshot.latencies, jobs), direction)
        });
        totals
    }
}

/// Returns the latencies that are of these jobs alone.
pub(crate) fn within<'a>(
    latencies: &'a [LatenciesSoFar],
    jobs: &Range<usize>,
) -> impl Iterator<Item = &'a LatenciesSoFar> {
    let jobs = jobs.clone();
    let is_within =
        move |one: &&LatenciesSoFar| jobs.start <= one.jobs.start && one.jobs.end <= jobs.end;
    latencies.iter().filter(is_within)
}

/// Seconds that are kept: more than a terminal has columns for.
pub(crate) const COLUMNS_MAX: usize = 180;
const SECOND_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use fathom_setup::JobSnapshot;

    use super::*;

    fn snapshot(ms: u64, ios: u64, latencies: &[u64]) -> Snapshot {
        let mut histogram = Histogram::new();
        histogram.record_all(latencies);
        Snapshot {
            elapsed: Nanos::from_millis(ms),
            jobs: vec![JobSnapshot {
                ios: PerDirection::new(ios, 0, 0),
                bytes: PerDirection::new(ios * 512, 0, 0),
                ..JobSnapshot::default()
            }],
            latencies: vec![LatenciesSoFar {
                jobs: 0..1,
                kinds: PerDirection::default(),
                histograms: PerDirection::new(Some(histogram), None, None),
            }],
            ..Snapshot::default()
        }
    }

    fn track() -> Track {
        Track::new("all".to_owned(), 0..1)
    }

    #[test]
    fn ops_are_in_the_second_of_their_snapshot() {
        let mut track = track();
        track.add(&snapshot(500, 10, &[1000, 1000]));
        track.add(&snapshot(1000, 30, &[1000, 1000, 9000]));
        track.add(&snapshot(1500, 31, &[1000, 1000, 9000, 9000]));
        let ios: Vec<(u64, u64)> = track.columns.iter().map(|c| (c.at_s, c.ios[0])).collect();
        assert_eq!(ios, [(0, 30), (1, 1)]);
        let last = &track.columns[1];
        assert_eq!(last.per_second(last.ios[0]), 2);
        assert_eq!(track.columns[0].heat.iter().map(|(_, n)| n).sum::<u64>(), 3);
        assert_eq!(last.heat, [(heat::HeatRow::of(9000), 1)]);
    }

    #[test]
    fn a_gap_has_columns_and_the_oldest_go() {
        let mut track = track();
        track.add(&snapshot(500, 1, &[]));
        track.add(&snapshot(3500, 7, &[]));
        let spans: Vec<u64> = track
            .columns
            .iter()
            .map(|c| c.span_ns / 1_000_000)
            .collect();
        assert_eq!(spans, [500, 0, 0, 3000]);
        let last = &track.columns[3];
        assert_eq!(last.per_second(last.ios[0]), 2);
        track.add(&snapshot(10_000_000, 8, &[]));
        assert_eq!(track.columns.len(), COLUMNS_MAX);
        assert_eq!(track.columns.back().map(|c| c.at_s), Some(9_999));
    }
}
