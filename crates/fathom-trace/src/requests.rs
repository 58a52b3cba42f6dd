//! What became of each request of a block device, from the kernel's events about it.
//!
//! ```text
//! insert ──► issue ──► complete
//!            ▲    └─► requeue ─┐
//!            └─────────────────┘
//! ```
//!
//! A request is known by its direction and its first sector; of two that have both in common the
//! older one is taken to go first. One that goes to the device at once is never inserted.

use std::collections::HashMap;

use fathom_block::SeekCounts;
use fathom_record::{PeakLatency, SeekRecord, TracedDirection};
use fathom_stats::Latency;

/// One of the kernel's events about requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockEvent {
    pub(crate) what: What,
    pub(crate) kind: Kind,
    /// Where the request begins, in sectors of 512 B; for a merge, what was merged.
    pub(crate) sector: u64,
    pub(crate) sectors: u64,
    /// It completed with an error.
    pub(crate) failed: bool,
}

impl BlockEvent {
    const fn key(&self) -> Key {
        match self.kind {
            // A flush begins nowhere: the kernel tells of different places.
            Kind::Flush => (self.kind, 0),
            _ => (self.kind, self.sector),
        }
    }
}

/// What happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Put into a queue.
    Insert,
    /// Given to the device.
    Issue,
    /// Taken back: the device had no room.
    Requeue,
    /// Done, or a part of it.
    Complete,
    /// It became part of the request before it.
    RequestMerge,
    /// More was put at a request's end.
    BackMerge,
    /// More was put before a request's beginning.
    FrontMerge,
}

/// The direction of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Read,
    Write,
    Trim,
    Flush,
    Other,
}

impl Kind {
    /// From the kernel's letters: `WS`, `RA`, `FWFS`…; an `F` before another operation says that
    /// a flush goes ahead of it.
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

/// All requests of a device.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    seeks: SeekCounts,
    kinds: [Counts; KINDS.len()],
    waiting: Known<Waiting>,
    issued: Known<Issued>,
}

/// A request that the device does not have.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// When it was put into a queue, if it was.
    since_ns: Option<u64>,
    /// The device had it before, and it was counted then.
    counted: bool,
}

/// A request that the device has.
#[derive(Clone, Copy, Debug)]
struct Issued {
    at_ns: u64,
    since_ns: Option<u64>,
    sectors: u64,
}

impl Requests {
    /// Takes in what happened next.
    pub(crate) fn take(&mut self, at_ns: u64, event: BlockEvent) {
        let key = event.key();
        match event.what {
            What::Insert => self.insert(at_ns, key),
            What::Issue => self.issue(at_ns, event),
            What::Requeue => self.requeue(key),
            What::Complete => self.complete(at_ns, event),
            What::RequestMerge => {
                self.merge(event.kind);
                let _now_part_of_another = self.waiting.take(key);
            }
            What::BackMerge => self.merge(event.kind),
            What::FrontMerge => {
                self.merge(event.kind);
                let began = event.sector.saturating_add(event.sectors);
                if let Some(waiting) = self.waiting.take((event.kind, began)) {
                    self.waiting.put(key, waiting);
                }
            }
        }
    }

    /// Events were lost: what became of the requests in flight is not known.
    pub(crate) fn forget_pending(&mut self) {
        self.waiting.clear();
        self.issued.clear();
    }

    /// Returns the distances between requests, in the form in which a modelled disk has them.
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

    /// The directions of which there was a request.
    pub(crate) fn directions(self) -> Vec<TracedDirection> {
        let kinds = KINDS.into_iter().zip(self.kinds);
        let seen = kinds.filter(|(_, counts)| counts.requests + counts.merged > 0);
        seen.map(|(kind, counts)| counts.record(kind)).collect()
    }

    fn insert(&mut self, at_ns: u64, key: Key) {
        // One that was taken back may be put into a queue again; it waits since the first time.
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
            if matches!(event.kind, Kind::Read | Kind::Write) && bytes > 0 {
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
        // Else the device had it before the trace began.
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

    fn merge(&mut self, kind: Kind) {
        self.counts(kind).merged += 1;
        if matches!(kind, Kind::Read | Kind::Write) {
            self.seeks.merge();
        }
    }

    const fn counts(&mut self, kind: Kind) -> &mut Counts {
        &mut self.kinds[kind as usize]
    }
}

/// What is counted of one direction.
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
    fn record(self, kind: Kind) -> TracedDirection {
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
type Key = (Kind, u64);

/// Requests in one state.
#[derive(Debug)]
struct Known<T> {
    /// The oldest of a key first; hardly ever is there more than one.
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
        // What the kernel never told the end of, if it came to that, must not fill the memory.
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

/// In the order of the type.
const KINDS: [Kind; 5] = [
    Kind::Read,
    Kind::Write,
    Kind::Trim,
    Kind::Flush,
    Kind::Other,
];

/// Bytes of what the kernel calls a sector, whatever the device's are.
const SECTOR: u64 = 512;

/// More requests than any device has at a time: 65,536 for each of 16 queues.
const PENDING_MAX: usize = 1 << 20;
/// Requests of the same direction and sector at a time (guess).
const SAME_MAX: usize = 1 << 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn event(what: What, kind: Kind, sector: u64, sectors: u64) -> BlockEvent {
        let failed = false;
        BlockEvent {
            what,
            kind,
            sector,
            sectors,
            failed,
        }
    }

    /// `(time, what, sector, sectors)` of writes; gives the writes' record.
    fn after(events: &[(u64, What, u64, u64)]) -> (Requests, TracedDirection) {
        let mut requests = Requests::default();
        for &(at_ns, what, sector, sectors) in events {
            requests.take(at_ns, event(what, Kind::Write, sector, sectors));
        }
        let mut directions = Requests {
            kinds: std::mem::take(&mut requests.kinds),
            ..Requests::default()
        }
        .directions();
        (requests, directions.remove(0))
    }

    #[track_caller]
    fn check_times(events: &[(u64, What, u64, u64)], queued: &[u64], device: &[u64]) {
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
        use What::{Complete, FrontMerge, Insert, Issue, Requeue};
        // Through a queue, and at once.
        check_times(
            &[(10, Insert, 8, 8), (15, Issue, 8, 8), (40, Complete, 8, 8)],
            &[5],
            &[25],
        );
        check_times(&[(15, Issue, 8, 8), (40, Complete, 8, 8)], &[], &[25]);
        // What is put before its beginning moves it.
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
        // In two parts: done when the second is.
        check_times(
            &[
                (10, Issue, 8, 16),
                (20, Complete, 8, 4),
                (50, Complete, 12, 12),
            ],
            &[],
            &[40],
        );
        // Two of the same place: in their order.
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
        // Taken back, put into the queue again or not.
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
        // The device had it before the trace began.
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
        use What::{Issue, Requeue};
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
        requests.take(10, event(What::Issue, Kind::Read, 8, 8));
        requests.forget_pending();
        requests.take(1_000, event(What::Issue, Kind::Read, 8, 8));
        requests.take(1_001, event(What::Complete, Kind::Read, 8, 8));
        let read = requests.directions().remove(0);
        assert_eq!(read.requests, 2);
        assert_eq!(read.device_time.all.summary.max(), 1);
    }

    #[test]
    fn letters_name_the_direction() {
        for (letters, kind) in [
            (&b"R"[..], Kind::Read),
            (b"RA\0\0", Kind::Read),
            (b"WS", Kind::Write),
            (b"FWFS", Kind::Write),
            (b"DS", Kind::Trim),
            (b"FF", Kind::Flush),
            (b"FN", Kind::Flush),
            (b"N", Kind::Other),
            (b"", Kind::Other),
        ] {
            assert_eq!(Kind::of(letters), kind, "{letters:?}");
        }
    }
}
