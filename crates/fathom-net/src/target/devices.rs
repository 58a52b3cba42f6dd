//! Devices of one thread, and the commands that are in flight on them.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use fathom_core::{BlockDevice, Command, CommandData, Finished, Nanos, OpKind, Tick};

/// Devices of one thread, each with its tags.
#[derive(Debug)]
pub(crate) struct Devices {
    queues: Vec<DeviceQueue>,
    /// Devices to ask for completions: those with commands in flight, at least.
    busy: Vec<u32>,
    /// Place in `busy` of the device to ask next.
    turn: usize,
    /// Requests that wait for a tag, of any device.
    waiting: usize,
}

/// Device, the owners of its commands, and the commands that wait for one of its tags.
#[derive(Debug)]
struct DeviceQueue {
    device: Box<dyn BlockDevice>,
    in_flight_max: u32,
    /// Owner and start of each command, by tag.
    owners: Vec<(Owner, Tick)>,
    free: Vec<u32>,
    waiting: VecDeque<Owner>,
    is_busy: bool,
}

/// Request of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) connection: u32,
    pub(crate) slot: u16,
}

/// Command that has completed.
#[derive(Debug)]
pub(crate) struct Reaped {
    pub(crate) owner: Owner,
    pub(crate) device: u32,
    /// Time that the device took.
    pub(crate) took: Nanos,
    pub(crate) finished: Finished,
}

/// Command without its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceOp {
    pub(crate) kind: OpKind,
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

impl Devices {
    pub(crate) fn new(devices: Vec<Box<dyn BlockDevice>>) -> Self {
        let queue = |device: Box<dyn BlockDevice>| DeviceQueue {
            in_flight_max: device.geometry().in_flight_max,
            device,
            owners: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            is_busy: false,
        };
        Self {
            busy: Vec::with_capacity(devices.len()),
            turn: 0,
            waiting: 0,
            queues: devices.into_iter().map(queue).collect(),
        }
    }

    /// Starts a command. Returns `false` if the device has as many as it takes: `owner` is returned
    /// by [`retry`](Self::retry) when there is room.
    #[inline]
    pub(crate) fn start(
        &mut self,
        device: u32,
        owner: Owner,
        op: &DeviceOp,
        data: &mut CommandData,
        now: Tick,
    ) -> bool {
        let queue = &mut self.queues[device as usize];
        let Some(tag) = queue.take(owner, now) else {
            queue.waiting.push_back(owner);
            self.waiting += 1;
            return false;
        };
        let command = Command {
            tag,
            kind: op.kind,
            offset: op.offset,
            length: op.length,
        };
        queue.device.start(&command, data, now);
        if !queue.is_busy {
            queue.is_busy = true;
            self.busy.push(device);
        }
        true
    }

    /// Asks all devices for completions: another thread has something for one of them, such as a
    /// command for a device whose home is here.
    pub(crate) fn rouse(&mut self) {
        for (device, queue) in (0_u32..).zip(&mut self.queues) {
            if !queue.is_busy {
                queue.is_busy = true;
                self.busy.push(device);
            }
        }
    }

    /// Returns the next command that has completed, of the same device as the last one for as long
    /// as that has some; `None` after all devices were asked.
    #[inline]
    pub(crate) fn completed(&mut self, now: Tick) -> Option<Reaped> {
        for _ in 0..self.busy.len() {
            if self.turn >= self.busy.len() {
                self.turn = 0;
            }
            let device = self.busy[self.turn];
            let queue = &mut self.queues[device as usize];
            if let Some(finished) = queue.device.completed(now) {
                queue.free.push(finished.tag);
                let (owner, started) = queue.owners[finished.tag as usize];
                return Some(Reaped {
                    owner,
                    device,
                    took: finished.at.since(started),
                    finished,
                });
            }
            // A device may serve other threads, too.
            if queue.free.len() == queue.owners.len() && queue.device.next().is_none() {
                queue.is_busy = false;
                // In order: a swap could let a device behind pass for one that was asked.
                self.busy.remove(self.turn);
            } else {
                self.turn += 1;
            }
        }
        None
    }

    /// Gives the turn to the next device: one whose commands complete at once, each followed by
    /// another, would keep it.
    pub(crate) const fn pass_turn(&mut self) {
        self.turn += 1;
    }

    /// Returns a request that waited for a tag, of a device that has one now.
    pub(crate) fn retry(&mut self) -> Option<Owner> {
        if self.waiting == 0 {
            return None;
        }
        let mut queues = self.queues.iter_mut();
        let owner = queues.find_map(|queue| match queue.has_room() {
            true => queue.waiting.pop_front(),
            false => None,
        })?;
        self.waiting -= 1;
        Some(owner)
    }

    /// Forgets the requests of a connection that wait for a tag, and returns their slots.
    pub(crate) fn withdraw(&mut self, connection: u32) -> Vec<u16> {
        let mut slots = Vec::new();
        if self.waiting == 0 {
            return slots;
        }
        for queue in &mut self.queues {
            queue.waiting.retain(|owner| {
                let stays = owner.connection != connection;
                slots.extend((!stays).then_some(owner.slot));
                stays
            });
        }
        self.waiting -= slots.len();
        slots
    }

    /// Returns the latest time of the next call of `completed`.
    pub(crate) fn next(&self) -> Option<Tick> {
        let busy = self.busy.iter();
        busy.filter_map(|&device| self.queues[device as usize].device.next())
            .min()
    }

    /// Passes `add` the descriptors of the devices.
    pub(crate) fn descriptors(&self, add: &mut dyn FnMut(BorrowedFd<'_>)) {
        for queue in &self.queues {
            queue.device.descriptors(add);
        }
    }
}

impl DeviceQueue {
    #[inline]
    fn take(&mut self, owner: Owner, now: Tick) -> Option<u32> {
        if let Some(tag) = self.free.pop() {
            self.owners[tag as usize] = (owner, now);
            return Some(tag);
        }
        let tag = u32::try_from(self.owners.len()).ok()?;
        if tag >= self.in_flight_max {
            return None;
        }
        self.owners.push((owner, now));
        // Room for all, so that completions do not allocate.
        self.free.reserve(self.owners.len());
        Some(tag)
    }

    fn has_room(&self) -> bool {
        !self.free.is_empty() || (self.owners.len() as u64) < u64::from(self.in_flight_max)
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::{Direction, Geometry};

    use super::*;

    /// Device whose commands complete at once.
    #[derive(Debug, Default)]
    struct Quick(VecDeque<u32>);

    impl BlockDevice for Quick {
        fn geometry(&self) -> Geometry {
            Geometry::UNBOUNDED
        }

        fn start(&mut self, command: &Command, _data: &mut CommandData, _now: Tick) {
            self.0.push_back(command.tag);
        }

        fn next(&self) -> Option<Tick> {
            (!self.0.is_empty()).then_some(Tick::ZERO)
        }

        fn completed(&mut self, now: Tick) -> Option<Finished> {
            Some(Finished::new(self.0.pop_front()?, now, 0))
        }
    }

    fn devices(count: u32) -> Devices {
        let quick = |_| -> Box<dyn BlockDevice> { Box::new(Quick::default()) };
        Devices::new((0..count).map(quick).collect())
    }

    fn start(devices: &mut Devices, device: u32) {
        let owner = Owner {
            connection: device,
            slot: 0,
        };
        let op = DeviceOp {
            kind: OpKind::Data(Direction::Trim),
            offset: 0,
            length: 512,
        };
        assert!(devices.start(device, owner, &op, &mut None, Tick::ZERO));
    }

    /// Returns the device of the next completion.
    fn next(devices: &mut Devices) -> Option<u32> {
        Some(devices.completed(Tick::ZERO)?.device)
    }

    #[test]
    fn a_device_keeps_the_turn_until_it_is_passed() {
        let mut devices = devices(3);
        for device in [0, 1, 2, 1, 1, 1] {
            start(&mut devices, device);
        }
        assert_eq!(next(&mut devices), Some(0));
        // The first of them has no more.
        assert_eq!(next(&mut devices), Some(1));
        start(&mut devices, 1);
        assert_eq!(next(&mut devices), Some(1));
        devices.pass_turn();
        assert_eq!(next(&mut devices), Some(2));
        assert_eq!((0..3).map(|_| next(&mut devices)).last(), Some(Some(1)));
        assert_eq!(next(&mut devices), None);
        assert!(devices.busy.is_empty());
    }

    /// Wherever the turn is, a search asks each device once, although it drops idle ones meanwhile.
    #[test]
    fn no_device_is_missed() {
        for busy in 0_u32..16 {
            for turn in 0..4 {
                let mut devices = devices(4);
                devices.rouse();
                devices.turn = turn;
                let started: Vec<u32> = (0..4).filter(|device| busy >> device & 1 == 1).collect();
                started
                    .iter()
                    .for_each(|&device| start(&mut devices, device));
                let mut found: Vec<u32> = std::iter::from_fn(|| next(&mut devices)).collect();
                found.sort_unstable();
                assert_eq!(found, started, "{busy:04b} from {turn}");
            }
        }
    }
}
