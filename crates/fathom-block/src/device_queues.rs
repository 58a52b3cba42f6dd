//! Waiting requests of several devices, served in rotation.

use std::collections::VecDeque;

use crate::wanted::Wanted;

/// Queues of waiting requests, one per device, in order of arrival each.
///
/// A push and a pop cost two queue operations; devices without requests cost nothing.
#[derive(Debug)]
pub(crate) struct DeviceQueues {
    queues: Box<[VecDeque<Wanted>]>,
    /// Devices with requests, the next one in rotation first.
    turn: VecDeque<u32>,
    len: usize,
}

impl DeviceQueues {
    pub(crate) fn new(devices: u32) -> Self {
        Self {
            queues: (0..devices).map(|_| VecDeque::new()).collect(),
            turn: VecDeque::new(),
            len: 0,
        }
    }

    pub(crate) fn push(&mut self, wanted: Wanted) {
        let queue = &mut self.queues[wanted.device as usize];
        if queue.is_empty() {
            self.turn.push_back(wanted.device);
        }
        queue.push_back(wanted);
        self.len += 1;
    }

    /// Takes the oldest request of the first device in rotation of which `may_pass` is true. A
    /// device that is passed over keeps its place.
    pub(crate) fn pop(&mut self, mut may_pass: impl FnMut(&Wanted) -> bool) -> Option<Wanted> {
        let devices = self.turn.iter();
        let place = devices.enumerate().find_map(|(place, &device)| {
            let first = self.queues[device as usize].front()?;
            may_pass(first).then_some(place)
        })?;
        let device = self.turn.remove(place)?;
        let queue = &mut self.queues[device as usize];
        let wanted = queue.pop_front()?;
        if !queue.is_empty() {
            self.turn.push_back(device);
        }
        self.len -= 1;
        Some(wanted)
    }

    /// Returns the oldest request of the first device in rotation.
    #[inline]
    pub(crate) fn first(&self) -> Option<&Wanted> {
        let device = *self.turn.front()?;
        self.queues[device as usize].front()
    }

    /// Takes all requests, device by device.
    pub(crate) fn take_all(&mut self) -> Vec<Wanted> {
        let take = |device| self.queues[device as usize].drain(..).collect::<Vec<_>>();
        let all = self.turn.drain(..).flat_map(take).collect();
        self.len = 0;
        all
    }

    /// Takes a request out, wherever it stands.
    pub(crate) fn withdraw(&mut self, id: u64) -> Option<Wanted> {
        let place = self.turn.iter().enumerate().find_map(|(place, &device)| {
            let mut queue = self.queues[device as usize].iter();
            let within = queue.position(|wanted| wanted.id == id)?;
            Some((place, device, within))
        });
        let (place, device, within) = place?;
        let queue = &mut self.queues[device as usize];
        let wanted = queue.remove(within)?;
        if queue.is_empty() {
            self.turn.remove(place);
        }
        self.len -= 1;
        Some(wanted)
    }

    /// Returns the number of requests of all devices.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AdmissionClass;

    fn push(queues: &mut DeviceQueues, requests: &[(u32, u64)]) {
        for &(device, id) in requests {
            queues.push(Wanted {
                id,
                device,
                bytes: 1,
                class: AdmissionClass::Paced,
            });
        }
    }

    fn drain(queues: &mut DeviceQueues, may_pass: impl Fn(u32) -> bool) -> Vec<u64> {
        let pop = || queues.pop(|wanted| may_pass(wanted.device));
        std::iter::from_fn(pop).map(|wanted| wanted.id).collect()
    }

    #[test]
    fn devices_take_turns() {
        let mut queues = DeviceQueues::new(3);
        push(
            &mut queues,
            &[(2, 1), (2, 2), (2, 3), (0, 4), (0, 5), (1, 6)],
        );
        assert_eq!(drain(&mut queues, |_| true), [1, 4, 6, 2, 5, 3]);
        assert_eq!(queues.len(), 0);
    }

    #[test]
    fn a_device_that_is_held_back_keeps_its_place() {
        let mut queues = DeviceQueues::new(2);
        push(&mut queues, &[(0, 1), (0, 2), (1, 3), (1, 4)]);
        assert_eq!(drain(&mut queues, |device| device == 1), [3, 4]);
        push(&mut queues, &[(1, 5)]);
        assert_eq!(drain(&mut queues, |_| true), [1, 5, 2]);
    }

    #[test]
    fn withdrawn_requests_are_gone() {
        let mut queues = DeviceQueues::new(2);
        push(&mut queues, &[(0, 1), (1, 2), (1, 3)]);
        queues.withdraw(1);
        queues.withdraw(3);
        queues.withdraw(9);
        assert_eq!(queues.len(), 1);
        assert_eq!(drain(&mut queues, |_| true), [2]);
    }
}
