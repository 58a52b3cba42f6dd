//! Ops in the kernel, and completions not yet reaped: fixed tables without allocation per op.

use fathom_core::{Completion, Slot};

/// Table of the slots in flight, which detects duplicate and spurious completions.
///
/// The kernel's user data is slot plus generation. A generation is odd while its slot is in flight
/// and even otherwise, so a completion that comes twice, or for an op never submitted, does not
/// match and panics. An array was preferred to a set of handles: one load and one store per op.
#[derive(Debug)]
pub(crate) struct InFlight {
    generations: Box<[u32]>,
}

impl InFlight {
    pub(crate) fn new(slots: u32) -> Self {
        Self {
            generations: vec![0; slots as usize].into_boxed_slice(),
        }
    }

    /// Returns whether the slot is in flight.
    #[inline]
    pub(crate) fn contains(&self, slot: Slot) -> bool {
        self.generations[slot.index()] % 2 == 1
    }

    /// Marks the slot as in flight and returns the user data for the kernel.
    ///
    /// # Panics
    /// If the slot is in flight already.
    #[inline]
    pub(crate) fn begin(&mut self, slot: Slot) -> u64 {
        self.starter()(slot)
    }

    /// Marks several slots, as [`begin`](Self::begin) does one.
    #[inline]
    pub(crate) fn starter(&mut self) -> impl FnMut(Slot) -> u64 {
        let generations = &mut self.generations[..];
        move |slot| begin(generations, slot)
    }

    /// Takes the user data of a completion and returns its slot, which is free again.
    ///
    /// # Panics
    /// If no op in flight has this user data.
    #[inline]
    pub(crate) fn end(&mut self, user_data: u64) -> Slot {
        self.ender()(user_data)
    }

    /// Takes several, as [`end`](Self::end) does one.
    #[inline]
    pub(crate) fn ender(&mut self) -> impl FnMut(u64) -> Slot {
        let generations = &mut self.generations[..];
        move |user_data| end(generations, user_data)
    }
}

#[inline(always)]
fn begin(generations: &mut [u32], slot: Slot) -> u64 {
    let generation = &mut generations[slot.index()];
    assert!(
        generation.is_multiple_of(2),
        "slot {} is in flight",
        slot.get()
    );
    *generation = generation.wrapping_add(1);
    u64::from(*generation) << 32 | u64::from(slot.get())
}

#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the halves of the number are taken apart"
)]
fn end(generations: &mut [u32], user_data: u64) -> Slot {
    let (slot, generation) = (Slot::new(user_data as u32), (user_data >> 32) as u32);
    match generations.get_mut(slot.index()) {
        Some(known) if *known == generation && generation % 2 == 1 => {
            *known = known.wrapping_add(1);
            slot
        }
        _ => not_in_flight(user_data),
    }
}

/// Out of line, to keep the formatting out of the hot path.
#[cold]
fn not_in_flight(user_data: u64) -> ! {
    panic!("a completion for an op that is not in flight: {user_data:#x}");
}

/// Completions not yet reaped, oldest first, with capacity for one per slot.
#[derive(Debug)]
pub struct Ready {
    list: Vec<Completion>,
    /// Index of the first entry not yet reaped.
    next: usize,
}

impl Ready {
    /// Creates a queue with capacity for one completion per slot.
    #[must_use]
    pub fn new(slots: u32) -> Self {
        Self {
            list: Vec::with_capacity(slots as usize),
            next: 0,
        }
    }

    /// Returns the number of completions.
    #[must_use]
    #[inline]
    pub fn count(&self) -> usize {
        self.list.len() - self.next
    }

    /// Appends a completion; never allocates with at most one per slot.
    #[inline]
    pub fn push(&mut self, slot: Slot, result: i32) {
        if self.list.len() == self.list.capacity() {
            self.list.drain(..self.next);
            self.next = 0;
        }
        self.list.push(Completion { slot, result });
    }

    /// Moves as many as fit to `out` and returns their number.
    #[inline]
    pub fn take(&mut self, out: &mut [Completion]) -> usize {
        let ready = &self.list[self.next..];
        let count = ready.len().min(out.len());
        out[..count].copy_from_slice(&ready[..count]);
        self.next += count;
        if self.next == self.list.len() {
            self.list.clear();
            self.next = 0;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stay_has_its_own_number() {
        let mut flight = InFlight::new(2);
        let first = flight.begin(Slot::new(1));
        assert!(flight.contains(Slot::new(1)) && !flight.contains(Slot::new(0)));
        assert_eq!(flight.end(first), Slot::new(1));
        let second = flight.begin(Slot::new(1));
        assert_ne!(first, second);
        assert_eq!(flight.end(second), Slot::new(1));
        assert!(!flight.contains(Slot::new(1)));
    }

    #[test]
    #[should_panic(expected = "not in flight")]
    fn a_completion_that_comes_twice_is_found_out() {
        let mut flight = InFlight::new(1);
        let number = flight.begin(Slot::new(0));
        flight.end(number);
        flight.end(number);
    }

    #[test]
    #[should_panic(expected = "not in flight")]
    fn a_completion_of_no_slot_is_found_out() {
        InFlight::new(1).end(1 << 32 | 7);
    }

    #[test]
    #[should_panic(expected = "slot 0 is in flight")]
    fn a_slot_goes_out_once() {
        let mut flight = InFlight::new(1);
        flight.begin(Slot::new(0));
        flight.begin(Slot::new(0));
    }

    #[test]
    fn completions_come_out_in_order_and_in_the_room_there_is() {
        let mut ready = Ready::new(4);
        let mut out = [Completion::default(); 3];
        let (mut pushed, mut taken) = (0, 0);
        for round in 0..100 {
            while ready.count() < 4 {
                ready.push(Slot::new(pushed % 4), pushed.cast_signed());
                pushed += 1;
            }
            let count = ready.take(&mut out[..1 + round % 3]);
            for completion in &out[..count] {
                assert_eq!(completion.result, taken);
                taken += 1;
            }
        }
        assert!(ready.list.capacity() < 8, "it grew");
    }
}
