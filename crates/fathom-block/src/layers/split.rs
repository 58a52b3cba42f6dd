//! Split: parts of one device as devices of their own, as partitions are.
//!
//! ```text
//!  part 0   part 1   part 2       each with tags from 0 on, and offsets from 0 on
//!     └────────┼────────┘
//!           device                one queue, one head, one cache
//! ```

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::Arc;

use fathom_core::{BlockDevice, Command, CommandData, Finished, Geometry, OpKind, Tick};

use super::Layer;
use crate::Parameters;

/// Splits a device into parts, given by their ranges of bytes.
///
/// The parts share the device: what one reads from a modelled disk moves the head for all. Each
/// has an equal share of the commands that the device takes at once.
///
/// # Panics
/// If a part is beyond the end of the device, or the device takes fewer commands than there are
/// parts.
pub fn split<D: BlockDevice>(device: D, parts: &[Range<u64>]) -> Vec<Part<D>> {
    let geometry = device.geometry();
    let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
    let in_flight_max = geometry.in_flight_max / count.max(1);
    assert!(in_flight_max > 0, "each part has commands in flight");
    let shared = Rc::new(RefCell::new(SharedDevice {
        device,
        owners: Vec::new(),
        free: Vec::new(),
        ready: parts.iter().map(|_| VecDeque::new()).collect(),
    }));
    let part = |(number, range): (usize, &Range<u64>)| {
        let lies_within = range.start <= range.end && range.end <= geometry.bytes;
        assert!(lies_within, "{range:?} of {} bytes", geometry.bytes);
        Part {
            shared: Rc::clone(&shared),
            number,
            from: range.start,
            geometry: Geometry {
                bytes: range.end - range.start,
                in_flight_max,
                ..geometry
            },
        }
    };
    parts.iter().enumerate().map(part).collect()
}

/// Part of a device.
///
/// A command costs a queue operation and a table entry more than the device's own.
#[derive(Debug)]
pub struct Part<D> {
    shared: Rc<RefCell<SharedDevice<D>>>,
    number: usize,
    from: u64,
    geometry: Geometry,
}

/// Device that parts share.
#[derive(Debug)]
struct SharedDevice<D> {
    device: D,
    /// Part and its own tag of the command with this tag of the device.
    owners: Vec<(usize, u32)>,
    free: Vec<u32>,
    /// Completions of each part that another one has collected.
    ready: Vec<VecDeque<Finished>>,
}

impl<D: BlockDevice> BlockDevice for Part<D> {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Starts the command.
    ///
    /// # Panics
    /// If it goes beyond the end of the part: it would touch the data of another one.
    fn start(&mut self, command: &Command, data: &mut CommandData, now: Tick) {
        assert!(
            command.end() <= self.geometry.bytes,
            "{command:?} in a part of {} bytes",
            self.geometry.bytes
        );
        let shared = &mut *self.shared.borrow_mut();
        let tag = shared.free.pop().unwrap_or_else(|| {
            shared.owners.push((0, 0));
            u32::try_from(shared.owners.len() - 1).unwrap_or(u32::MAX)
        });
        shared.owners[tag as usize] = (self.number, command.tag);
        let offset = match command.kind {
            OpKind::Data(_) => self.from + command.offset,
            OpKind::Sync(_) => command.offset,
        };
        let command = Command {
            tag,
            offset,
            ..*command
        };
        shared.device.start(&command, data, now);
    }

    fn next(&self) -> Option<Tick> {
        let shared = self.shared.borrow();
        let ready = shared.ready[self.number].front();
        let ready = ready.map(|finished| finished.at);
        ready.into_iter().chain(shared.device.next()).min()
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        let shared = &mut *self.shared.borrow_mut();
        if let Some(finished) = shared.ready[self.number].pop_front() {
            return Some(finished);
        }
        while let Some(mut finished) = shared.device.completed(now) {
            shared.free.push(finished.tag);
            let (part, tag) = shared.owners[finished.tag as usize];
            finished.tag = tag;
            if part == self.number {
                return Some(finished);
            }
            shared.ready[part].push_back(finished);
        }
        None
    }

    fn descriptors(&self, add: &mut dyn FnMut(BorrowedFd<'_>)) {
        self.shared.borrow().device.descriptors(add);
    }
}

/// One part of a device that no other part shares.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OnePart(Range<u64>);

impl Layer for OnePart {
    fn over(&self, device: Box<dyn BlockDevice>, _opened: Tick) -> Box<dyn BlockDevice> {
        let mut parts = split(device, std::slice::from_ref(&self.0));
        Box::new(parts.remove(0))
    }

    fn bytes(&self, _below: u64) -> u64 {
        self.0.end - self.0.start
    }
}

pub(super) fn read(fields: &dyn Parameters, below: u64) -> Option<Arc<dyn Layer>> {
    let from = fields.gib("from_gib", 0.0, Some(0.0));
    let size = fields.gib("size_gib", 0.001, None);
    if from.saturating_add(size) > below {
        let why = format!("the part ends beyond the device below, which has {below} bytes");
        fields.refuse("size_gib", &why, "lower `size_gib` or `from_gib`");
        return None;
    }
    Some(Arc::new(OnePart(from..from + size)))
}
