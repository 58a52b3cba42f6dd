//! Zones: ops stay in one until enough was moved there, then go on to the next.
//!
//! What is counted is bytes moved, in whichever direction; so a zone whose range is shorter than
//! its size is gone through several times, and one whose range is longer is left before its end.

use std::ops::Range;

use crate::config::Zones;

use super::general::File;

/// Where each file is in its zones.
#[derive(Debug)]
pub(super) struct Strided {
    rule: Zones,
    files: Vec<Zone>,
}

/// A file's zone.
#[derive(Clone, Copy, Debug)]
struct Zone {
    /// Its first byte, from the range's start.
    start: u64,
    /// Bytes moved in it.
    moved: u64,
}

impl Strided {
    pub(super) fn new(rule: Zones, files: usize) -> Self {
        let first = Zone { start: 0, moved: 0 };
        Self {
            rule,
            files: vec![first; files],
        }
    }

    pub(super) fn restart(&mut self) {
        self.files.fill(Zone { start: 0, moved: 0 });
    }

    /// Goes to the next zone of a range of `length` bytes if enough was moved in this one; says
    /// whether it did.
    pub(super) fn move_on(&mut self, file: usize, length: u64) -> bool {
        let zone = &mut self.files[file];
        if zone.moved < self.rule.size {
            return false;
        }
        zone.moved = 0;
        let next = zone.start.saturating_add(self.rule.range);
        let next = next.saturating_add(self.rule.skip);
        zone.start = if next < length { next } else { 0 };
        true
    }

    /// The first byte of the file's zone, from the range's start.
    pub(super) fn start(&self, file: usize) -> u64 {
        self.files[file].start
    }

    /// Where in the file an op of its zone may begin, were the file long enough.
    pub(super) fn zone(&self, index: usize, file: &File) -> Range<u64> {
        let start = file.start + self.files[index].start;
        start..start.saturating_add(self.rule.range)
    }

    /// An op of `bytes` was placed in the file's zone.
    pub(super) fn moved(&mut self, file: usize, bytes: u32) {
        let zone = &mut self.files[file];
        zone.moved = zone.moved.saturating_add(u64::from(bytes));
    }
}
