//! Decoder of the kernel's trace ring pages, as read from `trace_pipe_raw`.
//!
//! ```text
//! ┌───────────┬────────┬───────────────────────────────────────────┬────────┐
//! │ timestamp │ commit │ head, record · head, record · …           │ unused │
//! └───────────┴────────┴───────────────────────────────────────────┴────────┘
//!   of the page  bytes of records; two high bits: some were lost before them
//!
//! head, 32 bits: 5 of kind or length, 27 of ns since the entry before
//!    0       the record's length follows the head
//!    1…28    length of the record in words of 32 bits
//!    29      padding; its length follows the head
//!    30, 31  no record: the higher bits of the time follow the head
//! ```
//!
//! tracefs describes the layout itself, in `events/header_page` and `events/header_event`. The
//! decoder trusts none of it: a page may be cut short, and lengths are checked before use.

use crate::format::Format;

/// Offsets within a page, which depend on the kernel's word and page sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageLayout {
    commit: usize,
    commit_bytes: usize,
    records: usize,
    /// Size of a page.
    pub(crate) bytes: usize,
}

impl PageLayout {
    /// Parses `events/header_page`; `None` if the text is something else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        // The same lines as in an event's file, but without an id.
        let format = Format::parse(&format!("ID: 0\n{text}"))?;
        let commit = format.place("commit")?;
        let data = format.place("data")?;
        let layout = Self {
            commit: commit.offset(),
            commit_bytes: commit.length(),
            records: data.offset(),
            bytes: data.offset().checked_add(data.length())?,
        };
        let sane = layout.commit + layout.commit_bytes <= layout.records
            && matches!(layout.commit_bytes, 4 | 8)
            && layout.commit >= 8
            && layout.bytes <= PAGE_BYTES_MAX;
        sane.then_some(layout)
    }
}

/// Entry of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageEntry<'a> {
    /// Records before this time were lost because the ring was full.
    Gap { at_ns: u64 },
    /// A record and its time.
    Record { at_ns: u64, bytes: &'a [u8] },
}

/// Iterates over the entries of a page, in order. A truncated or broken page ends early.
pub(crate) fn entries(page: &[u8], layout: PageLayout) -> Entries<'_> {
    let at_ns = word64(page, 0).unwrap_or(0);
    let commit = match layout.commit_bytes {
        4 => word32(page, layout.commit).map(u64::from),
        _ => word64(page, layout.commit),
    };
    let commit = commit.unwrap_or(0);
    let length = usize::try_from(commit & COMMIT_LENGTH).unwrap_or(0);
    let end = layout.records.saturating_add(length).min(page.len());
    Entries {
        rest: page.get(layout.records..end).unwrap_or_default(),
        at_ns,
        page_at_ns: at_ns,
        gap: commit & COMMIT_MISSED != 0,
    }
}

/// Iterator of [`entries`].
#[derive(Debug)]
pub(crate) struct Entries<'a> {
    rest: &'a [u8],
    at_ns: u64,
    page_at_ns: u64,
    gap: bool,
}

impl<'a> Iterator for Entries<'a> {
    type Item = PageEntry<'a>;

    fn next(&mut self) -> Option<PageEntry<'a>> {
        if std::mem::take(&mut self.gap) {
            return Some(PageEntry::Gap { at_ns: self.at_ns });
        }
        loop {
            let head = word32(self.rest, 0)?;
            let (kind, passed) = parted(head);
            let behind = word32(self.rest, HEAD);
            match kind {
                // The rest of the page is unused.
                PADDING if passed == 0 => return None,
                PADDING => {
                    self.at_ns = self.at_ns.wrapping_add(passed.into());
                    self.skip(HEAD.checked_add(size(behind?)?)?)?;
                }
                TIME_EXTEND => {
                    let passed = u64::from(behind?) << TIME_BITS | u64::from(passed);
                    self.at_ns = self.at_ns.wrapping_add(passed);
                    self.skip(2 * HEAD)?;
                }
                TIME_STAMP => {
                    // The stamp lacks the highest bits, which are the page's.
                    let high = self.page_at_ns & !((1 << (TIME_BITS + 32)) - 1);
                    self.at_ns = high | u64::from(behind?) << TIME_BITS | u64::from(passed);
                    self.skip(2 * HEAD)?;
                }
                words => {
                    let (begin, length) = match words {
                        // The length includes its own word.
                        0 => (2 * HEAD, size(behind?)?.checked_sub(HEAD)?),
                        words => (HEAD, size(words)? * 4),
                    };
                    let end = begin.checked_add(length)?;
                    let bytes = self.rest.get(begin..end)?;
                    self.at_ns = self.at_ns.wrapping_add(passed.into());
                    self.skip(end)?;
                    return Some(PageEntry::Record {
                        at_ns: self.at_ns,
                        bytes,
                    });
                }
            }
        }
    }
}

impl Entries<'_> {
    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.rest = self.rest.get(bytes..)?;
        Some(())
    }
}

/// Splits a head into kind or length and the time since the entry before. These are C bit fields,
/// whose layout depends on the byte order.
const fn parted(head: u32) -> (u32, u32) {
    if cfg!(target_endian = "little") {
        (head & 0x1f, head >> 5)
    } else {
        (head >> TIME_BITS, head & ((1 << TIME_BITS) - 1))
    }
}

fn size(number: u32) -> Option<usize> {
    usize::try_from(number).ok()
}

fn word32(bytes: &[u8], offset: usize) -> Option<u32> {
    let word = bytes.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_ne_bytes(word.try_into().ok()?))
}

fn word64(bytes: &[u8], offset: usize) -> Option<u64> {
    let word = bytes.get(offset..offset.checked_add(8)?)?;
    Some(u64::from_ne_bytes(word.try_into().ok()?))
}

/// Size of a head, and of the word that may follow it.
const HEAD: usize = 4;
/// Time bits in a head.
const TIME_BITS: u32 = 27;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// Length bits of `commit`.
const COMMIT_LENGTH: u64 = (1 << 27) - 1;
/// Flag of `commit`: records were lost before this page.
const COMMIT_MISSED: u64 = 1 << 31;

/// Linux 6.8 and later allow ring pages of 2⁷ memory pages, which have up to 64 KiB.
const PAGE_BYTES_MAX: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// Layout of Linux 6.18 on x86-64.
    fn layout() -> PageLayout {
        PageLayout::parse(include_str!("../tests/data/header_page")).unwrap()
    }

    /// Builds a page at time 1000 with these words after its head.
    fn page(commit: u64, words: &[u32]) -> Vec<u8> {
        let mut page = [1000_u64, commit].map(u64::to_ne_bytes).concat();
        page.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        page
    }

    const fn head(kind: u32, passed: u32) -> u32 {
        if cfg!(target_endian = "little") {
            passed << 5 | kind
        } else {
            kind << TIME_BITS | passed
        }
    }

    #[track_caller]
    fn check(commit: u64, words: &[u32], want: &[(u64, usize)]) {
        let page = page(commit, words);
        let found = entries(&page, layout()).map(|entry| match entry {
            PageEntry::Gap { at_ns } => (at_ns, usize::MAX),
            PageEntry::Record { at_ns, bytes } => (at_ns, bytes.len()),
        });
        assert_eq!(found.collect::<Vec<_>>(), want, "{words:x?}");
    }

    #[test]
    fn the_layout_is_read_from_its_file() {
        let want = PageLayout {
            commit: 8,
            commit_bytes: 8,
            records: 16,
            bytes: 4096,
        };
        assert_eq!(layout(), want);
        assert_eq!(PageLayout::parse(""), None);
    }

    #[test]
    fn each_kind_of_entry_is_walked_over() {
        // Two words; then a record whose length follows its head, including itself.
        check(
            24,
            &[head(2, 5), 1, 2, head(0, 7), 8, 3],
            &[(1005, 8), (1012, 4)],
        );
        // Time alone: added, or set.
        let extended = 1000 + (3 << TIME_BITS) + 5;
        check(16, &[head(30, 5), 3, head(1, 0), 1], &[(extended, 4)]);
        check(16, &[head(31, 5), 3, head(1, 1), 1], &[(extended - 999, 4)]);
        // Padding, in between and up to the end.
        check(20, &[head(29, 2), 8, 0, head(1, 1), 1], &[(1003, 4)]);
        check(16, &[head(29, 0), 8, head(1, 1), 1], &[]);
    }

    #[test]
    fn what_was_lost_comes_first() {
        check(
            8 | COMMIT_MISSED,
            &[head(1, 2), 7],
            &[(1000, usize::MAX), (1002, 4)],
        );
    }

    #[test]
    fn a_page_that_is_cut_short_ends_early() {
        check(4000, &[head(1, 2), 7, head(5, 1), 7], &[(1002, 4)]);
        check(8, &[head(0, 2), 2], &[]);
        check(8, &[head(0, 2), u32::MAX], &[]);
        check(8, &[head(29, 2), u32::MAX], &[]);
        assert_eq!(entries(&[], layout()).count(), 0);
        assert_eq!(entries(&[0xff; 12], layout()).count(), 0);
        for length in 0..64 {
            // Any content: no panic, and the iterator ends.
            assert!(entries(&[0xff; 64][..length], layout()).count() < 64);
        }
    }
}
