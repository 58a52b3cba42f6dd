//! Sparse contents of files and devices, held in memory.

use std::collections::HashMap;

/// Contents of a file or device, sparse: unwritten bytes are zero and take no memory.
#[derive(Clone, Debug, Default)]
pub struct SparseBytes {
    pages: HashMap<u64, Box<[u8; PAGE]>>,
}

impl SparseBytes {
    /// Creates contents that begin with `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut content = Self::default();
        content.write(0, bytes);
        content
    }

    /// Reads at `offset` into `into`.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        for (page, within, part) in Spans::of(offset, into.len()) {
            let into = &mut into[part.clone()];
            match self.pages.get(&page) {
                Some(held) => into.copy_from_slice(&held[within..within + into.len()]),
                None => into.fill(0),
            }
        }
    }

    /// Writes `bytes` at `offset`.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (page, within, part) in Spans::of(offset, bytes.len()) {
            let bytes = &bytes[part];
            let held = self
                .pages
                .entry(page)
                .or_insert_with(|| Box::new([0; PAGE]));
            held[within..within + bytes.len()].copy_from_slice(bytes);
        }
    }

    /// Sets `length` bytes at `offset` to zero.
    pub fn discard(&mut self, offset: u64, length: usize) {
        for (page, within, part) in Spans::of(offset, length) {
            if part.len() == PAGE {
                self.pages.remove(&page);
            } else if let Some(held) = self.pages.get_mut(&page) {
                held[within..within + part.len()].fill(0);
            }
        }
    }
}

/// Iterator over the pieces of a range within one page each: page, offset in it, range.
struct Spans {
    offset: u64,
    done: usize,
    length: usize,
}

impl Spans {
    const fn of(offset: u64, length: usize) -> Self {
        Self {
            offset,
            done: 0,
            length,
        }
    }
}

impl Iterator for Spans {
    type Item = (u64, usize, std::ops::Range<usize>);

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a remainder below the size of a page"
    )]
    fn next(&mut self) -> Option<Self::Item> {
        if self.done == self.length {
            return None;
        }
        let at = self.offset + self.done as u64;
        let within = (at % PAGE as u64) as usize;
        let end = self.length.min(self.done + PAGE - within);
        let part = self.done..end;
        self.done = end;
        Some((at / PAGE as u64, within, part))
    }
}

/// Granularity of allocation.
const PAGE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_across_pages_return_written_bytes_and_zeros() {
        let mut content = SparseBytes::of(&[1; 10]);
        content.write(4090, &[2; 5000]);
        let mut seen = vec![9; 10_000];
        content.read(0, &mut seen);
        let mut want = vec![0; 10_000];
        want[..10].fill(1);
        want[4090..9090].fill(2);
        assert_eq!(seen, want);

        content.discard(4000, 5000);
        content.read(0, &mut seen);
        want[4000..9000].fill(0);
        assert_eq!(seen, want);
        assert_eq!(content.pages.len(), 2, "the page in the middle is let go");
    }
}
