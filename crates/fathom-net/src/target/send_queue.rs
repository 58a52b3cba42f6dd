//! PDUs that wait to be sent on a connection.

use std::collections::VecDeque;
use std::io::IoSlice;

use super::flight::Flights;

/// Queue of PDUs in the order in which they are sent.
///
/// Headers and digests follow each other in one arena; data stay in the buffers of their requests.
/// A send gathers both:
///
/// ```text
///  arena   | header | digest | header | header | digest |
///               │        └─────┐  │        │       └──────┐
///  iovecs  [header][ data ][digest][header][header][ data ][digest]
///                   request 3                       request 0
/// ```
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    arena: Vec<u8>,
    /// Bytes at the start of the arena that belong to PDUs sent.
    arena_sent: usize,
    entries: VecDeque<Entry>,
    /// Bytes of the first PDUs that were sent.
    sent: usize,
}

/// One PDU.
#[derive(Clone, Copy, Debug)]
struct Entry {
    header_bytes: u16,
    digest_bytes: u8,
    source: Source,
    data_bytes: u32,
    /// Slot to release once the PDU is sent.
    releases: Option<u16>,
}

/// Source of a PDU's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The PDU has none.
    None,
    /// The payload of a request.
    Payload(u16),
    /// Zeros.
    Zeros,
}

impl SendQueue {
    /// Adds a PDU whose data, if any, are part of `header`.
    #[inline]
    pub(crate) fn push(&mut self, header: &[u8], releases: Option<u16>) {
        self.push_data(header, (Source::None, 0), None, releases);
    }

    /// Adds a PDU with data.
    #[inline]
    pub(crate) fn push_data(
        &mut self,
        header: &[u8],
        (source, data_bytes): (Source, u32),
        digest: Option<[u8; 4]>,
        releases: Option<u16>,
    ) {
        self.arena.extend_from_slice(header);
        if let Some(digest) = digest {
            self.arena.extend_from_slice(&digest);
        }
        self.entries.push_back(Entry {
            // Cannot truncate: headers with their padding and a copied header are below 300 bytes.
            header_bytes: u16::try_from(header.len()).unwrap_or(u16::MAX),
            digest_bytes: if digest.is_some() { 4 } else { 0 },
            source,
            data_bytes,
            releases,
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Fills `slices` with the bytes to send next; returns how many there are, and their length.
    #[inline]
    pub(crate) fn gather<'a>(
        &'a self,
        flights: &'a Flights,
        zeros: &'a [u8],
        slices: &mut [IoSlice<'a>],
    ) -> (usize, usize) {
        let mut gather = Gather {
            slices,
            count: 0,
            length: 0,
            skip: self.sent,
        };
        let mut at = self.arena_sent;
        for entry in &self.entries {
            // Room for a header, data (zeros may take several) and a digest.
            if gather.count + 3 > gather.slices.len() || gather.length >= SEND_BYTES_MAX {
                break;
            }
            let header_end = at + usize::from(entry.header_bytes);
            gather.add(&self.arena[at..header_end]);
            at = header_end + usize::from(entry.digest_bytes);
            let data_bytes = entry.data_bytes as usize;
            match entry.source {
                Source::None => {}
                Source::Payload(slot) => {
                    gather.add(&flights.payload(slot)[..data_bytes]);
                }
                Source::Zeros => gather.add(&zeros[..data_bytes]),
            }
            gather.add(&self.arena[header_end..at]);
        }
        (gather.count, gather.length)
    }

    /// Notes that `bytes` bytes were sent.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.sent += bytes;
    }

    /// Removes the next PDU that was sent whole; returns the slot that it releases.
    #[inline]
    pub(crate) fn pop_sent(&mut self) -> Option<Option<u16>> {
        let entry = self.entries.front()?;
        let in_arena = usize::from(entry.header_bytes) + usize::from(entry.digest_bytes);
        let length = in_arena + entry.data_bytes as usize;
        if self.sent < length {
            return None;
        }
        let releases = entry.releases;
        self.sent -= length;
        self.arena_sent += in_arena;
        self.entries.pop_front();
        if self.entries.is_empty() {
            self.arena.clear();
            self.arena_sent = 0;
        } else if self.arena_sent >= ARENA_SENT_MAX {
            self.arena.drain(..self.arena_sent);
            self.arena_sent = 0;
        }
        Some(releases)
    }
}

/// Slices under construction.
struct Gather<'s, 'a> {
    slices: &'s mut [IoSlice<'a>],
    count: usize,
    length: usize,
    /// Bytes to leave out: they were sent.
    skip: usize,
}

impl<'a> Gather<'_, 'a> {
    #[inline]
    fn add(&mut self, bytes: &'a [u8]) {
        if bytes.len() <= self.skip {
            self.skip -= bytes.len();
            return;
        }
        let bytes = &bytes[self.skip..];
        self.skip = 0;
        self.slices[self.count] = IoSlice::new(bytes);
        self.count += 1;
        self.length += bytes.len();
    }
}

/// Slices of one send: some 40 responses with data.
pub(crate) const SLICES: usize = 128;
/// Bytes of one send, above which other connections have their turn.
const SEND_BYTES_MAX: usize = 1 << 20;
/// Sent bytes at the start of the arena above which the rest moves up: seldom, and little to move.
const ARENA_SENT_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `part` bytes at a time and returns all, and the slots in the order of their release.
    fn drain(queue: &mut SendQueue, flights: &Flights, part: usize) -> (Vec<u8>, Vec<u16>) {
        let (mut bytes, mut released) = (Vec::new(), Vec::new());
        while !queue.is_empty() {
            let mut slices = [IoSlice::new(&[]); 8];
            let (count, length) = queue.gather(flights, &[0; 64], &mut slices);
            let all: Vec<u8> = slices[..count]
                .iter()
                .flat_map(|slice| slice.to_vec())
                .collect();
            assert_eq!(all.len(), length);
            let sent = part.min(length);
            bytes.extend_from_slice(&all[..sent]);
            queue.advance(sent);
            while let Some(slot) = queue.pop_sent() {
                released.extend(slot);
            }
        }
        (bytes, released)
    }

    #[test]
    fn sends_may_stop_anywhere() {
        for part in [1, 2, 3, 5, 7, 11, 100] {
            let mut flights = Flights::default();
            flights.set_page(2, vec![7, 8, 9]);
            let mut queue = SendQueue::default();
            queue.push(&[1, 2], None);
            queue.push_data(&[3], (Source::Payload(2), 3), Some([4; 4]), Some(2));
            queue.push_data(&[5], (Source::Zeros, 2), None, Some(1));
            queue.push(&[6], Some(0));
            let (bytes, released) = drain(&mut queue, &flights, part);
            assert_eq!(bytes, [1, 2, 3, 7, 8, 9, 4, 4, 4, 4, 5, 0, 0, 6]);
            assert_eq!(released, [2, 1, 0]);
        }
    }
}
