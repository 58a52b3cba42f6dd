//! Device without data.

use std::collections::VecDeque;

use fathom_core::{BlockDevice, Command, CommandData, Finished, Geometry, Tick};

/// Device that completes each command at once and keeps nothing.
///
/// It leaves buffers alone: the driver decides what a read returns.
#[derive(Debug)]
pub struct Null {
    geometry: Geometry,
    done: VecDeque<Finished>,
}

impl Null {
    /// Creates a device of `bytes` in blocks of `block_bytes`.
    #[must_use]
    pub const fn new(bytes: u64, block_bytes: u32) -> Self {
        Self {
            geometry: Geometry {
                bytes,
                block_bytes,
                ..Geometry::UNBOUNDED
            },
            done: VecDeque::new(),
        }
    }
}

impl BlockDevice for Null {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn start(&mut self, command: &Command, _data: &mut CommandData, now: Tick) {
        let finished = Finished::new(command.tag, now, command.whole());
        self.done.push_back(finished);
    }

    fn next(&self) -> Option<Tick> {
        self.done.front().map(|finished| finished.at)
    }

    fn completed(&mut self, _now: Tick) -> Option<Finished> {
        self.done.pop_front()
    }
}
