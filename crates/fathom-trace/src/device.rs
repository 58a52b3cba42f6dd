//! Trace of a block device's requests.

use std::path::Path;

use fathom_host::block_tree::BlockTree;
use fathom_host::{machine, storage};
use fathom_record::{TRACE_VERSION, TraceRecord};
use fathom_sys::clock::{self, Clock};

use crate::config::TraceConfig;
use crate::error::TraceError;
use crate::follow::{Traced, follow};
use crate::format::{FieldRange, Format, event_id};
use crate::requests::{BlockEvent, RequestKind, Requests, Transition};
use crate::target::TracedDevice;
use crate::tracing::Tracing;

/// Traces the requests of a disk or partition; `begun` is called once the kernel records.
///
/// # Errors
/// The device does not exist or has no requests, tracing is not permitted, or the kernel lacks
/// the events.
pub fn trace_device(
    path: &Path,
    config: &TraceConfig<'_>,
    begun: &mut dyn FnMut(),
) -> Result<Traced<TraceRecord>, TraceError> {
    let tree = BlockTree::default();
    let target = TracedDevice::at(path, &tree)?;
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
    let record = TraceRecord {
        version: TRACE_VERSION,
        timestamp_ms: clock::wall_ms(),
        device: target.name,
        wall_ns: followed.wall_ns,
        lost_events: followed.lost,
        machine: Some(machine::machine(&Clock::monotonic(), storages, Vec::new())),
        seeks: requests.seek_record(),
        directions: requests.directions(),
        warnings: followed.warnings(),
    };
    Ok(followed.traced(record))
}

/// Enables the events about the target's requests.
fn enabled(tracing: &Tracing, target: &TracedDevice) -> Result<Vec<RequestLayout>, TraceError> {
    let mut layouts = Vec::new();
    for (event, what) in EVENTS {
        let name = format!("block/{event}");
        // Linux before 5.11 lacks `block_rq_merge`; the others are as old as tracefs.
        match tracing.format(&name)? {
            Some(format) => layouts.push(RequestLayout::new(event, what, &format)?),
            None if what == Transition::RequestMerge => continue,
            None => return Err(not_offered(event)),
        }
        let of_parts = matches!(what, Transition::BackMerge | Transition::FrontMerge);
        tracing.enable(&name, Some(&target.filter(of_parts)))?;
    }
    Ok(layouts)
}

/// Locations of the needed fields in the records of one event.
#[derive(Debug)]
pub(crate) struct RequestLayout {
    id: u16,
    what: Transition,
    sector: FieldRange,
    sectors: FieldRange,
    letters: FieldRange,
    errno: Option<FieldRange>,
}

impl RequestLayout {
    pub(crate) fn new(event: &str, what: Transition, format: &Format) -> Result<Self, TraceError> {
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
            // Only completions have this field.
            errno: format.place("error"),
        })
    }

    /// Decodes a record; `None` if it belongs to another event.
    pub(crate) fn decode(&self, record: &[u8]) -> Option<BlockEvent> {
        if event_id(record)? != self.id {
            return None;
        }
        let errno = self.errno.and_then(|errno| errno.number(record));
        Some(BlockEvent {
            what: self.what,
            kind: RequestKind::of(self.letters.bytes(record)?),
            sector: self.sector.number(record)?,
            sectors: self.sectors.number(record)?,
            failed: errno.is_some_and(|errno| errno != 0),
        })
    }
}

pub(crate) fn not_offered(event: &str) -> TraceError {
    TraceError::NotOffered {
        events: event.to_owned(),
        offered_by: "a kernel that was built with CONFIG_BLK_DEV_IO_TRACE",
    }
}

/// Recorded events, with their meanings.
pub(crate) const EVENTS: [(&str, Transition); 7] = [
    ("block_rq_insert", Transition::Insert),
    ("block_rq_issue", Transition::Issue),
    ("block_rq_requeue", Transition::Requeue),
    ("block_rq_complete", Transition::Complete),
    ("block_rq_merge", Transition::RequestMerge),
    ("block_bio_backmerge", Transition::BackMerge),
    ("block_bio_frontmerge", Transition::FrontMerge),
];
