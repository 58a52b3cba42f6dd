//! Device time of each request, reconstructed from the kernel's events in time order.
//!
//! Only requests whose issue and completion were both seen are kept. Requests of disks without a
//! request queue (zram, device mapper) are bios: queued and completed.

use std::collections::HashMap;

use fathom_core::Direction;

use crate::requests::{BlockEvent, RequestKind, Transition};

/// Request of a device, from its last issue to its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSpan {
    /// Direction.
    pub direction: Direction,
    /// First sector, in units of 512 B.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// Issue to the device, on `CLOCK_MONOTONIC`.
    pub issued_ns: u64,
    /// Completion, on the same clock.
    pub completed_ns: u64,
}

/// Requests seen so far: completed ones, and those still at the device.
///
/// Memory is bounded by `SPANS_MAX` completed requests; further ones are counted as dropped.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    done: Vec<DeviceSpan>,
    dropped: u64,
    /// By direction and next sector to complete; oldest first.
    issued: HashMap<(Direction, u64), Vec<Issued>>,
}

/// Request at the device.
#[derive(Clone, Copy, Debug)]
struct Issued {
    at_ns: u64,
    /// First sector of the whole request.
    sector: u64,
    /// Length of the whole request.
    sectors: u64,
    /// Sectors not completed yet.
    left: u64,
}

impl Spans {
    /// Processes the next event; events must come in time order.
    pub(crate) fn take(&mut self, at_ns: u64, event: BlockEvent) {
        let Some(direction) = direction(event.kind) else {
            return;
        };
        let key = (direction, event.sector);
        match event.what {
            Transition::Issue => {
                let issued = Issued {
                    at_ns,
                    sector: event.sector,
                    sectors: event.sectors,
                    left: event.sectors,
                };
                self.issued.entry(key).or_default().push(issued);
            }
            // Issued again later: the device did not accept it.
            Transition::Requeue => drop(self.oldest(key)),
            Transition::Complete => self.complete(at_ns, direction, event),
            Transition::Insert
            | Transition::RequestMerge
            | Transition::BackMerge
            | Transition::FrontMerge => {}
        }
    }

    /// Drops the requests at the device after lost events, when their state is unknown.
    pub(crate) fn forget_pending(&mut self) {
        self.issued.clear();
    }

    /// Returns the completed requests, and how many were dropped for lack of memory.
    pub(crate) fn into_done(self) -> (Vec<DeviceSpan>, u64) {
        (self.done, self.dropped)
    }

    fn complete(&mut self, at_ns: u64, direction: Direction, event: BlockEvent) {
        // If unknown, it was issued before the trace began.
        let Some(mut issued) = self.oldest((direction, event.sector)) else {
            return;
        };
        issued.left = issued.left.saturating_sub(event.sectors);
        if event.failed {
            return;
        }
        if issued.left > 0 && event.sectors > 0 {
            let rest = event.sector.saturating_add(event.sectors);
            self.issued
                .entry((direction, rest))
                .or_default()
                .push(issued);
            return;
        }
        if self.done.len() >= SPANS_MAX {
            self.dropped += 1;
            return;
        }
        self.done.push(DeviceSpan {
            direction,
            sector: issued.sector,
            sectors: issued.sectors,
            issued_ns: issued.at_ns,
            completed_ns: at_ns,
        });
    }

    fn oldest(&mut self, key: (Direction, u64)) -> Option<Issued> {
        let same = self.issued.get_mut(&key)?;
        let oldest = (!same.is_empty()).then(|| same.remove(0));
        if same.is_empty() {
            self.issued.remove(&key);
        }
        oldest
    }
}

const fn direction(kind: RequestKind) -> Option<Direction> {
    match kind {
        RequestKind::Read => Some(Direction::Read),
        RequestKind::Write => Some(Direction::Write),
        RequestKind::Trim => Some(Direction::Trim),
        RequestKind::Flush | RequestKind::Other => None,
    }
}

/// Completed requests that are kept: 640 MiB, a minute and a half at 180,000 IOPS.
const SPANS_MAX: usize = 1 << 24;

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `(time, transition, sector, sectors)` of reads and returns the completed requests.
    fn spans(events: &[(u64, Transition, u64, u64)]) -> Vec<(u64, u64, u64, u64)> {
        let mut spans = Spans::default();
        for &(at_ns, what, sector, sectors) in events {
            let event = BlockEvent {
                what,
                kind: RequestKind::Read,
                sector,
                sectors,
                failed: false,
            };
            spans.take(at_ns, event);
        }
        let done = spans.into_done().0.into_iter();
        done.map(|one| (one.sector, one.sectors, one.issued_ns, one.completed_ns))
            .collect()
    }

    #[test]
    fn a_request_lasts_from_its_last_issue_to_its_completion() {
        use Transition::{Complete, Insert, Issue, Requeue};
        assert_eq!(
            spans(&[(1, Insert, 8, 8), (2, Issue, 8, 8), (9, Complete, 8, 8)]),
            [(8, 8, 2, 9)]
        );
        let requeued = [
            (2, Issue, 8, 8),
            (3, Requeue, 8, 8),
            (5, Issue, 8, 8),
            (9, Complete, 8, 8),
        ];
        assert_eq!(spans(&requeued), [(8, 8, 5, 9)]);
        // Completed in two parts: done with the second.
        let parts = [(2, Issue, 8, 8), (5, Complete, 8, 4), (9, Complete, 12, 4)];
        assert_eq!(spans(&parts), [(8, 8, 2, 9)]);
        // Issued before the trace began; never completed.
        assert_eq!(spans(&[(5, Complete, 8, 8), (6, Issue, 16, 8)]), []);
    }

    #[test]
    fn a_gap_leaves_no_request_that_spans_it() {
        let mut spans = Spans::default();
        let event = |what| BlockEvent {
            what,
            kind: RequestKind::Write,
            sector: 0,
            sectors: 8,
            failed: false,
        };
        spans.take(1, event(Transition::Issue));
        spans.forget_pending();
        spans.take(2, event(Transition::Complete));
        assert_eq!(spans.into_done(), (Vec::new(), 0));
    }
}
