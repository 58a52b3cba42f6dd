//! Join of ops with the device's requests: by direction, sectors and time.

use std::ops::Range;

use fathom_core::Direction;

use crate::disk_map::SectorRange;
use crate::spans::DeviceSpan;

/// Requests of a device, ordered for look-ups by sector.
#[derive(Clone, Debug)]
pub struct DeviceSpans {
    /// By direction and first sector, then by time.
    spans: Vec<DeviceSpan>,
    /// Length of the longest one in sectors, which bounds the search.
    longest: u64,
}

/// Time of an op at its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceTime {
    /// Issue of the first request.
    pub issued_ns: u64,
    /// Completion of the last request.
    pub completed_ns: u64,
    /// Number of requests.
    pub requests: u32,
    /// A request served other sectors as well.
    pub is_merged: bool,
}

/// Result of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// The requests cover the op exactly once.
    Device(DeviceTime),
    /// No request: the op did not reach the device.
    Absent,
    /// Some of its sectors had no request.
    Partial,
    /// Some of its sectors had several requests, so its own cannot be distinguished from others'.
    Ambiguous,
}

impl DeviceSpans {
    /// Orders the requests.
    #[must_use]
    pub fn new(mut spans: Vec<DeviceSpan>) -> Self {
        spans.sort_unstable_by_key(|span| (span.direction, span.sector, span.issued_ns));
        let longest = spans.iter().map(|span| span.sectors).max().unwrap_or(0);
        Self { spans, longest }
    }

    /// Returns the number of requests.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Looks up the requests for these sectors that were issued within `window`, a range of
    /// `CLOCK_MONOTONIC`. Not by their completion, too: a program that reads the clock once for
    /// several completions may have read it before the last of them.
    #[must_use]
    pub fn join(&self, direction: Direction, at: &[SectorRange], window: Range<u64>) -> Joined {
        let wanted: u64 = at.iter().map(|range| range.count).sum();
        let mut covered = 0;
        let mut time: Option<DeviceTime> = None;
        for range in at {
            let end = range.first.saturating_add(range.count);
            for span in self.over(direction, range) {
                let span_end = span.sector.saturating_add(span.sectors);
                if span_end <= range.first || !window.contains(&span.issued_ns) {
                    continue;
                }
                covered += span_end.min(end) - span.sector.max(range.first);
                let time = time.get_or_insert(DeviceTime {
                    issued_ns: span.issued_ns,
                    completed_ns: span.completed_ns,
                    requests: 0,
                    is_merged: false,
                });
                time.issued_ns = time.issued_ns.min(span.issued_ns);
                time.completed_ns = time.completed_ns.max(span.completed_ns);
                time.requests += 1;
                time.is_merged |= span.sector < range.first || span_end > end;
            }
        }
        match time {
            None => Joined::Absent,
            Some(_) if covered < wanted => Joined::Partial,
            Some(_) if covered > wanted => Joined::Ambiguous,
            Some(time) => Joined::Device(time),
        }
    }

    /// Iterates over the requests that begin where they may overlap `range`.
    fn over(&self, direction: Direction, range: &SectorRange) -> impl Iterator<Item = &DeviceSpan> {
        let from = range.first.saturating_sub(self.longest);
        let end = range.first.saturating_add(range.count);
        let begin =
            (self.spans).partition_point(|span| (span.direction, span.sector) < (direction, from));
        self.spans[begin..]
            .iter()
            .take_while(move |span| span.direction == direction && span.sector < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn span(sector: u64, sectors: u64, issued_ns: u64, completed_ns: u64) -> DeviceSpan {
        DeviceSpan {
            direction: Direction::Read,
            sector,
            sectors,
            issued_ns,
            completed_ns,
        }
    }

    fn spans() -> DeviceSpans {
        DeviceSpans::new(vec![
            span(0, 8, 10, 20),
            // The same sectors later.
            span(0, 8, 110, 120),
            // One op in two requests.
            span(100, 8, 11, 25),
            span(108, 8, 13, 22),
            // Two ops in one request.
            span(200, 16, 15, 30),
        ])
    }

    #[track_caller]
    fn check(at: (u64, u64), window: Range<u64>, want: Joined) {
        let (first, count) = at;
        let found = spans().join(Direction::Read, &[SectorRange { first, count }], window);
        assert_eq!(found, want, "{at:?}");
    }

    const fn device(issued_ns: u64, completed_ns: u64, requests: u32, is_merged: bool) -> Joined {
        Joined::Device(DeviceTime {
            issued_ns,
            completed_ns,
            requests,
            is_merged,
        })
    }

    #[test]
    fn an_op_is_joined_with_all_its_requests() {
        check((0, 8), 5..25, device(10, 20, 1, false));
        check((0, 8), 105..125, device(110, 120, 1, false));
        check((100, 16), 0..50, device(11, 25, 2, false));
        check((208, 8), 0..50, device(15, 30, 1, true));
    }

    #[test]
    fn ops_without_requests_of_their_own_are_told_apart() {
        check((0, 8), 30..90, Joined::Absent);
        check((8, 8), 0..50, Joined::Absent);
        check((112, 8), 0..50, Joined::Partial);
        check((0, 8), 0..200, Joined::Ambiguous);
        let write = spans().join(
            Direction::Write,
            &[SectorRange { first: 0, count: 8 }],
            0..50,
        );
        assert_eq!(write, Joined::Absent);
    }

    #[test]
    fn an_op_over_two_extents_is_joined() {
        let at = [
            SectorRange { first: 0, count: 8 },
            SectorRange {
                first: 200,
                count: 16,
            },
        ];
        let found = spans().join(Direction::Read, &at, 0..50);
        assert_eq!(found, device(10, 30, 2, false));
    }
}
