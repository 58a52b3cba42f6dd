//! Zones: ops stay in a zone until enough bytes were moved there, then continue in the next.
//!
//! Bytes of all directions count; so a zone whose range is shorter than its size is repeated, and
//! one whose range is longer is left before its end.

use std::ops::Range;

use crate::config::Zones;

use super::general::File;

/// Position of each file in its zones.
#[derive(Debug)]
pub(super) struct Strided {
    rule: Zones,
    files: Vec<Zone>,
}

/// Current zone of a file.
#[derive(Clone, Copy, Debug)]
struct Zone {
    /// Offset of its start in the range.
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

    /// Moves to the next zone of a range of `length` bytes if enough was moved in this one; returns
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

    /// Returns the offset of the file's zone in the range.
    pub(super) fn start(&self, file: usize) -> u64 {
        self.files[file].start
    }

    /// Returns the file offsets at which ops of its zone may start, in a file long enough.
    pub(super) fn zone(&self, index: usize, file: &File) -> Range<u64> {
        let start = file.start + self.files[index].start;
        start..start.saturating_add(self.rule.range)
    }

    /// Counts an op of `bytes` in the file's zone.
    pub(super) fn moved(&mut self, file: usize, bytes: u32) {
        let zone = &mut self.files[file];
        zone.moved = zone.moved.saturating_add(u64::from(bytes));
    }
}
