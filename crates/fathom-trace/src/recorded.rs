//! Requests from recorded pages: what a trace does, without a kernel.

use fathom_record::{SeekRecord, TracedDirection};

use crate::device::{EVENTS, RequestLayout};
use crate::format::Format;
use crate::page::{PageEntry, PageLayout, entries};
use crate::requests::Requests;

/// Decodes pages that were read from `trace_pipe_raw` and follows their requests.
///
/// `header_page` is the text of tracefs's `events/header_page`; `formats` are the names of block
/// events and the texts of their `format` files. Events of other names are ignored. Returns `None`
/// if a text does not describe what a trace needs.
#[must_use]
pub fn recorded_requests(
    header_page: &str,
    formats: &[(&str, &str)],
    pages: &[&[u8]],
) -> Option<(SeekRecord, Vec<TracedDirection>)> {
    let page_layout = PageLayout::parse(header_page)?;
    let mut layouts = Vec::new();
    for &(name, text) in formats {
        if let Some(&(event, what)) = EVENTS.iter().find(|(event, _)| *event == name) {
            layouts.push(RequestLayout::new(event, what, &Format::parse(text)?).ok()?);
        }
    }
    let mut events = Vec::new();
    for entry in pages.iter().flat_map(|page| entries(page, page_layout)) {
        match entry {
            PageEntry::Gap { at_ns } => events.push((at_ns, None)),
            PageEntry::Record { at_ns, bytes } => {
                let event = layouts.iter().find_map(|layout| layout.decode(bytes));
                events.extend(event.map(|event| (at_ns, Some(event))));
            }
        }
    }
    // Each processor has pages of its own.
    events.sort_by_key(|&(at_ns, _)| at_ns);
    let mut requests = Requests::default();
    for (at_ns, event) in events {
        match event {
            Some(event) => requests.take(at_ns, event),
            None => requests.forget_pending(),
        }
    }
    Some((requests.seek_record(), requests.directions()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded on Linux 6.18 with mq-deadline: 16 sequential writes of which the first eight were
    /// submitted at once, then ten random writes and two random reads, two flushes among them.
    #[test]
    fn recorded_pages_are_followed_request_by_request() {
        let formats = [
            (
                "block_rq_insert",
                include_str!("../tests/data/block_rq_insert"),
            ),
            (
                "block_rq_issue",
                include_str!("../tests/data/block_rq_issue"),
            ),
            (
                "block_rq_requeue",
                include_str!("../tests/data/block_rq_requeue"),
            ),
            (
                "block_rq_complete",
                include_str!("../tests/data/block_rq_complete"),
            ),
            (
                "block_rq_merge",
                include_str!("../tests/data/block_rq_merge"),
            ),
            (
                "block_bio_backmerge",
                include_str!("../tests/data/block_bio_backmerge"),
            ),
            (
                "block_bio_frontmerge",
                include_str!("../tests/data/block_bio_frontmerge"),
            ),
        ];
        let pages = [
            &include_bytes!("../tests/data/cpu0.page")[..],
            include_bytes!("../tests/data/cpu1.page"),
        ];
        let header = include_str!("../tests/data/header_page");
        let (seeks, directions) = recorded_requests(header, &formats, &pages).unwrap();
        let counts = (seeks.dispatched, seeks.merged, seeks.sequential);
        assert_eq!(counts, (21, 7, 8));
        assert_eq!(seeks.distances.count.iter().sum::<u64>(), 20);
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

    #[test]
    fn a_text_that_describes_no_pages_is_refused() {
        assert!(recorded_requests("", &[], &[]).is_none());
        let header = include_str!("../tests/data/header_page");
        assert!(recorded_requests(header, &[("block_rq_issue", "ID: 1\n")], &[]).is_none());
        assert!(recorded_requests(header, &[("other", "")], &[]).is_some());
    }
}
