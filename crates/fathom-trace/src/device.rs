//! Trace of a block device's requests.

use std::path::Path;

use fathom_host::block_tree::BlockTree;
use fathom_host::{machine, storage};
use fathom_record::{TRACE_VERSION, TraceRecord};
use fathom_sys::clock::{self, Clock};

use crate::config::TraceConfig;
use crate::error::TraceError;
use crate::follow::follow;
use crate::format::{Format, Place, event_id};
use crate::requests::{BlockEvent, Kind, Requests, What};
use crate::target::Target;
use crate::tracing::Tracing;

/// Traces the requests of a block device, a disk or a partition; `begun` is called when the kernel
/// has begun to record.
///
/// # Errors
/// No such device, or one without requests; no right to trace; a kernel that cannot.
pub fn trace_device(
    path: &Path,
    config: &TraceConfig<'_>,
    begun: &mut dyn FnMut(),
) -> Result<TraceRecord, TraceError> {
    let tree = BlockTree::default();
    let target = Target::at(path, &tree)?;
    let mut tracing = Tracing::new(config.ring_kib())?;
    let layouts = enabled(&tracing, &target)?;
    let mut requests = Requests::default();
    let followed = follow(
        &mut tracing,
        config.following(begun),
        &|record| layouts.iter().find_map(|layout| layout.decode(record)),
        &mut |at_ns, event| match event {
            Some(event) => requests.take(at_ns, event),
            None => requests.forget_pending(),
        },
    )?;
    let storages = storage::storages_under([path], &tree);
    Ok(TraceRecord {
        version: TRACE_VERSION,
        timestamp_ms: clock::wall_ms(),
        device: target.name,
        wall_ns: followed.wall_ns,
        lost_events: followed.lost,
        machine: Some(machine::machine(&Clock::monotonic(), storages, Vec::new())),
        seeks: requests.seek_record(),
        directions: requests.directions(),
        warnings: followed.warnings(),
    })
}

/// Has the kernel record the events about the target's requests.
fn enabled(tracing: &Tracing, target: &Target) -> Result<Vec<Layout>, TraceError> {
    let mut layouts = Vec::new();
    for (event, what) in EVENTS {
        let name = format!("block/{event}");
        // Linux before 5.11 has no `block_rq_merge`; the others are as old as tracefs.
        match tracing.format(&name)? {
            Some(format) => layouts.push(Layout::new(event, what, &format)?),
            None if what == What::RequestMerge => continue,
            None => return Err(not_offered(event)),
        }
        let of_parts = matches!(what, What::BackMerge | What::FrontMerge);
        tracing.enable(&name, Some(&target.filter(of_parts)))?;
    }
    Ok(layouts)
}

/// Where an event's records have what is needed of them.
#[derive(Debug)]
struct Layout {
    id: u16,
    what: What,
    sector: Place,
    sectors: Place,
    letters: Place,
    errno: Option<Place>,
}

impl Layout {
    fn new(event: &str, what: What, format: &Format) -> Result<Self, TraceError> {
        let place = |name: &str| {
            format
                .place(name)
                .ok_or_else(|| TraceError::missing_field(event, name))
        };
        Ok(Self {
            id: format.id,
            what,
            sector: place("sector")?,
            sectors: place("nr_sector")?,
            letters: place("rwbs")?,
            // Only completions have one.
            errno: format.place("error"),
        })
    }

    /// `None` if the record is another event's.
    fn decode(&self, record: &[u8]) -> Option<BlockEvent> {
        if event_id(record)? != self.id {
            return None;
        }
        let errno = self.errno.and_then(|errno| errno.number(record));
        Some(BlockEvent {
            what: self.what,
            kind: Kind::of(self.letters.bytes(record)?),
            sector: self.sector.number(record)?,
            sectors: self.sectors.number(record)?,
            failed: errno.is_some_and(|errno| errno != 0),
        })
    }
}

fn not_offered(event: &str) -> TraceError {
    TraceError::NotOffered {
        events: event.to_owned(),
        offered_by: "a kernel that was built with CONFIG_BLK_DEV_IO_TRACE",
    }
}

/// The events that are recorded, and what each says.
const EVENTS: [(&str, What); 7] = [
    ("block_rq_insert", What::Insert),
    ("block_rq_issue", What::Issue),
    ("block_rq_requeue", What::Requeue),
    ("block_rq_complete", What::Complete),
    ("block_rq_merge", What::RequestMerge),
    ("block_bio_backmerge", What::BackMerge),
    ("block_bio_frontmerge", What::FrontMerge),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Entry, PageLayout, entries};

    fn layouts() -> Vec<Layout> {
        let texts = [
            include_str!("../tests/data/block_rq_insert"),
            include_str!("../tests/data/block_rq_issue"),
            include_str!("../tests/data/block_rq_requeue"),
            include_str!("../tests/data/block_rq_complete"),
            include_str!("../tests/data/block_rq_merge"),
            include_str!("../tests/data/block_bio_backmerge"),
            include_str!("../tests/data/block_bio_frontmerge"),
        ];
        let each = EVENTS.into_iter().zip(texts);
        let layouts = each.map(|((event, what), text)| {
            Layout::new(event, what, &Format::parse(text).unwrap()).unwrap()
        });
        layouts.collect()
    }

    /// Recorded on Linux 6.18 with mq-deadline: 16 writes one behind the other of which the first
    /// eight were given at once, then ten writes and two reads at random, two flushes among them.
    #[test]
    fn recorded_pages_are_told_request_by_request() {
        let header = include_str!("../tests/data/header_page");
        let layout = PageLayout::parse(header).unwrap();
        let layouts = layouts();
        let pages = [
            &include_bytes!("../tests/data/cpu0.page")[..],
            include_bytes!("../tests/data/cpu1.page"),
        ];
        let mut events = Vec::new();
        for entry in pages.into_iter().flat_map(|page| entries(page, layout)) {
            let Entry::Record { at_ns, bytes } = entry else {
                panic!("nothing was lost");
            };
            let event = layouts.iter().find_map(|layout| layout.decode(bytes));
            events.push((at_ns, event.unwrap()));
        }
        events.sort_by_key(|&(at_ns, _)| at_ns);
        let mut requests = Requests::default();
        for &(at_ns, event) in &events {
            requests.take(at_ns, event);
        }
        let seeks = requests.seek_record();
        let counts = (seeks.dispatched, seeks.merged, seeks.sequential);
        assert_eq!((events.len(), counts), (76, (21, 7, 8)));
        assert_eq!(seeks.distances.count.iter().sum::<u64>(), 20);
        let directions = requests.directions();
        let found: Vec<_> = (directions.iter())
            .map(|one| {
                let complete = one.device_time.all.summary.count();
                (&one.direction[..], one.requests, one.moved_bytes, complete)
            })
            .collect();
        let want = [
            ("read", 2, 2 * 4096, 2),
            ("write", 19, 26 * 4096, 19),
            ("flush", 2, 0, 2),
        ];
        assert_eq!(found, want);
        // The write of 32 KiB was queued for 5 µs and took 78.
        let write = &directions[1];
        assert_eq!(write.queued.all.summary.max() / 1000, 5);
        assert!(write.device_time.all.summary.max() / 1000 >= 78);
    }
}
