//! Trace of the device time of each request, in memory, beside other work.

use std::collections::HashMap;

use crate::background::BackgroundTrace;
use crate::config::TraceConfig;
use crate::device::RequestLayout;
use crate::disk_map::DiskMap;
use crate::error::TraceError;
use crate::follow::follow;
use crate::format::FieldRange;
use crate::join::DeviceSpans;
use crate::requests::{BlockEvent, Transition};
use crate::spans::Spans;
use crate::target::TracedDevice;
use crate::tracing::Tracing;
use crate::waking::{WakingLayout, Wakings};

/// Requests of one or more disks during a trace.
#[derive(Clone, Debug)]
pub struct TracedSpans {
    disks: Vec<(TracedDevice, DeviceSpans)>,
    wakings: Wakings,
    /// Events that the kernel dropped because a ring was full.
    pub lost_events: u64,
    /// Requests that were not kept because there were too many.
    pub dropped: u64,
}

impl TracedSpans {
    /// Returns the requests of the disk that a file or device is on; `None` if it was not traced.
    #[must_use]
    pub fn of(&self, map: &DiskMap) -> Option<&DeviceSpans> {
        let mut disks = self.disks.iter();
        let found = disks.find(|(disk, _)| disk.is_same_disk(&map.device));
        found.map(|(_, spans)| spans)
    }

    /// Returns the times at which a thread was woken, ascending.
    #[must_use]
    pub fn wakings(&self, thread: u32) -> &[u64] {
        self.wakings.of(thread)
    }
}

/// Starts to record the requests of the disks that these files and devices are on, and returns once
/// the kernel records; with `ring_mib` MiB of kernel memory per CPU, 0 for a size that suits the
/// machine. Also records when `threads` are woken: their names, as the kernel keeps them.
///
/// # Errors
/// Tracing is not permitted, or the kernel lacks the events.
pub fn trace_spans(
    maps: &[DiskMap],
    threads: &[String],
    ring_mib: u32,
) -> Result<BackgroundTrace<TracedSpans>, TraceError> {
    let mut disks: Vec<TracedDevice> = Vec::new();
    for map in maps {
        match disks.iter_mut().find(|disk| disk.is_same_disk(&map.device)) {
            Some(disk) if *disk != map.device => *disk = disk.whole(),
            Some(_) => {}
            None => disks.push(map.device.clone()),
        }
    }
    let threads = threads.to_vec();
    let body = move |config: &TraceConfig<'_>, begun: &mut dyn FnMut()| {
        record(disks, &threads, config, begun)
    };
    BackgroundTrace::start(ring_mib, Box::new(body))
}

fn record(
    disks: Vec<TracedDevice>,
    threads: &[String],
    config: &TraceConfig<'_>,
    begun: &mut dyn FnMut(),
) -> Result<TracedSpans, TraceError> {
    let mut tracing = Tracing::new(config.ring_kib())?;
    let layouts = enabled(&tracing, &disks)?;
    let waking = WakingLayout::enabled(&tracing, threads)?;
    let indexes = indexes(&disks);
    let mut wakings = Wakings::default();
    let mut spans: Vec<Spans> = disks.iter().map(|_| Spans::default()).collect();
    let followed = follow(
        &mut tracing,
        config.following(begun),
        &|record| {
            let mut layouts = layouts.iter();
            let request = layouts.find_map(|layout| layout.decode(record, &indexes));
            request.or_else(|| waking.as_ref()?.decode(record).map(Event::Waking))
        },
        &mut |at_ns, event| match event {
            Some(Event::Request(disk, event)) => spans[disk].take(at_ns, event),
            Some(Event::Waking(thread)) => wakings.add(thread, at_ns),
            None => spans.iter_mut().for_each(Spans::forget_pending),
        },
    )?;
    let mut traced = TracedSpans {
        disks: Vec::new(),
        wakings,
        lost_events: followed.lost,
        dropped: 0,
    };
    for (disk, spans) in disks.into_iter().zip(spans) {
        let (done, dropped) = spans.into_done();
        traced.dropped += dropped;
        traced.disks.push((disk, DeviceSpans::new(done)));
    }
    Ok(traced)
}

/// Maps the device numbers in records to indexes of the disks.
fn indexes(disks: &[TracedDevice]) -> HashMap<u64, usize> {
    let each = disks.iter().enumerate();
    each.flat_map(|(index, disk)| disk.raw_numbers().map(move |number| (number, index)))
        .collect()
}

/// Enables the events of requests for the disks that have them, and of bios for the others.
fn enabled(tracing: &Tracing, disks: &[TracedDevice]) -> Result<Vec<SpanLayout>, TraceError> {
    let mut layouts = Vec::new();
    for (has_requests, events) in [(true, &REQUEST_EVENTS[..]), (false, &BIO_EVENTS)] {
        let those = disks
            .iter()
            .filter(|disk| disk.has_requests == has_requests);
        let filters: Vec<String> = those
            .map(|disk| format!("({})", disk.filter(!has_requests)))
            .collect();
        if filters.is_empty() {
            continue;
        }
        for &(event, what) in events {
            let name = format!("block/{event}");
            let Some(format) = tracing.format(&name)? else {
                return Err(crate::device::not_offered(event));
            };
            layouts.push(SpanLayout {
                request: RequestLayout::new(event, what, &format)?,
                device: (format.place("dev"))
                    .ok_or_else(|| TraceError::missing_field(event, "dev"))?,
            });
            tracing.enable(&name, Some(&filters.join(" || ")))?;
        }
    }
    Ok(layouts)
}

/// Recorded event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// About a request of the disk with this index.
    Request(usize, BlockEvent),
    /// The thread with this id was woken.
    Waking(u32),
}

/// Locations of the needed fields in the records of one event.
#[derive(Debug)]
struct SpanLayout {
    request: RequestLayout,
    device: FieldRange,
}

impl SpanLayout {
    /// Decodes a record with the index of its disk; `None` if it belongs to another event.
    fn decode(&self, record: &[u8], disks: &HashMap<u64, usize>) -> Option<Event> {
        let event = self.request.decode(record)?;
        let disk = disks.get(&self.device.number(record)?)?;
        Some(Event::Request(*disk, event))
    }
}

/// Events of a request.
const REQUEST_EVENTS: [(&str, Transition); 3] = [
    ("block_rq_issue", Transition::Issue),
    ("block_rq_requeue", Transition::Requeue),
    ("block_rq_complete", Transition::Complete),
];

/// Events of a bio.
const BIO_EVENTS: [(&str, Transition); 2] = [
    ("block_bio_queue", Transition::Issue),
    ("block_bio_complete", Transition::Complete),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;
    use crate::page::{PageEntry, PageLayout, entries};
    use fathom_core::Direction;

    /// The pages of `recorded.rs`: 19 writes and two reads on a disk of Linux 6.18.
    #[test]
    fn recorded_pages_give_the_time_of_each_request() {
        let texts = [
            include_str!("../tests/data/block_rq_issue"),
            include_str!("../tests/data/block_rq_requeue"),
            include_str!("../tests/data/block_rq_complete"),
        ];
        let layouts: Vec<_> = (REQUEST_EVENTS.iter().zip(texts))
            .map(|(&(event, what), text)| {
                let format = Format::parse(text).unwrap();
                SpanLayout {
                    request: RequestLayout::new(event, what, &format).unwrap(),
                    device: format.place("dev").unwrap(),
                }
            })
            .collect();
        let page_layout = PageLayout::parse(include_str!("../tests/data/header_page")).unwrap();
        let pages = [
            &include_bytes!("../tests/data/cpu0.page")[..],
            include_bytes!("../tests/data/cpu1.page"),
        ];
        let records = pages.iter().flat_map(|page| entries(page, page_layout));
        let records: Vec<_> = records
            .filter_map(|entry| match entry {
                PageEntry::Record { at_ns, bytes } => Some((at_ns, bytes)),
                PageEntry::Gap { .. } => None,
            })
            .collect();
        // Any device will do, but it must be the same for all.
        let device = records
            .iter()
            .find_map(|(_, bytes)| {
                let layout = layouts
                    .iter()
                    .find(|one| one.request.decode(bytes).is_some());
                layout?.device.number(bytes)
            })
            .unwrap();
        let disks = HashMap::from([(device, 0)]);
        let mut events: Vec<_> = records
            .iter()
            .filter_map(|&(at_ns, bytes)| {
                let decoded = layouts.iter().find_map(|one| one.decode(bytes, &disks));
                match decoded? {
                    Event::Request(_, event) => Some((at_ns, event)),
                    Event::Waking(_) => None,
                }
            })
            .collect();
        events.sort_by_key(|&(at_ns, _)| at_ns);
        let mut spans = Spans::default();
        for (at_ns, event) in events {
            spans.take(at_ns, event);
        }
        let (done, dropped) = spans.into_done();
        let count = |direction| {
            done.iter()
                .filter(|span| span.direction == direction)
                .count()
        };
        assert_eq!((count(Direction::Write), count(Direction::Read)), (19, 2));
        assert!(done.iter().all(|span| span.completed_ns > span.issued_ns));
        assert_eq!(dropped, 0);
        assert!(layouts.iter().all(|one| one.decode(&[], &disks).is_none()));
    }
}
