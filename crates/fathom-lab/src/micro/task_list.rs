//! Adding to a list that many threads add to: without a lock, under two locks, and crossbeam's.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crossbeam_queue::SegQueue;
use fathom_core::{CompletionList, Slot};

use super::{Micro, NOTE, Way, columns, per_second, rows, span_ns};
use crate::table::{Cell, Experiment, Table};

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
        columns: columns("adds", &["spin_lock"]),
        rows: threads
            .flat_map(|threads| rows(&ways, 1, threads, asked.repeats))
            .collect(),
        notes: vec![format!(
            "{ADDS} adds by each thread, {} repeats; {NOTE}",
            asked.repeats
        )],
        panels: Vec::new(),
    }
}

/// The same, with what was published beside it.
#[must_use]
pub fn task_list_table(asked: &Micro<'_>) -> Table {
    let mut table = task_list(asked);
    table.columns.push("published_ratio_to_spin_lock".into());
    for row in &mut table.rows {
        let several = row
            .first()
            .is_some_and(|threads| *threads != Cell::Count(1));
        let published = match row.get(1) {
            Some(Cell::Text(way)) if several && way == "spin lock" => Cell::Ratio(1.0),
            Some(Cell::Text(way)) if several && way == "lock-free" => Cell::Ratio(PUBLISHED),
            _ => Cell::Missing,
        };
        row.push(published);
    }
    table
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

/// Of each thread in one repeat: 10 ms and more, so that all of them are at it at the same time; in
/// a hundredth of it one thread is done before the next has been woken.
const ADDS: u32 = 1_000_000;

/// About 20 % more adds; on how many threads was not said.
const PUBLISHED: f64 = 1.2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_published_is_of_several_threads() {
        let table = task_list_table(&Micro {
            threads: 2,
            repeats: 1,
            now_ns: &|| 1,
        });
        let last = |row: usize| table.rows[row].last().cloned();
        assert_eq!(last(1), Some(Cell::Missing));
        assert_eq!(last(5), Some(Cell::Ratio(1.2)));
        assert_eq!(table.rows[5].len(), table.columns.len());
    }

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
