//! Facts about a log that its replay must know before it begins.

use fathom_core::{Direction, Nanos, PerDirection};

use crate::event::{Action, Event};

/// Summary of a log's events: which files, up to where, which directions and sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Files that are opened, by number; the others are empty.
    pub files: Vec<FileSurvey>,
    /// Number of ops.
    pub ops: PerDirection<u64>,
    /// Bytes of all ops.
    pub bytes: PerDirection<u64>,
    /// Smallest and largest op.
    pub sizes: PerDirection<Option<(u32, u32)>>,
    /// Number of syncs.
    pub syncs: u64,
    /// Time of the last event.
    pub duration: Nanos,
    /// Most files that are open at a time.
    pub open_max: u32,
    open: u32,
    /// Offsets and lengths of all reads and writes, combined by `|`.
    places: u64,
}

/// Summary of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSurvey {
    /// First byte after the last op.
    pub end: u64,
    /// Directions of its ops.
    pub used: PerDirection<bool>,
    /// The log opens it.
    pub opened: bool,
}

impl Survey {
    /// Adds an event.
    pub fn add(&mut self, event: &Event) {
        let index = event.file.index();
        if self.files.len() <= index {
            self.files.resize(index + 1, FileSurvey::default());
        }
        let file = &mut self.files[index];
        self.duration = self.duration.max(event.time);
        match event.action {
            Action::Open => {
                file.opened = true;
                self.open = self.open.saturating_add(1);
                self.open_max = self.open_max.max(self.open);
            }
            Action::Close => self.open = self.open.saturating_sub(1),
            Action::Sync(_) => self.syncs += 1,
            Action::Data {
                direction,
                offset,
                length,
            } => {
                // Cannot overflow: the decoder has checked the end.
                file.end = file.end.max(offset + u64::from(length));
                file.used[direction] = true;
                self.ops[direction] += 1;
                let bytes = &mut self.bytes[direction];
                *bytes = bytes.saturating_add(length.into());
                let (min, max) = self.sizes[direction].unwrap_or((length, length));
                self.sizes[direction] = Some((min.min(length), max.max(length)));
                if direction != Direction::Trim {
                    self.places |= offset | u64::from(length);
                }
            }
        }
    }

    /// Returns the directions of the ops.
    #[must_use]
    pub fn used(&self) -> PerDirection<bool> {
        self.ops.map(|ops| ops > 0)
    }

    /// Returns true if there is nothing to replay.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.syncs == 0 && self.ops.iter().all(|(_, &ops)| ops == 0)
    }

    /// Returns true if all reads and writes start and end at multiples of `block` bytes.
    #[must_use]
    pub const fn is_aligned(&self, block: u64) -> bool {
        match block.checked_sub(1) {
            Some(mask) => self.places & mask == 0,
            None => true,
        }
    }
}
