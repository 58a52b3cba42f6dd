//! Life of each request of a block device, reconstructed from the kernel's events.
//!
//! ```text
//! insert ──► issue ──► complete
//!            ▲    └─► requeue ─┐
//!            └─────────────────┘
//! ```
//!
//! A request is identified by its direction and first sector; of two with the same key the older
//! one is assumed to proceed first. A request dispatched directly is never inserted.

use std::collections::HashMap;

use fathom_block::SeekCounts;
use fathom_record::{PeakLatency, SeekRecord, TracedDirection};
use fathom_stats::Latency;

/// Event about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockEvent {
    pub(crate) what: Transition,
    pub(crate) kind: RequestKind,
    /// First sector, in units of 512 B; for a merge, of the merged part.
    pub(crate) sector: u64,
    pub(crate) sectors: u64,
    /// The request completed with an error.
    pub(crate) failed: bool,
}

impl BlockEvent {
    const fn key(&self) -> Key {
        match self.kind {
            // A flush has no place: the kernel's events name different sectors.
            RequestKind::Flush => (self.kind, 0),
            _ => (self.kind, self.sector),
        }
    }
}

/// Transition of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    /// Inserted into a queue.
    Insert,
    /// Issued to the device.
    Issue,
    /// Requeued: the device was busy.
    Requeue,
    /// Completed, in full or in part.
    Complete,
    /// Merged into the preceding request.
    RequestMerge,
    /// A bio was appended to a request.
    BackMerge,
    /// A bio was prepended to a request.
    FrontMerge,
}

/// Direction of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RequestKind {
    Read,
    Write,
    Trim,
    Flush,
    Other,
}

impl RequestKind {
    /// Decodes the kernel's `rwbs` letters: `WS`, `RA`, `FWFS`. An `F` before another operation is
    /// a preflush of that operation.
    pub(crate) fn of(letters: &[u8]) -> Self {
        let operation = match letters {
            [b'F', operation @ (b'R' | b'W' | b'D'), ..] => *operation,
            [operation, ..] => *operation,
            [] => 0,
        };
        match operation {
            b'R' => Self::Read,
            b'W' => Self::Write,
            b'D' => Self::Trim,
            b'F' => Self::Flush,
            _ => Self::Other,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Flush => "flush",
            Self::Other => "other",
        }
    }
}

/// Counts and latencies of a device's requests, and the requests still pending.
///
/// Memory is bounded: if more requests than `PENDING_MAX` are pending, which only lost events can
/// cause, all of them are dropped from the latencies.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    seeks: SeekCounts,
    kinds: [Counts; KINDS.len()],
    waiting: Known<Waiting>,
    issued: Known<Issued>,
}

/// A request waiting in a queue.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Time of its insertion, if it was inserted.
    since_ns: Option<u64>,
    /// It was issued and requeued before, and is already counted.
    counted: bool,
}

/// A request issued to the device.
#[derive(Clone, Copy, Debug)]
struct Issued {
    at_ns: u64,
    since_ns: Option<u64>,
    sectors: u64,
}

impl Requests {
    /// Processes the next event; events must come in time order.
    pub(crate) fn take(&mut self, at_ns: u64, event: BlockEvent) {
        let key = event.key();
        match event.what {
            Transition::Insert => self.insert(at_ns, key),
            Transition::Issue => self.issue(at_ns, event),
            Transition::Requeue => self.requeue(key),
            Transition::Complete => self.complete(at_ns, event),
            Transition::RequestMerge => {
                self.merge(event.kind);
                let _now_part_of_another = self.waiting.take(key);
            }
            Transition::BackMerge => self.merge(event.kind),
            Transition::FrontMerge => {
                self.merge(event.kind);
                let began = event.sector.saturating_add(event.sectors);
                if let Some(waiting) = self.waiting.take((event.kind, began)) {
                    self.waiting.put(key, waiting);
                }
            }
        }
    }

    /// Drops the pending requests after lost events, when their state is unknown.
    pub(crate) fn forget_pending(&mut self) {
        self.waiting.clear();
        self.issued.clear();
    }

    /// Returns the distances between requests, in the same form as for a modelled disk.
    pub(crate) fn seek_record(&self) -> SeekRecord {
        let counts = &self.seeks;
        SeekRecord {
            dispatched: counts.dispatched(),
            merged: counts.merged(),
            sequential: counts.sequential(),
            sequential_ratio: counts.sequential_ratio(),
            distances: counts
                .buckets()
                .map(|bucket| (bucket.from_kib, bucket.to_kib, bucket.count))
                .collect(),
        }
    }

    /// Returns the directions that had requests.
    pub(crate) fn directions(self) -> Vec<TracedDirection> {
        let kinds = KINDS.into_iter().zip(self.kinds);
        let seen = kinds.filter(|(_, counts)| counts.requests + counts.merged > 0);
        seen.map(|(kind, counts)| counts.record(kind)).collect()
    }

    fn insert(&mut self, at_ns: u64, key: Key) {
        // A requeued request may be inserted again; it has waited since the first insertion.
        if self.waiting.oldest(key).is_some_and(|known| known.counted) {
            return;
        }
        let since_ns = Some(at_ns);
        let counted = false;
        self.waiting.put(key, Waiting { since_ns, counted });
    }

    fn issue(&mut self, at_ns: u64, event: BlockEvent) {
        let key = event.key();
        let waiting = self.waiting.take(key);
        let since_ns = waiting.and_then(|waiting| waiting.since_ns);
        if !waiting.is_some_and(|waiting| waiting.counted) {
            let bytes = event.sectors.saturating_mul(SECTOR);
            let counts = self.counts(event.kind);
            counts.requests += 1;
            counts.moved_bytes = counts.moved_bytes.saturating_add(bytes);
            if let Some(since_ns) = since_ns {
                counts.queued.record(at_ns.saturating_sub(since_ns));
            }
            if matches!(event.kind, RequestKind::Read | RequestKind::Write) && bytes > 0 {
                self.seeks
                    .dispatch(event.sector.saturating_mul(SECTOR), bytes);
            }
        }
        let sectors = event.sectors;
        self.issued.put(
            key,
            Issued {
                at_ns,
                since_ns,
                sectors,
            },
        );
    }

    fn requeue(&mut self, key: Key) {
        if let Some(issued) = self.issued.take(key) {
            self.counts(key.0).requeued += 1;
            let since_ns = issued.since_ns.or(Some(issued.at_ns));
            let counted = true;
            self.waiting.put(key, Waiting { since_ns, counted });
        }
    }

    fn complete(&mut self, at_ns: u64, event: BlockEvent) {
        let key = event.key();
        // If unknown, it was issued before the trace began.
        let Some(issued) = self.issued.take(key) else {
            return;
        };
        let left = issued.sectors.saturating_sub(event.sectors);
        if left > 0 && event.sectors > 0 && !event.failed {
            let sectors = left;
            let rest = event.sector.saturating_add(event.sectors);
            self.issued
                .put((event.kind, rest), Issued { sectors, ..issued });
            return;
        }
        let counts = self.counts(event.kind);
        counts.failed += u64::from(event.failed);
        let since_ns = issued.since_ns.unwrap_or(issued.at_ns);
        counts
            .device_time
            .record(at_ns.saturating_sub(issued.at_ns));
        counts.total.record(at_ns.saturating_sub(since_ns));
    }

    fn merge(&mut self, kind: RequestKind) {
        self.counts(kind).merged += 1;
        if matches!(kind, RequestKind::Read | RequestKind::Write) {
            self.seeks.merge();
        }
    }

    const fn counts(&mut self, kind: RequestKind) -> &mut Counts {
        &mut self.kinds[kind as usize]
    }
}

/// Counts and latencies of one direction.
#[derive(Debug)]
struct Counts {
    requests: u64,
    moved_bytes: u64,
    merged: u64,
    requeued: u64,
    failed: u64,
    queued: Latency,
    device_time: Latency,
    total: Latency,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            requests: 0,
            moved_bytes: 0,
            merged: 0,
            requeued: 0,
            failed: 0,
            queued: Latency::new(true),
            device_time: Latency::new(true),
            total: Latency::new(true),
        }
    }
}

impl Counts {
    fn record(self, kind: RequestKind) -> TracedDirection {
        TracedDirection {
            direction: kind.name().to_owned(),
            requests: self.requests,
            moved_bytes: self.moved_bytes,
            merged: self.merged,
            requeued: self.requeued,
            failed: self.failed,
            queued: PeakLatency::new(self.queued),
            device_time: PeakLatency::new(self.device_time),
            total: PeakLatency::new(self.total),
        }
    }
}

/// Direction and first sector.
type Key = (RequestKind, u64);

/// Requests in one state, by key.
#[derive(Debug)]
struct Known<T> {
    /// Oldest first; a key rarely has more than one request.
    by_key: HashMap<Key, Vec<T>>,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        let by_key = HashMap::new();
        Self { by_key }
    }
}

impl<T> Known<T> {
    fn put(&mut self, key: Key, one: T) {
        // Requests whose end was never reported must not exhaust memory.
        if self.by_key.len() >= PENDING_MAX {
            self.clear();
        }
        let same = self.by_key.entry(key).or_default();
        if same.len() < SAME_MAX {
            same.push(one);
        }
    }

    fn oldest(&self, key: Key) -> Option<&T> {
        self.by_key.get(&key)?.first()
    }

    fn take(&mut self, key: Key) -> Option<T> {
        let same = self.by_key.get_mut(&key)?;
        let oldest = (!same.is_empty()).then(|| same.remove(0));
        if same.is_empty() {
            self.by_key.remove(&key);
        }
        oldest
    }

    fn clear(&mut self) {
        self.by_key.clear();
    }
}

/// In the order of the variants.
const KINDS: [RequestKind; 5] = [
    RequestKind::Read,
    RequestKind::Write,
    RequestKind::Trim,
    RequestKind::Flush,
    RequestKind::Other,
];

/// The kernel's sector size, independent of the device's.
const SECTOR: u64 = 512;

/// More than any device has in flight: 65,536 for each of 16 queues.
const PENDING_MAX: usize = 1 << 20;
/// Pending requests of one key (guess).
const SAME_MAX: usize = 1 << 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn event(what: Transition, kind: RequestKind, sector: u64, sectors: u64) -> BlockEvent {
        let failed = false;
        BlockEvent {
            what,
            kind,
            sector,
            sectors,
            failed,
        }
    }

    /// Feeds `(time, transition, sector, sectors)` of writes and returns their record.
    fn after(events: &[(u64, Transition, u64, u64)]) -> (Requests, TracedDirection) {
        let mut requests = Requests::default();
        for &(at_ns, what, sector, sectors) in events {
            requests.take(at_ns, event(what, RequestKind::Write, sector, sectors));
        }
        let mut directions = Requests {
            kinds: std::mem::take(&mut requests.kinds),
            ..Requests::default()
        }
        .directions();
        (requests, directions.remove(0))
    }

    #[track_caller]
    fn check_times(events: &[(u64, Transition, u64, u64)], queued: &[u64], device: &[u64]) {
        let (requests, write) = after(events);
        let sum = |times: &PeakLatency| (times.all.summary.count(), times.all.summary.mean());
        for (times, want) in [(&write.queued, queued), (&write.device_time, device)] {
            let mean = want.iter().sum::<u64>() as f64 / want.len().max(1) as f64;
            assert_eq!(sum(times), (want.len() as u64, mean), "{events:?}");
        }
        assert!(requests.issued.by_key.is_empty() && requests.waiting.by_key.is_empty());
    }

    #[test]
    fn each_stage_has_its_time() {
        use Transition::{Complete, FrontMerge, Insert, Issue, Requeue};
        // Through a queue, and directly.
        check_times(
            &[(10, Insert, 8, 8), (15, Issue, 8, 8), (40, Complete, 8, 8)],
            &[5],
            &[25],
        );
        check_times(&[(15, Issue, 8, 8), (40, Complete, 8, 8)], &[], &[25]);
        // A front merge changes the first sector.
        check_times(
            &[
                (10, Insert, 8, 8),
                (12, FrontMerge, 0, 8),
                (20, Issue, 0, 16),
                (40, Complete, 0, 16),
            ],
            &[10],
            &[20],
        );
        // Completed in two parts: done with the second.
        check_times(
            &[
                (10, Issue, 8, 16),
                (20, Complete, 8, 4),
                (50, Complete, 12, 12),
            ],
            &[],
            &[40],
        );
        // Two with the same key: first in, first out.
        check_times(
            &[
                (10, Issue, 8, 8),
                (20, Issue, 8, 8),
                (30, Complete, 8, 8),
                (50, Complete, 8, 8),
            ],
            &[],
            &[20, 30],
        );
        // Requeued, inserted again or not.
        for again in [Insert, Requeue] {
            check_times(
                &[
                    (10, Insert, 8, 8),
                    (15, Issue, 8, 8),
                    (16, Requeue, 8, 8),
                    (17, again, 8, 8),
                    (20, Issue, 8, 8),
                    (50, Complete, 8, 8),
                ],
                &[5],
                &[30],
            );
        }
        // Issued before the trace began.
        check_times(
            &[
                (10, Issue, 8, 8),
                (11, Complete, 8, 8),
                (12, Complete, 8, 8),
            ],
            &[],
            &[1],
        );
    }

    #[test]
    fn one_that_was_taken_back_is_dispatched_once() {
        use Transition::{Issue, Requeue};
        let events = [
            (10, Issue, 8, 8),
            (16, Requeue, 8, 8),
            (20, Issue, 8, 8),
            (30, Issue, 16, 8),
        ];
        let (requests, write) = after(&events);
        assert_eq!((write.requests, write.requeued), (2, 1));
        let seeks = &requests.seeks;
        assert_eq!((seeks.dispatched(), seeks.sequential()), (2, 1));
    }

    #[test]
    fn a_gap_leaves_no_times_that_span_it() {
        let mut requests = Requests::default();
        requests.take(10, event(Transition::Issue, RequestKind::Read, 8, 8));
        requests.forget_pending();
        requests.take(1_000, event(Transition::Issue, RequestKind::Read, 8, 8));
        requests.take(1_001, event(Transition::Complete, RequestKind::Read, 8, 8));
        let read = requests.directions().remove(0);
        assert_eq!(read.requests, 2);
        assert_eq!(read.device_time.all.summary.max(), 1);
    }

    #[test]
    fn letters_name_the_direction() {
        for (letters, kind) in [
            (&b"R"[..], RequestKind::Read),
            (b"RA\0\0", RequestKind::Read),
            (b"WS", RequestKind::Write),
            (b"FWFS", RequestKind::Write),
            (b"DS", RequestKind::Trim),
            (b"FF", RequestKind::Flush),
            (b"FN", RequestKind::Flush),
            (b"N", RequestKind::Other),
            (b"", RequestKind::Other),
        ] {
            assert_eq!(RequestKind::of(letters), kind, "{letters:?}");
        }
    }
}
