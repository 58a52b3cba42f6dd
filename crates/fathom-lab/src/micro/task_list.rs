//! Adding to a list that many threads add to: without a lock, under two locks, and crossbeam's.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crossbeam_queue::SegQueue;
use fathom_core::{CompletionList, Slot};

use super::{Micro, NOTE, Way, columns, per_second, rows, span_ns};
use crate::table::{Experiment, Table};

/// This experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "task-list",
    about: "adds to one list by several threads at once",
    origin: "kernel mailing lists: about 20 % more adds with a lock-free list than with a \
             spin-locked one",
};

/// Measures for 1, 2, … threads.
#[must_use]
pub fn task_list(asked: &Micro<'_>) -> Table {
    let Micro { now_ns, .. } = *asked;
    let all = |threads: u32, add: &(dyn Fn(Slots) + Sync)| {
        let span = span_ns(now_ns, threads, |thread| add(Slots(thread)));
        per_second(u64::from(threads) * u64::from(ADDS), span)
    };
    let spin_lock = |threads| {
        let list = SpinLocked::new(threads * ADDS);
        all(threads, &|slots| slots.each(|slot| list.push(slot)))
    };
    let lock_free = |threads| {
        let (list, _reader) = CompletionList::new(threads * ADDS);
        all(threads, &|slots| {
            slots.each(|slot| {
                let _nobody_sleeps = list.push(Slot::new(slot));
            });
        })
    };
    let mutex = |threads| {
        let list = Mutex::new(Vec::with_capacity((threads * ADDS) as usize));
        let lock = || list.lock().unwrap_or_else(PoisonError::into_inner);
        all(threads, &|slots| slots.each(|slot| lock().push(slot)))
    };
    let crossbeam = |threads| {
        let list = SegQueue::new();
        all(threads, &|slots| slots.each(|slot| list.push(slot)))
    };
    let ways: [Way<'_>; 4] = [
        ("spin lock", &spin_lock),
        ("lock-free", &lock_free),
        ("std::sync::Mutex", &mutex),
        ("crossbeam SegQueue", &crossbeam),
    ];
    let threads = 1..=asked.threads;
    Table {
        experiment: EXPERIMENT,
        columns: columns("adds", "spin_lock"),
        rows: threads
            .flat_map(|threads| rows(&ways, threads, asked.repeats))
            .collect(),
        notes: vec![format!(
            "{ADDS} adds by each thread, {} repeats; {NOTE}",
            asked.repeats
        )],
        panels: Vec::new(),
    }
}

/// What one thread adds.
struct Slots(u32);

impl Slots {
    #[inline]
    fn each(self, add: impl FnMut(u32)) {
        (self.0 * ADDS..(self.0 + 1) * ADDS).for_each(add);
    }
}

/// The same list of slots, linked the same way, under a spin lock.
struct SpinLocked {
    held: AtomicBool,
    head: AtomicU32,
    links: Box<[AtomicU32]>,
}

impl SpinLocked {
    fn new(slots: u32) -> Self {
        Self {
            held: AtomicBool::new(false),
            head: AtomicU32::new(u32::MAX),
            links: (0..slots).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    #[inline]
    fn push(&self, slot: u32) {
        // Acquire and Release are each other's partners; what is between is plain.
        while self.held.swap(true, Ordering::Acquire) {
            while self.held.load(Ordering::Relaxed) {
                spin_loop();
            }
        }
        let newest = self.head.load(Ordering::Relaxed);
        self.links[slot as usize].store(newest, Ordering::Relaxed);
        self.head.store(slot, Ordering::Relaxed);
        self.held.store(false, Ordering::Release);
    }
}

/// Of each thread in one repeat: some milliseconds.
const ADDS: u32 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_threads_has_a_row_for_each_way() {
        let table = task_list(&Micro {
            threads: 2,
            repeats: 1,
            now_ns: &|| 1,
        });
        assert_eq!(table.rows.len(), 8);
        assert!(
            table
                .rows
                .iter()
                .all(|row| row.len() == table.columns.len())
        );
    }
}
