//! Device in memory.

use std::collections::VecDeque;

use fathom_core::{BlockDevice, Command, CommandData, Direction, Finished, Geometry, OpKind, Tick};

use crate::SparseBytes;

/// Device whose data are in memory, sparse: unwritten bytes are zero and take none.
///
/// Data are copied between buffers and memory in the call, and a command completes at once. The
/// data end with the device.
#[derive(Debug)]
pub struct Memory {
    content: SparseBytes,
    geometry: Geometry,
    done: VecDeque<Finished>,
}

impl Memory {
    /// Creates a device of zeros.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self {
            content: SparseBytes::default(),
            geometry: Geometry {
                bytes,
                moves_data: true,
                ..Geometry::UNBOUNDED
            },
            done: VecDeque::new(),
        }
    }
}

impl BlockDevice for Memory {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn start(&mut self, command: &Command, data: &mut CommandData, now: Tick) {
        let length = command.length as usize;
        match (command.kind, data) {
            (OpKind::Data(Direction::Read), Some(data)) => {
                let into = &mut data.bytes_mut()[..length];
                self.content.read(command.offset, into);
            }
            (OpKind::Data(Direction::Write), Some(data)) => {
                self.content.write(command.offset, &data.bytes()[..length]);
            }
            (OpKind::Data(Direction::Trim), _) => self.content.discard(command.offset, length),
            // A command without a buffer moves no data, and everything is durable already.
            (OpKind::Data(_), None) | (OpKind::Sync(_), _) => {}
        }
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
